"""Work of the service that is cancelled, killed or told to end, and goes on in another process."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from letters import LETTERS, QUESTION
from playing import playing, task_of
from serving import serving
from wire import Answered, Asked, Said, WireServer

from hgmem import HGMem, Settings
from hgmem.client.serving import ServiceStore

pytestmark = pytest.mark.slow

CORPUS = "service-ends"
QUICK = {"HGMEM_CLAIM_TIMEOUT": "5", "HGMEM_HEARTBEAT": "1", "HGMEM_WORKERS": "2", "HGMEM_CACHED_TASKS": "[]"}
FOUND = '{"entities": [{"name": "Corrie Vane", "type": "person", "description": "A keeper."}], "relations": []}'
PARAGRAPHS = 40


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[HGMem]:
    given = {**settings.model_dump(exclude_none=True), "claim_timeout": 5.0, "heartbeat": 1.0}
    with HGMem.open(CORPUS, **given) as client:
        client.add_graph(LETTERS)
        yield client
        client.delete()


@pytest.fixture(scope="module")
def token(client: HGMem) -> Iterator[str]:
    made, key = ServiceStore(client).make_key("anna", scopes=["read", "ask", "write"], corpora=[CORPUS])
    yield made
    ServiceStore(client).revoke_key(key.uid)


def environment(model: WireServer) -> dict[str, str]:
    return {**QUICK, "HGMEM_MODEL": "wire", "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "any"}


def until(done: Callable[[], Any], *, seconds: float = 120) -> Any:
    """Return what `done` returns once that is true."""
    last = time.monotonic() + seconds
    while not (found := done()):
        assert time.monotonic() < last, "it took too long"
        time.sleep(0.2)
    return found


def uploaded(http: httpx.Client, name: str) -> str:
    text = "\n\n".join(f"Keeper {n} of the light of Corrie Vane wrote line {n}. " * 20 for n in range(PARAGRAPHS))
    response = http.post(f"/corpora/{CORPUS}/documents", params={"name": name}, content=text.encode())
    assert response.status_code == 202, response.text
    return str(response.json()["uid"])


def job(http: httpx.Client, uid: str) -> dict[str, Any]:
    found: dict[str, Any] = http.get(f"/jobs/{uid}").json()
    return found


def ended(http: httpx.Client, uid: str) -> dict[str, Any]:
    until(lambda: job(http, uid)["state"] not in ("waiting", "running"))
    return job(http, uid)


def slowly(_: Asked) -> Said:
    return Said(FOUND, delay=0.5)


def extracted(model: WireServer) -> int:
    return sum("ready" not in asked.user for asked in model.requests)


def test_a_running_job_is_cancelled_and_the_same_upload_goes_on_where_it_stopped(client: HGMem, token: str) -> None:
    with WireServer(slowly) as model, serving(client, **environment(model)) as service, service.http(token) as http:
        first = uploaded(http, "cancelled.txt")
        until(lambda: job(http, first)["done"])
        assert http.delete(f"/jobs/{first}").status_code == 202
        cancelled = ended(http, first)
        asked = extracted(model)
        assert (cancelled["state"], cancelled["result"]) == ("cancelled", None)
        assert 0 < cancelled["done"] <= asked < cancelled["total"]
        assert {row["id"] for row in http.get(f"/corpora/{CORPUS}/documents").json()["items"]} >= {"cancelled.txt"}
        done = ended(http, uploaded(http, "cancelled.txt"))
        assert (done["state"], extracted(model)) == ("done", cancelled["total"]), done
    assert not client.check().findings


def test_a_process_that_is_told_to_end_gives_its_job_back_at_once_and_another_finishes_it(
    client: HGMem, token: str
) -> None:
    with WireServer(slowly) as model, serving(client, **environment(model)) as one, one.http(token) as http:
        uid = uploaded(http, "given-back.txt")
        until(lambda: job(http, uid)["done"])
        began = time.monotonic()
        assert one.stop() == 0
        assert time.monotonic() - began < 20
        assert ServiceStore(client).job(uid).state == "waiting"
        assert one.lines[-1]["event"] == "stopped"
        with serving(client, **environment(model)) as other, other.http(token) as another:
            done = ended(another, uid)
        chunks = [chunk for chunk in client.chunks() if chunk.title == "given-back"]
        assert (done["state"], extracted(model)) == ("done", len(chunks)), done
    assert not client.check().findings


def test_a_job_whose_call_does_not_return_is_given_back_by_a_process_that_ends(client: HGMem, token: str) -> None:
    held = threading.Event()

    def never(asked: Asked) -> Said:
        if "ready" not in asked.user:
            held.wait(60)
        return Said(FOUND)

    with WireServer(never) as model, serving(client, **environment(model)) as one, one.http(token) as http:
        uid = uploaded(http, "held.txt")
        until(lambda: extracted(model))
        assert one.stop() == 0
        assert ServiceStore(client).job(uid).state == "waiting"
        held.set()
    ServiceStore(client).cancel_job(uid)


def test_a_question_of_a_killed_process_goes_on_in_another_and_no_step_is_doubled(client: HGMem, token: str) -> None:
    killed = threading.Event()

    def held(asked: Asked) -> Answered:
        """Reply to the first step, and to the rest once the process is gone."""
        if task_of(asked) == "answer":
            killed.wait(60)
        return playing()(asked)

    path, body = f"/corpora/{CORPUS}/questions", {"question": QUESTION, "steps": 2}
    repeated = {"Idempotency-Key": "killed"}
    before = {one.uid for one in client.memories()}
    with WireServer(held) as model, serving(client, **environment(model)) as other, other.http(token) as http:
        with serving(client, **environment(model)) as one, ThreadPoolExecutor(1) as pool, one.http(token) as first:
            lost = pool.submit(first.post, path, json=body, headers=repeated)
            until(lambda: "answer" in map(task_of, list(model.requests)))
            one.kill()
            with pytest.raises(httpx.HTTPError):
                lost.result(30)
        killed.set()
        assert http.post(path, json=body, headers=repeated).status_code == 409  # its lease is not old yet
        answer = until(lambda: _answer(http.post(path, json=body, headers=repeated)), seconds=30)
    (uid,) = {one.uid for one in client.memories()} - before
    memory = client.memory(uid)
    assert answer["memory"] == uid
    assert [step.number for step in memory.steps] == [1, 2]
    assert len(memory.answers) == 1
    assert not client.check().findings


def test_a_further_question_of_a_killed_process_gets_its_own_answer(client: HGMem, token: str) -> None:
    reached, killed = threading.Event(), threading.Event()

    def held(asked: Asked) -> Answered:
        if "burned" in asked.user and not killed.is_set():
            reached.set()
            killed.wait(60)
        return playing()(asked)

    path = f"/corpora/{CORPUS}/questions"
    memory = client.ask(QUESTION, steps=1, owner="anna").memory
    body = {"question": "Who burned it?", "memory": memory, "steps": 1}
    repeated = {"Idempotency-Key": "further"}
    with WireServer(held) as model, serving(client, **environment(model)) as other, other.http(token) as http:
        with serving(client, **environment(model)) as one, ThreadPoolExecutor(1) as pool, one.http(token) as first:
            lost = pool.submit(first.post, path, json=body, headers=repeated)
            assert reached.wait(60)
            one.kill()
            with pytest.raises(httpx.HTTPError):
                lost.result(30)
        killed.set()
        answer = until(lambda: _answer(http.post(path, json=body, headers=repeated)), seconds=30)
        assert (answer["question"], answer["memory"]) == (body["question"], memory)
        assert _answer(http.post(path, json=body, headers=repeated)) == {**answer, "notes": []}
    assert [one.question for one in client.memory(memory).answers] == [QUESTION, body["question"]]


def _answer(response: httpx.Response) -> dict[str, Any] | None:
    assert response.status_code in (200, 409), response.text
    found: dict[str, Any] = response.json()
    return found if response.status_code == 200 else None

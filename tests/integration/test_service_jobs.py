"""Documents, jobs, repeated requests and limits of the service, with several processes on one database."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest
from dumping import driver
from letters import LETTERS, QUESTION
from playing import playing, task_of
from serving import Service, serving
from wire import Answered, Asked, Failing, Said, WireServer

from hgmem import ConflictError, HGMem, Settings
from hgmem.client.serving import ServiceStore
from hgmem.values.inputs import Repeatable

CORPUS = "service-jobs"
TEXT = b"On 12 October the carter Josse Arkwell left the crate in the Tallow Stairs Warehouse of Marian Dace."


@dataclass
class Team:
    """Two processes of the service on one database, which take over from each other after three seconds."""

    client: HGMem
    one: Service
    two: Service
    token: str


@pytest.fixture(scope="module")
def team(settings: Settings) -> Iterator[Team]:
    quick = {"HGMEM_CLAIM_TIMEOUT": "5", "HGMEM_HEARTBEAT": "1"}
    given = {**settings.model_dump(exclude_none=True), "claim_timeout": 5.0, "heartbeat": 1.0}
    with HGMem.open(CORPUS, **given) as client:
        client.add_graph(LETTERS)
        token, key = ServiceStore(client).make_key("anna", scopes=["read", "ask", "write"], corpora=[CORPUS])
        with serving(client, **quick) as one, serving(client, **quick) as two:
            yield Team(client, one, two, token)
        ServiceStore(client).revoke_key(key.uid)
        client.delete()


def ended(http: httpx.Client, job: str, *, seconds: float = 240) -> dict[str, object]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found: dict[str, object] = http.get(f"/jobs/{job}").json()
        if found["state"] not in ("waiting", "running"):
            return found
        time.sleep(0.3)
    raise AssertionError(f"job {job} did not end: {found}")


def sent(http: httpx.Client, name: str, data: bytes = TEXT, **headers: str) -> httpx.Response:
    return http.post(f"/corpora/{CORPUS}/documents", params={"name": name}, content=data, headers=headers)


def test_an_upload_is_indexed_by_either_process_under_its_name_and_deleted(team: Team) -> None:
    with team.one.http(team.token) as one, team.two.http(team.token) as two:
        response = sent(one, "log.txt")
        assert response.status_code == 202, response.text
        done = ended(two, response.json()["uid"])
        assert (done["state"], done["error"]) == ("done", ""), done
        assert done["result"]["documents"] == 1  # type: ignore[index]
        listed = {row["id"]: row for row in two.get(f"/corpora/{CORPUS}/documents").json()["items"]}
        assert listed["log.txt"]["source"] == "log.txt"
        again = ended(one, sent(two, "log.txt").json()["uid"])
        assert (again["result"]["documents"], again["result"]["unchanged"]) == (0, 1)  # type: ignore[index]
        rows = ended(one, sent(one, "rows.csv", b"id,text\na,Ann keeps bees.\n,Ben keeps cats.\n").json()["uid"])
        assert rows["result"]["documents"] == 2, rows  # type: ignore[index]
        ids = {row["id"] for row in two.get(f"/corpora/{CORPUS}/documents").json()["items"]}
        assert not any("/" in name for name in ids - {"letters"})
        assert one.delete(f"/corpora/{CORPUS}/documents/log.txt").json() == {"deleted": 1}
        assert one.delete(f"/corpora/{CORPUS}/documents/log.txt").status_code == 404


@pytest.mark.parametrize(
    ("name", "data", "status", "said"),
    [
        ("../etc/passwd", TEXT, 422, "is no name of a file"),
        ("a.exe", TEXT, 422, "suffix '.exe' is not supported"),
        ("", TEXT, 422, "is no name of a file"),
        ("large.txt", b"x" * 20_000_001, 413, "more than the limit of 20,000,000"),
    ],
)
def test_a_wrong_upload_is_refused_at_once(team: Team, name: str, data: bytes, status: int, said: str) -> None:
    with team.one.http(team.token) as http:
        before = len(http.get(f"/corpora/{CORPUS}/jobs").json()["items"])
        response = sent(http, name, data)
        assert (response.status_code, said in response.json()["detail"]) == (status, True), response.text
        assert len(http.get(f"/corpora/{CORPUS}/jobs").json()["items"]) == before


def test_an_upload_without_a_length_is_cut_off_at_the_limit(team: Team) -> None:
    with team.one.http(team.token) as http:
        response = http.post(
            f"/corpora/{CORPUS}/documents", params={"name": "a.txt"}, content=iter([b"x" * 1_000_000] * 21)
        )
    assert (response.status_code, response.json()["detail"]) == (
        413,
        "the body has more than 20,000,000 bytes: send less",
    )


def test_a_file_that_cannot_be_read_fails_its_job_with_a_line_that_names_no_path(team: Team) -> None:
    with team.one.http(team.token) as http:
        failed = ended(http, sent(http, "bad.json", b"{").json()["uid"])
    assert failed["state"] == "failed"
    assert "bad.json" in str(failed["error"])
    assert "/tmp" not in str(failed["error"])


def test_the_same_idempotency_key_makes_one_job_in_both_processes(team: Team) -> None:
    with team.one.http(team.token) as one, team.two.http(team.token) as two:
        first = sent(one, "twice.txt", **{"Idempotency-Key": "t1"}).json()
        second = sent(two, "twice.txt", **{"Idempotency-Key": "t1"}).json()
        assert second["uid"] == first["uid"]
        other = sent(two, "other.txt", **{"Idempotency-Key": "t1"})
        assert (other.status_code, "was sent with another request" in other.json()["detail"]) == (409, True)
        assert ended(one, first["uid"])["attempts"] == 1


def test_a_question_that_is_repeated_gives_its_answer_again(team: Team) -> None:
    body = {"question": QUESTION, "steps": 1}
    headers = {"Idempotency-Key": "q1"}
    with team.one.http(team.token) as one, team.two.http(team.token) as two:
        path = f"/corpora/{CORPUS}/questions"
        first, second = (http.post(path, json=body, headers=headers).json() for http in (one, two))
        assert (second["memory"], second["answer"]) == (first["memory"], first["answer"])
        assert len([one for one in team.client.memories() if one.uid == first["memory"]]) == 1
        assert two.post(path, json={**body, "steps": 2}, headers=headers).status_code == 409


@pytest.fixture
def failing(team: Team) -> Iterator[tuple[httpx.Client, list[int]]]:
    """A client of a service whose model fails to answer as long as the list holds something."""
    fails: list[int] = []

    def answer(asked: Asked) -> Answered:
        return Failing(400, "no answer today") if fails and task_of(asked) == "answer" else playing()(asked)

    with WireServer(answer) as model:
        wire = {"HGMEM_MODEL": "wire", "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "any"}
        with serving(team.client, HGMEM_CACHED_TASKS="[]", **wire) as service, service.http(team.token) as http:
            yield http, fails


def test_a_question_whose_process_was_killed_before_it_kept_its_memory_goes_on_with_it(team: Team) -> None:
    path, body, headers = f"/corpora/{CORPUS}/questions", {"question": QUESTION, "steps": 1}, {"Idempotency-Key": "cut"}
    with team.one.http(team.token) as one, team.two.http(team.token) as two:
        first = one.post(path, json=body, headers=headers).json()
        before = len(team.client.memories())
        with driver(team.client.settings) as opened:
            forgotten = "MATCH (j:Job {memory: $memory}) REMOVE j.memory, j.question, j.answers RETURN j"
            assert len(opened.execute_query(forgotten, memory=first["memory"]).records) == 1
        again = two.post(path, json=body, headers=headers).json()
    assert (again["memory"], again["uid"]) == (first["memory"], first["uid"])
    assert len(team.client.memories()) == before


async def test_a_repetition_is_refused_if_its_question_was_answered_after_it_looked(team: Team) -> None:
    store, memory = ServiceStore(team.client), team.client.ask(QUESTION, steps=1, owner="anna").memory
    key = next(key for key in store.service_keys() if key.owner == "anna" and CORPUS in key.corpora)
    with pytest.raises(ConflictError):
        async for _ in store.astream_within(key, "", {"memory": memory}, once=Repeatable(answers=0)):
            pass
    assert len(team.client.memory(memory).answers) == 1
    async for _ in store.astream_within(key, "", {"memory": memory}, once=Repeatable(answers=1)):
        pass
    assert len(team.client.memory(memory).answers) == 2


def test_a_question_without_an_answer_is_repeated_without_another_step(
    team: Team, failing: tuple[httpx.Client, list[int]]
) -> None:
    http, _ = failing
    body = {"question": QUESTION, "recipe": "paper", "steps": 1, "answer": False}
    headers = {"Idempotency-Key": "unanswered"}
    first, again = (http.post(f"/corpora/{CORPUS}/questions", json=body, headers=headers).json() for _ in range(2))
    assert (first["status"], again["status"]) == ("unanswered", "unanswered")
    assert again["memory"] == first["memory"]
    assert [point["uid"] for point in again["points"]] == [point["uid"] for point in first["points"]]
    assert len(team.client.memory(first["memory"]).steps) == 1


def test_a_question_that_failed_and_is_repeated_gets_its_own_answer_though_its_text_was_answered_before(
    team: Team, failing: tuple[httpx.Client, list[int]]
) -> None:
    http, fails = failing
    path = f"/corpora/{CORPUS}/questions"
    first = http.post(path, json={"question": QUESTION, "steps": 1}).json()
    body, headers = {"question": QUESTION, "steps": 1, "memory": first["memory"]}, {"Idempotency-Key": "same text"}
    fails.append(1)
    assert http.post(path, json=body, headers=headers).status_code >= 400
    fails.clear()
    again = http.post(path, json=body, headers=headers).json()
    assert again["uid"] != first["uid"]
    assert http.post(path, json=body, headers=headers).json()["uid"] == again["uid"]
    later = http.post(path, json=body).json()
    assert http.post(path, json=body, headers=headers).json()["uid"] == again["uid"]
    answers = [one.uid for one in team.client.memory(first["memory"]).answers]
    assert answers == [first["uid"], again["uid"], later["uid"]]


def test_a_question_of_a_system_that_continues_no_memory_is_asked_anew_if_it_failed(
    failing: tuple[httpx.Client, list[int]],
) -> None:
    http, fails = failing
    path, body = f"/corpora/{CORPUS}/questions", {"question": QUESTION, "system": "hybrid"}
    headers = {"Idempotency-Key": "not continued"}
    fails.append(1)
    assert http.post(path, json=body, headers=headers).status_code >= 400
    fails.clear()
    answer = http.post(path, json=body, headers=headers)
    assert (answer.status_code, answer.json()["status"]) == (200, "answered")
    assert http.post(path, json=body, headers=headers).json()["uid"] == answer.json()["uid"]


def test_a_request_that_was_refused_can_be_sent_again_at_once(team: Team) -> None:
    store = ServiceStore(team.client)
    token, key = store.make_key("anna", corpora=[CORPUS], questions_per_minute=1)
    path, headers = f"/corpora/{CORPUS}/questions", {"Idempotency-Key": "limited"}
    with team.one.http(token) as http:
        assert http.post(path, json={"question": QUESTION, "system": "naive"}).status_code == 200
        refused = [http.post(path, json={"question": QUESTION}, headers=headers) for _ in range(2)]
    assert [one.status_code for one in refused] == [429, 429]
    store.revoke_key(key.uid)


def test_a_question_that_failed_is_not_repeated_once_its_memory_was_asked_another(
    team: Team, failing: tuple[httpx.Client, list[int]]
) -> None:
    http, fails = failing
    path, headers = f"/corpora/{CORPUS}/questions", {"Idempotency-Key": "overtaken"}
    memory = http.post(path, json={"question": QUESTION, "steps": 1}).json()["memory"]
    body = {"question": "Who burned it?", "steps": 1, "memory": memory}
    fails.append(1)
    assert http.post(path, json=body, headers=headers).status_code >= 400
    fails.clear()
    other = http.post(path, json={**body, "question": "Where is the pier?"})
    assert other.status_code == 200, other.text
    refused = http.post(path, json=body, headers=headers)
    assert (refused.status_code, "was asked another question" in refused.json()["detail"]) == (409, True)
    assert [one.question for one in team.client.memory(memory).answers] == [QUESTION, "Where is the pier?"]


def test_a_job_of_a_killed_process_is_done_by_the_other_and_nothing_is_doubled(
    team: Team, open_client: Callable[..., HGMem]
) -> None:
    plain = open_client()
    text = "\n\n".join(f"Keeper number {n} of the lighthouse of Corrie Vane wrote line {n}. " * 20 for n in range(40))
    killed, asked = threading.Event(), itertools.count()

    def some(_: object) -> Said:
        if next(asked) >= 4:
            killed.wait(150)  # so the job is not done before
        return Said('{"entities": [{"name": "Corrie Vane", "type": "person", "description": "A keeper."}]}')

    with WireServer(some) as model, team.two.http(team.token) as two:
        env = {
            "HGMEM_CLAIM_TIMEOUT": "5",
            "HGMEM_HEARTBEAT": "1",
            "HGMEM_WORKERS": "2",
            "HGMEM_MODEL": "wire",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "any",
        }
        team.one.stop()
        team.two.process.send_signal(19)  # SIGSTOP: the third process takes the job
        with serving(team.client, **env) as third, third.http(team.token) as http:
            job = sent(http, "long.txt", text.encode()).json()["uid"]
            until = time.monotonic() + 120
            while not (http.get(f"/jobs/{job}").json()["done"] or time.monotonic() > until):
                time.sleep(0.2)
            third.kill()
            killed.set()
        team.two.process.send_signal(18)
        done = ended(two, job)
    assert (done["state"], done["attempts"]) == ("done", 2), done
    chunks = [one for one in team.client.chunks() if one.title == "long"]
    assert len({one.uid for one in chunks}) == len(chunks) > 2
    assert not team.client.check().findings
    assert plain.corpus != CORPUS


def test_a_job_that_waits_is_cancelled_and_is_never_begun(team: Team) -> None:
    with team.two.http(team.token) as http:
        build = http.post(f"/corpora/{CORPUS}/jobs", json={"kind": "build", "system": "none"})
        assert (build.status_code, "'none'" in build.json()["detail"]) == (400, True)
        job = http.post(f"/corpora/{CORPUS}/jobs", json={"kind": "retry"}).json()["uid"]
        http.delete(f"/jobs/{job}")
        assert ended(http, job)["state"] in ("cancelled", "done")
        assert http.get("/jobs/j0").status_code == 404


def test_limits_hold_over_both_processes_and_say_how_long(team: Team) -> None:
    token, key = ServiceStore(team.client).make_key(
        "carl", scopes=["ask", "write"], questions_per_minute=2, bytes_per_day=len(TEXT) + 5, corpora=[CORPUS]
    )
    path, body = f"/corpora/{CORPUS}/questions", {"question": QUESTION, "system": "naive"}
    with serving(team.client) as other, other.http(token) as one, team.two.http(token) as two:
        if (second := time.time() % 60) > 30:
            time.sleep(60.5 - second)  # so that the minute does not end in between
        found = [http.post(path, json=body) for http in (one, two, one)]
        assert [response.status_code for response in found] == [200, 200, 429]
        assert found[2].json()["detail"].startswith("this key is limited to 2 questions a minute: try again in ")
        assert 0 < int(found[2].headers["retry-after"]) <= 60
        assert [sent(http, "a.txt").status_code for http in (one, two)] == [202, 429]
    ServiceStore(team.client).revoke_key(key.uid)

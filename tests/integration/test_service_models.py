"""The service with a language model: tokens that a key may use, and a process that is told to end in a question."""

import signal
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from letters import LETTERS, QUESTION
from playing import playing, task_of
from serving import events_of, serving
from wire import Answered, Asked, Failing, WireServer

from hgmem import HGMem, Settings
from hgmem.client.serving import ServiceStore
from hgmem.service.app import GRACE

CORPUS = "service-models"


@pytest.fixture
def client(settings: Settings) -> Iterator[HGMem]:
    with HGMem.open(CORPUS, **settings.model_dump(exclude_none=True)) as client:
        client.add_graph(LETTERS)
        yield client
        client.delete()


def environment(model: WireServer) -> dict[str, str]:
    return {"HGMEM_MODEL": "wire", "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "any"}


def test_tokens_of_a_day_are_counted_and_end_with_the_limit(client: HGMem) -> None:
    token, key = ServiceStore(client).make_key("anna", corpora=[CORPUS], tokens_per_day=50)
    body, path = {"question": QUESTION, "steps": 1}, f"/corpora/{CORPUS}/questions"
    with WireServer(playing()) as model, serving(client, **environment(model)) as service, service.http(token) as http:
        first, second = http.post(path, json=body), http.post(path, json=body)
    assert first.status_code in (200, 429)  # the budget may end it before its answer
    assert model.requests
    assert second.status_code == 429
    assert second.json()["detail"].startswith("this key is limited to 50 tokens a day: try again in ")
    assert 0 < int(second.headers["retry-after"]) <= 86_400
    ServiceStore(client).revoke_key(key.uid)


def test_a_process_that_is_told_to_end_leaves_its_question_to_be_continued(client: HGMem) -> None:
    token, key = ServiceStore(client).make_key("anna", corpora=[CORPUS])
    body, memory, told = {"question": QUESTION, "steps": 3}, "", list[float]()

    def held(asked: Asked) -> Answered:
        """Reply after the process has given up waiting, from the answer on."""
        while task_of(asked) == "answer" and not told:
            time.sleep(0.1)
        if told:
            time.sleep(max(0.0, told[0] + GRACE + 2 - time.monotonic()))
        return playing()(asked)

    with WireServer(held) as model, serving(client, **environment(model)) as service, service.http(token) as http:
        accept = {"Accept": "text/event-stream"}
        try:
            with http.stream("POST", f"/corpora/{CORPUS}/questions", json=body, headers=accept) as response:
                for name, event in events_of(response):
                    memory = memory or event["memory"]
                    if name == "Planned" and service.process.poll() is None:
                        service.process.send_signal(signal.SIGTERM)
                        told.append(time.monotonic())
        except httpx.RemoteProtocolError:
            pass  # the process has cut the connection
        assert service.process.wait(60) == 0  # not told again, which would interrupt what it still does
    stored = client.memory(memory)
    assert (stored.status, stored.owner) == ("interrupted", "anna")
    assert stored.steps
    assert client.ask(memory=memory, steps=1).text
    ServiceStore(client).revoke_key(key.uid)


def test_the_log_says_why_a_question_failed_whose_reader_has_left(client: HGMem) -> None:
    token, key = ServiceStore(client).make_key("anna", corpora=[CORPUS])
    goes_on, begun = threading.Event(), threading.Event()

    def held(asked: Asked) -> Answered:
        if task_of(asked) == "answer":
            begun.set()
            goes_on.wait(60)
            return Failing(400, "no answer today")
        return playing()(asked)

    path, body = f"/corpora/{CORPUS}/questions?keep=true", {"question": QUESTION, "steps": 1}
    with WireServer(held) as model, serving(client, **environment(model)) as service:
        with service.http(token) as http:
            with http.stream("POST", path, json=body, headers={"Accept": "text/event-stream"}) as response:
                memory = next(event["memory"] for _, event in events_of(response))
                begun.wait(60)
            time.sleep(1)  # the process sees who has left
            goes_on.set()
            for _ in range(100):
                if client.memory(memory).status == "interrupted":
                    break
                time.sleep(0.1)
        service.stop()
        (said,) = [line["error"] for line in service.lines if line["event"] == "failed"]
        assert "no answer today" in said
    ServiceStore(client).revoke_key(key.uid)


@pytest.mark.parametrize("ends", ["left", "kept", "stopped", "stopped elsewhere"])
def test_a_question_whose_reader_leaves_ends_or_is_kept_until_it_is_stopped(client: HGMem, ends: str) -> None:
    token, key = ServiceStore(client).make_key("anna", corpora=[CORPUS])
    goes_on, begun = threading.Event(), threading.Event()

    def held(asked: Asked) -> Answered:
        if task_of(asked) == "answer":
            begun.set()
            goes_on.wait(60)
        return playing()(asked)

    keep, body = "?keep=true" if ends != "left" else "", {"question": QUESTION, "steps": 1}
    with WireServer(held) as model, serving(client, **environment(model)) as service, service.http(token) as http:
        accept = {"Accept": "text/event-stream"}
        with http.stream("POST", f"/corpora/{CORPUS}/questions{keep}", json=body, headers=accept) as response:
            memory = next(event["memory"] for _, event in events_of(response))
            begun.wait(60)
        if ends == "stopped":
            assert http.post(f"/memories/{memory}/stop").status_code == 204
        if ends == "stopped elsewhere":
            with serving(client, **environment(model)) as other, other.http(token) as another:
                assert another.post(f"/memories/{memory}/stop").status_code == 204
        if ends.startswith("stopped"):
            assert client.memory(memory).status == "interrupted"  # at once
        time.sleep(1)  # the process sees who has left
        goes_on.set()
        expected = "answered" if ends == "kept" else "interrupted"
        for _ in range(100):
            if client.memory(memory).status == expected:
                break
            time.sleep(0.1)
        time.sleep(0.5)
        stored = client.memory(memory)
        assert (stored.status, len(stored.answers)) == (expected, ends == "kept")
        if ends != "kept":
            assert http.post(f"/corpora/{CORPUS}/questions", json={"memory": memory}).json()["answer"]
    ServiceStore(client).revoke_key(key.uid)

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


class Held:
    """A model that answers once it may go on: with `reply`, or as usual without one."""

    def __init__(self, reply: Answered | None = None) -> None:
        self.reply = reply
        self.goes_on, self.begun = threading.Event(), threading.Event()

    def __call__(self, asked: Asked) -> Answered:
        if task_of(asked) == "answer":
            self.begun.set()
            self.goes_on.wait(60)
            if self.reply is not None:
                return self.reply
        return playing()(asked)

    def left(self, http: httpx.Client, *, keep: bool) -> str:
        """Return the memory (uid) of a question whose reader leaves while the model answers."""
        path, body = f"/corpora/{CORPUS}/questions{'?keep=true' if keep else ''}", {"question": QUESTION, "steps": 1}
        with http.stream("POST", path, json=body, headers={"Accept": "text/event-stream"}) as response:
            events = events_of(response)  # held until the end: to drop it closes the connection
            memory: str = next(event["memory"] for _, event in events)
            assert self.begun.wait(60)
        return memory

    def answer(self, client: HGMem, memory: str, *, expected: str) -> None:
        """Let the model answer once the process has seen who has left, and wait until the memory is as expected."""
        time.sleep(1)
        self.goes_on.set()
        for _ in range(100):
            if client.memory(memory).status == expected:
                break
            time.sleep(0.1)


def test_the_log_says_why_a_question_failed_whose_reader_has_left(client: HGMem) -> None:
    token, key = ServiceStore(client).make_key("anna", corpora=[CORPUS])
    held = Held(Failing(400, "no answer today"))
    with WireServer(held) as model, serving(client, **environment(model)) as service:
        with service.http(token) as http:
            held.answer(client, held.left(http, keep=True), expected="interrupted")
        service.stop()
        (said,) = [line["error"] for line in service.lines if line["event"] == "failed"]
        assert "no answer today" in said
    ServiceStore(client).revoke_key(key.uid)


@pytest.mark.parametrize("ends", ["left", "kept", "stopped", "stopped elsewhere"])
def test_a_question_whose_reader_leaves_ends_or_is_kept_until_it_is_stopped(client: HGMem, ends: str) -> None:
    token, key = ServiceStore(client).make_key("anna", corpora=[CORPUS])
    held = Held()
    with WireServer(held) as model, serving(client, **environment(model)) as service, service.http(token) as http:
        memory = held.left(http, keep=ends != "left")
        if ends == "stopped":
            assert http.post(f"/memories/{memory}/stop").status_code == 204
        if ends == "stopped elsewhere":
            with serving(client, **environment(model)) as other, other.http(token) as another:
                assert another.post(f"/memories/{memory}/stop").status_code == 204
        if ends.startswith("stopped"):
            assert client.memory(memory).status == "interrupted"  # at once
        expected = "answered" if ends == "kept" else "interrupted"
        held.answer(client, memory, expected=expected)
        time.sleep(0.5)
        stored = client.memory(memory)
        assert (stored.status, len(stored.answers)) == (expected, ends == "kept")
        if ends != "kept":
            assert http.post(f"/corpora/{CORPUS}/questions", json={"memory": memory}).json()["answer"]
    ServiceStore(client).revoke_key(key.uid)

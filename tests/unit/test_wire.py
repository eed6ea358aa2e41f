"""The fake model server, tested with the official client."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import openai
import pytest
from wire import MODELS, SCHEMA_REFUSED, Answer, Dropped, Embedded, Embedding, Failing, Said, WireServer, too_many

from hgmem.testing import DeterministicEmbedder

MESSAGES = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "where is the orrery"}]
SAID = "It is  hidden\nin the crypt."


def client(server: WireServer, *, timeout: float = 10.0) -> openai.OpenAI:
    return openai.OpenAI(base_url=server.base_url, api_key="secret", max_retries=0, timeout=timeout)


def ask(server: WireServer, **more):
    with client(server) as asking:
        return asking.chat.completions.create(model="m", messages=MESSAGES, **more)


def stream(server: WireServer, got: list, **more) -> None:
    with client(server) as asking:
        got.extend(asking.chat.completions.create(model="m", messages=MESSAGES, stream=True, **more))


def test_a_completion_comes_back_with_the_tokens_that_the_server_counts():
    with WireServer(lambda asked: Said(SAID, cached=2)) as server:
        got = ask(server)

    assert (got.choices[0].message.content, got.choices[0].finish_reason) == (SAID, "stop")
    assert (got.usage.prompt_tokens, got.usage.completion_tokens) == (6, 6)
    assert got.usage.prompt_tokens_details.cached_tokens == 2
    assert (server.answered, server.prompt_tokens, server.completion_tokens, server.cached_tokens) == (1, 6, 6, 2)


def test_the_answer_is_given_what_was_asked():
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}
    with WireServer(lambda asked: Said(f"{asked.number} {asked.system}|{asked.user}|{asked.model}")) as server:
        texts = [ask(server, response_format=schema).choices[0].message.content for _ in range(2)]
        ask(server)

    assert texts == ["1 be brief|where is the orrery|m", "2 be brief|where is the orrery|m"]
    first, _, last = server.requests
    assert (first.format, first.schema, last.format, last.schema) == ("json_schema", {"type": "object"}, None, None)
    assert first.headers["authorization"] == "Bearer secret"
    assert first.path == "/v1/chat/completions"


@pytest.mark.parametrize("counting", [True, False])
def test_a_stream_is_the_same_text_in_pieces_and_is_counted_where_that_was_asked_for(counting: bool):
    more = {"stream_options": {"include_usage": True}} if counting else {}
    with WireServer(lambda asked: Said(SAID, reasoning="so so")) as server:
        stream(server, pieces := [], **more)

    texts = [piece.choices[0].delta.content for piece in pieces if piece.choices and piece.choices[0].delta.content]
    assert len(texts) == 6
    assert "".join(texts) == SAID
    assert [piece.usage.completion_tokens for piece in pieces if piece.usage] == ([8] if counting else [])
    assert (server.answered, server.completion_tokens) == (1, 8 if counting else 0)


def test_what_was_not_reported_is_not_counted():
    with WireServer(lambda asked: Said(SAID, usage=False, finish="length", reasoning="hm")) as server:
        got = ask(server)

    assert got.usage is None
    assert got.choices[0].finish_reason == "length"
    assert got.choices[0].message.reasoning_content == "hm"
    assert (server.answered, server.prompt_tokens, server.completion_tokens) == (1, 0, 0)


@pytest.mark.parametrize(
    ("does", "error", "said"),
    [
        (too_many(3), openai.RateLimitError, "Rate limit"),
        (Failing(500, "out of order"), openai.InternalServerError, "out of order"),
        (Failing(502, raw="<h1>Bad Gateway</h1>"), openai.InternalServerError, "502"),
        (SCHEMA_REFUSED, openai.BadRequestError, "json_schema"),
        (Dropped(), openai.APIConnectionError, "Connection"),
    ],
)
def test_what_fails_is_the_error_that_a_real_server_causes(does: Failing | Dropped, error: type[Exception], said: str):
    with WireServer(lambda asked: does) as server, pytest.raises(error, match=said):
        ask(server)

    assert (len(server.requests), server.answered) == (1, 0)


def test_a_429_says_when_to_come_back():
    with WireServer(lambda asked: too_many(3)) as server, pytest.raises(openai.RateLimitError) as caught:
        ask(server)

    assert caught.value.response.headers["retry-after"] == "3"


def test_a_stream_that_is_dropped_breaks_after_so_many_pieces():
    got: list = []
    with WireServer(lambda asked: Dropped(after=3)) as server, pytest.raises(openai.APIConnectionError):
        stream(server, got)

    assert len(got) == 3
    assert server.answered == 0


def test_a_slow_one_is_later_than_the_client_waits():
    with (
        WireServer(lambda asked: Said("late", delay=5)) as server,
        client(server, timeout=0.1) as asking,
        pytest.raises(openai.APITimeoutError),
    ):
        asking.chat.completions.create(model="m", messages=MESSAGES)


def test_the_most_at_once_is_what_was_really_under_way_together():
    barrier = threading.Barrier(3)

    def together(asked: object) -> Said:
        barrier.wait(5)
        return Said("x")

    with WireServer(together) as server, ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: ask(server), range(6)))
    with WireServer(lambda asked: Said("x")) as alone:
        for _ in range(5):
            ask(alone)

    assert (server.most_at_once, server.answered) == (3, 6)
    assert alone.most_at_once == 1


@pytest.mark.parametrize("form", [{}, {"encoding_format": "float"}])
def test_embeddings_are_those_of_the_deterministic_embedder_in_either_form(form: dict[str, str]):
    texts = ["the orrery", "the Heron Seal", "a crypt"]
    with WireServer(lambda asked: Said("")) as server, client(server) as asking:
        got = asking.embeddings.create(model="e", input=texts, **form).data
        short = asking.embeddings.create(model="e", input="one", dimensions=8).data

    found = np.array([row.embedding for row in got], dtype=np.float32)
    np.testing.assert_allclose(found, DeterministicEmbedder().embed(texts, kind="document"), atol=1e-7)
    assert len(short[0].embedding) == 8
    assert [each.texts for each in server.embedded] == [texts, ["one"]]
    assert [each.body["encoding_format"] for each in server.embedded] == [
        form.get("encoding_format", "base64"),
        "base64",
    ]
    assert server.requests == []


def test_embeddings_misbehave_on_demand():
    turns: list[Callable[[], object]] = [lambda: Failing(500), lambda: Embedded(backwards=True)]
    embedding: Embedding = lambda asked: turns[asked.number - 1]()  # noqa: E731
    with WireServer(lambda asked: Said(""), embedding=embedding) as server, client(server) as asking:
        with pytest.raises(openai.InternalServerError):
            asking.embeddings.create(model="e", input=["a"])
        assert [row.index for row in asking.embeddings.create(model="e", input=["a", "b"]).data] == [1, 0]


def test_an_empty_text_is_refused_as_openai_refuses_it():
    with (
        WireServer(lambda asked: Said("")) as server,
        client(server) as asking,
        pytest.raises(openai.BadRequestError, match="input"),
    ):
        asking.embeddings.create(model="e", input=["a", ""])


def test_the_models_are_listed():
    with WireServer(lambda asked: Said("")) as server, client(server) as asking:
        assert [model.id for model in asking.models.list()] == list(MODELS)
        with pytest.raises(openai.NotFoundError):
            asking.models.retrieve("other")


def test_a_server_that_is_closed_is_gone_at_once_even_for_those_who_were_connected():
    with WireServer(lambda asked: Said("x", delay=30 * (asked.number - 1))) as server:
        asking = client(server)
        asking.chat.completions.create(model="m", messages=MESSAGES)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(asking.chat.completions.create, model="m", messages=MESSAGES)
            while len(server.requests) < 2:
                time.sleep(0.01)
            began = time.monotonic()
            server.close()
            waiting.exception(5)
    assert time.monotonic() - began < 1
    with pytest.raises(openai.APIConnectionError):
        asking.chat.completions.create(model="m", messages=MESSAGES)
    asking.close()


def test_an_answer_that_raises_is_told_to_the_client_and_to_the_test():
    wrong: Answer = lambda asked: Said(asked.messages[9])  # type: ignore[arg-type]  # noqa: E731

    def run() -> None:
        with WireServer(wrong) as server, pytest.raises(openai.InternalServerError, match="IndexError"):
            ask(server)

    with pytest.raises(IndexError):
        run()

"""The OpenAI interface over real HTTP: requests, replies, and the error for each refusal."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime, formatdate
from typing import Any

import pytest
from wire import (
    FORMAT_REFUSED,
    OBJECT_REFUSED,
    SCHEMA_REFUSED,
    Answered,
    Asked,
    Dropped,
    Failing,
    Said,
    WireServer,
    too_many,
)

from hgmem.errors import ModelError
from hgmem.models.llm.chat import Completion, Format, FormatRefusedError, Request, Sampling, UnavailableError
from hgmem.models.llm.openai_chat import OpenAIChat
from hgmem.models.llm.openai_server import retry_after
from hgmem.models.prompts import Message

KEY = "sk-this-is-a-secret"
TEXT = Request(
    task="plan",
    messages=(Message(role="system", content="Be brief."), Message(role="user", content="Where is it?")),
    sampling=Sampling(temperature=0.5, top_p=0.9, max_tokens=100, seed=7),
)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
WITH_SCHEMA = replace(TEXT, format="json_schema", schema=SCHEMA)


def chat(server: WireServer, *, timeout: float = 10.0) -> OpenAIChat:
    return OpenAIChat("m", base_url=server.base_url, api_key=KEY, timeout=timeout)


def complete(*answered: Answered, request: Request = TEXT, timeout: float = 10.0) -> Completion:
    """Return the completion by a server with these replies, one per request."""
    script = iter(answered)
    with WireServer(lambda _: next(script)) as server:
        return chat(server, timeout=timeout).complete(request)


def test_a_request_is_sent_as_it_is_said() -> None:
    with WireServer(lambda _: Said("{}", cached=2)) as server:
        done = chat(server).complete(WITH_SCHEMA)
        (asked,) = server.requests
        assert done == Completion(text="{}", prompt_tokens=5, completion_tokens=1, cached_tokens=2)
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it?"}],
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 100,
        "response_format": {"type": "json_schema", "json_schema": {"name": "plan", "strict": True, "schema": SCHEMA}},
    }


@pytest.mark.parametrize(("wanted", "sent"), [("text", None), ("json_object", "json_object")])
def test_other_formats_are_asked_for_without_a_schema(wanted: Format, sent: str | None) -> None:
    with WireServer(lambda _: Said("{}")) as server:
        chat(server).complete(replace(TEXT, format=wanted))
        assert (server.requests[0].format, server.requests[0].schema) == (sent, None)


def test_what_is_left_to_the_server_is_not_sent() -> None:
    with WireServer(lambda _: Said("yes")) as server:
        chat(server).complete(replace(TEXT, sampling=Sampling(temperature=None)))
        assert server.requests[0].body.keys() == {"model", "messages", "max_tokens"}


@pytest.mark.parametrize(
    ("said", "completion"),
    [
        (Said("half", finish="length", usage=False), Completion(text="half", cut=True)),
        (Said(None, reasoning="hm", usage=False), Completion(text="")),
        (Said("", reasoning="hm", usage=False), Completion(text="")),
        (Said("a\n b", usage=False), Completion(text="a\n b")),
    ],
)
def test_a_completion_says_what_came_back(said: Said, completion: Completion) -> None:
    assert complete(said) == completion


def test_halves_of_characters_are_sent_as_something_that_can_be() -> None:
    with WireServer(lambda _: Said("yes")) as server:
        chat(server).complete(replace(TEXT, messages=(Message(role="user", content="a\ud800\0b"),)))
        assert server.requests[0].user == "a�b"


# Unsupported parameters ---------------------------------------------------------------------------------------


def refusing(name: str, *, param: str | None = None, status: int = 400) -> Callable[[Asked], Answered]:
    said = f"Unsupported parameter: '{name}' is not supported with this model. Use something else instead."
    return lambda asked: Failing(status, said, param=param) if name in asked.body else Said("yes")


@pytest.mark.parametrize("name", ["temperature", "top_p", "seed"])
@pytest.mark.parametrize("status", [400, 422])
def test_a_parameter_that_is_refused_is_left_out_from_then_on(name: str, status: int) -> None:
    with WireServer(refusing(name, status=status)) as server:
        talking = chat(server)
        assert [talking.complete(TEXT).text for _ in range(2)] == ["yes", "yes"]
        assert [name in asked.body for asked in server.requests] == [True, False, False]
        assert all(asked.body["max_tokens"] == 100 for asked in server.requests)


@pytest.mark.parametrize(
    "message",
    ["Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens'.", "no"],
)
def test_the_token_limit_is_called_what_the_server_calls_it(message: str) -> None:
    def answer(asked: Asked) -> Answered:
        param = "max_tokens" if message == "no" else None
        return Failing(400, message, param=param) if "max_tokens" in asked.body else Said("yes")

    with WireServer(answer) as server:
        talking = chat(server)
        assert [talking.complete(TEXT).text for _ in range(2)] == ["yes", "yes"]
        assert [asked.body.get("max_completion_tokens") for asked in server.requests] == [None, 100, 100]


def test_a_server_that_refuses_a_parameter_under_both_names_is_an_error() -> None:
    with WireServer(lambda _: Failing(400, "max_tokens, max_completion_tokens: no")) as server:
        with pytest.raises(ModelError, match="rejected the request of task 'plan': max_tokens"):
            chat(server).complete(TEXT)
        assert len(server.requests) == 2


def test_a_token_limit_that_is_too_large_is_an_error_and_keeps_its_name() -> None:
    with WireServer(lambda _: Failing(400, "max_tokens is too large: 100. It must be at most 50.")) as server:
        with pytest.raises(ModelError, match="too large: 100") as raised:
            chat(server).complete(TEXT)
        assert (len(server.requests), raised.value.retryable) == (1, False)


def test_several_refusals_are_learnt_one_after_the_other_by_many_threads() -> None:
    def answer(asked: Asked) -> Answered:
        bad = next((name for name in ("temperature", "top_p", "seed", "max_tokens") if name in asked.body), None)
        return Failing(400, "unsupported", param=bad) if bad else Said("yes")

    with WireServer(answer) as server:
        talking = chat(server)
        with ThreadPoolExecutor(16) as pool:
            assert {done.text for done in pool.map(lambda _: talking.complete(TEXT), range(64))} == {"yes"}
        assert len(server.requests) <= 64 + 16 * 4
        before = len(server.requests)
        talking.complete(TEXT)
        assert len(server.requests) == before + 1


# Errors -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failing",
    [
        SCHEMA_REFUSED,
        FORMAT_REFUSED,
        OBJECT_REFUSED,
        Failing(422, "Failed to compile the grammar"),
        Failing(404, "no endpoint supports response_format"),
        Failing(415, "response_format is not known here"),
        Failing(500, "json_schema: not implemented"),
        Failing(501, "response_format"),
    ],
)
def test_a_format_that_is_refused_is_told_apart(failing: Failing) -> None:
    with pytest.raises(FormatRefusedError, match="does not support the response format json_schema"):
        complete(failing, request=WITH_SCHEMA)
    with pytest.raises(ModelError) as raised:
        complete(failing)
    assert not isinstance(raised.value, FormatRefusedError)


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_never_shown(status: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match="rejected the API key: check OPENAI_API_KEY") as raised:
        complete(Failing(status, f"Incorrect API key provided: {KEY}"))
    sys.excepthook(raised.type, raised.value, raised.tb)
    assert KEY not in capsys.readouterr().err
    assert not raised.value.retryable


def test_a_key_in_what_a_server_says_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ModelError, match="no credit for …") as raised:
        complete(Failing(402, f"no credit for {KEY}"))
    sys.excepthook(raised.type, raised.value, raised.tb)
    assert KEY not in capsys.readouterr().err


@pytest.mark.parametrize("key", ["sk-schlüssel", f"{KEY}\nand more"])
def test_a_key_that_can_not_be_sent_is_an_error_without_it(key: str, capsys: pytest.CaptureFixture[str]) -> None:
    with WireServer(lambda _: Said("yes")) as server:
        with pytest.raises(ModelError, match="check OPENAI_BASE_URL and OPENAI_API_KEY") as raised:
            OpenAIChat("m", base_url=server.base_url, api_key=key).complete(TEXT)
        sys.excepthook(raised.type, raised.value, raised.tb)
        assert key.partition("\n")[0] not in capsys.readouterr().err


def test_blanks_around_a_key_do_no_harm() -> None:
    with WireServer(lambda _: Said("yes")) as server:
        OpenAIChat("m", base_url=server.base_url, api_key=f" {KEY}\n").complete(TEXT)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_server_that_wants_no_key_gets_a_word_in_its_place() -> None:
    with WireServer(lambda _: Said("yes")) as server:
        assert OpenAIChat("m", base_url=server.base_url, api_key="").complete(TEXT).text == "yes"


@pytest.mark.parametrize(
    ("failing", "message"),
    [
        (Failing(404, "model 'm' not found, try pulling it"), "'m' at http://127.* not found: check HGMEM_MODEL.*pull"),
        (Failing(404, raw="<html><h1>Not Found</h1></html>"), "HGMEM_MODEL and OPENAI_BASE_URL .Not Found"),
        (Failing(400, "bad thing"), "rejected the request of task 'plan': bad thing"),
        (Failing(400, "too long", code="context_length_exceeded"), "'plan' .about [0-9]+ tokens.*lower .*memory"),
        (
            Failing(400, "The maximum context length is 10 tokens, you ask for max_tokens=200"),
            "lower a recipe option .overview_tokens, .* HGMEM_CHUNK_TOKENS .The maximum context length is 10 tokens",
        ),
        (Failing(429, "You exceeded your current quota", code="insufficient_quota"), "the quota is used up"),
        (Failing(402, "pay"), "pay"),
        (Said("x", finish="content_filter"), "content filter"),
        (Failing(200, raw="<html>Welcome!</html>"), "invalid response: check OPENAI_BASE_URL"),
    ],
)  # fmt: skip
def test_what_does_not_pass_is_an_error_that_says_what_to_do(failing: Answered, message: str) -> None:
    with pytest.raises(ModelError, match=message) as raised:
        complete(failing)
    assert not raised.value.retryable
    assert "\n" not in str(raised.value)


def test_a_reply_without_choices_is_an_error() -> None:
    with WireServer(lambda _: Said("x")) as server:
        wrong = OpenAIChat("m", base_url=server.base_url, api_key=KEY)
        wrong._server.client().chat.completions.create = lambda **_: type(
            "Nothing", (), {"choices": [], "usage": None}
        )()
        with pytest.raises(ModelError, match="invalid response"):
            wrong.complete(TEXT)


def test_an_error_in_a_reply_that_says_all_is_well_is_that_error() -> None:
    with WireServer(lambda _: Said("x")) as server:
        wrong = OpenAIChat("m", base_url=server.base_url, api_key=KEY)
        wrapped = {"code": 429, "message": "upstream is busy"}
        wrong._server.client().chat.completions.create = lambda **_: type(
            "Wrapped", (), {"error": wrapped, "choices": None}
        )()
        with pytest.raises(UnavailableError, match="upstream is busy"):
            wrong.complete(TEXT)


def test_a_model_that_thought_until_its_tokens_were_gone_is_cut() -> None:
    full = Failing(400, "Could not finish the message because max_tokens or model output limit was reached.")
    assert complete(full) == Completion(text="", cut=True)


@pytest.mark.parametrize("failing", [*(Failing(status) for status in (408, 409, 429, 500, 502, 503, 504)), Dropped()])
def test_what_may_pass_is_unavailable(failing: Answered) -> None:
    with pytest.raises(UnavailableError, match=r"model 'm' at http://127\.0\.0\.1") as raised:
        complete(failing)
    assert raised.value.retryable
    assert raised.value.retry_after is None


def test_a_gateways_page_is_shown_without_its_markup() -> None:
    with pytest.raises(UnavailableError, match=r"502 .check that it is running.*: 502 Bad Gateway nginx$"):
        complete(Failing(502, raw="<html><h1>502 Bad Gateway</h1>\n<hr>nginx</html>"))


def test_a_server_that_is_too_slow_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match=r"did not reply within 0\.3 s: check that it is running"):
        complete(Said("late", delay=5), timeout=0.3)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(
            UnavailableError, match=f"model 'm' at {url} cannot be reached: check that it is running.*OPENAI_BASE_URL"
        ):
            OpenAIChat("m", base_url=url, api_key=KEY).complete(TEXT)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://localhost/v1", "http://[::/v1"])
def test_an_address_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(ModelError, match="check OPENAI_BASE_URL") as raised:
        OpenAIChat("m", base_url=url, api_key=KEY).complete(TEXT)
    assert not raised.value.retryable


def test_the_server_says_how_long_to_wait() -> None:
    with pytest.raises(UnavailableError) as raised:
        complete(too_many(retry_after=2.5))
    assert raised.value.retry_after == 2.5


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": formatdate(0, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Wed, 99 Foo 2099"}, None),
    ],
)
def test_a_wait_is_read_from_the_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_a_wait_may_be_a_date() -> None:
    wait = retry_after({"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)})
    assert wait is not None
    assert 25 < wait <= 30


# Streams ------------------------------------------------------------------------------------------------------


def test_a_stream_comes_in_pieces_and_ends_with_the_completion() -> None:
    with WireServer(lambda _: Said("It is in the crypt.", cached=1, reasoning="hm")) as server:
        *pieces, done = chat(server).stream(TEXT)
        assert server.requests[0].counts_stream
        assert server.prompt_tokens == done.prompt_tokens
    assert len(pieces) > 1
    assert "".join(pieces) == done.text == "It is in the crypt."
    assert (done.cut, done.completion_tokens, done.cached_tokens) == (False, 6, 1)


def test_a_stream_that_is_cut_says_so() -> None:
    with WireServer(lambda _: Said("It is", finish="length", usage=False)) as server:
        assert list(chat(server).stream(TEXT))[-1] == Completion(text="It is", cut=True)


def test_a_server_that_counts_no_stream_is_not_asked_to_again() -> None:
    with WireServer(refusing("stream_options")) as server:
        talking = chat(server)
        for _ in range(2):
            assert list(talking.stream(TEXT))[-1] == Completion(text="yes")
        assert [asked.counts_stream for asked in server.requests] == [True, False, False]


@pytest.mark.parametrize("after", [0, 3])
def test_a_stream_that_breaks_is_unavailable(after: int) -> None:
    got: list[Any] = []
    with WireServer(lambda _: Dropped(after=after)) as server, pytest.raises(UnavailableError, match="model 'm' at"):
        got.extend(chat(server).stream(TEXT))


def test_a_stream_that_is_refused_is_the_same_error() -> None:
    with WireServer(lambda _: Failing(401)) as server, pytest.raises(ModelError, match="OPENAI_API_KEY"):
        list(chat(server).stream(TEXT))
    withheld = Said("x", finish="content_filter")
    with WireServer(lambda _: withheld) as server, pytest.raises(ModelError, match="content filter"):
        list(chat(server).stream(TEXT))


def test_a_stream_of_something_else_is_an_error() -> None:
    with WireServer(lambda _: Failing(200, raw="<html>Welcome!</html>")) as server, pytest.raises(ModelError):
        list(chat(server).stream(TEXT))


def test_a_stream_that_is_closed_lets_go_of_its_connection() -> None:
    with WireServer(lambda _: Said("word " * 50, gap=0.05)) as server:
        pieces = chat(server).stream(TEXT)
        next(pieces)
        began = time.perf_counter()
        pieces.close()  # type: ignore[attr-defined]
        assert time.perf_counter() - began < 1


# Concurrency --------------------------------------------------------------------------------------------------


def test_64_requests_run_side_by_side_over_one_client() -> None:
    together = threading.Barrier(64, timeout=20)

    def answer(_: Asked) -> Answered:
        together.wait()
        return Said("yes")

    with WireServer(answer) as server:
        talking = chat(server)
        with ThreadPoolExecutor(64) as pool:
            assert {done.text for done in pool.map(lambda _: talking.complete(TEXT), range(64))} == {"yes"}
        assert server.most_at_once == 64


def test_the_client_is_imported_at_the_first_request_alone() -> None:
    code = (
        "import sys, hgmem, hgmem.models.llm.openai_chat, hgmem.models.llm.langchain_chat\n"
        "hgmem.models.llm.openai_chat.OpenAIChat('m', base_url='http://x', api_key='k')\n"
        "print([name for name in ('openai', 'langchain_core', 'httpx') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"

"""A local OpenAI-compatible server over real HTTP that misbehaves on demand.

    with WireServer(lambda asked: Said('{"name": "Corrie Vane"}')) as server:
        openai.OpenAI(base_url=server.base_url, api_key="any")

`WireServer` takes a function from a request to a reply. It counts chat requests exactly, before the client sees the
end of the reply: `requests`, `answered`, `most_at_once` and the reported tokens. A token is a word here.
"""

import json
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from hgmem.testing import DeterministicEmbedder

MOST_INPUTS = 2048  # limit of texts per embedding request, as with OpenAI

MODELS = ("wire", "big", "small")  # listed by the server; it replies for any model


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request. `number` counts chat and embedding requests separately from 1. Names of headers are lower-case."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

    @property
    def system(self) -> str:
        """The text of all system messages."""
        return self.said_by("system")

    @property
    def user(self) -> str:
        """The text of all user messages."""
        return self.said_by("user")

    @property
    def format(self) -> str | None:
        """`json_schema`, `json_object` or `text`; None if the request has no format."""
        given = self.body.get("response_format")
        return given["type"] if given else None

    @property
    def schema(self) -> dict[str, Any] | None:
        """The requested JSON Schema."""
        given = self.body.get("response_format") or {}
        return given.get("json_schema", {}).get("schema")

    @property
    def stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def counts_stream(self) -> bool:
        return bool((self.body.get("stream_options") or {}).get("include_usage"))

    @property
    def texts(self) -> list[str]:
        """The texts to embed."""
        given = self.body.get("input", [])
        return [given] if isinstance(given, str) else list(given)

    def said_by(self, role: str) -> str:
        return "\n".join(_text(each) for each in self.messages if each["role"] == role)


@dataclass(frozen=True, slots=True)
class Said:
    """A completion. `delay` is seconds before it begins, `gap` seconds between the pieces of a stream.

    `finish="length"` marks a truncated one. Without `usage`, no tokens are reported. `cached` is the number of cached
    prompt tokens. `reasoning` has its own field, as with DeepSeek and vLLM.
    """

    text: str | None
    _: KW_ONLY
    finish: str = "stop"
    usage: bool = True
    cached: int = 0
    reasoning: str | None = None
    delay: float = 0.0
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class Failing:
    """An error with OpenAI's body, or with `raw` as its body, such as a gateway's page."""

    status: int
    message: str = "it failed"
    _: KW_ONLY
    headers: Mapping[str, str] = field(default_factory=dict)
    param: str | None = None
    code: str | None = None
    raw: str | None = None
    delay: float = 0.0


@dataclass(frozen=True, slots=True)
class Dropped:
    """Closes the connection without a reply, or after a number of pieces of a stream."""

    after: int = 0
    text: str = "these are words of a reply that nobody ever gets to the end of"
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """Vectors. `backwards` reverses their order, with correct indices; the first `missing` ones are omitted."""

    backwards: bool = False
    missing: int = 0
    delay: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranked:
    """Scores, the best first: the share of the query's words that a text has, or the given rows."""

    rows: Sequence[Mapping[str, Any]] | None = None
    delay: float = 0.0


Answered: TypeAlias = Said | Failing | Dropped
Answer: TypeAlias = Callable[[Asked], Answered]
Embedding: TypeAlias = Callable[[Asked], Embedded | Failing | Dropped]
Reranking: TypeAlias = Callable[[Asked], Reranked | Failing | Dropped]

# Servers' replies to an unknown format.
SCHEMA_REFUSED = Failing(
    400, "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
)
FORMAT_REFUSED = Failing(400, "This response_format type is unavailable now", code="invalid_request_error")
OBJECT_REFUSED = Failing(400, "'response_format.type' must be 'json_schema' or 'text'", param="response_format")


def too_many(retry_after: float | None = None) -> Failing:
    """Return the 429 error of a server at its rate limit."""
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after:g}"}
    return Failing(429, "Rate limit reached for requests", headers=headers, code="rate_limit_exceeded")


def words(text: str) -> int:
    """Return the number of tokens of a text."""
    return len(text.split())


class WireServer:
    """The server. It listens from its construction to `close()`, or to the end of the `with` block.

    `requests` and the counts are for chat; `embedded` and `reranked` have the other requests, `listings` the headers of
    those for the list of models. If `answer` raises, the client gets a
    500, and the exception is raised again at the end of the block.
    """

    def __init__(
        self,
        answer: Answer = lambda _: Said(""),
        *,
        embedding: Embedding = lambda _: Embedded(),
        reranking: Reranking = lambda _: Reranked(),
        dimensions: int = 64,
    ) -> None:
        self.answer = answer
        self.embedding = embedding
        self.reranking = reranking
        self.dimensions = dimensions
        self.requests: list[Asked] = []
        self.embedded: list[Asked] = []
        self.reranked: list[Asked] = []
        self.listings: list[Mapping[str, str]] = []
        self.answered = 0
        self.prompt_tokens = 0
        self.completion_tokens = 0
        self.cached_tokens = 0
        self.most_at_once = 0
        self.errors: list[Exception] = []
        self.closing = threading.Event()
        self._under_way = 0
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
        if self.errors and error is None:
            raise self.errors[0]

    def close(self) -> None:
        """Stop the server, and cut active and idle connections."""
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._http.cut()
        self._thread.join()

    def began(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Asked:
        """Record a request; a chat request is active from here to `ends`."""
        chat = path == "/v1/chat/completions"
        with self._lock:
            kept = self.requests if chat else self.reranked if path == "/v1/rerank" else self.embedded
            asked = Asked(number=len(kept) + 1, path=path, headers=headers, body=body)
            kept.append(asked)
            if chat:
                self._under_way += 1
                self.most_at_once = max(self.most_at_once, self._under_way)
        return asked

    def ends(self, usage: Mapping[str, Any] | None = None, *, answered: bool = False) -> None:
        """Count the end of a chat request, before the client sees it."""
        with self._lock:
            self._under_way -= 1
            self.answered += answered
            if usage:
                self.prompt_tokens += usage["prompt_tokens"]
                self.completion_tokens += usage["completion_tokens"]
                self.cached_tokens += usage["prompt_tokens_details"]["cached_tokens"]

    def wait(self, seconds: float) -> None:
        """Wait until the time has passed or the server is closed."""
        if seconds:
            self.closing.wait(seconds)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def __init__(self, *args: Any) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that close the connection."""

    def cut(self) -> None:
        for connection in list(self._open):
            _hang_up(connection)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wire: WireServer

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self.wire.listings.append({name.lower(): value for name, value in self.headers.items()})
            listed = [{"id": name, "object": "model", "created": 0, "owned_by": "me"} for name in MODELS]
            self.send(200, {"object": "list", "data": listed})
        else:
            self.fail(Failing(404, f"no such path: {self.path}"))

    def do_POST(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        sent = self.rfile.read(length)
        if len(sent) < length:  # the client was killed while it sent this
            self.close_connection = True
            return
        body = json.loads(sent or b"{}")
        kinds = {"/v1/chat/completions": self.chat, "/v1/embeddings": self.embed, "/v1/rerank": self.rerank}
        does = kinds.get(self.path)
        if does is None:
            self.fail(Failing(404, f"no such path: {self.path}"))
        else:
            does(self.wire.began(self.path, {name.lower(): value for name, value in self.headers.items()}, body))

    def chat(self, asked: Asked) -> None:
        does = self.decided(self.wire.answer, asked)
        self.wire.wait(does.delay)
        if isinstance(does, Said) and not asked.stream:
            usage = _usage(asked, does) if does.usage else None
            self.wire.ends(usage, answered=True)
            self.send(200, _completion(asked, does, usage))
        elif isinstance(does, Said):
            self.stream_said(asked, does)
        elif isinstance(does, Failing):
            self.wire.ends()
            self.fail(does)
        else:
            self.drop(asked, does)

    def embed(self, asked: Asked) -> None:
        does = self.decided(self.wire.embedding, asked)
        self.wire.wait(does.delay)
        if isinstance(does, Failing):
            self.fail(does)
        elif isinstance(does, Dropped):
            self.hang_up()
        elif not all(asked.texts) or not 0 < len(asked.texts) <= MOST_INPUTS:
            self.fail(Failing(400, "'$.input' is invalid. Please check the API reference.", param="input"))
        else:
            self.send(200, _embeddings(asked, does, self.wire.dimensions))

    def rerank(self, asked: Asked) -> None:
        does = self.decided(self.wire.reranking, asked)
        self.wire.wait(does.delay)
        if isinstance(does, Failing):
            self.fail(does)
        elif isinstance(does, Dropped):
            self.hang_up()
        else:
            self.send(200, {"model": asked.model, "results": does.rows if does.rows is not None else scored(asked)})

    def decided(self, decide: Callable[[Asked], Any], asked: Asked) -> Any:
        try:
            return decide(asked)
        except Exception as error:
            self.wire.errors.append(error)
            return Failing(500, f"the test's own function raised {error!r}")

    def stream_said(self, asked: Asked, said: Said) -> None:
        counted = said.usage and asked.counts_stream
        usage = _usage(asked, said) if counted else None
        ended = False
        try:
            self.start_stream()
            for at, delta in enumerate(_deltas(said)):
                self.wire.wait(said.gap if at else 0)
                self.event(_piece(asked, delta))
            self.wire.ends(usage, answered=True)
            ended = True
            self.event(_piece(asked, {}, finish=said.finish))
            if usage:
                self.event({**_piece(asked, {}), "choices": [], "usage": usage})
            self.chunk(b"data: [DONE]\n\n")
            self.chunk(b"")
        except OSError:  # the client closed the connection
            if not ended:
                self.wire.ends()
            self.close_connection = True

    def drop(self, asked: Asked, dropped: Dropped) -> None:
        if dropped.after:
            self.start_stream()
            for _, delta in zip(range(dropped.after), _deltas(Said(dropped.text)), strict=False):
                self.event(_piece(asked, delta))
        self.wire.ends()
        self.hang_up()

    def start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def event(self, data: Mapping[str, Any]) -> None:
        self.chunk(f"data: {json.dumps(data)}\n\n".encode())

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def fail(self, failing: Failing) -> None:
        kind = "invalid_request_error" if failing.status < 429 else "server_error"
        said = {"message": failing.message, "type": kind, "param": failing.param, "code": failing.code}
        self.send(failing.status, failing.raw if failing.raw is not None else {"error": said}, headers=failing.headers)

    def send(self, status: int, body: Mapping[str, Any] | str, *, headers: Mapping[str, str] | None = None) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def hang_up(self) -> None:
        self.close_connection = True
        _hang_up(self.connection)


def _handler(server: WireServer) -> type[_Handler]:
    return type("Handler", (_Handler,), {"wire": server})


def _hang_up(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # already closed
        return


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _usage(asked: Asked, said: Said) -> dict[str, Any]:
    prompt = sum(words(_text(message)) for message in asked.messages)
    completion = words(said.text or "") + words(said.reasoning or "")
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": min(said.cached, prompt)},
    }


def _completion(asked: Asked, said: Said, usage: Mapping[str, Any] | None) -> dict[str, Any]:
    message = {"role": "assistant", "content": said.text}
    if said.reasoning is not None:
        message["reasoning_content"] = said.reasoning
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": asked.model,
        "choices": [{"index": 0, "message": message, "finish_reason": said.finish, "logprobs": None}],
        **({"usage": usage} if usage else {}),
    }


def _deltas(said: Said) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    yield from ({"reasoning_content": piece} for piece in _pieces(said.reasoning or ""))
    yield from ({"content": piece} for piece in _pieces(said.text or ""))


def _pieces(text: str) -> list[str]:
    """Return the words of a text, each with the blanks before it."""
    starts = [at for at in range(1, len(text)) if text[at].isspace() and not text[at - 1].isspace()]
    return [text[start:end] for start, end in zip([0, *starts], [*starts, len(text)], strict=True) if end > start]


def _piece(asked: Asked, delta: Mapping[str, Any], *, finish: str | None = None) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion.chunk",
        "created": int(time.time()),
        "model": asked.model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def _embeddings(asked: Asked, does: Embedded, dimensions: int) -> dict[str, Any]:
    embedder = DeterministicEmbedder(asked.body.get("dimensions") or dimensions)
    vectors = embedder.embed(asked.texts, kind="document")
    in_base64 = asked.body.get("encoding_format") == "base64"
    rows = [
        {"object": "embedding", "index": at, "embedding": _base64(vector) if in_base64 else vector.tolist()}
        for at, vector in enumerate(vectors)
    ][does.missing :]
    tokens = sum(map(words, asked.texts))
    return {
        "object": "list",
        "data": rows[::-1] if does.backwards else rows,
        "model": asked.model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def scored(asked: Asked) -> list[dict[str, Any]]:
    """Return the rows of a rerank request: a text is as good as the share of the query's words that it has."""
    wanted = set(asked.body["query"].casefold().split())
    shares = [len(wanted & set(text.casefold().split())) / len(wanted) for text in asked.body["documents"]]
    return sorted(
        ({"index": at, "relevance_score": share} for at, share in enumerate(shares)),
        key=lambda row: -row["relevance_score"],
    )


def _base64(vector: Any) -> str:
    return b64encode(np.asarray(vector, dtype="<f4").tobytes()).decode()

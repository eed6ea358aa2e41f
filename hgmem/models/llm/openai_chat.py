"""The chat of any OpenAI-compatible server: OpenAI, vLLM, Ollama, llama.cpp, gateways."""

import re
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeAlias

from hgmem.errors import AccessError, ModelError
from hgmem.models.llm.chat import (
    Completion,
    Format,
    FormatRefusedError,
    Request,
    Sampling,
    UnavailableError,
    text_of,
)
from hgmem.text.segmentation import sound
from hgmem.text.tokens import count

_LONGEST_MESSAGE = 500  # characters of a server's message: some repeat the whole request
_SHORTEST_KEY = 8
_MARKUP = re.compile(r"<[^<>]{1,200}>")
_FORMAT = re.compile(r"response[ _]format|json_schema|json_object|structured output|grammar", re.IGNORECASE)
_CONTEXT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens", re.IGNORECASE
)
# What OpenAI reports, as an error, where thinking used up the token limit.
_FULL = re.compile(r"could not finish the message because", re.IGNORECASE)
_TOO_MUCH = re.compile(r"too (?:large|high|big)|at most|exceed|(?:less|greater) than|must be", re.IGNORECASE)
_UNSENDABLE = {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "UnicodeEncodeError"}
_FORMAT_STATUSES = {400, 404, 415, 422, 500, 501}
_LATER = {408, 409, 425, 429}
Limit: TypeAlias = Literal["max_tokens", "max_completion_tokens"]
_CONNECTING = 10.0  # seconds to wait for a connection
_DROPPABLE = ("temperature", "top_p", "seed", "stream_options")
_OLD_LIMIT: Limit = "max_tokens"
_NEW_LIMIT: Limit = "max_completion_tokens"
_LEARNT = {*_DROPPABLE, _OLD_LIMIT, _NEW_LIMIT}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServer:
    """Model, endpoint and key. Its text form leaves the key out."""

    model: str
    endpoint: str
    key: str = field(repr=False)
    timeout: float

    def __str__(self) -> str:
        return f"model {self.model!r} at {self.endpoint}"

    def hidden(self, text: str) -> str:
        """Return a text with the key masked. Short keys such as `EMPTY` are placeholders and stay."""
        return text.replace(self.key, "…") if len(self.key) >= _SHORTEST_KEY else text

    def secret(self, error: BaseException) -> bool:
        """Whether an error, or one of its causes, may contain the key."""
        if getattr(error, "status_code", None) in (401, 403) or _kinds(error) & _UNSENDABLE:
            return True
        return any(self.hidden(str(each)) != str(each) for each in _chain(error))


def translated(error: Exception, request: Request, server: ModelServer) -> ModelError | None:
    """Return hgmem's error for a failed request, or None if neither server nor connection caused it."""
    status = _status(error)
    if status is not None:
        return _from_status(error, status, request=request, server=server)
    causes = _kinds(error)
    if causes & _UNSENDABLE:
        return AccessError(f"cannot send a request to {server}: check OPENAI_BASE_URL and OPENAI_API_KEY")
    if causes & {"APITimeoutError", "TimeoutException"}:
        return UnavailableError(
            f"{server} did not reply within {server.timeout:g} s: check that it is running, and OPENAI_BASE_URL"
        )
    if causes & {"APIConnectionError", "TransportError"}:
        return UnavailableError(f"{server} cannot be reached: check that it is running, and OPENAI_BASE_URL")
    if isinstance(error, ValueError) or "APIError" in causes:
        return ModelError(f"{server} returned an invalid chat completion: check OPENAI_BASE_URL")
    return ModelError(f"{server} cannot be used: {_reason(error, server)}") if "OpenAIError" in causes else None


def refused_parameter(error: Exception, sent: Collection[str]) -> str | None:
    """Return the sent parameter that the server rejects, if its message names one."""
    error_text = _message(error)[:_LONGEST_MESSAGE]
    if _CONTEXT.search(error_text):
        return None
    param = getattr(error, "param", None)
    name = next(
        (each for each in sorted(sent) if each == param or (not param and re.search(rf"\b{each}\b", error_text))), None
    )
    if name in (_OLD_LIMIT, _NEW_LIMIT) and _TOO_MUCH.search(error_text):
        return None  # the server knows it, but wants a smaller value
    return name


def _from_status(error: Exception, status: int, *, request: Request, server: ModelServer) -> ModelError:
    error_text = _message(error)
    if status in (401, 403):
        return AccessError(f"{server} rejected the API key: check OPENAI_API_KEY")
    if getattr(error, "code", None) == "context_length_exceeded" or (
        status in (400, 413, 422) and _CONTEXT.search(error_text)
    ):
        tokens = sum(count(message.content) for message in request.messages)
        return ModelError(
            f"the prompt of {request.task!r} (about {tokens:,} tokens) and a reply of "
            f"{request.sampling.max_tokens:,} exceed the context of {server}: lower memory_tokens or evidence_tokens"
        )
    about_format = str(getattr(error, "param", "")).startswith("response_format") or _FORMAT.search(
        error_text[:_LONGEST_MESSAGE]
    )
    if request.format != "text" and status in _FORMAT_STATUSES and about_format:
        return FormatRefusedError(
            f"{server} does not support the response format {request.format}: {_reason(error, server)}"
        )
    if "insufficient_quota" in (getattr(error, "code", None), getattr(error, "type", None)):
        return AccessError(f"{server} reports that the quota is used up: check plan and billing of OPENAI_API_KEY")
    if status in _LATER or status >= 500:
        failed = f"failed with status {status} (check that it is running, and OPENAI_BASE_URL)"
        trouble = "is overloaded or limits the rate of requests" if status == 429 else failed
        wait = retry_after(getattr(getattr(error, "response", None), "headers", None) or {})
        return UnavailableError(f"{server} {trouble}: {_reason(error, server)}", retry_after=wait)
    if status == 404:
        return AccessError(f"{server} not found: check HGMEM_MODEL and OPENAI_BASE_URL ({_reason(error, server)})")
    return ModelError(f"{server} rejected the request of task {request.task!r}: {_reason(error, server)}")


def _status(error: Exception) -> int | None:
    """Return the HTTP status of an error. An error within a stream has it as its code."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status
    code = str(getattr(error, "code", None) or "")
    if code.isdecimal() and len(code) == 3:
        return int(code)
    kind = f"{code} {getattr(error, 'type', None) or ''}"
    if "rate_limit" in kind:
        return 429
    return 500 if "server_error" in kind else 400 if "invalid_request" in kind or "context_length" in kind else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _kinds(error: BaseException) -> set[str]:
    """Return the class names of an error and its causes, so that the client need not be imported."""
    return {kind.__name__ for each in _chain(error) for kind in type(each).__mro__}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait, or None."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) / scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
            except ValueError:
                continue
        if seconds < float("inf"):  # and not NaN
            return max(0.0, seconds)
    return None


def _message(error: Exception) -> str:
    """Return the server's message, without the client's additions."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        body = next((body[name] for name in ("message", "detail", "error", "msg") if body.get(name)), body)
    return str(body) if body else str(error)


def _reason(error: Exception, server: ModelServer) -> str:
    error_text = server.hidden(" ".join(_MARKUP.sub(" ", _message(error)).split()))
    return error_text if len(error_text) <= _LONGEST_MESSAGE else f"{error_text[:_LONGEST_MESSAGE]}…"


class OpenAIChat:
    """The model `name` of the OpenAI-compatible server at `base_url`. `timeout` is in seconds. Safe between threads.

    Parameters that the server rejects are omitted or renamed from then on. `api_key` may be empty.
    """

    formats: tuple[Format, ...] = ("json_schema", "json_object", "text")

    def __init__(self, name: str, *, base_url: str, api_key: str, timeout: float = 120.0) -> None:
        self.name, self.endpoint = name, base_url
        self._server = ModelServer(model=name, endpoint=base_url, key=api_key.strip(), timeout=timeout)
        self._opened: Any = None
        self._dropped: frozenset[str] = frozenset()
        self._limit = _OLD_LIMIT
        self._lock = threading.Lock()

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request. Raises like `Chat.complete`."""
        import openai

        with self._translating(request):
            answered = self._created(request, {})
            if answered is None:
                return Completion(text="", cut=True)
            if wrapped := getattr(answered, "error", None):  # some gateways return errors with status 200
                nowhere: Any = None
                raise openai.APIError(str(wrapped), nowhere, body=wrapped)
            choices = getattr(answered, "choices", None)
            if not choices or getattr(choices[0], "message", None) is None:
                raise ModelError(f"{self._server} returned an invalid chat completion: check OPENAI_BASE_URL")
            message = choices[0].message
            self._check(choices[0].finish_reason, getattr(message, "refusal", None))
            return _completion(text_of(message.content), choices[0].finish_reason, answered.usage)

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion, then the completion. Raises like `Chat.complete`."""
        with self._translating(request):
            pieces = self._created(request, {"stream": True, "stream_options": {"include_usage": True}})
            if pieces is None:
                yield Completion(text="", cut=True)
                return
            if not hasattr(pieces, "response"):
                raise ModelError(f"{self._server} returned an invalid stream: check OPENAI_BASE_URL")
            try:
                yield from self._heard(pieces)
            finally:
                pieces.response.close()

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    def check(self) -> frozenset[str]:
        """Return the names of the models that the server lists, without calling a model. Empty if it has no list.

        Raises `ModelError` if the server does not answer, or rejects the key.
        """
        import openai

        request = Request(task="check", messages=(), sampling=Sampling())
        with self._translating(request):
            try:
                listed = self._client().models.list(timeout=_CONNECTING)
                return frozenset(str(model.id) for model in listed.data)
            except (openai.NotFoundError, openai.APIResponseValidationError, AttributeError, TypeError):
                return frozenset()

    def _heard(self, pieces: Any) -> Iterator[str | Completion]:
        texts: list[str] = []
        finish: str | None = None
        usage: Any = None
        for piece in pieces:
            usage = getattr(piece, "usage", None) or usage
            for choice in (getattr(piece, "choices", None) or ())[:1]:
                finish = choice.finish_reason or finish
                delta = choice.delta
                self._check(finish, getattr(delta, "refusal", None))
                text = text_of(getattr(delta, "content", None))
                if text:
                    texts.append(text)
                    yield text
        if finish is None:
            raise UnavailableError(f"{self._server} closed the connection during a reply: ask again")
        yield _completion("".join(texts), finish, usage)

    def _check(self, finish: str | None, refusal: str | None) -> None:
        if refusal:
            raise ModelError(f"{self._server} refused to answer: {refusal}")
        if finish == "content_filter":
            raise ModelError(f"{self._server} withheld the reply: its content filter rejected the text or the prompt")

    def _created(self, request: Request, more: Mapping[str, Any]) -> Any:
        """Return the server's response, or None if a model's thinking used up the token limit."""
        import openai

        while True:
            arguments = self._arguments(request, more)
            try:
                return self._client().chat.completions.create(**arguments)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if _FULL.search(_message(error)):
                    return None
                if not self._learnt(refused_parameter(error, arguments.keys() & _LEARNT), arguments):
                    raise

    def _arguments(self, request: Request, more: Mapping[str, Any]) -> dict[str, Any]:
        sampling = request.sampling
        wanted = {"temperature": sampling.temperature, "top_p": sampling.top_p, "seed": sampling.seed, **more}
        with self._lock:
            dropped, limit = self._dropped, self._limit
        arguments = {name: value for name, value in wanted.items() if value is not None and name not in dropped}
        messages = [{"role": message.role, "content": sound(message.content)} for message in request.messages]
        arguments |= {"model": self.name, "messages": messages, limit: sampling.max_tokens}
        if request.format == "json_schema":
            schema = {"name": request.task, "strict": True, "schema": dict(request.schema or {})}
            arguments["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif request.format == "json_object":
            arguments["response_format"] = {"type": "json_object"}
        return arguments

    def _learnt(self, refused: str | None, sent: Mapping[str, Any]) -> bool:
        """Adapt to a rejected parameter: omit or rename it. Return whether a retry makes sense."""
        with self._lock:
            if refused == _OLD_LIMIT:
                self._limit = _NEW_LIMIT
            elif refused in _DROPPABLE and refused in sent:
                self._dropped |= {refused}
            else:
                return False
            return True

    def _client(self) -> Any:
        import openai

        with self._lock:
            if self._opened is None:
                # The client's default pool holds 100 connections and allows 1,000, more than any caller needs.
                self._opened = openai.OpenAI(
                    base_url=self.endpoint,
                    api_key=self._server.key or "none",
                    timeout=openai.Timeout(self._server.timeout, connect=min(self._server.timeout, _CONNECTING)),
                    max_retries=0,
                )
            return self._opened

    @contextmanager
    def _translating(self, request: Request) -> Iterator[None]:
        try:
            yield
        except ModelError:
            raise
        except Exception as error:
            found = translated(error, request, self._server)
            if found is None:
                raise
            # The server's error, and its causes, may contain the key.
            raise found from (None if self._server.secret(error) else error)


def _completion(text: str, finish: str | None, usage: Any) -> Completion:
    details = getattr(usage, "prompt_tokens_details", None)
    return Completion(
        text=text,
        cut=finish == "length",
        prompt_tokens=_counted(usage, "prompt_tokens"),
        completion_tokens=_counted(usage, "completion_tokens"),
        cached_tokens=_counted(details, "cached_tokens") or 0,
    )


def _counted(usage: Any, name: str) -> int | None:
    number = usage.get(name) if isinstance(usage, dict) else getattr(usage, name, None)
    return number if isinstance(number, int) else None

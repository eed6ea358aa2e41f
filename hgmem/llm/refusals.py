"""What servers that speak OpenAI's wire say when they don't answer, as errors of ours."""

import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from hgmem.errors import AccessError, ModelError
from hgmem.llm.chat import FormatRefusedError, Request, UnavailableError
from hgmem.tokens import count

_LONGEST_SAID = 500  # characters of what a server says: some repeat the whole request
_SHORTEST_KEY = 8
_MARKUP = re.compile(r"<[^<>]{1,200}>")
_FORMAT = re.compile(r"response[ _]format|json_schema|json_object|structured output|grammar", re.IGNORECASE)
_CONTEXT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|prompt is too long|too many (?:input )?tokens", re.IGNORECASE
)
_FULL = re.compile(r"could not finish the message because", re.IGNORECASE)
_TOO_MUCH = re.compile(r"too (?:large|high|big)|at most|exceed|(?:less|greater) than|must be", re.IGNORECASE)
_UNSENDABLE = {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "UnicodeEncodeError"}
_FORMAT_STATUSES = {400, 404, 415, 422, 500, 501}
_LATER = {408, 409, 425, 429}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Which model, where, with what key; as text it names the first two."""

    model: str
    endpoint: str
    key: str = field(repr=False)
    timeout: float

    def __str__(self) -> str:
        return f"model {self.model!r} at {self.endpoint}"

    def hidden(self, text: str) -> str:
        """Return a text without the key; a short one is a word that means nothing, such as `EMPTY`."""
        return text.replace(self.key, "…") if len(self.key) >= _SHORTEST_KEY else text

    def secret(self, error: BaseException) -> bool:
        """Whether an error, or what it came from, may speak of the key."""
        if getattr(error, "status_code", None) in (401, 403) or _kinds(error) & _UNSENDABLE:
            return True
        return any(self.hidden(str(each)) != str(each) for each in _chain(error))


def translated(error: Exception, request: Request, place: Place) -> ModelError | None:
    """Return our error for what a request met; None for what no server or connection is to blame for."""
    status = _status(error)
    if status is not None:
        return _from_status(error, status, request=request, place=place)
    causes = _kinds(error)
    if causes & _UNSENDABLE:
        return AccessError(f"no request can be sent to {place}: check OPENAI_BASE_URL and OPENAI_API_KEY")
    if causes & {"APITimeoutError", "TimeoutException"}:
        return UnavailableError(
            f"{place} gave no reply within {place.timeout:g} s: is it running? check OPENAI_BASE_URL"
        )
    if causes & {"APIConnectionError", "TransportError"}:
        return UnavailableError(f"{place} can't be reached: is it running? check OPENAI_BASE_URL")
    if isinstance(error, ValueError) or "APIError" in causes:
        return ModelError(f"{place} gave something that is no chat completion: check OPENAI_BASE_URL")
    return ModelError(f"{place} can't be used: {_said(error, place)}") if "OpenAIError" in causes else None


def refused_parameter(error: Exception, sent: Collection[str]) -> str | None:
    """Return which of the parameters that were sent the server does not take, as far as it says."""
    said = _message(error)[:_LONGEST_SAID]
    if _CONTEXT.search(said):
        return None
    param = getattr(error, "param", None)
    name = next(
        (each for each in sorted(sent) if each == param or (not param and re.search(rf"\b{each}\b", said))), None
    )
    if name in ("max_tokens", "max_completion_tokens") and _TOO_MUCH.search(said):
        return None  # it is known, and wanted smaller
    return name


def full(error: Exception) -> bool:
    """Whether OpenAI says, as an error, that the model thought until its tokens were used up."""
    return _FULL.search(_message(error)) is not None


def _from_status(error: Exception, status: int, *, request: Request, place: Place) -> ModelError:
    said = _message(error)
    if status in (401, 403):
        return AccessError(f"{place} refuses the key: check OPENAI_API_KEY")
    if getattr(error, "code", None) == "context_length_exceeded" or (
        status in (400, 413, 422) and _CONTEXT.search(said)
    ):
        tokens = sum(count(message.content) for message in request.messages)
        return ModelError(
            f"the prompt of {request.task!r}, about {tokens:,} tokens, and a reply of {request.sampling.max_tokens:,} "
            f"are more than {place} takes: lower memory_tokens or evidence_tokens"
        )
    if request.format != "text" and status in _FORMAT_STATUSES and _about_format(error, said):
        return FormatRefusedError(f"{place} does not know the format {request.format}: {_said(error, place)}")
    if "insufficient_quota" in (getattr(error, "code", None), getattr(error, "type", None)):
        return AccessError(f"{place} says that the quota is used up: check plan and billing of OPENAI_API_KEY")
    if status in _LATER or status >= 500:
        wait = retry_after(_headers(error))
        return UnavailableError(f"{place} {_trouble(status)}: {_said(error, place)}", retry_after=wait)
    if status == 404:
        return AccessError(f"there is no {place}: check HGMEM_MODEL, OPENAI_BASE_URL ({_said(error, place)})")
    return ModelError(f"{place} refuses the request of {request.task!r}: {_said(error, place)}")


def _trouble(status: int) -> str:
    if status == 429:
        return "has too much to do"
    return f"is in trouble ({status}; is it running? check OPENAI_BASE_URL)"


def _about_format(error: Exception, said: str) -> bool:
    return (
        str(getattr(error, "param", "")).startswith("response_format")
        or _FORMAT.search(said[:_LONGEST_SAID]) is not None
    )


def _status(error: Exception) -> int | None:
    """Return the HTTP status of an error; an error that comes within a stream carries it as its code."""
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
    """Yield an error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__


def _kinds(error: BaseException) -> set[str]:
    """Return what an error and its causes are called: their classes are the client's, which nobody has to import."""
    return {kind.__name__ for each in _chain(error) for kind in type(each).__mro__}


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds a server wants to be left alone; None where it doesn't say."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = headers.get(name)
        if said is None:
            continue
        try:
            seconds = float(said) / scale
        except ValueError:
            try:
                seconds = parsedate_to_datetime(said).timestamp() - time.time()
            except ValueError:
                continue
        if seconds < float("inf"):  # and no NaN
            return max(0.0, seconds)
    return None


def _headers(error: Exception) -> Mapping[str, str]:
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    return headers


def _message(error: Exception) -> str:
    """Return what the server says, without what the client adds to it."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        body = next((body[name] for name in ("message", "detail", "error", "msg") if body.get(name)), body)
    return str(body) if body else str(error)


def _said(error: Exception, place: Place) -> str:
    said = place.hidden(" ".join(_MARKUP.sub(" ", _message(error)).split()))
    return said if len(said) <= _LONGEST_SAID else f"{said[:_LONGEST_SAID]}…"

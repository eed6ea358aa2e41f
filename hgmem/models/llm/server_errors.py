"""Translation of errors of OpenAI-compatible servers to hgmem's."""

import re
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

from hgmem.errors import AccessError, ModelError
from hgmem.models.llm.chat import FormatRefusedError, Request, UnavailableError
from hgmem.text.tokens import count

_LONGEST_MESSAGE = 500  # characters of a server's message: some repeat the whole request
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


def translated(error: Exception, request: Request, place: Place) -> ModelError | None:
    """Return hgmem's error for a failed request, or None if neither server nor connection caused it."""
    status = _status(error)
    if status is not None:
        return _from_status(error, status, request=request, place=place)
    causes = _kinds(error)
    if causes & _UNSENDABLE:
        return AccessError(f"cannot send a request to {place}: check OPENAI_BASE_URL and OPENAI_API_KEY")
    if causes & {"APITimeoutError", "TimeoutException"}:
        return UnavailableError(
            f"{place} did not reply within {place.timeout:g} s: check that it is running, and OPENAI_BASE_URL"
        )
    if causes & {"APIConnectionError", "TransportError"}:
        return UnavailableError(f"{place} cannot be reached: check that it is running, and OPENAI_BASE_URL")
    if isinstance(error, ValueError) or "APIError" in causes:
        return ModelError(f"{place} returned an invalid chat completion: check OPENAI_BASE_URL")
    return ModelError(f"{place} cannot be used: {_said(error, place)}") if "OpenAIError" in causes else None


def refused_parameter(error: Exception, sent: Collection[str]) -> str | None:
    """Return the sent parameter that the server rejects, if its message names one."""
    error_text = _message(error)[:_LONGEST_MESSAGE]
    if _CONTEXT.search(error_text):
        return None
    param = getattr(error, "param", None)
    name = next(
        (each for each in sorted(sent) if each == param or (not param and re.search(rf"\b{each}\b", error_text))), None
    )
    if name in ("max_tokens", "max_completion_tokens") and _TOO_MUCH.search(error_text):
        return None  # the server knows it, but wants a smaller value
    return name


def full(error: Exception) -> bool:
    """Whether OpenAI reports, as an error, that thinking used up the token limit."""
    return _FULL.search(_message(error)) is not None


def _from_status(error: Exception, status: int, *, request: Request, place: Place) -> ModelError:
    error_text = _message(error)
    if status in (401, 403):
        return AccessError(f"{place} rejected the API key: check OPENAI_API_KEY")
    if getattr(error, "code", None) == "context_length_exceeded" or (
        status in (400, 413, 422) and _CONTEXT.search(error_text)
    ):
        tokens = sum(count(message.content) for message in request.messages)
        return ModelError(
            f"the prompt of {request.task!r} (about {tokens:,} tokens) and a reply of "
            f"{request.sampling.max_tokens:,} exceed the context of {place}: lower memory_tokens or evidence_tokens"
        )
    if request.format != "text" and status in _FORMAT_STATUSES and _about_format(error, error_text):
        return FormatRefusedError(
            f"{place} does not support the response format {request.format}: {_said(error, place)}"
        )
    if "insufficient_quota" in (getattr(error, "code", None), getattr(error, "type", None)):
        return AccessError(f"{place} reports that the quota is used up: check plan and billing of OPENAI_API_KEY")
    if status in _LATER or status >= 500:
        wait = retry_after(_headers(error))
        return UnavailableError(f"{place} {_trouble(status)}: {_said(error, place)}", retry_after=wait)
    if status == 404:
        return AccessError(f"{place} not found: check HGMEM_MODEL and OPENAI_BASE_URL ({_said(error, place)})")
    return ModelError(f"{place} rejected the request of task {request.task!r}: {_said(error, place)}")


def _trouble(status: int) -> str:
    if status == 429:
        return "is overloaded or limits the rate of requests"
    return f"failed with status {status} (check that it is running, and OPENAI_BASE_URL)"


def _about_format(error: Exception, error_text: str) -> bool:
    return (
        str(getattr(error, "param", "")).startswith("response_format")
        or _FORMAT.search(error_text[:_LONGEST_MESSAGE]) is not None
    )


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
    """Yield an error and its causes."""
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


def _headers(error: Exception) -> Mapping[str, str]:
    headers: Mapping[str, str] = getattr(getattr(error, "response", None), "headers", None) or {}
    return headers


def _message(error: Exception) -> str:
    """Return the server's message, without the client's additions."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        body = next((body[name] for name in ("message", "detail", "error", "msg") if body.get(name)), body)
    return str(body) if body else str(error)


def _said(error: Exception, place: Place) -> str:
    error_text = place.hidden(" ".join(_MARKUP.sub(" ", _message(error)).split()))
    return error_text if len(error_text) <= _LONGEST_MESSAGE else f"{error_text[:_LONGEST_MESSAGE]}…"

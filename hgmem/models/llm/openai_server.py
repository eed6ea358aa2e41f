"""OpenAI-compatible servers: the client of one, and our errors for the client's."""

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias

from hgmem.errors import AccessError, ModelError
from hgmem.models.llm.chat import UnavailableError

OPENAI = "https://api.openai.com/v1"
CONNECTING = 10.0  # seconds to wait for a connection
LONGEST_MESSAGE = 500  # characters of a server's message: some repeat the whole request
_SHORTEST_KEY = 8
_MARKUP = re.compile(r"<[^<>]{1,200}>")
_UNSENDABLE = {"UnsupportedProtocol", "LocalProtocolError", "InvalidURL", "UnicodeEncodeError"}
_LATER = {408, 409, 425, 429}

# Returns another error for one with this status, or None.
Special: TypeAlias = Callable[[Exception, int], ModelError | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingNames:
    """The settings that errors name: those of a model's name, its server's address and its key."""

    model: str = "HGMEM_MODEL"
    address: str = "OPENAI_BASE_URL"
    key: str = "OPENAI_API_KEY"


@dataclass(kw_only=True, eq=False)
class OpenAIServer:
    """The server of a model, embedder or reranker, `who`. Safe between threads. The key is in no text form or error."""

    who: str
    endpoint: str
    key: str = field(repr=False)
    timeout: float
    retries: int = 0
    names: SettingNames = field(default_factory=SettingNames)
    _opened: Any = field(default=None, init=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __str__(self) -> str:
        return f"{self.who} at {self.endpoint}"

    def client(self) -> Any:
        """Return the client, which is made at the first request."""
        import openai

        with self._lock:
            if self._opened is None:
                # Without a key, the client would read one from the environment and send another server's.
                # Its default pool holds 100 connections and allows 1,000, more than any caller needs.
                self._opened = openai.OpenAI(
                    base_url=self.endpoint,
                    api_key=self.key.strip() or "none",
                    timeout=openai.Timeout(self.timeout, connect=min(self.timeout, CONNECTING)),
                    max_retries=self.retries,
                )
            return self._opened

    def listed(self) -> frozenset[str]:
        """Return the names of the models that the server lists, without calling one. Empty if it has no list.

        Raises `ModelError` if the server does not answer, or rejects the key.
        """
        import openai

        with self.translating("the request"):
            try:
                listed = self.client().models.list(timeout=CONNECTING)
                return frozenset(str(model.id) for model in listed.data)
            except (openai.NotFoundError, openai.APIResponseValidationError, AttributeError, TypeError):
                return frozenset()

    def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
                self._opened = None

    @contextmanager
    def translating(self, request: str, special: Special = lambda *_: None) -> Iterator[None]:
        """Raise our errors for those of the server or the connection in the block."""
        try:
            yield
        except ModelError:
            raise
        except Exception as error:
            found = self._translated(error, request, special)
            if found is None:
                raise
            # The server's error, and its causes, may contain the key.
            raise found from (None if self._secret(error) else error)

    def _translated(self, error: Exception, request: str, special: Special) -> ModelError | None:
        status = _status(error)
        if status is not None:
            return self._from_status(error, status, request=request, special=special)
        causes = _kinds(error)
        if causes & _UNSENDABLE:
            return AccessError(f"cannot send a request to {self}: check {self.names.address} and {self.names.key}")
        if causes & {"APITimeoutError", "TimeoutException"}:
            return UnavailableError(
                f"{self} did not reply within {self.timeout:g} s: check that it is running, and {self.names.address}"
            )
        if causes & {"APIConnectionError", "TransportError"}:
            return UnavailableError(f"{self} cannot be reached: check that it is running, and {self.names.address}")
        if isinstance(error, ValueError) or "APIError" in causes:
            return self.invalid()
        return ModelError(f"{self} cannot be used: {self.reason(error)}") if "OpenAIError" in causes else None

    def invalid(self, what: str = "response") -> ModelError:
        """Return the error for a response that is not what OpenAI's interface says."""
        return ModelError(f"{self} returned an invalid {what}: check {self.names.address}")

    def _from_status(self, error: Exception, status: int, *, request: str, special: Special) -> ModelError:
        if status in (401, 403):
            return AccessError(f"{self} rejected the API key: check {self.names.key}")
        found = special(error, status)
        if found is not None:
            return found
        if "insufficient_quota" in (getattr(error, "code", None), getattr(error, "type", None)):
            return AccessError(f"{self} reports that the quota is used up: check plan and billing of {self.names.key}")
        if status in _LATER or status >= 500:
            failed = f"failed with status {status} (check that it is running, and {self.names.address})"
            trouble = "is overloaded or limits the rate of requests" if status == 429 else failed
            wait = retry_after(getattr(getattr(error, "response", None), "headers", None) or {})
            return UnavailableError(f"{self} {trouble}: {self.reason(error)}", retry_after=wait)
        if status == 404:
            return AccessError(
                f"{self} not found: check {self.names.model} and {self.names.address} ({self.reason(error)})"
            )
        return ModelError(f"{self} rejected {request}: {self.reason(error)}")

    def reason(self, error: Exception) -> str:
        """Return the server's message without markup and key."""
        text = self._hidden(" ".join(_MARKUP.sub(" ", message_of(error)).split()))
        return text if len(text) <= LONGEST_MESSAGE else f"{text[:LONGEST_MESSAGE]}…"

    def _hidden(self, text: str) -> str:
        """Return a text with the key masked. Short keys such as `EMPTY` are placeholders and stay."""
        key = self.key.strip()
        return text.replace(key, "…") if len(key) >= _SHORTEST_KEY else text

    def _secret(self, error: BaseException) -> bool:
        """Whether an error, or one of its causes, may contain the key."""
        if getattr(error, "status_code", None) in (401, 403) or _kinds(error) & _UNSENDABLE:
            return True
        return any(self._hidden(str(each)) != str(each) for each in _chain(error))


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


def message_of(error: Exception) -> str:
    """Return the server's message, without the client's additions."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        body = next((body[name] for name in ("message", "detail", "error", "msg") if body.get(name)), body)
    return str(body) if body else str(error)

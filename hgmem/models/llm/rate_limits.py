"""Rate limits and retries of a server: concurrent requests, requests and tokens per minute, pauses, backoff.

Every request to a language model passes here, so requests and tokens are counted here for the meter and the budget.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, cast

from hgmem.models.llm import close
from hgmem.models.llm.chat import Chat, Completion, Request, UnavailableError
from hgmem.models.metering import Meter, TokenKind, current_meter, took
from hgmem.text.tokens import count
from hgmem.values.sharing import Shared

LONGEST = 120.0  # seconds: a longer `Retry-After` is not waited for
MINUTE = 60.0
FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 30.0  # seconds
_INSTANT = 1e-6  # seconds: shorter waits are rounding errors
_chance = secrets.SystemRandom()
Sends: TypeAlias = Callable[[], Iterator[str | Completion]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of requests to one server, where None means unlimited. `attempts` counts the first attempt too."""

    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    attempts: int = 6


@dataclass(slots=True, eq=False)
class Sent:
    """A request: when it was sent, and its tokens, which are at first an estimate."""

    at: float = 0.0
    tokens: int = 0


class Gate(Shared):
    """The limits of one server, which all that ask it share. Safe between threads."""

    def __init__(
        self,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.limits = limits
        self.clock = clock
        self._sleep = sleep
        self._places = threading.Semaphore(limits.concurrency)
        self._pace = Pace(limits, clock)

    @contextmanager
    def place(self, who: str, sent: Sent) -> Iterator[None]:
        """Wait until a request of `who` may be sent, and hold its place during the block."""
        with self._places:
            while (wait := self._pace.enter(sent)) > 0:
                if wait > LONGEST:
                    raise far_off(who, wait)
                self._sleep(wait)
            yield

    def withdraw(self, sent: Sent) -> None:
        """Uncount a request that was not sent."""
        self._pace.withdraw(sent)

    def paused(self, error: UnavailableError) -> UnavailableError:
        """Return the error after pausing all requests until the server accepts them again."""
        self._pace.pause(error.retry_after or 0.0)
        return error

    def back_off(self, who: str, error: UnavailableError, attempts: int) -> None:
        """Wait until the next attempt, or raise the error if there is none."""
        later = error.retry_after or 0.0
        if later > LONGEST:
            raise far_off(who, later) from error
        if attempts >= self.limits.attempts:
            if attempts == 1:
                raise error
            raise UnavailableError(f"{error} ({attempts} attempts)", retry_after=error.retry_after) from error
        backoff = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (attempts - 1)) * _chance.uniform(0.5, 1.0)
        self._sleep(max(later, backoff))

    def sent(self, who: str, send: Callable[[], T]) -> T:
        """Return what a request gets. It is sent again where the server does not answer."""
        attempts = 0
        while True:
            attempts += 1
            with self.place(who, Sent()):
                try:
                    return send()
                except UnavailableError as error:
                    in_vain = self.paused(error)
            self.back_off(who, in_vain, attempts)


def far_off(who: str, seconds: float) -> UnavailableError:
    """Return the error for a wait that is too long."""
    return UnavailableError(f"{who} is rate-limited for {seconds:,.0f} s: try again then", retry_after=seconds)


class LimitedChat(Shared):
    """A chat that respects a server's limits, retries failed requests and counts answered ones. Safe between threads.

    Waiting time is not part of a request's seconds. A request that failed is not counted and costs no call of the
    budget. One whose stream broke or was closed early is counted.
    """

    def __init__(self, chat: Chat, gate: Gate) -> None:
        self._chat = chat
        self.name, self.endpoint, self.formats = chat.name, chat.endpoint, chat.formats
        self._who = f"model {self.name!r} at {self.endpoint}"
        self._gate = gate

    def close(self) -> None:
        """Close the chat's connections."""
        close(self._chat)

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request. Raises `UnavailableError` if the last attempt failed too."""
        (completion,) = self._answers(request, lambda: iter([self._chat.complete(request)]))
        return cast(Completion, completion)

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion as they arrive, then the completion. Retries until the first piece."""
        return self._answers(request, lambda: self._chat.stream(request))

    def _answers(self, request: Request, send: Sends) -> Iterator[str | Completion]:
        attempts = 0
        while True:
            attempts += 1
            with self._attempt(request) as attempt:
                try:
                    yield from attempt.pieces(send)
                    return
                except UnavailableError as error:
                    in_vain = self._gate.paused(error)  # before the slot is released: the next request has to see it
                    if attempt.answered:
                        raise
            self._gate.back_off(self._who, in_vain, attempts)

    @contextmanager
    def _attempt(self, request: Request) -> Iterator["_Attempt"]:
        """Wait until a request may be sent, yield the attempt that sends it, and count it."""
        meter = current_meter()
        limited = self._gate.limits.tokens_per_minute
        attempt = _Attempt(request, self._gate.clock, tokens=_estimate(request) if limited else 0)
        with self._gate.place(self._who, attempt):
            try:
                meter.take()
            except BaseException:
                self._gate.withdraw(attempt)
                raise
            try:
                yield attempt
            finally:
                attempt.tokens = attempt.counted(meter)
                if not attempt.answered:
                    meter.give_back()


class _Attempt(Sent):
    """One attempt of a request, with its duration and result."""

    def __init__(self, request: Request, clock: Callable[[], float], *, tokens: int) -> None:
        super().__init__(tokens=tokens)
        self.answered = False
        self._request = request
        self._clock = clock
        self._seconds = 0.0
        self._pieces: list[str] = []
        self._completion: Completion | None = None
        # A stream may be closed outside the meter's context, such as by the garbage collector.
        self._context = copy_context()

    def pieces(self, send: Sends) -> Iterator[str | Completion]:
        """Yield what the chat answers. The caller's time between the pieces does not count."""
        with self._listening():
            source = send()
        try:
            while True:
                with self._listening():
                    piece = next(source, None)
                if piece is None:
                    return
                self.answered = True
                if isinstance(piece, str):
                    self._pieces.append(piece)
                else:
                    self._completion = piece
                yield piece
        finally:
            close(source)

    def counted(self, meter: Meter) -> int:
        """Report the request to the meter and return its prompt and completion tokens, or 0 if it failed."""
        if not self.answered:
            return 0
        tokens = self._tokens()
        self._context.run(took, "request", self._request.task, self._seconds)
        meter.add_tokens(self._request.task, tokens)
        return tokens["prompt"] + tokens["completion"]

    def _tokens(self) -> dict[TokenKind, int]:
        done = self._completion or Completion(text="".join(self._pieces))
        prompt, completion, estimated = done.prompt_tokens, done.completion_tokens, 0
        if prompt is None:
            prompt = _estimate(self._request)
            estimated += prompt
        if completion is None:
            completion = count(done.text)
            estimated += completion
        return {"prompt": prompt, "completion": completion, "cached": done.cached_tokens, "estimated": estimated}

    @contextmanager
    def _listening(self) -> Iterator[None]:
        began = self._clock()
        try:
            yield
        finally:
            self._seconds += self._clock() - began


class Pace:
    """A sliding window of 60 seconds that enforces the limits, and pauses that servers ask for."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._paused_until = float("-inf")
        self._window: deque[Sent] = deque()
        self._lock = threading.Lock()

    def enter(self, sent: Sent) -> float:
        """Return 0 for a request that is now counted, or the seconds to wait before the next try."""
        with self._lock:
            now = self._clock()
            while self._window and self._window[0].at + MINUTE - now < _INSTANT:
                self._window.popleft()
            wait = max(self._paused_until, self._free_of_requests(), self._free_of_tokens(sent.tokens)) - now
            if wait >= _INSTANT:
                return wait
            sent.at = now
            self._window.append(sent)
            return 0.0

    def withdraw(self, sent: Sent) -> None:
        """Uncount a request that was not sent."""
        with self._lock:
            self._window.remove(sent)

    def pause(self, seconds: float) -> None:
        """Pause all requests."""
        with self._lock:
            self._paused_until = max(self._paused_until, self._clock() + seconds)

    def _free_of_requests(self) -> float:
        most = self.limits.requests_per_minute
        if most is None or len(self._window) < most:
            return float("-inf")
        return self._window[-most].at + MINUTE

    def _free_of_tokens(self, tokens: int) -> float:
        most = self.limits.tokens_per_minute
        if most is None:
            return float("-inf")
        # A request larger than the limit is sent once the window is empty.
        too_many = sum(sent.tokens for sent in self._window) + tokens - most
        free = float("-inf")
        for sent in self._window:
            if too_many <= 0:
                break
            too_many -= sent.tokens
            free = sent.at + MINUTE
        return free


def _estimate(request: Request) -> int:
    return sum(count(message.content) for message in request.messages)

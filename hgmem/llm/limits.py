"""What a server allows, kept: requests side by side, requests and tokens a minute, and asking again later.

Every request to a language model passes here, so here requests and tokens are counted, for the meter and the budget.
"""

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, fields

from hgmem import budget as budgets
from hgmem.errors import UsageError
from hgmem.llm import close
from hgmem.llm.chat import Chat, Completion, Format, Request, UnavailableError
from hgmem.meter import TokenKind, spent, took
from hgmem.sharing import Shared
from hgmem.tokens import count

LONGEST = 120.0  # seconds that a server's wish to be asked later is waited for
MINUTE = 60.0
FIRST_BACKOFF, LONGEST_BACKOFF = 1.0, 30.0  # seconds
_INSTANT = 1e-6  # seconds; less than this is no wait but what floats leave over
_chance = secrets.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much a server is asked; None is no limit. `attempts` are of one request, the first one too."""

    concurrency: int = 8
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    attempts: int = 6

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and value < 1:
                raise UsageError(f"{field.name!r} is 1 or more, got {value!r}: leave it out for the default")


class LimitedChat(Shared):
    """A chat that keeps to limits, asks again where nobody answered, and counts what was answered; between threads too.

    Waiting belongs to no request: its seconds are those of the wire alone. A request that was answered by an error, or
    by nobody, costs no call of the budget and is not counted; one whose stream broke, or was closed early, is.
    """

    def __init__(
        self,
        chat: Chat,
        limits: Limits,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._chat = chat
        self._limits = limits
        self._clock = clock
        self._sleep = sleep
        self._places = threading.Semaphore(limits.concurrency)
        self._pace = _Pace(limits, clock)

    @property
    def name(self) -> str:
        """The model's name."""
        return self._chat.name

    @property
    def endpoint(self) -> str:
        """Where the model is."""
        return self._chat.endpoint

    @property
    def formats(self) -> tuple[Format, ...]:
        """What it can be asked for, best first."""
        return self._chat.formats

    def close(self) -> None:
        """Close the chat's connections."""
        close(self._chat)

    def complete(self, request: Request, /) -> Completion:
        """Return the completion of a request; `UnavailableError` where the last attempt was in vain too."""
        attempt = 0
        while True:
            attempt += 1
            with self._turn(request) as turn:
                try:
                    return turn.complete(self._chat)
                except UnavailableError as error:
                    in_vain = self._pace.paused(error)
            self._back_off(in_vain, attempt)

    def stream(self, request: Request, /) -> Iterator[str | Completion]:
        """Yield the pieces of a completion as they come, then the completion; asks again until there is a piece."""
        attempt = 0
        while True:
            attempt += 1
            with self._turn(request) as turn:
                try:
                    yield from turn.stream(self._chat)
                    return
                except UnavailableError as error:
                    in_vain = self._pace.paused(error)
                    if turn.answered:
                        raise
            self._back_off(in_vain, attempt)

    @contextmanager
    def _turn(self, request: Request) -> Iterator["_Turn"]:
        """Wait until a request may be sent, yield the turn to send it, and count it."""
        budget = budgets.current()
        with self._places:
            sent = self._admitted(_estimate(request) if self._limits.tokens_per_minute else 0)
            try:
                budget.take()
            except BaseException:
                self._pace.withdraw(sent)
                raise
            turn = _Turn(request, self._clock)
            try:
                yield turn
            finally:
                sent.tokens = turn.counted()
                budget.add_tokens(sent.tokens)
                if not turn.answered:
                    budget.give_back()

    def _admitted(self, tokens: int) -> "_Sent":
        while True:
            wait, sent = self._pace.enter(tokens)
            if sent:
                return sent
            if wait > LONGEST:
                raise self._far_off(wait)
            self._sleep(wait)

    def _back_off(self, error: UnavailableError, attempt: int) -> None:
        """Wait until the next attempt, or raise because there is none."""
        later = error.retry_after or 0.0
        if later > LONGEST:
            raise self._far_off(later) from error
        if attempt >= self._limits.attempts:
            if attempt == 1:
                raise error
            raise UnavailableError(f"{error} (asked {attempt} times)", retry_after=error.retry_after) from error
        backoff = min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** (attempt - 1)) * _chance.uniform(0.5, 1.0)
        self._sleep(max(later, backoff))

    def _far_off(self, seconds: float) -> UnavailableError:
        return UnavailableError(
            f"model {self.name!r} at {self.endpoint} takes no requests for another {seconds:,.0f} s: try again then",
            retry_after=seconds,
        )


class _Turn:
    """One request on the wire: how long it took and what came of it."""

    def __init__(self, request: Request, clock: Callable[[], float]) -> None:
        self.answered = False
        self._request = request
        self._clock = clock
        self._seconds = 0.0
        self._pieces: list[str] = []
        self._completion: Completion | None = None
        # A stream may be closed where nobody measures, such as by the garbage collector.
        self._context = copy_context()

    def complete(self, chat: Chat) -> Completion:
        """Return the chat's completion."""
        with self._listening():
            completion = chat.complete(self._request)
        self._hear(completion)
        return completion

    def stream(self, chat: Chat) -> Iterator[str | Completion]:
        """Yield the chat's pieces; what is done with them meanwhile takes no time here."""
        with self._listening():
            source = chat.stream(self._request)
        try:
            while True:
                with self._listening():
                    piece = next(source, None)
                if piece is None:
                    return
                self._hear(piece)
                yield piece
        finally:
            close = getattr(source, "close", None)
            if close:
                close()

    def counted(self) -> int:
        """Report to the meter, and return how many tokens it was, prompt and reply; 0 if nobody answered."""
        if not self.answered:
            return 0
        tokens = self._tokens()
        self._context.run(took, "request", self._request.task, self._seconds)
        self._context.run(spent, self._request.task, tokens)
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

    def _hear(self, piece: str | Completion) -> None:
        self.answered = True
        if isinstance(piece, str):
            self._pieces.append(piece)
        else:
            self._completion = piece

    @contextmanager
    def _listening(self) -> Iterator[None]:
        began = self._clock()
        try:
            yield
        finally:
            self._seconds += self._clock() - began


@dataclass(slots=True, eq=False)
class _Sent:
    """A request of the last minute; `tokens` are an estimate until it is answered."""

    at: float
    tokens: int


class _Pace:
    """When the next request may go: never more than the limits in any 60 seconds, and none while there is a pause."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._limits = limits
        self._clock = clock
        self._paused_until = float("-inf")
        self._window: deque[_Sent] = deque()
        self._lock = threading.Lock()

    def enter(self, tokens: int) -> tuple[float, _Sent | None]:
        """Return 0 and the request, which counts from now on, or how many seconds to wait before the next try."""
        with self._lock:
            now = self._clock()
            while self._window and self._window[0].at + MINUTE - now < _INSTANT:
                self._window.popleft()
            wait = max(self._paused_until, self._free_of_requests(), self._free_of_tokens(tokens)) - now
            if wait >= _INSTANT:
                return wait, None
            sent = _Sent(now, tokens)
            self._window.append(sent)
            return 0.0, sent

    def withdraw(self, sent: _Sent) -> None:
        """Forget a request that was not sent."""
        with self._lock:
            self._window.remove(sent)

    def paused(self, error: UnavailableError) -> UnavailableError:
        """Return the error; nobody is let in before the server wants to be asked again."""
        # While the request still has its place: whoever gets that next has to find the pause.
        with self._lock:
            self._paused_until = max(self._paused_until, self._clock() + (error.retry_after or 0.0))
        return error

    def _free_of_requests(self) -> float:
        most = self._limits.requests_per_minute
        if most is None or len(self._window) < most:
            return float("-inf")
        return self._window[-most].at + MINUTE

    def _free_of_tokens(self, tokens: int) -> float:
        most = self._limits.tokens_per_minute
        if most is None:
            return float("-inf")
        # One that is larger than the limit by itself goes when there is nothing left to wait for.
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

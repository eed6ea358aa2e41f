"""The limits of a model server, which all workers of a cluster share.

A named actor for each server grants permits to send a request. A permit is a lease of time: its holder, a worker,
renews all of its own, and one that no longer does has lost them. An actor that was restarted first hears who holds
what, so that a limit is kept when it dies.
"""

import asyncio
import hashlib
import itertools
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from hgmem.models.llm.chat import UnavailableError
from hgmem.models.llm.rate_limits import LONGEST, MINUTE, Gate, Limits, Pace, Sent, far_off

NAMESPACE, PREFIX = "hgmem", "limiter-"
LEASE, RENEWAL = 20.0, 2.0  # seconds that a permit lasts, and after which it is renewed
HEARING = 3 * RENEWAL  # seconds in which a restarted limiter grants nothing


@dataclass(slots=True, eq=False)
class _Turn:
    """A request that waits for its permit."""

    holder: str
    permit: str
    granted: "asyncio.Future[bool]"


class Limiter:
    """The actor. Requests are served in the order in which they came."""

    def __init__(self, limits: Limits) -> None:
        self._pace = Pace(limits, time.monotonic)
        self._sent: dict[str, Sent] = {}  # by permit
        self._holders: dict[str, str] = {}  # of permits
        self._until: dict[str, float] = {}  # when a holder's permits lapse
        self._waiting: deque[_Turn] = deque()
        self._most = 0
        self._opens = 0.0
        if ray.get_runtime_context().was_current_actor_reconstructed:
            paced = limits.requests_per_minute or limits.tokens_per_minute  # what the last minute sent is forgotten
            self._opens = time.monotonic() + (MINUTE if paced else HEARING)

    async def limit(self, limits: Limits) -> None:
        """Set the limits. Those of the run that asked last count for all."""
        self._pace.limits = limits

    async def acquire(self, holder: str, permit: str, tokens: int) -> float | None:
        """Return 0 once the holder may send a request, or the seconds to wait if they are too many.

        Returns None to a holder that was thought to be lost: it asks again.
        """
        turn = _Turn(holder, permit, asyncio.get_running_loop().create_future())
        self._waiting.append(turn)
        self._until[holder] = time.monotonic() + LEASE
        self._grant()
        if not await turn.granted:
            return None
        sent = self._sent[permit] = Sent(tokens=tokens)
        while (wait := self._pace.enter(sent)) > 0:
            if wait > LONGEST:
                self._forget(permit)
                return wait
            await asyncio.sleep(wait)
        return 0.0

    async def release(self, permit: str, tokens: int, *, was_sent: bool) -> None:
        """Take a permit back, with the tokens that its request has used. A request that was not sent is uncounted."""
        sent = self._sent.get(permit)
        if sent is not None:
            sent.tokens = tokens
            if not was_sent:
                self._pace.withdraw(sent)
        self._forget(permit)

    async def renew(self, holder: str, permits: tuple[str, ...]) -> None:
        """Keep a holder's permits. A restarted limiter learns of them here."""
        now = time.monotonic()
        self._until[holder] = now + LEASE
        if now < self._opens:
            self._holders |= dict.fromkeys(permits, holder)
        self._grant()

    async def pause(self, seconds: float) -> None:
        """Pause all requests."""
        self._pace.pause(seconds)

    async def state(self) -> dict[str, int]:
        """Return how many permits are held, how many were at most, and how many requests wait."""
        return {"held": len(self._holders), "most": self._most, "waiting": len(self._waiting)}

    def _grant(self) -> None:
        now = time.monotonic()
        for lost in [holder for holder, until in self._until.items() if until < now]:
            del self._until[lost]
            for permit in [permit for permit, holder in self._holders.items() if holder == lost]:
                self._drop(permit)
        while now >= self._opens and self._waiting and len(self._holders) < self._pace.limits.concurrency:
            turn = self._waiting.popleft()
            known = turn.holder in self._until
            if known:
                self._holders[turn.permit] = turn.holder
            turn.granted.set_result(known)
        self._most = max(self._most, len(self._holders))

    def _forget(self, permit: str) -> None:
        self._drop(permit)
        self._grant()

    def _drop(self, permit: str) -> None:
        self._holders.pop(permit, None)
        self._sent.pop(permit, None)


def limiter_of(server: str, limits: Limits) -> Any:
    """Return the actor that limits the requests to a server's address. It is started if there is none."""
    options = {"namespace": NAMESPACE, "get_if_exists": True, "lifetime": "detached"}
    restarts = {"max_restarts": -1, "max_task_retries": -1, "num_cpus": 0, "max_concurrency": 100_000}
    remote: Any = ray.remote(Limiter)
    actor = remote.options(name=name_of(server), **options, **restarts).remote(limits)
    actor.limit.remote(limits)
    return actor


def end_limiters() -> None:
    """End the limiters that nobody uses. One that other runs need is started again by them."""
    with suppress(RayError, ValueError):
        for found in ray.util.list_named_actors(all_namespaces=True):
            if found["namespace"] == NAMESPACE and found["name"].startswith(PREFIX):
                actor: Any = ray.get_actor(found["name"], namespace=NAMESPACE)
                state: Any = ray.get(actor.state.remote(), timeout=HEARING)
                if not state["held"] and not state["waiting"]:
                    ray.kill(actor)


def name_of(server: str) -> str:
    """Return the name of a server's limiter."""
    return f"{PREFIX}{hashlib.sha256(server.encode()).hexdigest()[:16]}"


class SharedGate(Gate):
    """A gate whose places and pace are those of the cluster's limiter of this server. Safe between threads."""

    def __init__(self, server: str, limits: Limits) -> None:
        super().__init__(limits)
        self._server = server
        self._holder = uuid.uuid4().hex
        self._numbers = itertools.count()
        self._asking = 0
        self._permits: dict[Sent, str] = {}
        self._withdrawn: set[Sent] = set()
        self._lock = threading.Lock()
        self._actor: Any = None

    @contextmanager
    def place(self, who: str, sent: Sent) -> Iterator[None]:
        """Wait until a request of `who` may be sent, and hold its permit during the block."""
        permit = self._acquired(who, sent)
        try:
            yield
        finally:
            with self._lock:
                del self._permits[sent]
                was_sent = sent not in self._withdrawn
                self._withdrawn.discard(sent)
            self._actor.release.remote(permit, sent.tokens, was_sent=was_sent)

    def withdraw(self, sent: Sent) -> None:
        """Uncount a request that was not sent."""
        self._withdrawn.add(sent)

    def paused(self, error: UnavailableError) -> UnavailableError:
        """Return the error after pausing all requests of the cluster until the server accepts them again."""
        if error.retry_after:
            self._actor.pause.remote(error.retry_after)
        return error

    def _acquired(self, who: str, sent: Sent) -> str:
        with self._lock:
            permit = f"{self._holder}-{next(self._numbers)}"
            self._asking += 1
            if self._actor is None:
                self._actor = limiter_of(self._server, self.limits)
                threading.Thread(target=self._renew, name="hgmem-permits", daemon=True).start()
        try:
            while (wait := self._asked(permit, sent.tokens)) is None:
                pass
            if wait:
                raise far_off(who, wait)
        finally:
            with self._lock:
                self._asking -= 1
        with self._lock:
            self._permits[sent] = permit
        return permit

    def _asked(self, permit: str, tokens: int) -> float | None:
        actor = self._actor
        try:
            wait: float | None = ray.get(actor.acquire.remote(self._holder, permit, tokens))
        except RayActorError:  # another run ended it, or its node is gone
            time.sleep(1)
            with self._lock:
                if self._actor is actor:
                    self._actor = limiter_of(self._server, self.limits)
            return None
        return wait

    def _renew(self) -> None:
        while True:
            time.sleep(RENEWAL)
            with self._lock:
                permits, asking = tuple(self._permits.values()), self._asking
            if permits or asking:
                self._actor.renew.remote(self._holder, permits)


class SharedGates(dict[str, Gate]):
    """The gates of servers by their address, each made when it is asked for."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits

    def __missing__(self, server: str) -> Gate:
        """Return the gate of a server that had none."""
        gate = self[server] = SharedGate(server, self._limits)
        return gate

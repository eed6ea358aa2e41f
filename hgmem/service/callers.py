"""Who calls: keys, what they may do, and whose memories they see."""

import time
from dataclasses import dataclass, field
from typing import Annotated, TypeAlias

from fastapi import Depends, Request

from hgmem.client import HGMem
from hgmem.errors import NotFoundError
from hgmem.service.problems import RefusedError
from hgmem.service.worker import Worker
from hgmem.values.access import Key, Scope

FRESH = 3.0  # seconds that a key is believed without asking the database: a revoked one fails within five
MOST_KNOWN = 10_000  # keys in memory
ANYBODY = Key(uid="", owner="", scopes=("admin",))  # on this machine alone, while there are no keys


@dataclass(slots=True)
class Keys:
    """The keys of one process's callers, each asked for anew after `FRESH` seconds.

    If only this machine reaches the process (`alone`), callers need none as long as there is none.
    """

    client: HGMem
    alone: bool
    _known: dict[str, tuple[float, Key]] = field(default_factory=dict)

    def find(self, token: str) -> Key:
        """Return the key of a token. Raises `RefusedError` if it is not to be used."""
        until, key = self._known.get(token, (0.0, ANYBODY))
        if time.monotonic() > until:
            began = time.monotonic()
            found = self.client.key_of(token) if token else self._without()
            self._known.pop(token, None)
            if found is None:
                raise RefusedError(401, "this key is not known: make one with `hgmem keys make`")
            if found.state != "active":
                raise RefusedError(401, f"this key is {found.state}: make another with `hgmem keys make`")
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[token] = (began + FRESH, key := found)
        return key

    def _without(self) -> Key:
        if not self.alone or any(key.state == "active" for key in self.client.service_keys()):
            raise RefusedError(401, "a key is missing: send it as Authorization: Bearer hgm_…")
        return ANYBODY


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller with a key that may do what is asked."""

    client: HGMem
    key: Key
    worker: Worker

    def spend(self, *, questions: int = 0, tokens: int = 0, size: int = 0) -> int | None:
        """Count what a request uses, and return how many tokens are left today, or None without a limit.

        Raises `RefusedError` if that is over a limit of the key.
        """
        if not self.key.is_limited:
            return None
        spent = self.client.spend(self.key.uid, questions=questions, tokens=tokens, size=size)
        if spent.over:
            unit, _, time = spent.over.replace("_", " ").partition(" per ")
            most = getattr(self.key, spent.over)
            message = f"this key is limited to {most:,} {unit} a {time}: try again in {spent.wait} seconds"
            raise RefusedError(429, message, wait=spent.wait)
        return spent.left

    @property
    def owner(self) -> str | None:
        """Whose the memories of its questions are."""
        return self.key.owner or None

    @property
    def sees(self) -> str | None:
        """Whose memories it sees, or None for all."""
        return None if self.key.is_admin else self.key.owner

    def corpus(self, name: str) -> str:
        """Return the name of a corpus that the key reaches."""
        if not self.key.reaches(name):
            raise RefusedError(403, f"this key does not reach corpus {name!r}: use one that is made for it")
        return name

    def memory(self, uid: str) -> tuple[str, str]:
        """Return the corpus and the uid of the memory of `uid` (also of a point or an answer), if it is the caller's.

        The memory of another owner, of nobody, or of a corpus out of reach is not found, as one that does not exist.
        """
        corpus, memory, owner = self.client.memory_place(uid, owner=self.sees)
        if self.sees not in (None, owner) or not self.key.reaches(corpus):
            raise NotFoundError(
                f"memory, point or answer {uid!r} not found: list memories with `hgmem memory list --corpus …`"
            )
        return corpus, memory


def needing(scope: Scope) -> object:
    """Return the dependency of what needs a scope: a caller whose key has it."""

    def called(request: Request) -> Caller:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip() if kind.lower() == "bearer" else ""
        key = request.app.state.keys.find(token)
        request.state.key = key
        if not key.may(scope):
            raise RefusedError(403, f"this key may not {scope}: it is made for {', '.join(key.scopes)}")
        return Caller(request.app.state.client, key, request.app.state.worker)

    return Depends(called)


Reader: TypeAlias = Annotated[Caller, needing("read")]
Asker: TypeAlias = Annotated[Caller, needing("ask")]
Writer: TypeAlias = Annotated[Caller, needing("write")]

"""Who calls: keys, what they may do, and whose memories they see."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from fastapi import Depends, Request

from hgmem.client import HGMem
from hgmem.client.serving import KnownKeys, ServiceStore
from hgmem.errors import KeyRefusedError
from hgmem.service.guard import READING, is_own_page
from hgmem.service.problems import RefusedError
from hgmem.service.worker import Worker
from hgmem.values.access import Key, Scope

COOKIE = "hgmem_session"
ANYBODY = Key(uid="", owner="", scopes=("admin",))  # on this machine alone, while there are no keys


@dataclass(slots=True)
class Keys:
    """The keys of one process's callers.

    If only this machine reaches the process (`alone`), callers need none as long as there is none.
    """

    known: KnownKeys
    alone: bool

    def find(self, token: str) -> Key:
        """Return the key of a token. Raises `KeyRefusedError` if it is not to be used."""
        if token:
            return self.known.find(token)
        if not self.alone or any(key.state == "active" for key in self.known.store.service_keys()):
            raise KeyRefusedError("a key is missing: send it as Authorization: Bearer hgm_…")
        return ANYBODY


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller with a key that may do what is asked."""

    client: HGMem
    key: Key
    worker: Worker

    @property
    def owner(self) -> str | None:
        """Whose the memories of its questions are."""
        return self.key.owner or None

    @property
    def sees(self) -> str | None:
        """Whose memories it sees, or None for all."""
        return self.key.sees

    @property
    def store(self) -> ServiceStore:
        """What the service keeps in the client's database."""
        return ServiceStore(self.client)

    def corpus(self, name: str) -> str:
        """Return the name of a corpus that the key reaches."""
        return self.key.check_corpus(name)

    def memory(self, uid: str) -> tuple[str, str]:
        """Return the corpus and the uid of the memory of `uid`, a point or an answer too, if the caller sees it."""
        return self.store.memory_of(uid, self.key)


def check_page(request: Request) -> None:
    """Raise `RefusedError` for what writes with a session and is not known to come from a page of this host.

    Pages of others could send the browser's cookie without its user.
    """
    if request.method not in READING and not is_own_page(request.headers):
        raise RefusedError(403, "a session writes from pages of this host alone: send Authorization: Bearer")


def key_of(request: Request) -> Key:
    """Return the key that a request is sent with, or whose session it belongs to."""
    keys: Keys = request.app.state.keys
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    session = request.cookies.get(COOKIE)
    if session and not token:
        check_page(request)
        key = keys.known.find(session, session=True)
    else:
        key = keys.find(token.strip() if kind.lower() == "bearer" else "")
    request.state.key = key
    return key


def needing(scope: Scope) -> object:
    """Return the dependency of what needs a scope: a caller whose key has it."""

    def called(request: Request) -> Caller:
        key = key_of(request)
        key.check(scope)
        return Caller(request.app.state.client, key, request.app.state.worker)

    return Depends(called)


Reader: TypeAlias = Annotated[Caller, needing("read")]
Asker: TypeAlias = Annotated[Caller, needing("ask")]
Writer: TypeAlias = Annotated[Caller, needing("write")]
Admin: TypeAlias = Annotated[Caller, needing("admin")]

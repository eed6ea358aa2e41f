"""Retention: memories that nobody worked on for long go, or keep their answers alone.

The last activity of a memory is the newest of its creation, its steps, its answers and the last sign of a run that
held it. Cut short anywhere, what was begun is marked, and the next run ends it.
"""

import secrets
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

from hgmem.errors import ConflictError, HGMemError, UnreachableError, UsageError
from hgmem.graph.memory import Claim, find_memory, release_memory
from hgmem.graph.pruning import Age, claim_old_memories, delete_emptied, empty_memories, keep_answers, old_memories
from hgmem.model import PRUNED, PRUNING, Pruned
from hgmem.services import Services, known_corpus


def prune(services: Services, *, older_than: timedelta, keep: bool = False, dry_run: bool = False) -> Pruned:
    """Return which memories of the corpus went; with `keep`, memory and answers stay, and nothing else of them."""
    if not isinstance(older_than, timedelta) or older_than <= timedelta(0):
        raise UsageError(f"older_than={older_than!r} is no age: give a timedelta of more than nothing")
    known_corpus(services)
    age = Age(
        seconds=int(older_than.total_seconds()),
        timeout=services.settings.claim_timeout,
        spared=(PRUNED,) if keep else (),
    )
    gone: list[str] = []
    for uids in _pages(services, age):
        gone += uids if dry_run else _pruned(services, uids, age, keep=keep)
    return Pruned(corpus=services.corpus, memories=tuple(gone), kept_answers=keep, dry_run=dry_run)


def delete_memory(services: Services, *, uid: str) -> None:
    """Delete one memory, whatever its age; `ConflictError` where a run holds it."""
    find_memory(services.database, corpus=services.corpus, memory=uid)
    timeout = services.settings.claim_timeout
    if not _pruned(services, [uid], Age(seconds=0, timeout=timeout), keep=False):
        raise ConflictError(
            f"memory {uid!r} is being worked on by another run: wait until that is done; if it died, its claim runs "
            f"out {timeout:g} s after its last sign"
        )


def _pages(services: Services, age: Age) -> Iterator[list[str]]:
    after = ""
    while uids := old_memories(services.database, corpus=services.corpus, age=age, after=after):
        yield uids
        after = uids[-1]


def _pruned(services: Services, uids: list[str], age: Age, *, keep: bool) -> list[str]:
    """Return which of the memories were pruned: marked, emptied, then done with."""
    scope = {"corpus": services.corpus, "run": secrets.token_hex(8)}
    held = claim_old_memories(services.database, **scope, uids=uids, age=age)
    if not held:
        return []
    try:
        empty_memories(services.database, **scope, uids=held)
        finish = keep_answers if keep else delete_emptied
        return finish(services.database, **scope, uids=held)
    except BaseException as error:
        if not isinstance(error, UnreachableError):  # no server: the claims run out by themselves
            _release(services, scope["run"], held)
        raise


def _release(services: Services, run: str, uids: list[str]) -> None:
    """Give claims back; the marks stay, so that the next prune goes on."""
    for uid in uids:
        with suppress(HGMemError):
            claim = Claim(corpus=services.corpus, memory=uid, run=run)
            release_memory(services.database, claim=claim, status=PRUNING)

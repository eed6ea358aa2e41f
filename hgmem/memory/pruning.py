"""Retention: inactive memories are deleted, or reduced to their answers.

The last activity of a memory is the newest of its creation, its steps, its answers and its last heartbeat. Pruned
memories are marked first. If pruning is interrupted, the next run finishes the marked ones.
"""

import secrets
from contextlib import suppress
from datetime import timedelta

from hgmem.errors import ConflictError, HGMemError, UnreachableError, UsageError
from hgmem.graph.memory import Lease, find_memory, release_memory
from hgmem.graph.pruning import Age, claim_old_memories, delete_emptied, empty_memories, keep_answers, old_memories
from hgmem.services import Services, known_corpus
from hgmem.values.records import PRUNED, PRUNING
from hgmem.values.reports import Pruned


def prune(services: Services, *, older_than: timedelta, keep: bool = False, dry_run: bool = False) -> Pruned:
    """Delete inactive memories of the corpus and return their uids. With `keep`, memory and answers stay.

    With an owner, only that owner's own are deleted, not everybody's.
    """
    if not isinstance(older_than, timedelta) or older_than <= timedelta(0):
        raise UsageError(f"invalid older_than={older_than!r}: use a timedelta greater than zero")
    known_corpus(services)
    age = Age(
        seconds=int(older_than.total_seconds()),
        timeout=services.settings.claim_timeout,
        spared=(PRUNED,) if keep else (),
        owner=services.owner,
    )
    gone: list[str] = []
    after = ""
    while uids := old_memories(services.database, corpus=services.corpus, age=age, after=after):
        gone += uids if dry_run else _pruned(services, uids, age, keep=keep)
        after = uids[-1]
    return Pruned(corpus=services.corpus, memories=tuple(gone), kept_answers=keep, dry_run=dry_run)


def delete_memory(services: Services, *, uid: str) -> None:
    """Delete one memory, whatever its age.

    With an owner, it has to be the owner's own, not everybody's. Raises `ConflictError` if a run is using it.
    """
    row = find_memory(services.database, corpus=services.corpus, memory=uid, owner=services.owner)
    if services.owner not in (None, row["owner"]):
        raise UsageError(f"memory {uid!r} is everybody's, not of owner {services.owner!r}: omit owner= (--owner)")
    timeout = services.settings.claim_timeout
    age = Age(seconds=0, timeout=timeout, owner=services.owner)
    if not _pruned(services, [uid], age, keep=False):
        raise ConflictError(
            f"memory {uid!r} is in use by another run: wait until it ends; if that run crashed, retry {timeout:g} "
            "s after its last heartbeat"
        )


def _pruned(services: Services, uids: list[str], age: Age, *, keep: bool) -> list[str]:
    """Prune the memories in three passes: mark, empty, finish. Return those that were pruned."""
    scope = {"corpus": services.corpus, "run": secrets.token_hex(8)}
    leased = claim_old_memories(services.database, **scope, uids=uids, age=age)
    if not leased:
        return []
    try:
        empty_memories(services.database, **scope, uids=leased)
        finish = keep_answers if keep else delete_emptied
        return finish(services.database, **scope, uids=leased)
    except BaseException as error:
        reachable = not isinstance(error, UnreachableError)  # else the leases expire by themselves
        for uid in leased if reachable else ():
            with suppress(HGMemError):  # the marks stay, so that the next prune resumes
                release_memory(services.database, lease=Lease(**scope, memory=uid), status=PRUNING)
        raise

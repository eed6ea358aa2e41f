"""Retention: inactive memories are deleted, or reduced to their answers.

The last activity of a memory is the newest of its creation, its steps, its answers and its last heartbeat. Pruned
memories are marked first. If pruning is interrupted, the next run finishes the marked ones.
"""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta

from hgmem.errors import HGMemError, UnreachableError, UsageError
from hgmem.graph.memory import Lease, find_memory, in_use, release_memory
from hgmem.graph.values import uids_of
from hgmem.services import Services, known_corpus
from hgmem.values.records import PRUNED, PRUNING
from hgmem.values.reports import Pruned

PAGE = 100  # memories leased together: emptying them takes far less time than a lease lasts
BATCH = 2_000  # nodes per transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Which memories to prune: inactive for `seconds`, and with none of the `spared` statuses.

    Memories whose lease was renewed in the last `timeout` seconds are excluded. With an `owner`, only that owner's own
    are included, not everybody's.
    """

    seconds: int
    timeout: float
    spared: tuple[str, ...] = ()
    owner: str | None = None


def prune(services: Services, *, older_than: timedelta, keep: bool = False, dry_run: bool = False) -> Pruned:
    """Delete inactive memories of the corpus and return their uids. With `keep`, memory and answers stay.

    With an owner, only that owner's own are deleted, not everybody's.
    """
    if not isinstance(older_than, timedelta) or older_than <= timedelta(0):
        raise UsageError(f"invalid older_than={older_than!r}: use a timedelta greater than zero")
    database, corpus = services.database, known_corpus(services).corpus
    age = Age(
        seconds=int(older_than.total_seconds()),
        timeout=services.settings.claim_timeout,
        spared=(PRUNED,) if keep else (),
        owner=services.owner,
    )
    gone: list[str] = []
    after = ""
    while uids := uids_of(database, "old_memories", corpus=corpus, **asdict(age), after=after, most=PAGE):
        gone += uids if dry_run else prune_memories(services, uids, age, keep=keep)
        after = uids[-1]
    return Pruned(corpus=corpus, memories=tuple(gone), kept_answers=keep, dry_run=dry_run)


def delete_memory(services: Services, *, uid: str) -> None:
    """Delete one memory, whatever its age.

    With an owner, it has to be the owner's own, not everybody's. Raises `ConflictError` if a run is using it.
    """
    row = find_memory(services.database, corpus=services.corpus, memory=uid, owner=services.owner)
    if services.owner not in (None, row["owner"]):
        raise UsageError(f"memory {uid!r} is everybody's, not of owner {services.owner!r}: omit owner= (--owner)")
    age = Age(seconds=0, timeout=services.settings.claim_timeout, owner=services.owner)
    if not prune_memories(services, [uid], age):
        raise in_use(uid, age.timeout)


def prune_memories(services: Services, uids: Sequence[str], age: Age, *, keep: bool = False) -> list[str]:
    """Prune those of the memories that are still old in three passes: mark, empty, finish. Return their uids."""
    database, corpus, run = services.database, services.corpus, secrets.token_hex(8)
    leased = uids_of(database, "claim_old_memories", corpus=corpus, run=run, uids=sorted(uids), **asdict(age))
    if not leased:
        return []
    try:
        database.run("empty_memories", corpus=corpus, run=run, uids=leased, batch=BATCH)
        if keep:
            return uids_of(database, "keep_answers", corpus=corpus, run=run, uids=leased)
        return uids_of(database, "delete_emptied", corpus=corpus, run=run, uids=leased)
    except BaseException as error:
        reachable = not isinstance(error, UnreachableError)  # else the leases expire by themselves
        for uid in leased if reachable else ():
            with suppress(HGMemError):  # the marks stay, so that the next prune resumes
                release_memory(database, lease=Lease(corpus=corpus, memory=uid, run=run), status=PRUNING)
        raise

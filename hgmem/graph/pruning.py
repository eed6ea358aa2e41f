"""Typed wrappers for `cypher/pruning.cypher`."""

from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.graph.database import Database
from hgmem.graph.values import Runner

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


def old_memories(database: Runner, *, corpus: str, age: Age, after: str) -> list[str]:
    """Return the uids of the next memories to prune."""
    rows = database.run(
        "old_memories",
        corpus=corpus,
        seconds=age.seconds,
        timeout=age.timeout,
        spared=list(age.spared),
        owner=age.owner,
        after=after,
        most=PAGE,
    )
    return [str(row["uid"]) for row in rows]


def claim_old_memories(database: Runner, *, corpus: str, run: str, uids: Sequence[str], age: Age) -> list[str]:
    """Lease those of the memories that are still old, mark them as pruning, and return their uids."""
    rows = database.run(
        "claim_old_memories",
        corpus=corpus,
        run=run,
        uids=sorted(uids),
        seconds=age.seconds,
        timeout=age.timeout,
        spared=list(age.spared),
        owner=age.owner,
    )
    return [str(row["uid"]) for row in rows]


def empty_memories(database: Database, *, corpus: str, run: str, uids: Sequence[str]) -> None:
    """Delete the contents of memories leased by this run, except answers, in bounded transactions."""
    database.run("empty_memories", corpus=corpus, run=run, uids=list(uids), batch=BATCH)


def keep_answers(database: Runner, *, corpus: str, run: str, uids: Sequence[str]) -> list[str]:
    """Mark emptied memories as pruned, keep their answers, and return their uids."""
    return [str(row["uid"]) for row in database.run("keep_answers", corpus=corpus, run=run, uids=list(uids))]


def delete_emptied(database: Runner, *, corpus: str, run: str, uids: Sequence[str]) -> list[str]:
    """Delete emptied memories with their answers, and return their uids."""
    return [str(row["uid"]) for row in database.run("delete_emptied", corpus=corpus, run=run, uids=list(uids))]

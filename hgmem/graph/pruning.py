"""Typed twins of `cypher/pruning.cypher`."""

from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.graph.database import Database
from hgmem.graph.values import Runner

PAGE = 100  # memories claimed together: emptying them takes well under a claim's time
BATCH = 2_000  # nodes a transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Which memories are old: silent for so many seconds, of none of the `spared` statuses, not held.

    A claim counts as long as its last sign is not `timeout` seconds old.
    """

    seconds: int
    timeout: float
    spared: tuple[str, ...] = ()


def old_memories(database: Runner, *, corpus: str, age: Age, after: str) -> list[str]:
    """Return the uids of the next memories to prune."""
    rows = database.run(
        "old_memories",
        corpus=corpus,
        seconds=age.seconds,
        timeout=age.timeout,
        spared=list(age.spared),
        after=after,
        most=PAGE,
    )
    return [str(row["uid"]) for row in rows]


def claim_old_memories(database: Runner, *, corpus: str, run: str, uids: Sequence[str], age: Age) -> list[str]:
    """Return those of the memories that this run holds now, marked as being pruned."""
    rows = database.run(
        "claim_old_memories",
        corpus=corpus,
        run=run,
        uids=sorted(uids),
        seconds=age.seconds,
        timeout=age.timeout,
        spared=list(age.spared),
    )
    return [str(row["uid"]) for row in rows]


def empty_memories(database: Database, *, corpus: str, run: str, uids: Sequence[str]) -> None:
    """Delete what memories of this run hold, but for their answers, in bounded transactions."""
    database.run("empty_memories", corpus=corpus, run=run, uids=list(uids), batch=BATCH)


def keep_answers(database: Runner, *, corpus: str, run: str, uids: Sequence[str]) -> list[str]:
    """Return which of the emptied memories are pruned now: they and their answers stay."""
    return [str(row["uid"]) for row in database.run("keep_answers", corpus=corpus, run=run, uids=list(uids))]


def delete_emptied(database: Runner, *, corpus: str, run: str, uids: Sequence[str]) -> list[str]:
    """Return which of the emptied memories are gone now, with their answers."""
    return [str(row["uid"]) for row in database.run("delete_emptied", corpus=corpus, run=run, uids=list(uids))]

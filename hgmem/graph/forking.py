"""Typed wrapper for `cypher/forking.cypher`: a memory copied as it was at the end of a step."""

from collections.abc import Callable
from dataclasses import dataclass

from hgmem.errors import ConflictError, UsageError
from hgmem.graph.database import Database, Row, Transaction
from hgmem.graph.memory import in_use, not_ready
from hgmem.text.identity import uid
from hgmem.values.records import PRUNED, PRUNING


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A fork to make: its uid, the memory, the step at whose end it begins (None: the last), and who makes it."""

    corpus: str
    memory: str
    uid: str
    step: int | None
    owner: str | None


def write_fork(database: Database, fork: Fork, *, timeout: float, accepted: Callable[[], object]) -> None:
    """Write a fork in one transaction: all of it, or nothing.

    `timeout` is the age in seconds at which a lease expires. Each attempt calls `accepted` once nothing keeps the fork
    from being made, as what it raises is raised here. Raises `ConflictError` while a run holds the memory,
    `UsageError` if it was pruned or does not have the step.
    """

    def write(transaction: Transaction) -> None:
        corpus, memory, copy = fork.corpus, fork.memory, fork.uid
        rows = transaction.run(
            "begin_fork",
            corpus=corpus,
            memory=memory,
            fork=copy,
            step=fork.step,
            timeout=timeout,
            owner=fork.owner,
        )
        step = _step(rows, fork, timeout)
        accepted()
        found = transaction.run("relations_to_fork", corpus=corpus, memory=memory, step=step)
        relations = [_relation(row, fork) for row in found]
        transaction.run("fork_entities", corpus=corpus, memory=memory, fork=copy, step=step)
        transaction.run("fork_relations", corpus=corpus, memory=memory, fork=copy, rows=relations)
        transaction.run("fork_points", corpus=corpus, memory=memory, fork=copy, step=step)
        copies = {row["uid"]: row["copy"] for row in relations}
        transaction.run("fork_steps", corpus=corpus, memory=memory, fork=copy, step=step, relations=copies)
        transaction.run("fork_answers", corpus=corpus, memory=memory, fork=copy, step=step)

    database.write_as("fork_memory", write)


def _step(rows: list[Row], fork: Fork, timeout: float) -> int:
    """Return the step at whose end the fork begins, or raise what keeps it from being made."""
    if not rows:
        raise UsageError(f"memory {fork.memory!r} was deleted meanwhile: list memories with `hgmem memory list`")
    row = rows[0]
    if row["taken"]:
        raise ConflictError(f"memory {fork.uid!r} exists already: fork {fork.memory!r} under another uid")
    if not row["ready"]:
        raise not_ready(fork.corpus)
    if row["status"] in (PRUNING, PRUNED):
        raise UsageError(f"memory {fork.memory!r} was pruned and has no steps to fork: ask a new question")
    if not row["free"]:
        raise in_use(fork.memory, timeout)
    if not row["last"]:
        raise UsageError(f"memory {fork.memory!r} has no steps to fork, or was deleted meanwhile: ask it again")
    if not 1 <= row["at"] <= row["last"]:
        raise UsageError(f"memory {fork.memory!r} has no step {row['at']}: choose 1 to {row['last']}")
    return int(row["at"])


def _relation(row: Row, fork: Fork) -> Row:
    """Return a relation of the memory with its ends in the fork, and its uid there, which follows from them."""
    source, target = (_renamed(row[end], fork) for end in ("source", "target"))
    return {"uid": row["uid"], "copy": uid(fork.uid, "relation", source, target), "source": source, "target": target}


def _renamed(entity: str, fork: Fork) -> str:
    own = entity.startswith(f"{fork.memory}-")
    return f"{fork.uid}{entity.removeprefix(fork.memory)}" if own else entity

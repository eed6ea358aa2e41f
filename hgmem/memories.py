"""Stored memories, read back: at the end of any step, and point by point to where each came from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hgmem.arguments import Argument, check, whole
from hgmem.errors import UsageError
from hgmem.graph.database import Database
from hgmem.graph.memory import (
    StoredPoint,
    corpus_of,
    find_memory,
    list_memories,
    memory_answers,
    memory_points,
    memory_steps,
)
from hgmem.graph.retrieval import find_chunks
from hgmem.model import (
    INTERRUPTED,
    PRUNED,
    PRUNING,
    RUNNING,
    Answer,
    Chunk,
    Lineage,
    Memory,
    MemorySummary,
    OperationKind,
    Step,
)

STEP = Argument(whole, "is no step: the first one is 1")


def summaries(database: Database, *, corpus: str, claim_timeout: float) -> list[MemorySummary]:
    """Return one line for each of the corpus's memories, newest first."""
    found = []
    for row in list_memories(database, corpus=corpus):
        status = _status(row["status"], row.pop("silent"), claim_timeout)
        found.append(MemorySummary(**{**row, "status": status}))
    return found


def load_memory(database: Database, uid: str, *, step: int | None = None, claim_timeout: float) -> Memory:
    """Return the memory as it stood at the end of `step`, by default the last."""
    check({"step": step}, {"step": STEP})  # which of them there are is known later
    return _at(_read(database, uid), step, claim_timeout=claim_timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """All that is stored of a memory."""

    corpus: str
    row: Mapping[str, Any]
    steps: list[Step]
    answers: list[Mapping[str, Any]]
    points: tuple[StoredPoint, ...]


def _read(database: Database, uid: str) -> _Read:
    corpus, memory = corpus_of(database, uid=uid)
    return _Read(
        corpus=corpus,
        row=find_memory(database, corpus=corpus, memory=memory),
        steps=list(memory_steps(database, corpus=corpus, memory=memory)),
        answers=list(memory_answers(database, corpus=corpus, memory=memory)),
        points=tuple(memory_points(database, corpus=corpus, memory=memory)),
    )


def _at(read: _Read, step: int | None, *, claim_timeout: float) -> Memory:
    corpus, row, steps, answers = read.corpus, read.row, read.steps, read.answers
    memory = str(row["uid"])
    shown = _shown(row, step, steps=[one.number for one in steps], answered=[one["step"] for one in answers])
    stored = [one.point for one in read.points]
    return Memory(
        uid=memory,
        corpus=corpus,
        system=row["system"],
        model=row["model"],
        status=_status(row["status"], row["silent"], claim_timeout),
        created_at=row["created_at"],
        step=shown,
        points=tuple(point for point in stored if point.alive(shown)),
        steps=tuple(one for one in steps if one.number <= shown),
        answers=tuple(
            Answer(
                **answer, corpus=corpus, memory=memory, system=row["system"], points=tuple(stored), steps=tuple(steps)
            )
            for answer in answers
            if answer["step"] <= shown
        ),
    )


def _shown(row: Mapping[str, Any], step: int | None, *, steps: list[int], answered: list[int]) -> int:
    """Return the step that a memory is shown at; without steps, that of its last answer."""
    last = steps[-1] if steps else 0
    if step is None:
        return last or max(answered, default=0)
    if row["status"] in (PRUNING, PRUNED):
        raise UsageError(f"memory {row['uid']!r} was pruned, its steps are gone: look at it without a step")
    if not 1 <= step <= last:
        raise UsageError(f"memory {row['uid']!r} has no step {step}: its steps are 1 to {last}")
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A memory at its end, with every point that it ever had, in order of birth, and the chunks that these rest on."""

    question: str
    memory: Memory
    points: tuple[StoredPoint, ...]
    chunks: tuple[Chunk, ...]


def load_history(database: Database, uid: str, *, claim_timeout: float) -> History:
    """Return everything that happened in a memory; chunks that were deleted meanwhile are not there."""
    read = _read(database, uid)
    memory = _at(read, None, claim_timeout=claim_timeout)
    cited = {citation.chunk for answer in memory.answers for citation in answer.citations}
    rested = cited.union(*(stored.point.chunks for stored in read.points))
    chunks = find_chunks(database, corpus=memory.corpus, uids=sorted(rested))
    ordered = tuple(chunks[uid] for uid in sorted(chunks))
    return History(question=str(read.row["latest"]), memory=memory, points=read.points, chunks=ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What a memory is by itself: the question that it was asked last, and how its system was set."""

    uid: str
    system: str
    question: str
    settings: Mapping[str, Any]


def load_stored(database: Database, uid: str, *, corpus: str, step: int | None = None) -> Stored:
    """Return what a memory of the corpus is by itself; with a step, the question is that of the step."""
    row = find_memory(database, corpus=corpus, memory=uid)
    if row["status"] in (PRUNING, PRUNED):
        raise UsageError(f"memory {uid!r} was pruned, it has no points left to go on from: ask anew")
    asked = {one.number: one.question for one in memory_steps(database, corpus=corpus, memory=uid)} if step else {}
    question = asked.get(step or 0) or str(row["latest"])
    return Stored(uid=uid, system=row["system"], question=question, settings=json.loads(row["settings"]))


def load_lineage(database: Database, uid: str) -> Lineage:
    """Return the point and, parts within parts, the points that became it."""
    corpus, memory = corpus_of(database, uid=uid)
    stored = {one.point.uid: one for one in memory_points(database, corpus=corpus, memory=memory)}
    if uid not in stored:
        raise UsageError(f"{uid!r} is no memory point: `hgmem memory show {memory}` lists those of its memory")
    return _lineage(stored, uid)


def _lineage(stored: dict[str, StoredPoint], uid: str) -> Lineage:
    one = stored[uid]
    kind: OperationKind = "merge" if one.merges else "revise" if one.revises else "insert"
    parts = tuple(_lineage(stored, part) for part in (*one.revises, *one.merges))
    return Lineage(point=one.point, kind=kind, parts=parts)


def _status(status: str, silent: int | None, claim_timeout: float) -> str:
    """Return the memory's status; a claim that nobody renewed reads as interrupted."""
    return INTERRUPTED if status == RUNNING and silent is not None and silent > claim_timeout else status

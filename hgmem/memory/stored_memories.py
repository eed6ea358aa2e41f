"""Stored memories: read back as of any step, and each point with its lineage."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
    quote_statuses,
)
from hgmem.graph.retrieval import find_chunks
from hgmem.values.arguments import Argument, check, whole
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import (
    INTERRUPTED,
    PRUNED,
    PRUNING,
    RUNNING,
    Answer,
    Lineage,
    Memory,
    MemorySummary,
    OperationKind,
    Step,
)

STEP = Argument(whole, "is not a valid step: use an integer of at least 1")


def summaries(database: Database, *, corpus: str, claim_timeout: float, owner: str | None) -> list[MemorySummary]:
    """Return a summary of each memory of the corpus that `owner` sees, newest first."""
    found = []
    for row in list_memories(database, corpus=corpus, owner=owner):
        status = _status(row["status"], row.pop("silent"), claim_timeout)
        found.append(MemorySummary(**{**row, "status": status}))
    return found


def load_memory(
    database: Database, uid: str, *, step: int | None = None, claim_timeout: float, owner: str | None
) -> Memory:
    """Return the memory as it stood at the end of `step`, by default the last.

    Raises `UsageError` for one that `owner` does not see, as for an unknown one.
    """
    check({"step": step}, {"step": STEP})  # whether the step exists is checked later
    return _at(_read(database, uid, owner=owner), step, claim_timeout=claim_timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """Everything stored of a memory."""

    corpus: str
    row: Mapping[str, Any]
    steps: list[Step]
    answers: list[Mapping[str, Any]]
    points: tuple[StoredPoint, ...]


def _read(database: Database, uid: str, *, owner: str | None) -> _Read:
    corpus, memory = corpus_of(database, uid=uid, owner=owner)
    answers = memory_answers(database, corpus=corpus, memory=memory, owner=owner)
    return _Read(
        corpus=corpus,
        row=find_memory(database, corpus=corpus, memory=memory, owner=owner),
        steps=list(memory_steps(database, corpus=corpus, memory=memory, owner=owner)),
        answers=_with_quote_statuses(database, corpus, answers=answers),
        points=tuple(memory_points(database, corpus=corpus, memory=memory, owner=owner)),
    )


def _with_quote_statuses(
    database: Database, corpus: str, *, answers: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the answers, each withdrawn citation with what its document says now."""
    withdrawn = [one for answer in answers for one in answer["citations"] if one.withdrawn and one.chunk]
    if not withdrawn:
        return list(answers)
    statuses = dict(zip(withdrawn, quote_statuses(database, corpus=corpus, citations=withdrawn), strict=True))
    return [
        {**row, "citations": tuple(replace(one, quote_status=statuses.get(one)) for one in row["citations"])}
        for row in answers
    ]


def _at(read: _Read, step: int | None, *, claim_timeout: float) -> Memory:
    corpus, row, steps, answers = read.corpus, read.row, read.steps, read.answers
    memory = str(row["uid"])
    at_step = _step_shown(row, step, steps=[one.number for one in steps], answered=[one["step"] for one in answers])
    stored = [one.point for one in read.points]
    return Memory(
        uid=memory,
        corpus=corpus,
        system=row["system"],
        owner=row["owner"],
        model=row["model"],
        status=_status(row["status"], row["silent"], claim_timeout),
        created_at=row["created_at"],
        step=at_step,
        points=tuple(point for point in stored if point.alive(at_step)),
        steps=tuple(one for one in steps if one.number <= at_step),
        answers=tuple(
            Answer(**answer, corpus=corpus, system=row["system"], points=tuple(stored), steps=tuple(steps))
            for answer in answers
            if answer["step"] <= at_step
        ),
    )


def _step_shown(row: Mapping[str, Any], step: int | None, *, steps: list[int], answered: list[int]) -> int:
    """Return the step to show a memory at. Without steps, it is that of its last answer."""
    last = steps[-1] if steps else 0
    if step is None:
        return last or max(answered, default=0)
    if row["status"] in (PRUNING, PRUNED):
        raise UsageError(f"memory {row['uid']!r} was pruned and has no steps: omit the step")
    if not 1 <= step <= last:
        raise UsageError(f"memory {row['uid']!r} has no step {step}: choose 1 to {last}")
    return step


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """A memory at its end, with all its points in order of birth, superseded ones too, and their supporting chunks.

    Without points, the chunks are those that its sub-queries found.
    """

    question: str
    memory: Memory
    points: tuple[StoredPoint, ...]
    chunks: tuple[Chunk, ...]


def load_history(database: Database, uid: str, *, claim_timeout: float, owner: str | None) -> History:
    """Return the whole history of a memory. Deleted chunks are missing."""
    read = _read(database, uid, owner=owner)
    memory = _at(read, None, claim_timeout=claim_timeout)
    cited = {citation.chunk for answer in memory.answers for citation in answer.citations}
    rested = cited.union(*(stored.point.chunks for stored in read.points))
    if not read.points:
        rested |= {hit.uid for step in memory.steps for one in step.retrieved for hit in one.chunks}
    chunks = find_chunks(database, corpus=memory.corpus, uids=sorted(rested))
    ordered = tuple(chunks[uid] for uid in sorted(chunks))
    return History(question=str(read.row["latest"]), memory=memory, points=read.points, chunks=ordered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A memory's own properties: its latest question and the settings of its system."""

    uid: str
    system: str
    question: str
    settings: Mapping[str, Any]


def load_stored(database: Database, uid: str, *, corpus: str, step: int | None = None, owner: str | None) -> Stored:
    """Return a memory's own properties. With `step`, the question is that of the step."""
    row = find_memory(database, corpus=corpus, memory=uid, owner=owner)
    if row["status"] in (PRUNING, PRUNED):
        raise UsageError(f"memory {uid!r} was pruned and cannot be continued: ask a new question")
    steps = memory_steps(database, corpus=corpus, memory=uid, owner=owner) if step else []
    asked = {one.number: one.question for one in steps}
    question = asked.get(step or 0) or str(row["latest"])
    return Stored(uid=uid, system=row["system"], question=question, settings=json.loads(row["settings"]))


def load_lineage(database: Database, uid: str, *, owner: str | None) -> Lineage:
    """Return a point with the points that were revised or merged into it, recursively."""
    corpus, memory = corpus_of(database, uid=uid, owner=owner)
    points = memory_points(database, corpus=corpus, memory=memory, owner=owner)
    stored = {one.point.uid: one for one in points}
    if uid not in stored:
        raise UsageError(f"{uid!r} is not a memory point: list the points with `hgmem memory show {memory}`")
    return _lineage(stored, uid)


def _lineage(stored: dict[str, StoredPoint], uid: str) -> Lineage:
    one = stored[uid]
    kind: OperationKind = "merge" if one.merges else "revise" if one.revises else "insert"
    parts = tuple(_lineage(stored, part) for part in (*one.revises, *one.merges))
    return Lineage(point=one.point, kind=kind, parts=parts)


def _status(status: str, silent: int | None, claim_timeout: float) -> str:
    """Return the memory's status. A running one whose lease has expired counts as interrupted."""
    return INTERRUPTED if status == RUNNING and silent is not None and silent > claim_timeout else status

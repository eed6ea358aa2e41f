"""Stored memories: read back as of any step, and each point with its lineage."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hgmem.errors import ConflictError, UsageError
from hgmem.graph.database import Database, remaining
from hgmem.graph.memory import (
    StoredPoint,
    corpus_of,
    find_memory,
    memory_answers,
    memory_points,
    memory_steps,
    quote_statuses,
)
from hgmem.graph.retrieval import find_chunks
from hgmem.services import Services
from hgmem.values.arguments import Argument, check, whole
from hgmem.values.events import QuestionAccepted
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
)

STEP = Argument(whole, "is not a valid step: use an integer of at least 1")


def summaries(services: Services) -> list[MemorySummary]:
    """Return a summary of each memory of the corpus that the owner sees, newest first."""
    found = []
    rows = services.database.run("list_memories", corpus=services.corpus, owner=services.owner)
    for row in remaining(rows, "uid", "system", "question", "status", "created_at"):
        status = status_now(services, row["status"], row.pop("silent"))
        found.append(MemorySummary(**{**row, "status": status}))
    return found


def load_memory(services: Services, uid: str, *, step: int | None = None) -> Memory:
    """Return a memory of any corpus as it stood at the end of `step`, by default the last.

    Raises `UsageError` for one that the owner does not see, as for an unknown one.
    """
    check({"step": step}, {"step": STEP})  # whether the step exists is checked later
    return load_with_points(services, uid, step=step)[0]


def load_with_points(services: Services, uid: str, *, step: int | None) -> tuple[Memory, tuple[StoredPoint, ...], str]:
    """Return a memory as it stood at the end of `step`, all of its points, and its latest question."""
    database, owner = services.database, services.owner
    corpus, memory = corpus_of(database, uid=uid, owner=owner)
    row = find_memory(database, corpus=corpus, memory=memory, owner=owner)
    steps = tuple(memory_steps(database, corpus=corpus, memory=memory, owner=owner))
    answers = _with_quote_statuses(
        database, corpus, answers=memory_answers(database, corpus=corpus, memory=memory, owner=owner)
    )
    stored = tuple(memory_points(database, corpus=corpus, memory=memory, owner=owner))
    points = tuple(found.point for found in stored)
    at = _chosen_step(row, step, last=steps[-1].number if steps else 0, answered=[answer["step"] for answer in answers])
    loaded = Memory(
        uid=memory,
        corpus=corpus,
        system=row["system"],
        owner=row["owner"],
        model=row["model"],
        status=status_now(services, row["status"], row["silent"]),
        created_at=row["created_at"],
        step=at,
        points=tuple(point for point in points if point.alive(at)),
        steps=tuple(earlier for earlier in steps if earlier.number <= at),
        answers=tuple(
            Answer(**answer, corpus=corpus, system=row["system"], points=points, steps=steps)
            for answer in answers
            if answer["step"] <= at
        ),
        forked_from=row["forked_from"],
        forked_at=row["forked_at"],
    )
    return loaded, stored, str(row["latest"])


def answered_before(
    services: Services, asked: QuestionAccepted, same: Callable[[str], bool]
) -> tuple[Memory, Answer | None]:
    """Return the memory of a question, and the answer that it was given there, or None if it has none yet.

    `same` tells a question's text from others. An answer between a question's steps is not its last. Raises
    `ConflictError` if the memory was asked another question before this one was answered.
    """
    memory, _, latest = load_with_points(services, asked.memory, step=None)
    given = [one for one in memory.answers[asked.answers :] if same(one.question)]
    planned = {step.number for step in memory.steps if step.planned}
    final = next((one for one in given if one.step not in planned), None)
    if final is None and same(latest) and memory.status in (RUNNING, INTERRUPTED):
        return memory, None
    if final is None and not given and not same(latest):
        raise ConflictError(
            f"memory {memory.uid!r} was asked another question before this one was answered: ask it again, with "
            "another Idempotency-Key"
        )
    return memory, final or (given[-1] if given else None)


def _with_quote_statuses(
    database: Database, corpus: str, *, answers: Sequence[Mapping[str, Any]]
) -> Sequence[Mapping[str, Any]]:
    """Return the answers, each withdrawn citation with what its document says now."""
    cited = [citation for answer in answers for citation in answer["citations"]]
    withdrawn = [citation for citation in cited if citation.withdrawn and citation.chunk]
    if not withdrawn:
        return answers
    statuses = dict(zip(withdrawn, quote_statuses(database, corpus=corpus, citations=withdrawn), strict=True))
    return [
        {**row, "citations": tuple(replace(each, quote_status=statuses.get(each)) for each in row["citations"])}
        for row in answers
    ]


def _chosen_step(row: Mapping[str, Any], step: int | None, *, last: int, answered: list[int]) -> int:
    """Return the step to load a memory at. Without steps, it is that of its last answer."""
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


def load_history(services: Services, uid: str) -> History:
    """Return the whole history of a memory of any corpus. Deleted chunks are missing."""
    memory, points, question = load_with_points(services, uid, step=None)
    rested = {citation.chunk for answer in memory.answers for citation in answer.citations}
    rested |= {chunk for stored in points for chunk in stored.point.chunks}
    if not points:
        rested |= {hit.uid for step in memory.steps for found in step.retrieved for hit in found.chunks}
    chunks = find_chunks(services.database, corpus=memory.corpus, uids=sorted(rested))
    return History(question=question, memory=memory, points=points, chunks=tuple(chunks[uid] for uid in sorted(chunks)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A memory's own properties: its latest question and the settings of its system."""

    uid: str
    system: str
    question: str
    settings: Mapping[str, Any]


def load_stored(services: Services, uid: str, *, step: int | None = None) -> Stored:
    """Return a memory's own properties. With `step`, the question is that of the step."""
    database, corpus, owner = services.database, services.corpus, services.owner
    row = find_memory(database, corpus=corpus, memory=uid, owner=owner)
    if row["status"] in (PRUNING, PRUNED):
        raise UsageError(f"memory {uid!r} was pruned and cannot be continued: ask a new question")
    steps = memory_steps(database, corpus=corpus, memory=uid, owner=owner) if step else []
    asked = {earlier.number: earlier.question for earlier in steps}
    question = asked.get(step or 0) or str(row["latest"])
    return Stored(uid=uid, system=row["system"], question=question, settings=json.loads(row["settings"]))


def load_lineage(services: Services, uid: str) -> Lineage:
    """Return a point with those that were revised or merged into it, recursively, and those that were made of it."""
    database, owner = services.database, services.owner
    corpus, memory = corpus_of(database, uid=uid, owner=owner)
    points = memory_points(database, corpus=corpus, memory=memory, owner=owner)
    stored = {found.point.uid: found for found in points}
    if uid not in stored:
        raise UsageError(f"{uid!r} is not a memory point: list the points with `hgmem memory show {memory}`")
    into = tuple(made for made, found in stored.items() if uid in (*found.revises, *found.merges))
    row = find_memory(database, corpus=corpus, memory=memory, owner=owner)
    copied = {
        point: f"{row['forked_from']}{point.removeprefix(memory)}"
        for point, found in stored.items()
        if found.point.born <= (row["forked_at"] or 0)
    }
    return replace(_lineage(stored, uid, copied), into=into)


def _lineage(stored: Mapping[str, StoredPoint], uid: str, copied: Mapping[str, str]) -> Lineage:
    found = stored[uid]
    kind: OperationKind = "merge" if found.merges else "revise" if found.revises else "insert"
    parts = tuple(replace(_lineage(stored, part, copied), into=(uid,)) for part in (*found.revises, *found.merges))
    return Lineage(point=found.point, kind=kind, parts=parts, copied_from=copied.get(uid, ""))


def status_now(services: Services, status: str, silent: int | None) -> str:
    """Return the memory's status. A running one whose lease has expired counts as interrupted."""
    expired = silent is not None and silent > services.settings.claim_timeout
    return INTERRUPTED if status == RUNNING and expired else status

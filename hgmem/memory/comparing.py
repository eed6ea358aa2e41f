"""Comparing memories: the points that both have, whichever memory they are in, and the chunks that they rest on."""

from collections.abc import Iterable, Iterator

from hgmem.errors import UsageError
from hgmem.graph.memory import in_use
from hgmem.graph.retrieval import find_chunks
from hgmem.memory.recording import behind
from hgmem.memory.stored_memories import load_with_points
from hgmem.services import Services
from hgmem.text.identity import key, uid
from hgmem.text.segmentation import clipped
from hgmem.values.differences import ComparedMemory, ComparedPoint, EvidenceChunk, MemoryDiff, MemoryState, difference
from hgmem.values.records import PRUNED, PRUNING, RUNNING, Memory, MemoryPoint

BEGINNING = 200  # characters of a chunk that are shown


def compare(services: Services, first: tuple[str, int | None], second: tuple[str, int | None]) -> MemoryDiff:
    """Return how two memories of one corpus differ, each at the end of a step, by default its last.

    Raises `UsageError` for one that was pruned or does not have the step, and for memories of several corpora, whose
    entities and chunks have nothing in common. Raises `ConflictError` for one that a run is writing.
    """
    (corpus, before), (other, after) = (_state(services, *named) for named in (first, second))
    if corpus != other:
        raise UsageError(
            f"memory {before.memory.memory!r} is of corpus {corpus!r}, memory {after.memory.memory!r} of corpus "
            f"{other!r}, which share no entities and chunks: compare memories of one corpus"
        )
    return difference(before, after)


def _state(services: Services, named: str, step: int | None) -> tuple[str, MemoryState]:
    """Return the corpus of a memory, and the memory as it is compared."""
    memory, stored, _ = load_with_points(services, named, step=step)
    if memory.status in (PRUNED, PRUNING):
        raise UsageError(
            f"memory {memory.uid!r} was pruned and has no steps and points: compare memories that still have theirs"
        )
    if memory.status == RUNNING:
        raise in_use(memory.uid, services.settings.claim_timeout)
    keys = {one.point.uid: point_key(memory, one.point) for one in stored}
    parts = {one.point.uid: (*one.revises, *one.merges) for one in stored}
    question = memory.steps[-1].question if memory.steps else ""
    answers = [one.text for one in memory.answers if (one.step, one.question) == (memory.step, question)]
    compared = ComparedMemory(
        memory=memory.uid,
        step=memory.step,
        system=memory.system,
        model=memory.model,
        question=question,
        answer=answers[-1] if answers else "",
    )
    points = (
        ComparedPoint(key=keys[point.uid], point=point, behind=frozenset(keys[uid] for uid in behind(parts, point.uid)))
        for point in memory.points
    )
    evidence = _evidence(services, memory.corpus, _rested(memory))
    return memory.corpus, MemoryState(memory=compared, points=tuple(points), evidence=tuple(evidence))


def point_key(memory: Memory, point: MemoryPoint) -> str:
    """Return what tells a point from others in any memory of the corpus: its statement and what it is about.

    An entity that the corpus lacks has the uid that it would have there, which is the same for all memories.
    """
    things = {entity.thing.removeprefix(f"{memory.uid}-") for entity in point.entities}
    return uid(memory.corpus, "point", key(point.description), *sorted(things))


def _rested(memory: Memory) -> set[str]:
    """Return the chunks (uids) that the memory's steps retrieved or its points rest on."""
    found = {hit.uid for step in memory.steps for one in step.retrieved for hit in one.chunks}
    return found.union(*(point.chunks for point in memory.points))


def _evidence(services: Services, corpus: str, uids: Iterable[str]) -> Iterator[EvidenceChunk]:
    for chunk in find_chunks(services.database, corpus=corpus, uids=sorted(uids)).values():
        yield EvidenceChunk(
            uid=chunk.uid,
            document=chunk.document,
            title=chunk.title,
            position=chunk.position,
            beginning=clipped(chunk.text, BEGINNING),
        )

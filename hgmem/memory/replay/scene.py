"""The page's data as JSON: points with birth and death, entities, steps, answers, passages."""

from collections import Counter
from collections.abc import Iterable, Set
from typing import Any, TypeAlias

from hgmem.memory.stored_memories import History
from hgmem.values.evidence import Retrieved, Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.records import Answer, Citation, Operation, Step

Scene: TypeAlias = dict[str, Any]

FOUND = 8  # names of a sub-query's hits that are listed
PASSAGE = 1_200  # characters of a chunk that are shown


def scene(history: History) -> Scene:
    """Return a memory's history in the page's form. Entities and chunks appear once, by uid."""
    memory = history.memory
    # Chunks are shown with the points that they support, or else with the sub-queries that found them.
    known = set() if history.points else {chunk.uid for chunk in history.chunks}
    kinds = {op.point: op.kind for step in memory.steps for op in step.operations if op.kind != "drop"}
    return {
        "memory": memory.uid,
        "corpus": memory.corpus,
        "system": memory.system,
        "model": memory.model,
        "status": memory.status,
        "question": history.question,
        "created": memory.created_at,
        "points": [
            {
                "uid": stored.point.uid,
                "description": stored.point.description,
                "born": stored.point.born,
                "died": stored.point.died,
                "kind": kinds.get(stored.point.uid, "insert"),
                "parts": [*stored.revises, *stored.merges],
                "entities": [entity.uid for entity in stored.point.entities],
                "chunks": list(stored.point.chunks),
                "deleted": len(stored.point.deleted_chunks),
            }
            for stored in history.points
        ],
        "entities": _entities(entity for stored in history.points for entity in stored.point.entities),
        "chunks": {
            chunk.uid: {"title": chunk.title or chunk.document, "text": _shortened(chunk.text)}
            for chunk in history.chunks
        },
        "steps": [_step(step, known) for step in memory.steps],
        "walk": _walk(memory.steps),
        "answers": [_answer(answer) for answer in memory.answers],
    }


def _entities(entities: Iterable[Entity]) -> dict[str, Scene]:
    """Return each entity by uid. `colour` is the rank of its type by frequency, or 0 without a type."""
    once = {entity.uid: entity for entity in entities}
    types = [type_ for type_, _ in Counter(entity.type for entity in once.values() if entity.type).most_common()]
    return {
        uid: {
            "name": entity.name,
            "type": entity.type,
            "description": entity.description,
            "provisional": entity.provisional,
            "colour": types.index(entity.type) + 1 if entity.type else 0,
        }
        for uid, entity in once.items()
    }


def _walk(steps: Iterable[Step]) -> list[Scene]:
    """Return the places that a system walked through, in order, none for a system that does not walk."""
    hits = [(step, one, hit) for step in steps for one in step.retrieved for hit in one.built]
    if not any(hit.source for _, _, hit in hits):
        return []
    return [
        {
            "step": step.number,
            "strategy": one.subquery.strategy,
            "uid": hit.uid,
            "kind": hit.kind,
            "text": _shortened(hit.text),
            "source": hit.source,
            "score": hit.score,
        }
        for step, one, hit in hits
    ]


def _step(step: Step, known: Set[str]) -> Scene:
    return {
        "number": step.number,
        "question": step.question,
        "strategy": step.strategy,
        "judgement": step.judgement,
        "seconds": step.seconds,
        "filters": {name: list(wanted) for name, wanted in step.filters.items()},
        "subqueries": [_retrieved(one, known) for one in step.retrieved],
        "operations": [_operation(one) for one in step.operations],
        "planned": [_subquery(one) for one in step.planned],
        "notes": list(step.notes),
    }


def _retrieved(one: Retrieved, known: Set[str]) -> Scene:
    return {
        **_subquery(one.subquery),
        "entities": [hit.name for hit in one.entities[:FOUND]],
        "built": [{"kind": hit.kind, "text": _shortened(hit.text)} for hit in one.built[:FOUND]],
        "chunks": [hit.uid for hit in one.chunks if hit.uid in known][:FOUND],
        "found": {
            "entities": len(one.entities),
            "relations": len(one.relations),
            "chunks": len(one.chunks),
            "built": len(one.built),
        },
    }


def _subquery(one: Subquery) -> Scene:
    return {"text": one.text, "concern": one.concern, "strategy": one.strategy, "targets": list(one.targets)}


def _operation(one: Operation) -> Scene:
    return {"kind": one.kind, "point": one.point, "parts": list(one.parts), "reason": one.reason}


def _answer(answer: Answer) -> Scene:
    return {
        "question": answer.question,
        "text": answer.text,
        "status": answer.status,
        "step": answer.step,
        "model": answer.model,
        "notes": list(answer.notes),
        "citations": [_citation(one) for one in answer.citations],
    }


def _citation(one: Citation) -> Scene:
    return {
        "marker": one.marker,
        "chunk": one.chunk,
        "title": one.title or one.document,
        "quote": one.quote,
        "start": one.start,
        "end": one.end,
        "said": one.attribution,
        "withdrawn": one.withdrawn,
        "status": one.quote_status,
    }


def _shortened(text: str) -> str:
    return text if len(text) <= PASSAGE else f"{text[:PASSAGE].rstrip()} …"

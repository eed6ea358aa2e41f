"""What a step writes, as rows of its statement."""

from collections.abc import Mapping

from hgmem.draft import Birth
from hgmem.embed import Vectors
from hgmem.graph.database import Row
from hgmem.graph.values import to_json, vector
from hgmem.identity import provisional_uid
from hgmem.model import Entity, Relation, Retrieved, Step


def step_row(step: Step) -> Row:
    """Return a step's own properties."""
    return {
        "number": step.number,
        "question": step.question,
        "strategy": step.strategy,
        "judgement": step.judgement,
        "operations": to_json(step.operations),
        "planned": to_json(step.planned),
        "filters": to_json(step.filters) if step.filters else None,
        "notes": list(step.notes),
        "seconds": step.seconds,
        "usage": to_json(step.usage),
    }


def subquery_row(number: int, one: Retrieved) -> Row:
    """Return a sub-query, numbered from 1, with what it retrieved."""
    return {
        "number": number,
        "text": one.subquery.text,
        "concern": one.subquery.concern,
        "strategy": one.subquery.strategy,
        "targets": list(one.subquery.targets),
        "relations": [hit.uid for hit in one.relations],
        "entities": [{"uid": hit.uid, "rank": hit.rank, "score": hit.score} for hit in one.entities],
        "chunks": [{"uid": hit.uid, "rank": hit.rank, "score": hit.score} for hit in one.chunks],
    }


def provisional_row(entity: Entity, vectors: Mapping[str, Vectors]) -> Row:
    """Return an entity of the memory's own."""
    return {
        "uid": entity.uid,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "vector": vector(vectors[entity.uid]),
    }


def relation_row(relation: Relation, vectors: Mapping[str, Vectors]) -> Row:
    """Return a relation of the memory's own."""
    return {
        "uid": relation.uid,
        "source": relation.source,
        "target": relation.target,
        "description": relation.description,
        "keywords": list(relation.keywords),
        "weight": relation.weight,
        "vector": vector(vectors[relation.uid]),
    }


def birth_row(birth: Birth, vectors: Mapping[str, Vectors], memory: str) -> Row:
    """Return a new point with what it ties; `kept` is where an entity stays that the corpus has no more."""
    point = birth.point
    return {
        "uid": point.uid,
        "description": point.description,
        "born": point.born,
        "entities": [
            {
                "uid": entity.uid,
                "kept": entity.uid if entity.provisional else provisional_uid(memory, entity.uid),
                "name": entity.name,
                "type": entity.type,
                "description": entity.description,
            }
            for entity in point.entities
        ],
        "chunks": list(point.chunks),
        "revises": list(birth.revises),
        "merges": list(birth.merges),
        "vector": vector(vectors[point.uid]),
    }

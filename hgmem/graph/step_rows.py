"""Build the rows that the `write_step` and `write_answer` statements take."""

from collections.abc import Mapping
from dataclasses import asdict

from hgmem.graph.database import Row
from hgmem.graph.values import to_json, vector
from hgmem.models.embedding import Vectors
from hgmem.text.identity import provisional_uid
from hgmem.values.evidence import Retrieved
from hgmem.values.graph_elements import Entity, Relation
from hgmem.values.records import Birth, Citation, Step


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
        "built": to_json(one.built) if one.built else None,
        "relations": [hit.uid for hit in one.relations],
        "entities": [{"uid": hit.uid, "rank": hit.rank, "score": hit.score} for hit in one.entities],
        "chunks": [{"uid": hit.uid, "rank": hit.rank, "score": hit.score} for hit in one.chunks],
    }


def provisional_row(entity: Entity, vectors: Mapping[str, Vectors]) -> Row:
    """Return a provisional entity of the memory."""
    return {
        "uid": entity.uid,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "vector": vector(vectors[entity.uid]),
    }


def relation_row(relation: Relation, vectors: Mapping[str, Vectors]) -> Row:
    """Return a relation of the memory."""
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
    """Return a new point with the entities and chunks that it involves.

    `kept` is the provisional uid for an entity that the corpus has deleted meanwhile.
    """
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
        "deleted_chunks": list(point.deleted_chunks) or None,
        "revises": list(birth.revises),
        "merges": list(birth.merges),
        "vector": vector(vectors[point.uid]),
    }


_OWN_OF_SOME = ("built", "behind", "message", "speaker", "time")


def citation_row(citation: Citation, answer: str) -> Row:
    """Return a citation of an answer (uid).

    Only one of a built row has `built` and `behind`, and only one of a conversation `message`, `speaker` and `time`.
    """
    properties = asdict(citation)
    properties["behind"] = list(citation.behind)
    return {
        "uid": f"{answer}-{citation.marker}",
        "chunk": citation.chunk,
        "built": citation.built,
        "properties": properties | {name: properties[name] or None for name in _OWN_OF_SOME},
    }

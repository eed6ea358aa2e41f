"""Descriptions of entities and pairs that the corpus lacks, by extra model calls (official code, recipe `CODE`)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hgmem.errors import BadReplyError
from hgmem.services import Services
from hgmem.systems.hgmem.draft import Draft
from hgmem.systems.hgmem.tasks.memory_changes import Describe
from hgmem.text.identity import key, uid
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Entity, Relation

ROUNDS = 3  # each asks for what is still missing (official code)
PAIRS = 60  # asked for at once


def describe(services: Services, draft: Draft, evidence: Evidence) -> list[str]:
    """Describe the draft's new entities and relate them to the entities of their points, and return notes."""
    names = {key(entity.name): entity for entity in draft.provisionals.values()}
    pairs = _pairs(draft)
    notes: list[str] = []
    for _ in range(ROUNDS):
        if not names and not pairs:
            break
        try:
            reply = services.reply(
                Describe(
                    names=tuple(entity.name for entity in names.values()),
                    pairs=tuple((one.name, other.name) for one, other in list(pairs.values())[:PAIRS]),
                    evidence=evidence,
                )
            )
        except BadReplyError as error:
            notes.append(f"describe: no usable reply ({error})")
            continue
        notes += [f"describe: {note}" for note in reply.notes]
        for said in reply.entities:
            entity = names.pop(key(said.name), None)
            if entity is not None:
                draft.redescribe(replace(entity, type=said.type, description=said.description or entity.description))
        for stated in reply.relations:
            ends = _ordered(stated.source, stated.target)
            if ends in pairs:
                one, other = pairs.pop(ends)
                relation = Relation(
                    uid=uid(draft.memory, "relation", one.uid, other.uid),
                    source=one.uid,
                    target=other.uid,
                    source_name=one.name,
                    target_name=other.name,
                    description=stated.description,
                    keywords=stated.keywords,
                    weight=stated.weight,
                )
                draft.relations[relation.uid] = relation
    return notes


def _pairs(draft: Draft) -> dict[tuple[str, str], tuple[Entity, Entity]]:
    """Return every pair of a new entity and another one of the same new point, by their keys in order."""
    found: dict[tuple[str, str], tuple[Entity, Entity]] = {}
    for birth in draft.births:
        for entity in birth.point.entities:
            if entity.uid in draft.provisionals:
                found |= _with(entity, birth.point.entities)
    return found


def _with(entity: Entity, others: Sequence[Entity]) -> Mapping[tuple[str, str], tuple[Entity, Entity]]:
    return {
        _ordered(entity.name, other.name): (entity, other) if key(entity.name) < key(other.name) else (other, entity)
        for other in others
        if other.uid != entity.uid
    }


def _ordered(one: str, other: str) -> tuple[str, str]:
    first, second = sorted((key(one), key(other)))
    return first, second

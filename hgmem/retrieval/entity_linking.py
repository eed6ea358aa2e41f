"""Entity linking: resolves names from a model to known entities, then stored ones, else provisional ones.

Also tells which entities chunks mention.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hgmem.graph.database import Database
from hgmem.graph.memory import find_entities
from hgmem.graph.retrieval import mentioned_entities
from hgmem.text.identity import key, provisional_uid, uid
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Entity


def resolve(
    database: Database, names: Sequence[str], *, corpus: str, memory: str, known: Iterable[Entity]
) -> dict[str, Entity]:
    """Return the entity of each name by its key. It reads at most once, and not at all if all are known."""
    found: dict[str, Entity] = {}
    spelled: set[str] = set()  # points of a large memory involve the same entities repeatedly
    for entity in known:
        if entity.name not in spelled:
            spelled.add(entity.name)
            found.setdefault(key(entity.name), entity)
    missing = {key(name): name for name in names if key(name) not in found}
    if not missing:
        return found
    uids = {uid(corpus, "entity", name_key): name_key for name_key in missing}
    own = {provisional_uid(memory, entity_uid): name_key for entity_uid, name_key in uids.items()}
    stored = find_entities(database, corpus=corpus, uids=[*uids, *own])
    for entity in stored:
        found.setdefault((own | uids)[entity.uid], entity)
    for entity_uid, name_key in uids.items():
        if name_key not in found:
            provisional = provisional_uid(memory, entity_uid)
            found[name_key] = Entity(uid=provisional, name=missing[name_key], provisional=True)
    return found


def with_mentions(database: Database, evidence: Evidence, *, corpus: str) -> Evidence:
    """Return the evidence, whose chunks say which entities they mention. It reads once, if there are any chunks.

    Only HGMem's rule-based replies need this of every chunk, so retrieval does not read it.
    """
    if not evidence.chunks:
        return evidence
    mentioned = mentioned_entities(database, corpus=corpus, uids=[chunk.uid for chunk in evidence.chunks])
    chunks = tuple(replace(chunk, entities=mentioned.get(chunk.uid, ())) for chunk in evidence.chunks)
    return replace(evidence, chunks=chunks)

"""Dumps of a whole corpus as comparable values: equal dumps mean equal data in Neo4j."""

import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from neo4j import Driver, GraphDatabase

from hgmem.extraction.contributions import (
    entities_of,
    entity_fields,
    entity_text,
    load_entities,
    load_relations,
    relation_fields,
    relation_text,
    relations_of,
    still_supported,
)
from hgmem.extraction.replies import Extraction
from hgmem.settings import Settings
from hgmem.testing import DeterministicEmbedder

TIMES = frozenset({"indexed_at", "created_at", "attempts", "heartbeat"})  # properties that differ between runs
LIMIT = 2_000

NODES = """
MATCH (n) WHERE n.corpus = $corpus OR (n:Corpus AND n.name = $corpus)
RETURN coalesce(n.uid, CASE WHEN n:Corpus THEN 'corpus' ELSE elementId(n) END) AS uid, labels(n) AS labels,
       properties(n) AS properties
"""
RELATIONSHIPS = """
MATCH (a)-[r]->(b) WHERE a.corpus = $corpus OR b.corpus = $corpus
RETURN type(r) AS type, coalesce(a.uid, elementId(a)) AS source, coalesce(b.uid, elementId(b)) AS target,
       properties(r) AS properties
"""


@dataclass(frozen=True, kw_only=True)
class Dump:
    """Nodes by uid with labels and properties, and relationships with their counts."""

    nodes: dict[str, tuple[list[str], dict[str, Any]]]
    relationships: Counter[str]

    def of(self, label: str) -> dict[str, dict[str, Any]]:
        """Return the properties of the nodes with this label, by uid."""
        return {uid: properties for uid, (labels, properties) in self.nodes.items() if label in labels}

    def joined(self, kind: str) -> list[tuple[str, str, dict[str, Any]]]:
        """Return source, target and properties of each relationship of this type."""
        parsed = [json.loads(one) for one in self.relationships.elements()]
        return [(source, target, properties) for type_, source, target, properties in parsed if type_ == kind]


def driver(settings: Settings) -> Driver:
    """Return a separate driver for the test."""
    assert settings.neo4j_uri
    assert settings.neo4j_password
    auth = (settings.neo4j_username, settings.neo4j_password.get_secret_value())
    return GraphDatabase.driver(settings.neo4j_uri, auth=auth, notifications_min_severity="OFF")


def dump(settings: Settings, corpus: str, *, times: bool = False) -> Dump:
    """Return all data of the corpus, including vectors; with `times`, also properties that differ between runs."""
    left_out = frozenset() if times else TIMES
    with driver(settings) as opened, opened.session() as session:
        nodes = session.run(NODES, corpus=corpus).data()
        relationships = session.run(RELATIONSHIPS, corpus=corpus).data()

    def kept(properties: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in sorted(properties.items()) if name not in left_out}

    found = {row["uid"]: (sorted(row["labels"]), kept(row["properties"])) for row in nodes}
    assert len(found) == len(nodes)
    return Dump(
        nodes=found,
        relationships=Counter(
            json.dumps([row["type"], row["source"], row["target"], kept(row["properties"])], default=str)
            for row in relationships
        ),
    )


def check(found: Dump) -> None:
    """Check that entities and relations match their contributions, and vectors match their texts."""
    chunks = found.of("Chunk")
    said = {uid: _extraction(chunk) for uid, chunk in sorted(chunks.items())}
    entities = {uid: entity for uid, entity in found.of("Entity").items() if not entity["memory"]}
    mentions: dict[str, set[str]] = {uid: set() for uid in entities}
    for entity, chunk, _ in found.joined("FROM_CHUNK"):
        mentions[entity].add(chunk)
    for uid, entity in entities.items():
        given = still_supported(load_entities(entity.get("given")), existing=mentions[uid])
        contributions = given + [
            one for chunk in sorted(mentions[uid]) for one in entities_of(said[chunk]).get(entity["key"], [])
        ]
        assert contributions, entity
        fields = entity_fields(contributions, limit=LIMIT, condensed=entity.get("condensed"))
        text = fields.description.text
        assert (entity["name"], entity["type"], entity["description"]) == (fields.name, fields.type, text)
        assert entity.get("condensed") == fields.description.condensed
        check_vector(entity["embedding"], entity_text(fields.name, text))
    _check_links(found, mentions, said)
    _check_relations(found, said)
    for chunk in chunks.values():
        if chunk["status"] == "done":
            check_vector(chunk["embedding"], chunk["text"])


def _check_links(found: Dump, mentions: dict[str, set[str]], said: dict[str, Extraction]) -> None:
    entities = {entity["key"]: uid for uid, entity in found.of("Entity").items() if not entity["memory"]}
    for chunk, extraction in said.items():
        if found.of("Chunk")[chunk]["status"] == "done":
            for key in entities_of(extraction):
                assert chunk in mentions[entities[key]]


def _check_relations(found: Dump, said: dict[str, Extraction]) -> None:
    entities = found.of("Entity")
    stated = {
        (chunk, *ends)
        for chunk, extraction in said.items()
        for ends in relations_of(extraction)
        if found.of("Chunk")[chunk]["status"] == "done"
    }
    for source, target, relation in found.joined("RELATES"):
        ends = (entities[source]["key"], entities[target]["key"])
        assert ends[0] < ends[1]
        assert relation["chunks"] == sorted(set(relation["chunks"]) & said.keys())
        given = still_supported(load_relations(relation.get("given")), existing=set(relation["chunks"]))
        contributions = given + [one for chunk in relation["chunks"] for one in relations_of(said[chunk]).get(ends, [])]
        assert contributions, relation
        fields = relation_fields(contributions, limit=LIMIT, condensed=relation.get("condensed"))
        text = fields.description.text
        assert (relation["description"], relation["weight"]) == (text, fields.weight)
        assert relation.get("condensed") == fields.description.condensed
        assert relation["keywords"] == list(fields.keywords)
        check_vector(relation["embedding"], relation_text(ends, text, fields.keywords))
        stated -= {(chunk, *ends) for chunk in relation["chunks"]}
    assert not stated


def _extraction(chunk: dict[str, Any]) -> Extraction:
    return Extraction.model_validate_json(chunk.get("extraction") or "{}")


def check_vector(stored: list[float], text: str) -> None:
    (wanted,) = DeterministicEmbedder(len(stored)).embed([text], kind="document")
    assert max(abs(a - b) for a, b in zip(stored, wanted.tolist(), strict=True)) < 1e-6

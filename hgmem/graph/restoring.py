"""Typed wrappers for `cypher/restoring.cypher`, and what a record of an archive becomes in the graph."""

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.record_fields import EVERYWHERE, VECTORS, FieldType, RecordType, Reference
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.values import Runner, vector
from hgmem.text.identity import build_uid, chunk_layer, layer_key

# The properties that follow from the rest of a record, by type, for the corpus and the record.
DERIVED: Mapping[str, Callable[[str, Row], Row]] = {
    "Chunk": lambda corpus, _: {"layer_key": chunk_layer(corpus)},
    "Entity": lambda _, __: {"memory": ""},
    "RELATES": lambda corpus, _: {EVERYWHERE: corpus},
    "Memory": lambda _, record: {"memory": record["uid"]},
    "Decision": lambda _, record: {"kind": record["verdict"]},
    "Built": lambda corpus, record: {
        "kind": record["label"],
        "layer_key": layer_key(corpus, record["system"], record["label"]),
        # An empty one says that the row had one: it has to be computed again.
        **({"own_embedding": []} if record.get("replaced_vectors") and "own_embedding" not in record else {}),
    },
}
# The links of nodes that have no uid, and what `restore_nodes` calls their other end.
WITHOUT_UID = {"HAS_STEP": "step_of", "ASKED": "subquery_of"}


def restore(database: Runner, *, corpus: str, name: str, rows: Sequence[Row]) -> None:
    """Write records of one type, each with the relationship that it stands for.

    Their vectors are arrays.
    """
    of_type = RECORD_TYPES[name]
    if of_type.source:
        _relate(database, corpus, of_type, rows)
        return
    database.run("restore_nodes", corpus=corpus, rows=[_node(corpus, of_type, row) for row in rows])
    link = of_type.link
    if link is None or link.type in WITHOUT_UID:
        return
    ends = [(_end(corpus, link.to, row), {name: row["uid"]}) for row in rows if _names(link.to, row)]
    pairs = [reversed(pair) if link.outgoing else pair for pair in ends]
    linked = [{"source": source, "target": target, "properties": {}, "vectors": {}} for source, target in pairs]
    restore_relationships(database, corpus=corpus, type_=link.type, rows=linked)


def restore_relationships(database: Runner, *, corpus: str, type_: str, rows: Sequence[Row]) -> None:
    """Write relationships of one type with their ends, properties and vectors."""
    database.run("restore_relationships", corpus=corpus, type=type_, rows=list(rows))


def _relate(database: Runner, corpus: str, of_type: RecordType, rows: Sequence[Row]) -> None:
    """Write relationships, together those of one type: systems' own types are named in the records."""
    by_type: dict[str, list[Row]] = {}
    for row in rows:
        ends = {"source": _end(corpus, of_type.source, row), "target": _end(corpus, of_type.target, row)}
        by_type.setdefault(row.get("type", of_type.name), []).append({**ends, **_content(corpus, of_type, row)})
    for type_, of_one in by_type.items():
        restore_relationships(database, corpus=corpus, type_=type_, rows=of_one)


def _node(corpus: str, of_type: RecordType, record: Row) -> Row:
    node = {
        "labels": _labels(of_type, record),
        "times": _of(of_type, record, {"time"}),
        **_content(corpus, of_type, record),
    }
    if of_type.link and (end := WITHOUT_UID.get(of_type.link.type)):
        [node[end]] = _end(corpus, of_type.link.to, record).values()
    return node


def _labels(of_type: RecordType, record: Row) -> list[str]:
    if of_type.name == "Provisional":
        return ["Entity", "Provisional"]
    if of_type.name == "Built":
        return ["Built", record["label"]]
    return ["MemoryPoint", "DeadPoint"] if of_type.name == "MemoryPoint" and "died" in record else [of_type.name]


def _content(corpus: str, of_type: RecordType, record: Row) -> Row:
    vectors = _of(of_type, record, VECTORS)
    given = {
        field.name: record[field.name]
        for field in of_type.kept
        if field.name in record and field.name not in vectors and field.type != "time"
    }
    derived = DERIVED[of_type.name](corpus, record) if of_type.name in DERIVED else {}
    return {
        "properties": {**record.get("own_properties", {}), **given, **derived},
        "vectors": {name: vector(values) for name, values in vectors.items()},
    }


def _of(of_type: RecordType, record: Row, types: Set[FieldType]) -> dict[str, Any]:
    return {field.name: record[field.name] for field in of_type.kept if field.type in types and field.name in record}


def _names(reference: Reference, record: Row) -> bool:
    return any(record.keys() >= set(fields) for _, fields in reference)


def _end(corpus: str, reference: Reference, record: Row) -> dict[str, Any]:
    """Return what finds a node: its label and its uid, or what tells it from others in the memory."""
    found: dict[str, Any] = {}
    for name, fields in reference:
        key = [record[field] for field in fields]
        if name == "Build":
            found["Build"] = build_uid(corpus, record["system"])
        elif name in ("Step", "SubQuery"):
            found[name] = key
        else:
            found["Entity" if name == "Provisional" else name] = key[-1]
    return found

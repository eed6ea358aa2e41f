"""Neo4j's disk use by store and index, in bytes of files, to size a server."""

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import neo4j

DATABASE = Path("data/databases/neo4j")
STORES = (  # the first pattern that matches a file's name
    ("node store", r"neostore\.nodestore"),
    ("relationship store", r"neostore\.relationship(store|groupstore)"),
    ("property store: vectors and lists", r"neostore\.propertystore\.db\.arrays"),
    ("property store: texts", r"neostore\.propertystore\.db\.strings"),
    ("property store: the rest", r"neostore\.propertystore"),
    ("other", ""),
)
INDEXES = "SHOW INDEXES YIELD id, name, type, labelsOrTypes RETURN id, name, type, labelsOrTypes"
KINDS = {"Entity": "entities", "Chunk": "chunks", "RELATES": "relations"}  # what a vector index holds


def indexes(driver: neo4j.Driver) -> dict[str, str]:
    """Return a description of each index by its folder."""
    return {str(row["id"]): _index(row) for row in driver.execute_query(INDEXES).records}


def stored(data: Path, names: Mapping[str, str]) -> dict[str, int]:
    """Return the bytes of each store, index and log in the data folder of a stopped server."""
    found: dict[str, int] = defaultdict(int)
    for path in (data / DATABASE).rglob("*"):
        if path.is_file():
            found[_store(path.relative_to(data / DATABASE), names)] += path.stat().st_size
    log = data / "data" / "transactions" / "neo4j"
    found["transaction log"] = sum(path.stat().st_size for path in log.rglob("*") if path.is_file())
    return dict(sorted(found.items()))


def each(found: Mapping[str, int], counts: Mapping[str, int]) -> dict[str, float]:
    """Return the bytes of each store per entity, and those of a vector index per indexed item."""
    every = {name: size for name, size in found.items() if name != "transaction log"}
    told = {f"{name}, an entity": round(size / counts["entities"], 1) for name, size in every.items()}
    for kind, count in counts.items():
        if size := every.get(f"vector index: {kind}"):
            told[f"vector index: {kind}, one of them"] = round(size / count, 1)
    told["all but the log, an entity"] = round(sum(every.values()) / counts["entities"], 1)
    return told


def _index(row: Mapping[str, Any]) -> str:
    kind = str(row["type"]).lower()
    if kind == "vector":
        of = next(iter(row["labelsOrTypes"] or ()), row["name"])
        return f"vector index: {KINDS.get(of, of)}"
    return {"fulltext": "full-text indexes", "lookup": "token lookup"}.get(kind, "range indexes")


def _store(path: Path, names: Mapping[str, str]) -> str:
    if path.parts[:2] == ("schema", "index"):
        own = path.parts[3] if len(path.parts) > 3 else ""
        return names.get(own, "indexes of constraints, and others")
    return next(name for name, pattern in STORES if re.match(pattern, path.name))

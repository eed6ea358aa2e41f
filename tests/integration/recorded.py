"""A graph that Neo4j's GraphRAG package wrote, stored as JSON: record it from a database, and write it to one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from neo4j import Driver

GOLDEN = Path(__file__).parents[1] / "golden" / "neo4j_graphrag.json"
Graph: TypeAlias = dict[str, Any]

# Input of the package's pipeline: five papers of the affair, and a page without a document.
PAPERS = ("04-captain-statement", "05-lighthouse-log", "06-police-daybook", "07-gate-book", "09-bank-note")
BARE = "Nobody knows where this page is from. It stands alone here, in two pieces of text."
KNOWN = {
    name: {"label": label, "says": says, "leads": leads}
    for name, label, says, leads in (
        ("Ivo Tranmoor", "Person", {"description": "Master of the Corrie Vane.", "ships": 3}, "COMMANDS"),
        ("Corrie Vane", "Ship", {"funnels": 1, "lost": True}, "BELONGS_TO"),
        ("Quillane Line", "Company", {}, "OWNED_BY"),
        ("Quillane Wharf", "Place", {}, "BESIDE"),
        ("Josse Arkwell", "Person", {"trade": "carter"}, "BROUGHT"),
        ("Ravensund Orrery", "Thing", {"alsoKnownAs": ["the orrery", "the planets"]}, "WEIGHED_AT"),
        ("Lucan Quillane", "Person", {}, "KNOWS"),
        ("Tallow Stairs Warehouse", "Place", {}, "BELONGS_TO"),
        ("Tamswell Company", "Company", {}, "RUN_BY"),
        ("Tobit Fennimar", "Person", {"trade": "night watchman"}, "WORKED_AT"),
        ("Gannet Bar", "Place", {}, "LIES_OFF"),
        ("Pellard Mutual", "Company", {}, "INSURED"),
    )
}

NODES = "MATCH (n:__KGBuilder__) RETURN elementId(n) AS id, labels(n) AS labels, properties(n) AS properties"
LINKS = """
MATCH (n:__KGBuilder__)-[r]->(o) RETURN elementId(n) AS source, type(r) AS type, elementId(o) AS target,
       properties(r) AS properties
"""
CREATE = "UNWIND $rows AS row CREATE (n:__KGBuilder__ {made: row.at}) SET n:$(row.labels), n += row.properties"
LINK = """
UNWIND $rows AS row MATCH (n:__KGBuilder__ {made: row.source}) MATCH (o:__KGBuilder__ {made: row.target})
CREATE (n)-[r:$(row.type)]->(o) SET r = row.properties
"""


def record(driver: Driver, version: str) -> Graph:
    """Return the nodes and relationships with the package's label; equal graphs differ only in times."""

    def by(row: Any) -> str:
        return json.dumps([sorted(row["labels"]), row["properties"]], sort_keys=True)

    nodes = sorted(driver.execute_query(NODES)[0], key=by)
    places = {row["id"]: at for at, row in enumerate(nodes)}
    links = [
        [places[row["source"]], row["type"], places[row["target"]], row["properties"]]
        for row in driver.execute_query(LINKS)[0]
    ]
    return {
        "version": version,
        "nodes": [[sorted(row["labels"]), row["properties"]] for row in nodes],
        "relationships": sorted(links, key=str),
    }


def stored() -> Graph:
    """Return the last recorded graph of the package (`pytest -m long --rewrite-golden` records it)."""
    graph: Graph = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return graph


def put(driver: Driver, graph: Graph, *, renamed: Mapping[str, str] | None = None) -> None:
    """Write a recorded graph with renamed labels, types and properties."""
    new = (renamed or {}).get
    nodes = [
        {
            "at": at,
            "labels": [new(label, label) for label in labels],
            "properties": {new(name, name): value for name, value in properties.items()},
        }
        for at, (labels, properties) in enumerate(graph["nodes"])
    ]
    links = [
        {"source": source, "type": new(kind, kind), "target": target, "properties": properties}
        for source, kind, target, properties in graph["relationships"]
    ]
    driver.execute_query(CREATE, rows=nodes)
    driver.execute_query(LINK, rows=links)
    driver.execute_query("MATCH (n:__KGBuilder__) REMOVE n.made")


def clear(driver: Driver) -> None:
    """Delete all nodes except hgmem's."""
    driver.execute_query(
        "MATCH (n) WHERE (n.uid IS NULL OR n.corpus IS NULL) AND NOT n:Corpus AND NOT n:Step AND NOT n:SubQuery "
        "DETACH DELETE n"
    )


def of(graph: Graph, label: str) -> list[dict[str, Any]]:
    """Return the properties of the recorded nodes with this label."""
    return [properties for labels, properties in graph["nodes"] if label in labels]

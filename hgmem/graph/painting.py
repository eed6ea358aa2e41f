"""Typed twins of `cypher/painting.cypher`."""

from collections.abc import Mapping, Sequence

from hgmem.graph.database import Database


def paint_entities(database: Database, *, corpus: str, kinds: Mapping[str, Sequence[str]]) -> int:
    """Return of how many entities the second label changed; `kinds` are casefolded types of entities by kind."""
    rows = database.run(
        "paint_entities",
        corpus=corpus,
        persons=list(kinds["person"]),
        organizations=list(kinds["organization"]),
        places=list(kinds["place"]),
        events=list(kinds["event"]),
    )
    return int(rows[0]["painted"])


def paint_points(database: Database, *, corpus: str) -> int:
    """Return of how many points the label of dead ones changed."""
    return int(database.run("paint_points", corpus=corpus)[0]["painted"])

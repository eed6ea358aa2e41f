"""Styling labels of entities and superseded points: styles of Neo4j Browser select by label."""

from hgmem.graph.database import Database
from hgmem.graph.painting import paint_entities, paint_points

# Types as models and users write them. Labels come from this list, never from a document.
KINDS = {
    "person": ("person", "people", "character", "human", "role"),
    "organization": ("organization", "organisation", "company", "institution", "group", "team", "agency"),
    "place": ("place", "location", "geo", "city", "country", "region", "building", "facility"),
    "event": ("event", "incident", "date", "time", "period"),
}


def add_styling_labels(database: Database, *, corpus: str) -> int:
    """Add styling labels to the corpus and return the number of changed nodes. Unlisted types get none."""
    return paint_entities(database, corpus=corpus, kinds=KINDS) + paint_points(database, corpus=corpus)

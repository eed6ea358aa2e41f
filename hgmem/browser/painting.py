"""Second labels of entities and of dead points, so that a style can tell them apart: Browser's styles go by label."""

from hgmem.graph.database import Database
from hgmem.graph.painting import paint_entities, paint_points

# Types as models and people write them; a label comes from this list, never from a document.
KINDS = {
    "person": ("person", "people", "character", "human", "role"),
    "organization": ("organization", "organisation", "company", "institution", "group", "team", "agency"),
    "place": ("place", "location", "geo", "city", "country", "region", "building", "facility"),
    "event": ("event", "incident", "date", "time", "period"),
}


def paint(database: Database, *, corpus: str) -> int:
    """Return how many nodes of the corpus got another label; types that are in no kind stay without."""
    return paint_entities(database, corpus=corpus, kinds=KINDS) + paint_points(database, corpus=corpus)

"""Typed wrappers for `cypher/stages.cypher`."""

from collections.abc import Sequence

from hgmem.graph.database import Row
from hgmem.graph.values import Runner


def stored_replies(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return the extractions (JSON) that the corpus has of these chunks: uid, text, extraction."""
    return database.run("stored_replies", corpus=corpus, uids=list(uids))


def tie_mentions(database: Runner, rows: Sequence[Row], *, corpus: str, again: bool) -> None:
    """Tie entities to chunks that mention them, both named by uid. With `again`, some may be tied already."""
    if again:
        database.run("merge_mentions", corpus=corpus, rows=list(rows))
    else:
        database.run("create_mentions", corpus=corpus, rows=list(rows))

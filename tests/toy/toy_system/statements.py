"""Typed wrappers for `toy.cypher`."""

from collections.abc import Sequence
from pathlib import Path

from hgmem.graph.database import Row
from hgmem.graph.values import Runner

FILE = Path(__file__).parent / "toy.cypher"


def toy_members(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return the gists of topics: topic, uid, kind, text and document, in the order of each topic."""
    return database.run("toy_members", corpus=corpus, uids=list(uids))

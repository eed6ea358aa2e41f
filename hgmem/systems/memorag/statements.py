"""Typed wrappers for `cypher/memorag.cypher`."""

from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.graph.database import Row
from hgmem.graph.retrieval import Scope, to_chunk
from hgmem.graph.values import Runner
from hgmem.values.evidence import BuiltPassage
from hgmem.values.graph_elements import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A gist without its text. `above` are the uids of the gists that condense it."""

    uid: str
    level: int
    tokens: int
    above: tuple[str, ...] = ()


def gist_places(database: Runner, *, scope: Scope) -> list[Place]:
    """Return every gist of the scope in the order of the text: by title, document and position of its first chunk."""
    rows = database.run("gist_places", corpus=scope.corpus, documents=scope.uids)
    return [Place(uid=row["uid"], level=row["level"], tokens=row["tokens"], above=tuple(row["above"])) for row in rows]


def gist_texts(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[BuiltPassage]:
    """Return the gists of these uids, those that exist, in this order."""
    rows: dict[str, Row] = {
        row["row"]["uid"]: row["row"] for row in database.run("gist_texts", corpus=corpus, uids=list(uids))
    }
    return [
        BuiltPassage(uid=uid, kind=row["kind"], text=row["text"], title=row["title"] or "", document=row["document"])
        for uid in uids
        if (row := rows.get(uid)) is not None
    ]


def texts_without_gist(database: Runner, *, scope: Scope, budget: int) -> tuple[list[Chunk], int]:
    """Return the chunks of the scope's documents that no gist of one document covers, and how many there are.

    They are in the order of the text, as far as they fit into `budget` tokens.
    """
    row = database.run("texts_without_gist", corpus=scope.corpus, documents=scope.uids, budget=budget)[0]
    return [to_chunk(chunk) for chunk in row["chunks"]], row["many"]


def whole_text(database: Runner, *, scope: Scope, budget: int) -> tuple[list[Chunk], int]:
    """Return the chunks of the scope in order, none if they exceed `budget` tokens, and how many tokens they have."""
    row = database.run("whole_text", corpus=scope.corpus, documents=scope.uids, budget=budget)[0]
    return [to_chunk(chunk) for chunk in row["chunks"]], row["tokens"]

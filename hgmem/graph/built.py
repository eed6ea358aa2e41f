"""Typed wrappers for `cypher/built.cypher`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.full_text import OVER, Ranking, Texts, worded
from hgmem.graph.retrieval import Scope
from hgmem.graph.values import Runner, uids_of, vector, vector_writer

AT_ONCE = 5_000  # uids in one statement


def standing(database: Runner, *, corpus: str, uids: Iterable[str]) -> set[str]:
    """Return those of the uids that are chunks, entities, built rows or units (not emptied) of the corpus."""
    return {row["found"] for row in database.run("standing", corpus=corpus, uids=list(uids))}


def made_by(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return unit, uid and text of the rows that these units made. The text is None for a row without a vector."""
    return database.run("made_by", corpus=corpus, uids=list(uids))


def withdraw_quotes(database: Runner, *, corpus: str, texts: Mapping[str, str | None]) -> None:
    """Mark citations of rows (uids) as withdrawn where the row gets another text, or None because it goes."""
    database.run("withdraw_quotes", corpus=corpus, rows=[{"uid": uid, "text": text} for uid, text in texts.items()])


put_built_vectors = vector_writer("put_built_vectors")
"""Writes the vectors of rows' texts: uid, and whether the row keeps it as its own as well."""
put_plain_vectors = vector_writer("put_plain_vectors")
"""Writes vectors of any length that no index holds."""


def clear_plain_vectors(database: Runner, *, corpus: str, uids: Sequence[str]) -> None:
    """Remove the vectors that no index holds."""
    database.run("clear_plain_vectors", corpus=corpus, uids=list(uids))


def release_extensions(database: Runner, *, corpus: str, units: Sequence[str]) -> None:
    """Take back the ties that these units wrote, and the vectors that they gave to rows of other units."""
    database.run("release_extensions", corpus=corpus, units=list(units))


def put_extensions(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Let units extend rows of other units: unit, uid, and a unit vector or None."""
    packed = [{**row, "vector": None if row["vector"] is None else vector(row["vector"])} for row in rows]
    database.run("put_extensions", corpus=corpus, rows=packed)


def delete_built(database: Runner, *, corpus: str, uids: Sequence[str]) -> None:
    """Delete those of the uids that are built rows. The next build makes their units anew.

    Citations of them are marked as withdrawn, and keep their quotes.
    """
    withdraw_quotes(database, corpus=corpus, texts=dict.fromkeys(uids))
    database.run("delete_built", corpus=corpus, uids=list(uids))


def drop_dependents(transaction: Runner, *, corpus: str, uids: Sequence[str]) -> list[str]:
    """Delete the built and learnt rows that rest on these chunks, rows or units, and empty such units.

    Returns the uids of the rows and units. No model is called: the next build makes the units anew. The caller's
    transaction holds the lock on the corpus.
    """
    found = resting(transaction, corpus=corpus, uids=uids)
    for some in _parts(found):
        release_extensions(transaction, corpus=corpus, units=some)
        transaction.run("empty_units", corpus=corpus, uids=some)
        delete_built(transaction, corpus=corpus, uids=some)
    return found


def drop_learnt(transaction: Runner, *, corpus: str, entities: Sequence[str]) -> None:
    """Delete the learnt rows that are tied to one of these entities (uids), and what rests on such rows."""
    found = uids_of(transaction, "learnt_of_entities", corpus=corpus, uids=entities)
    if found:
        drop_dependents(transaction, corpus=corpus, uids=found)
        delete_built(transaction, corpus=corpus, uids=found)


def resting(transaction: Runner, *, corpus: str, uids: Sequence[str]) -> list[str]:
    """Return the uids of what rests on these, directly or through others, level by level."""
    found: dict[str, None] = {}
    level = list(uids)
    while level:
        above = [uid for some in _parts(level) for uid in uids_of(transaction, "dependents", corpus=corpus, uids=some)]
        level = list(dict.fromkeys(uid for uid in above if uid not in found))
        found |= dict.fromkeys(level)
    return list(found)


def _parts(uids: Sequence[str]) -> list[Sequence[str]]:
    return [uids[at : at + AT_ONCE] for at in range(0, len(uids), AT_ONCE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Where built rows are searched: one kind of a system, within a scope."""

    scope: Scope
    system: str
    kind: str


def near_built(database: Runner, *, layer: Layer, query: Any, k: int, over: int) -> list[tuple[Row, float]]:
    """Return the k rows nearest to a unit vector, each with its cosine. The index proposes `over` of them."""
    rows = database.run(
        "near_built",
        corpus=layer.scope.corpus,
        system=layer.system,
        kind=layer.kind,
        documents=layer.scope.uids,
        vector=vector(query),
        k=k,
        over=max(k, over),
    )
    return [(row["row"], row["score"]) for row in rows]


def worded_built(database: Runner, *, layer: Layer, text: str, k: int) -> list[tuple[Row, float]]:
    """Return the k rows that fit a text's words best, each with its BM25 score, which counts its layer alone."""
    asked = Texts(texts={0: text}, system=layer.system, kind=layer.kind, whole=True)
    rows = worded(database, scope=layer.scope, layers=[asked], ranking=Ranking(k=k, over=max(k, OVER)))
    return [(row["row"], row["score"]) for row in rows]


def chunks_beneath(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, list[str]]:
    """Return by row (uid) the uids of the chunks that it rests on at any distance, in order of place."""
    return {row["uid"]: row["chunks"] for row in database.run("chunks_beneath", corpus=corpus, uids=list(uids))}


def nearest_beneath(database: Runner, *, corpus: str, uids: Sequence[str], query: Any, k: int) -> dict[str, list[str]]:
    """Return by row (uid) the uids of the k chunks nearest to a unit vector among those that the row rests on."""
    rows = database.run("nearest_beneath", corpus=corpus, uids=list(uids), vector=vector(query), k=k)
    return {row["uid"]: row["chunks"] for row in rows}

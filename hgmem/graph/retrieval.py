"""Typed wrappers for `cypher/retrieval.cypher`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from hgmem.graph.database import Row
from hgmem.graph.values import Runner, loaded_messages, vector
from hgmem.values.graph_elements import Chunk, Entity, Relation

Search: TypeAlias = Literal["index", "exact", "documents", "scope", "chosen"]
Scores: TypeAlias = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where a search looks: a corpus, a memory's own things beside it, and, if given, these documents (uids) alone.

    `language` is the corpus's, where it is known already.
    """

    corpus: str
    memory: str = ""
    documents: tuple[str, ...] | None = None
    language: str | None = None

    @property
    def uids(self) -> list[str] | None:
        """The documents as a parameter."""
        return None if self.documents is None else list(self.documents)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One sub-query as the statement takes it.

    `chosen` are the entities (uids) that are looked for alone: those of a local scope, or others.
    """

    number: int
    vector: Any
    search: Search
    chosen: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Words to search for, as statements take them: queries by layer, and how their hits are ranked."""

    layers: Sequence[Row]
    ranking: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryHits:
    """What one query found: scores by uid, nearest first. `seen` is the number of candidates.

    `matching` is without scores, the best first. `read` is the best of `near` and `matching` together: those of them
    whose chunks come along. `nearest` is the source chunk (uid) of each entity that is nearest to the query.
    """

    number: int
    seen: int
    entities: Scores
    relations: Scores
    chunks: Scores
    near: Scores
    matching: tuple[str, ...]
    read: Scores
    nearest: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """What a step's queries found, and the things themselves by uid."""

    found: tuple[QueryHits, ...]
    entities: Mapping[str, Entity]
    relations: Mapping[str, Relation]
    chunks: Mapping[str, Chunk]


def retrieve(database: Runner, *, scope: Scope, queries: Sequence[Query], words: Words, limits: Row) -> Retrieval:
    """Return what the queries of a step find, in one round trip. The statement says what `limits` are.

    `words` are the words of the queries (`full_text.searched_words`), by their numbers.
    """
    row = database.run(
        "retrieve",
        corpus=scope.corpus,
        memory=scope.memory,
        documents=scope.uids,
        queries=[_query(query) for query in queries],
        layers=words.layers,
        ranking=words.ranking,
        limits=limits,
    )[0]
    return Retrieval(
        found=tuple(_found(found) for found in row["found"]),
        entities={entity["uid"]: to_entity(entity) for entity in _there(row["entities"], "name")},
        relations={relation["uid"]: _relation(relation) for relation in _there(row["relations"], "source", "target")},
        chunks={chunk["uid"]: to_chunk(chunk) for chunk in _there(row["chunks"], "document", "text")},
    )


def scopes(
    database: Runner, *, scope: Scope, targets: Mapping[int, Sequence[str]], limits: Row
) -> dict[int, tuple[str, ...]]:
    """Return the entities (uids) around the points (uids) of each query, by its number.

    The statement says what `limits` are.
    """
    rows = database.run(
        "scopes",
        corpus=scope.corpus,
        memory=scope.memory,
        documents=scope.uids,
        queries=[{"number": number, "targets": list(uids)} for number, uids in targets.items()],
        limits=limits,
    )
    return {row["number"]: tuple(row["uids"]) for row in rows}


def near_chunks(database: Runner, *, scope: Scope, query: Any, k: int, over: int) -> list[tuple[Chunk, float]]:
    """Return the k chunks nearest to a vector, with their scores."""
    rows = database.run("near_chunks", corpus=scope.corpus, documents=scope.uids, vector=vector(query), k=k, over=over)
    return [(to_chunk(row["chunk"]), row["score"]) for row in rows if _there([row["chunk"]], "document", "text")]


def chunks_beside(
    database: Runner, *, scope: Scope, asked: Mapping[int, tuple[Any, Sequence[str]]], k: int
) -> dict[int, list[tuple[Chunk, float]]]:
    """Return the chunks next to those that points rest on, for each query by its number, the nearest to it first.

    `asked` has the vector and the points (uids) of each query, which gets `k` chunks at most.
    """
    rows = database.run(
        "chunks_beside",
        corpus=scope.corpus,
        memory=scope.memory,
        documents=scope.uids,
        queries=[{"number": at, "vector": vector(query), "targets": list(uids)} for at, (query, uids) in asked.items()],
        k=k,
    )
    found: dict[int, list[tuple[Chunk, float]]] = {number: [] for number in asked}
    for row in rows:
        if _there([row["chunk"]], "document", "text"):
            found[row["number"]].append((to_chunk(row["chunk"]), row["score"]))
    return found


def neighbours(
    database: Runner, *, scope: Scope, uids: Sequence[str], query: Any, limits: tuple[int, int]
) -> tuple[Entity, ...]:
    """Return entities beside those of a memory, nearest to a vector first.

    `limits` is how many to return and how many relations an entity gives.
    """
    k, hub = limits
    rows = database.run(
        "neighbours",
        corpus=scope.corpus,
        memory=scope.memory,
        documents=scope.uids,
        uids=list(uids),
        vector=vector(query),
        k=k,
        hub=hub,
    )
    return tuple(to_entity(entity) for entity in _there([row["entity"] for row in rows], "name"))


def find_chunks(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, Chunk]:
    """Return those of these chunks that exist, by uid."""
    rows = database.run("find_chunks", corpus=corpus, uids=list(uids))
    found = _there([row["chunk"] for row in rows], "document", "text")
    return {chunk["uid"]: to_chunk(chunk) for chunk in found}


def classes_of_chunks(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names of each class of which one of the chunks mentions a member, first the one that is shown."""
    return [tuple(row["names"]) for row in database.run("classes_of_chunks", corpus=corpus, uids=list(uids))]


def chunks_of_entities(database: Runner, *, scope: Scope, uids: Sequence[str], query: Any, k: int) -> list[Chunk]:
    """Return the k chunks that mention one of the entities and are nearest to a vector, nearest first."""
    rows = database.run(
        "chunks_of_entities",
        corpus=scope.corpus,
        documents=scope.uids,
        uids=list(uids),
        vector=vector(query),
        k=k,
    )
    return [to_chunk(chunk) for chunk in _there([row["chunk"] for row in rows], "document", "text")]


def mentioned_entities(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, tuple[Entity, ...]]:
    """Return the entities that each of these chunks mentions, by the chunk's uid. They are ordered by their uids."""
    found: dict[str, list[Entity]] = {}
    for row in database.run("mentioned_entities", corpus=corpus, uids=list(uids)):
        for entity in map(to_entity, _there([row["entity"]], "name")):
            for uid in row["chunks"]:
                if uid is not None:
                    found.setdefault(uid, []).append(entity)
    return {uid: tuple(entities) for uid, entities in found.items()}


def to_entity(row: Row) -> Entity:
    """Return the entity of a row. `memory` is empty for entities of the corpus."""
    return Entity(
        uid=row["uid"],
        name=row["name"],
        type=row.get("type") or "",
        description=row.get("description") or "",
        provisional=bool(row.get("memory")),
        canonical_uid=row.get("canonical_uid") or "",
        names=tuple(row.get("names") or ()),
    )


def to_chunk(row: Row) -> Chunk:
    """Return the chunk of a row."""
    return Chunk(
        **{
            **row,
            **{name: row.get(name) or "" for name in ("title", "date", "type")},
            "source_id": row["source_id"] or "",
            "messages": loaded_messages(row["messages"]),
        }
    )


def _there(rows: Iterable[Row], *names: str) -> list[Row]:
    """Return the rows of what is there: a thing that was deleted while the statement ran reads as null."""
    values = itemgetter("uid", *names)
    return [row for row in rows if None not in values(row)]


def _query(query: Query) -> Row:
    return {
        "number": query.number,
        "vector": vector(query.vector),
        "search": query.search,
        "chosen": list(query.chosen),
    }


def _found(row: Row) -> QueryHits:
    lists = ("entities", "relations", "chunks", "near", "read")
    scores = {name: {hit["uid"]: hit["score"] for hit in _there(row[name], "score")} for name in lists}
    matching = tuple(uid for uid in row["matching"] if uid is not None)
    nearest = {hit["uid"]: hit["nearest"] for hit in _there(row["entities"], "nearest")}
    return QueryHits(number=row["number"], seen=row["seen"], matching=matching, nearest=nearest, **scores)


def _relation(row: Row) -> Relation:
    lists = {name: tuple(row[name] or ()) for name in ("keywords", "chunks", "ends")}
    return Relation(**{**row, **lists})

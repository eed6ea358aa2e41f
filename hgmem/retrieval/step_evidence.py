"""Retrieval of one step: local investigation, global exploration (HGMem, equations 1, 6, 7), and fused rankings.

The equations are those of version A of the paper (docs/papers.md). Systems without a graph search chunks by words and
vector alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import Field

from hgmem.graph.database import Database, Row
from hgmem.graph.full_text import MOST_TERMS, Ranking, Texts, searched_words, worded_chunks
from hgmem.graph.retrieval import (
    Query,
    QueryHits,
    Retrieval,
    Scope,
    Search,
    Words,
    chunks_beside,
    mentioned_entities,
    near_chunks,
    retrieve,
    scopes,
)
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.text.stems import searched_stems, stems
from hgmem.values.evidence import Evidence, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk, Entity, Relation

Count: TypeAlias = Annotated[int, Field(ge=0, le=10_000)]
Positive: TypeAlias = Annotated[int, Field(ge=1, le=10_000)]
Reranked: TypeAlias = Annotated[int, Field(ge=0, le=1_000)]  # texts that a reranker reads at once; 0: it is not asked
ChunkSearch: TypeAlias = Literal["hybrid", "vector", "off"]
BY_BOTH: ChunkSearch = "hybrid"
Thing = TypeVar("Thing", Entity, Relation, Chunk)

FUSION = 60  # reciprocal rank fusion's constant: how much the first ranks count over the later ones
PROPOSED_NEAREST = 150  # hits that a vector index is asked for at least: fewer miss some of the 20 nearest among copies
PROPOSED = 200  # chunks that the full-text index proposes to each sub-query of a step, at least
SCORED = 5  # chunks ranked by their words, for each that is wanted; those with a word in their title are ranked too
NEAR, TELLING = 0.85, 0.2  # shares of the best cosine, and of the most words: with less of both, a chunk tells nothing
CANDIDATES = 20  # chunks that each of two rankings brings to their fusion
SMALL = 2_000  # entities up to which exact search is an alternative to the index
HUB = 200  # neighbours that one entity gives a local scope at most, heaviest relations first
EXACT = 200  # candidates that are ranked without the index
BEYOND = 500  # of memory's entities that the index is first asked for in addition: they seldom are all the nearest


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalConfig:
    """How much a sub-query finds and how far it looks. n_v, n_e and n_d are the paper's symbols."""

    entities: Positive = 5  # n_v
    relations: Count = 5  # n_e
    chunks: Count = 5  # n_d, source chunks of the entities found
    searched_chunks: Count = 5  # found by a search over all chunks
    chunk_search: ChunkSearch = BY_BOTH
    titles: bool = True  # words of a document's title count in each of its chunks
    beside: Count = 0  # chunks next to those that the points of a local sub-query rest on
    hops: Annotated[int, Field(ge=1, le=2)] = 1  # N_G of local investigation
    shared: bool = True  # N_M of local investigation, whose scope has the target points' own entities too
    pooled: bool = False  # one local scope for all sub-queries of a step (official code), not one each (paper)
    exclude: bool = True  # global exploration leaves V_M out

    def for_reranker(self, most: int) -> "RetrievalConfig":
        """Return the config that finds so many chunks for a reranker, of which `most_chunks` of this one are kept."""
        wider = "chunks" if self.chunk_search == "off" else "searched_chunks"
        return replace(self, **{wider: max(getattr(self, wider), most)})

    @property
    def most_chunks(self) -> int:
        """The most chunks that a sub-query finds."""
        searched = 0 if self.chunk_search == "off" else self.searched_chunks
        return self.chunks + searched


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Where a step looks, how many entities memory involves (|V_M|) and how many the corpus has (|V_G|).

    `narrow` is whether the scope's documents are less than half of the corpus's. `chosen` are the entities (uids) of
    each sub-query, where they are known already and only what belongs to them is looked for.
    """

    scope: Scope
    covered: int
    entities: int
    narrow: bool = False
    chosen: tuple[tuple[str, ...], ...] = ()


def gather(
    database: Database, subqueries: Sequence[Subquery], vectors: Vectors, *, scene: Scene, config: RetrievalConfig
) -> tuple[Evidence, tuple[str, ...]]:
    """Return the evidence of the sub-queries (with their vectors) and notes.

    It takes a statement, one more for local scopes, one for the language unless the scope tells it, and rarely another.
    """
    pool = tuple(dict.fromkeys(uid for asked in subqueries for uid in asked.targets))
    targets = {
        number: pool if config.pooled and asked.targets else asked.targets
        for number, asked in enumerate(subqueries)
        if asked.strategy == "local" and not scene.chosen
    }
    reach = {"hops": config.hops, "shared": config.shared, "hub": HUB}
    around = scopes(database, scope=scene.scope, targets=targets, limits=reach) if targets else {}
    words = _words(database, subqueries, scene=scene, config=config)
    queries = [
        Query(
            number=number,
            vector=vector,
            search="chosen" if scene.chosen else _search(asked, scene),
            chosen=scene.chosen[number] if scene.chosen else around.get(number, ()),
        )
        for number, (asked, vector) in enumerate(zip(subqueries, vectors, strict=True))
    ]
    limits = _limits(scene, config)
    first = retrieve(database, scope=scene.scope, queries=queries, words=words, limits=limits)
    again, notes = _again(queries, first, scene=scene, limits=limits)
    if not again:
        return _evidence(subqueries, first), ()
    wider = {**limits, "overfetch": 2 * _over(scene, config, most=scene.covered), "search_limit": 0}
    second = retrieve(database, scope=scene.scope, queries=again, words=replace(words, layers=()), limits=wider)
    newer = {query.number: query for query in again}
    latest = [newer.get(query.number, query) for query in queries]
    asked_as = [_as_searched(asked, query) for asked, query in zip(subqueries, latest, strict=True)]
    return _evidence(asked_as, _combined(first, second)), notes


def _search(asked: Subquery, scene: Scene) -> Search:
    widest: Search = "documents" if scene.narrow else "index"
    return "scope" if asked.strategy == "local" else widest


def _words(database: Database, subqueries: Sequence[Subquery], *, scene: Scene, config: RetrievalConfig) -> Words:
    """Return how `retrieve` searches the words of each sub-query, which rank as many chunks as its vector."""
    k = _searched(config)
    ranking = Ranking(k=k, over=max(PROPOSED, SCORED * k), scored=SCORED * k, titles=config.titles)
    texts = Texts(texts={number: asked.text for number, asked in enumerate(subqueries)})
    layers = [texts] if config.chunk_search == BY_BOTH else []
    return searched_words(database, scope=scene.scope, layers=layers, ranking=ranking)


def _searched(config: RetrievalConfig) -> int:
    """Return how many chunks each ranking of a search over all chunks brings."""
    return 0 if config.chunk_search == "off" else max(CANDIDATES, config.searched_chunks)


def _limits(scene: Scene, config: RetrievalConfig) -> Row:
    """Return how much a query returns and how far it looks: the parameter `$limits` of the statement `retrieve`."""
    searched = _searched(config)
    return {
        "overfetch": _over(scene, config, most=BEYOND),
        "overfetch_chunks": max(5 * searched, PROPOSED_NEAREST),
        "entity_limit": config.entities,
        "relation_limit": config.relations,
        "source_limit": config.chunks,
        "search_limit": searched,
        "read_limit": config.searched_chunks,
        "fusion": FUSION,
        "exact_limit": EXACT,
        "exclude_covered": config.exclude,
    }


def _over(scene: Scene, config: RetrievalConfig, *, most: int) -> int:
    """Return how many candidates the index is asked for: what is left out has to be made up for."""
    return max(5 * config.entities, PROPOSED_NEAREST) + (min(scene.covered, most) if config.exclude else 0)


def _again(
    queries: Sequence[Query], first: Retrieval, *, scene: Scene, limits: Row
) -> tuple[list[Query], tuple[str, ...]]:
    """Return the queries to ask once more: exploring ones that the index left short, local ones with an empty scope."""
    again, notes = [], []
    for query, found in zip(queries, first.found, strict=True):
        if query.search == "scope" and not found.entities:
            again.append(replace(query, search="documents" if scene.narrow else "index", chosen=()))
            notes.append(f"sub-query {query.number + 1}: nothing around its points, so it was asked globally")
        elif (
            query.search in ("index", "documents")
            and len(found.entities) < limits["entity_limit"]
            and found.seen == limits["overfetch"]
        ):
            wider: Search = "documents" if scene.scope.documents is not None else "index"
            again.append(replace(query, search="exact" if scene.entities < SMALL else wider))
    return again, tuple(notes)


def _as_searched(asked: Subquery, query: Query) -> Subquery:
    return asked if query.search == "scope" else replace(asked, strategy="global", targets=())


def _combined(first: Retrieval, second: Retrieval) -> Retrieval:
    """Return both, with the newer entities of a query. Only the first one searched all chunks."""
    newer = {found.number: found for found in second.found}
    things = ("entities", "relations", "chunks")
    return Retrieval(
        found=tuple(
            replace(newer.get(one.number, one), near=one.near, matching=one.matching, read=one.read)
            for one in first.found
        ),
        **{name: {**getattr(first, name), **getattr(second, name)} for name in things},
    )


def _evidence(subqueries: Sequence[Subquery], retrieval: Retrieval) -> Evidence:
    retrieved = tuple(
        Retrieved(
            subquery=asked,
            entities=hits_of(found.entities, retrieval.entities),
            relations=hits_of(found.relations, retrieval.relations),
            chunks=hits_of(_chunks(found), retrieval.chunks),
        )
        for asked, found in zip(subqueries, retrieval.found, strict=True)
    )
    chunks = _distinct((found.chunks for found in retrieved), retrieval.chunks)
    return Evidence(
        retrieved=retrieved,
        entities=_distinct((found.entities for found in retrieved), retrieval.entities),
        relations=_distinct((found.relations for found in retrieved), retrieval.relations),
        chunks=tuple(sorted(chunks, key=place)),
        nearest=_nearest(retrieval.found),
    )


def rerank_evidence(services: Services, evidence: Evidence, *, most: int, config: RetrievalConfig) -> Evidence:
    """Return the evidence with the chunks that fit each sub-query best to a reranker, which reads its first `most`."""
    if not most:
        return evidence
    chunks = {chunk.uid: chunk for chunk in evidence.chunks}
    retrieved = []
    for found in evidence.retrieved:
        pairs = [(chunks[hit.uid], hit.score) for hit in found.chunks]
        best = rerank_chunks(services, found.subquery.text, pairs, most=most)[: config.most_chunks]
        retrieved.append(replace(found, chunks=hits_of({chunk.uid: score for chunk, score in best}, chunks)))
    kept = sorted(_distinct((found.chunks for found in retrieved), chunks), key=place)
    return replace(evidence, retrieved=tuple(retrieved), chunks=tuple(kept))


def rerank_chunks(
    services: Services, query: str, found: Sequence[tuple[Chunk, float]], *, most: int
) -> list[tuple[Chunk, float]]:
    """Return chunks with scores, the first `most` of them by those of a reranker, the best first."""
    ranked = services.reranked(query, found, most=most, text=lambda pair: pair[0].text)
    return [(chunk, before if score is None else score) for (chunk, before), score in ranked]


def _nearest(founds: Iterable[QueryHits]) -> dict[str, tuple[str, ...]]:
    """Return the source chunks of each entity that are nearest to the sub-queries which found it."""
    nearest: dict[str, dict[str, None]] = defaultdict(dict)
    for found in founds:
        for entity, chunk in found.nearest.items():
            nearest[entity][chunk] = None
    return {entity: tuple(chunks) for entity, chunks in nearest.items()}


def bearing(evidence: Evidence, *, language: str) -> Evidence:
    """Return the evidence without the chunks that bear on none of the sub-queries.

    A chunk bears on one that found it if its cosine is at least `NEAR` of the best there, or if it or its title holds
    at least `TELLING` of the sub-query's words that the best one holds, rare ones counting more, as in BM25.
    """
    held = {chunk.uid: frozenset(stems(f"{chunk.title} {chunk.text}", language)) for chunk in evidence.chunks}
    holding = Counter(stem for each in held.values() for stem in each)
    weights = {stem: log(1 + (len(held) - many + 0.5) / (many + 0.5)) for stem, many in holding.items()}
    kept: set[str] = set()
    for found in evidence.retrieved:
        wanted = frozenset(searched_stems(found.subquery.text, language, most=MOST_TERMS))
        told = {hit.uid: sum(weights[stem] for stem in wanted & held[hit.uid]) for hit in found.chunks}
        best, most = max((hit.score for hit in found.chunks), default=0.0), max(told.values(), default=0.0)
        least = best - (1 - NEAR) * abs(best)
        kept.update(hit.uid for hit in found.chunks if hit.score >= least or told[hit.uid] >= TELLING * most)
    chunks = {chunk.uid: chunk for chunk in evidence.chunks if chunk.uid in kept}
    retrieved = (
        replace(found, chunks=hits_of({hit.uid: hit.score for hit in found.chunks}, chunks))
        for found in evidence.retrieved
    )
    return replace(evidence, retrieved=tuple(retrieved), chunks=tuple(chunks.values()))


def with_chunks_beside(
    database: Database, evidence: Evidence, *, scope: Scope, about: Sequence[tuple[Any, Sequence[str]]], k: int
) -> Evidence:
    """Return the evidence with the chunks next to those that points rest on, after what their sub-queries found.

    `about` has each sub-query's vector and points (uids). With any, it gets `k` chunks at most, the nearest first.
    """
    asked = {number: (vector, points) for number, (vector, points) in enumerate(about) if points}
    if not asked or not k:
        return evidence
    beside = chunks_beside(database, scope=scope, asked=asked, k=k)
    chunks = {chunk.uid: chunk for found in beside.values() for chunk, _ in found}
    chunks |= {chunk.uid: chunk for chunk in evidence.chunks}
    retrieved = list(evidence.retrieved)
    for number, found in beside.items():
        scores = {hit.uid: hit.score for hit in retrieved[number].chunks}
        scores |= {chunk.uid: score for chunk, score in found if chunk.uid not in scores}
        retrieved[number] = replace(retrieved[number], chunks=hits_of(scores, chunks))
    return replace(evidence, retrieved=tuple(retrieved), chunks=tuple(sorted(chunks.values(), key=place)))


def place(chunk: Chunk) -> tuple[bool, str, str, str, int, str]:
    """Return a key that sorts chunks by the dates of their documents, those without one last, then by document."""
    return (not chunk.date, chunk.date, chunk.title, chunk.document, chunk.position, chunk.uid)


def _chunks(found: QueryHits) -> dict[str, float]:
    """Return the chunks of a query with their scores: the entities' own and the best of the search over all."""
    scores = {**found.chunks, **found.read}
    order = fuse([found.chunks, found.near, found.matching])
    return {uid: scores[uid] for uid in order if uid in scores}


def hits_of(scores: Mapping[str, float], things: Mapping[str, Thing]) -> tuple[Hit, ...]:
    """Return the hits of things by their scores, the best first. Those that are not known are left out."""
    return tuple(
        Hit(
            uid=uid,
            rank=rank,
            score=score,
            name=getattr(things[uid], "name", ""),
            source_id=getattr(things[uid], "source_id", ""),
        )
        for rank, (uid, score) in enumerate(((uid, score) for uid, score in scores.items() if uid in things), start=1)
    )


def _distinct(lists: Iterable[Sequence[Hit]], things: Mapping[str, Thing]) -> tuple[Thing, ...]:
    return tuple(things[uid] for uid in dict.fromkeys(hit.uid for hits in lists for hit in hits))


def with_mentions(database: Database, evidence: Evidence, *, corpus: str) -> Evidence:
    """Return the evidence, whose chunks say which entities they mention. It reads once, if there are any chunks.

    Only HGMem's rule-based replies need this of every chunk, so retrieval does not read it.
    """
    if not evidence.chunks:
        return evidence
    mentioned = mentioned_entities(database, corpus=corpus, uids=[chunk.uid for chunk in evidence.chunks])
    chunks = tuple(replace(chunk, entities=mentioned.get(chunk.uid, ())) for chunk in evidence.chunks)
    return replace(evidence, chunks=chunks)


def fuse(rankings: Iterable[Iterable[str]]) -> list[str]:
    """Fuse the rankings by reciprocal rank, best first, ties by uid."""
    return list(reciprocal_ranks(rankings))


def reciprocal_ranks(rankings: Iterable[Iterable[str]]) -> dict[str, float]:
    """Return uids with their sums of reciprocal ranks (Cormack et al., 2009), best first, ties by uid."""
    weights: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, uid in enumerate(ranking, start=1):
            weights[uid] += 1 / (FUSION + rank)
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0])))


def hybrid_chunks(
    database: Database, asked: tuple[str, Any], *, scope: Scope, ranking: Ranking
) -> list[tuple[Chunk, float]]:
    """Return the chunks that a question (text and unit vector) finds, with their fused weights, best first.

    `ranking` says how words are ranked, and how many chunks each of the two rankings brings.
    """
    text, query = asked
    near = near_chunks(database, scope=scope, query=query, k=ranking.k, over=max(ranking.k, PROPOSED_NEAREST))
    worded = worded_chunks(database, scope=scope, text=text, ranking=ranking)
    known = {chunk.uid: chunk for chunk, _ in (*near, *worded)}
    ranks = reciprocal_ranks([chunk.uid for chunk, _ in ranked] for ranked in (worded, near))
    return [(known[uid], weight) for uid, weight in ranks.items()]

"""What MemoRAG reads: typed wrappers for `cypher/memorag.cypher`, and its searches by the statement `retrieve`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.database import Row
from hgmem.graph.retrieval import Limits, Query, Scope, retrieve, to_chunk
from hgmem.graph.values import Runner
from hgmem.models.embedding import Vectors
from hgmem.retrieval.fusion import FUSION, PROPOSED_NEAREST
from hgmem.retrieval.step_evidence import CANDIDATES, PROPOSED, PROPOSED_AMONG
from hgmem.services import Services
from hgmem.values.evidence import BuiltPassage
from hgmem.values.graph_elements import Chunk

_LEADS = 6  # relations of the question's nearest entities


@dataclass(frozen=True, slots=True, kw_only=True)
class GistPlace:
    """A gist without its text. `above` are the uids of the gists that condense it."""

    uid: str
    level: int
    tokens: int
    above: tuple[str, ...] = ()


def gist_places(database: Runner, *, scope: Scope) -> list[GistPlace]:
    """Return every gist of the scope in the order of the text: by title, document and position of its first chunk."""
    rows = database.run("gist_places", corpus=scope.corpus, documents=scope.uids)
    return [
        GistPlace(uid=row["uid"], level=row["level"], tokens=row["tokens"], above=tuple(row["above"])) for row in rows
    ]


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


def leads(services: Services, question: str, *, scope: Scope) -> tuple[str, ...]:
    """Return pairs of names that the graph ties near the question, nearest first, none if there is no graph."""
    vector = services.embed([question], kind="query")[0]
    query = Query(number=0, vector=vector, search="index" if scope.documents is None else "documents")
    found = retrieve(services.database, scope=scope, queries=[query], limits=_limits(scope, entities=_LEADS))
    ties = (found.relations[uid] for uid in found.found[0].relations if uid in found.relations)
    return tuple(f"{tie.source_name}, {tie.target_name}" for tie in ties)


def search_chunks(
    services: Services, texts: Sequence[str], *, scope: Scope, by_words: bool, most: int
) -> tuple[list[Mapping[str, float]], Mapping[str, Chunk]]:
    """Return for each text the chunks (uids) that it finds with their scores, and all of them, by one statement."""
    vectors: Vectors = services.embed(texts, kind="query")
    queries = [
        Query(number=number, vector=vector, search="chosen", words=text if by_words else "")
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    limits = _limits(scope, searched=max(CANDIDATES, most), read=most)
    retrieval = retrieve(services.database, scope=scope, queries=queries, limits=limits)
    hits = [{uid: score for uid, score in found.read.items() if uid in retrieval.chunks} for found in retrieval.found]
    return list(hits), retrieval.chunks


def _limits(scope: Scope, *, searched: int = 0, read: int = 0, entities: int = 0) -> Limits:
    """Return the limits of a search of chunks alone, or of entities and their relations alone."""
    return Limits(
        overfetch=max(PROPOSED_NEAREST, 5 * entities),
        overfetch_chunks=max(PROPOSED_NEAREST, 5 * searched),
        fulltext_limit=max(PROPOSED if scope.documents is None else PROPOSED_AMONG, 2 * searched),
        entity_limit=entities,
        relation_limit=entities,
        search_limit=searched,
        read_limit=read,
        fusion=FUSION,
    )

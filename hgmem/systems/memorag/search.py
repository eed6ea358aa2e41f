"""Search by clues: every clue and the question find chunks, all in one statement."""

from collections.abc import Sequence

from hgmem.graph.retrieval import Found, Limits, Query, Retrieval, Scope, retrieve
from hgmem.retrieval.step_evidence import CANDIDATES, FUSION, PROPOSED, PROPOSED_AMONG, PROPOSED_NEAREST
from hgmem.services import Services
from hgmem.systems.memorag.recipes import MemoRAGConfig

_LEADS = 6  # relations of the question's nearest entities


def chunks_by_clues(
    services: Services, texts: Sequence[str], *, scope: Scope, config: MemoRAGConfig
) -> tuple[list[Found], Retrieval]:
    """Return what each text finds, in order, `hits` chunks each, and the chunks themselves."""
    vectors = services.embed(texts, kind="query")
    hybrid = config.chunk_search == "hybrid"
    queries = [
        Query(number=number, vector=vector, search="chosen", words=text if hybrid else "")
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    searched = max(CANDIDATES, config.hits)
    found = retrieve(
        services.database, scope=scope, queries=queries, limits=_limits(scope, searched=searched, read=config.hits)
    )
    return list(found.found), found


def leads(services: Services, question: str, *, scope: Scope) -> tuple[str, ...]:
    """Return pairs of names that the graph ties near the question, nearest first, none if there is no graph."""
    vector = services.embed([question], kind="query")[0]
    query = Query(number=0, vector=vector, search="index" if scope.documents is None else "documents")
    found = retrieve(services.database, scope=scope, queries=[query], limits=_limits(scope, entities=_LEADS))
    ties = (found.relations[uid] for uid in found.found[0].relations if uid in found.relations)
    return tuple(f"{tie.source_name}, {tie.target_name}" for tie in ties)


def _limits(scope: Scope, *, searched: int = 0, read: int = 0, entities: int = 0) -> Limits:
    """Return the limits of a search of chunks alone, or of entities and their relations alone."""
    return Limits(
        overfetch=max(PROPOSED_NEAREST, 5 * entities),
        overfetch_chunks=max(PROPOSED_NEAREST, 5 * searched),
        fulltext_limit=max(PROPOSED if scope.documents is None else PROPOSED_AMONG, 2 * searched),
        entity_limit=entities,
        relation_limit=entities,
        source_limit=0,
        behind_limit=0,
        line_chunks=False,
        search_limit=searched,
        read_limit=read,
        fusion=FUSION,
        hops=1,
        neighbour_limit=1,
        exact_limit=200,
        target_entities=False,
        shared_entities=False,
        exclude_covered=False,
    )

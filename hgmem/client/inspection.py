"""Read corpora, documents and memories, the passages behind an answer, and show memories in Neo4j Browser."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from hgmem.client.asking import checked_text
from hgmem.corpus.deletion import Named, named_documents
from hgmem.errors import ForbiddenError, UsageError
from hgmem.graph.builds import chunks_to_build
from hgmem.graph.built import chunks_beneath
from hgmem.graph.corpus import count_corpus
from hgmem.graph.documents import document_states, list_documents
from hgmem.graph.full_text import Ranking
from hgmem.graph.memory import corpus_of
from hgmem.graph.record_fields import Reference
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.retrieval import Scope
from hgmem.memory.browser.view import Drawing, add_styling_labels, save, viewing
from hgmem.memory.browser.view import View as View
from hgmem.memory.replay.page import page, scene
from hgmem.memory.stored_memories import load_history, load_memory, summaries
from hgmem.retrieval.document_filters import choose, normal
from hgmem.retrieval.step_evidence import hybrid_chunks
from hgmem.services import Services, known_corpus, ready_corpus, watched
from hgmem.systems.answering import latest_steps, memory_passages
from hgmem.systems.building import build_states
from hgmem.systems.registry import builds as builds
from hgmem.systems.registry import describe, installed
from hgmem.systems.registry import systems as systems
from hgmem.values.arguments import LIMIT, check
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Filters
from hgmem.values.records import Memory, MemorySummary, Passage
from hgmem.values.reports import CorpusStatus

DEPTH = 100  # chunks that words and vectors each bring to a search


def memories(services: Services) -> list[MemorySummary]:
    """Return the corpus's memories that the owner sees, newest first."""
    known_corpus(services)
    return summaries(services)


def replay(services: Services, uid: str) -> str:
    """Return a self-contained HTML page that replays a memory of any corpus step by step."""
    return page(scene(load_history(services, uid)))


def status(services: Services) -> CorpusStatus:
    """Return the counts of all contents of the corpus, with its builds."""
    counts = count_corpus(services.database, corpus=known_corpus(services))
    return replace(counts, builds=build_states(services))


def documents(services: Services, named: Named | None) -> list[dict[str, str | int]]:
    """Return the corpus's documents by title, or those that are named."""
    corpus = known_corpus(services).corpus
    wanted = None if named is None else {state.uid for state in named_documents(services, named)}
    rows = list_documents(services.database, corpus=corpus)
    return rows if wanted is None else [row for row in rows if row["uid"] in wanted]


def chunks(services: Services) -> tuple[Chunk, ...]:
    """Return all chunks of the corpus by document title, document and position."""
    return tuple(chunks_to_build(services.database, corpus=known_corpus(services).corpus))


def chunks_under(services: Services, rows: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return by built row (uid) the uids of the chunks that it rests on at any distance."""
    found = chunks_beneath(services.database, corpus=services.corpus, uids=list(rows)) if rows else {}
    return {row: tuple(uids) for row, uids in found.items()}


def graph_schema() -> str:
    """Return the labels and relationship types of the graph with their properties, a line each."""
    lines = []
    for one in RECORD_TYPES.values():
        properties = ", ".join(field.name for field in one.fields if field.rule != "archive")
        held = f" {{{properties}}}" if properties else ""
        if one.source:
            lines.append(f"(:{_labels(one.source)})-[:{one.name}{held}]->(:{_labels(one.target)})  {one.about}")
        else:
            lines.append(f"(:{one.name}{held})  {one.about}")
        if one.link:
            ends = (one.name, _labels(one.link.to))
            source, target = ends if one.link.outgoing else reversed(ends)
            lines.append(f"(:{source})-[:{one.link.type}]->(:{target})")
    return "\n".join(lines)


def _labels(reference: Reference) -> str:
    return "|".join(dict.fromkeys("Entity" if name == "Provisional" else name for name, _ in reference))


# Passages -------------------------------------------------------------------------------------------------------


def passages(services: Services, uid: str, *, step: int | None, limit: int | None) -> tuple[Passage, ...]:
    """Return the chunks that support a memory of any corpus at the end of a step, the best first."""
    check({"limit": limit}, {"limit": LIMIT})
    corpus, uid = corpus_of(services.database, uid=uid, owner=services.owner)
    services = replace(services, corpus=corpus)
    ready_corpus(services)
    read = load_memory(services, uid, step=step)
    if not read.steps:
        return ()
    chunks = memory_passages(services, read, limit=limit)
    scores = _scores(read)
    return tuple(
        replace(
            one,
            score=scores.get(one.chunk.uid),
            step=_first_step(read, one.chunk.uid),
            points=tuple(point for point in read.points if one.chunk.uid in point.chunks),
        )
        for one in _ranked(services, chunks)
    )


@watched("search")
def search(services: Services, text: str, *, limit: int, filters: Filters | None) -> tuple[Passage, ...]:
    """Return the chunks that words and vectors rank best together, the best first."""
    check({"limit": limit}, {"limit": LIMIT})
    text = checked_text(text, most=services.settings.max_question_characters)
    wanted = normal({} if filters is None else filters)
    ready_corpus(services)
    choice = choose(services.database, wanted, corpus=services.corpus, required=True)
    scope = Scope(corpus=services.corpus, documents=choice.documents)
    asked = (text, services.embed([text], kind="query")[0])
    found = hybrid_chunks(services.database, asked, scope=scope, ranking=Ranking(k=max(DEPTH, limit)))[:limit]
    scores = {chunk.uid: score for chunk, score in found}
    return tuple(replace(one, score=scores[one.chunk.uid]) for one in _ranked(services, [chunk for chunk, _ in found]))


def _ranked(services: Services, chunks: Sequence[Chunk]) -> Iterator[Passage]:
    """Yield the chunks by rank, with source and metadata of their documents."""
    uids = sorted({chunk.document for chunk in chunks})
    states = document_states(services.database, corpus=services.corpus, uids=uids)
    for rank, chunk in enumerate(chunks, start=1):
        document = states.get(chunk.document)
        yield Passage(
            chunk=chunk,
            rank=rank,
            source=(document.source or "") if document else "",
            metadata=json.loads(document.metadata or "{}") if document else {},
        )


def _scores(read: Memory) -> dict[str, float]:
    """Return the best score of each chunk (uid) in the steps of the memory's latest question."""
    scores: dict[str, float] = {}
    for retrieved in (retrieved for step in latest_steps(read) for retrieved in step.retrieved):
        for hit in retrieved.chunks:
            scores[hit.uid] = max(hit.score, scores.get(hit.uid, hit.score))
    return scores


def _first_step(read: Memory, chunk: str) -> int | None:
    """Return the first step that retrieved a chunk or created a point that it supports."""
    retrieved = [
        step.number for step in read.steps for found in step.retrieved for hit in found.chunks if hit.uid == chunk
    ]
    return min([*retrieved, *(point.born for point in read.points if chunk in point.chunks)], default=None)


# Neo4j Browser --------------------------------------------------------------------------------------------------


@contextmanager
def browse(services: Services, uid: str | None, *, browser: str | None, port: int) -> Iterator[View]:
    """Yield the link that opens a memory in Neo4j Browser, by default the corpus's newest."""
    shown = load_memory(services, uid or _newest(services))
    with suppress(ForbiddenError):
        add_styling_labels(services.database, corpus=shown.corpus)
    drawing = _drawing(shown.system, built={one.system for one in build_states(services)})
    with viewing(services.database, shown, drawing=drawing, browser=browser, port=port) as view:
        yield view


def save_browser_files(folder: Path) -> list[Path]:
    """Copy the style and the favourites of Neo4j Browser into a folder, created if missing. Return the files."""
    return save(folder, _drawing())


def _newest(services: Services) -> str:
    if stored := memories(services):
        return stored[0].uid
    raise UsageError(f"corpus {services.corpus!r} has no memories: ask a question first (`hgmem ask`)")


def _drawing(name: str = "", *, built: Collection[str] = ()) -> Drawing:
    """Return how to draw what is built, with the favourites of all systems, or of one and its `built` builds."""
    specs, known = installed(), describe(name) if name else None
    shown = {name, *(set(known.builds).intersection(built) if known else ())}
    own = [(spec.name, one) for spec in specs if not known or spec.name in shown for one in spec.favourites]
    return Drawing(
        kinds=tuple(kind for spec in specs if spec.build for kind in spec.build.kinds),
        favourites=tuple(replace(one, path=Path(f"{of}-{one.path.name}")) for of, one in own),
        system=known,
    )

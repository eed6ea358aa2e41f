"""Search by clues: every clue and the question find chunks, all in one statement."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.retrieval import Limits, Query, Scope, retrieve
from hgmem.retrieval.context_packing import tokens_of, within
from hgmem.retrieval.step_evidence import (
    CANDIDATES,
    FUSION,
    PROPOSED,
    PROPOSED_AMONG,
    PROPOSED_NEAREST,
    reciprocal_ranks,
)
from hgmem.services import Services
from hgmem.systems.memorag.recipes import Kind, MemoRAGConfig
from hgmem.systems.memorag.tasks import CluesReply, WriteClues
from hgmem.text.language import counted
from hgmem.text.segmentation import collapse, sentences, words
from hgmem.text.tokens import count
from hgmem.values.evidence import BuiltHit
from hgmem.values.graph_elements import Chunk

_LEADS = 6  # relations of the question's nearest entities
_FILLING = 100  # chunks of the question that may fill a budget at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """What texts found.

    `hits` has for each text the chunks (uids) with their scores, the best first. `kept` are those that the answer
    reads, `left` is the number of the others.
    """

    hits: tuple[Mapping[str, float], ...]
    chunks: Mapping[str, Chunk]
    kept: tuple[Chunk, ...]
    left: int


def chunks_by_clues(services: Services, texts: Sequence[str], *, scope: Scope, config: MemoRAGConfig) -> Searched:
    """Return what the question, which comes first, and its clues find: `hits` chunks each.

    Kept are those that rank best over all searches, within the evidence's budget. With `fill`, further chunks of the
    question take the room that is left.
    """
    hits, chunks = _searched(services, texts, scope=scope, config=config, most=config.hits)
    order = [chunks[uid] for uid in reciprocal_ranks(hits)]
    kept = within(order, tokens=config.evidence_tokens)
    if config.fill and len(kept) == len(order):
        (asked,), more = _searched(services, texts[:1], scope=scope, config=config, most=_FILLING)
        room = config.evidence_tokens - tokens_of(*kept)
        fresh = [more[uid] for uid in asked if uid not in chunks]
        added = within(fresh, tokens=room, least=0)
        kept, chunks = [*kept, *added], {**more, **chunks}
        wanted = {chunk.uid for chunk in added} | hits[0].keys()
        hits = [{uid: score for uid, score in asked.items() if uid in wanted}, *hits[1:]]
    return Searched(hits=tuple(hits), chunks=chunks, kept=tuple(kept), left=max(len(order) - len(kept), 0))


def leads(services: Services, question: str, *, scope: Scope) -> tuple[str, ...]:
    """Return pairs of names that the graph ties near the question, nearest first, none if there is no graph."""
    vector = services.embed([question], kind="query")[0]
    query = Query(number=0, vector=vector, search="index" if scope.documents is None else "documents")
    found = retrieve(services.database, scope=scope, queries=[query], limits=_limits(scope, entities=_LEADS))
    ties = (found.relations[uid] for uid in found.found[0].relations if uid in found.relations)
    return tuple(f"{tie.source_name}, {tie.target_name}" for tie in ties)


def _searched(
    services: Services, texts: Sequence[str], *, scope: Scope, config: MemoRAGConfig, most: int
) -> tuple[list[Mapping[str, float]], Mapping[str, Chunk]]:
    """Return for each text the chunks (uids) that it finds, and all of them, by one statement."""
    vectors = services.embed(texts, kind="query")
    hybrid = config.chunk_search == "hybrid"
    queries = [
        Query(number=number, vector=vector, search="chosen", words=text if hybrid else "")
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True))
    ]
    limits = _limits(scope, searched=max(CANDIDATES, most), read=most)
    found = retrieve(services.database, scope=scope, queries=queries, limits=limits)
    hits = [{uid: score for uid, score in one.read.items() if uid in found.chunks} for one in found.found]
    return list(hits), found.chunks


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


LABELS: dict[Kind, str] = {
    "draft": "draft answer",
    "spans": "text span",
    "queries": "surrogate query",
    "key_points": "key point",
}
_MARKER = re.compile(r"^\s*(?:[-*•‣▪–—]+|#{1,6}|\(?(?:\d{1,3}[.)、．:]|[a-zA-Z]\)))\s+|^\s*\d{1,3}[、．]\s*")
_QUOTES = "\"'“”‘’«»„「」『』"
_LONGEST = 128  # tokens of a clue; longer ones are split at sentences (official code: 128 new tokens for each call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A text that searches the documents, and its kind."""

    text: str
    kind: Kind

    @property
    def key(self) -> str:
        """What makes two clues the same."""
        return collapse(self.text).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clues:
    """The clues of a question, the gists that were read for them, and notes."""

    clues: tuple[Clue, ...] = ()
    read: tuple[BuiltHit, ...] = ()
    notes: tuple[str, ...] = ()


def cleaned(reply: CluesReply, task: WriteClues, *, config: MemoRAGConfig) -> tuple[list[Clue], list[str]]:
    """Return the clues of a reply, of each kind `most_clues` at most, and notes on those that were dropped.

    Each line is a clue, without list markers and quotation marks. Clues that are too short, that repeat another or the
    question, are dropped without a note: the question searches anyway.
    """
    taken = {collapse(task.question).casefold()}
    found: list[Clue] = []
    notes: list[str] = []
    for kind in task.kinds:
        texts: Sequence[str] = (reply.draft,) if kind == "draft" else getattr(reply, kind)
        fresh: list[Clue] = []
        for text in (piece for one in texts for piece in _pieces(one)):
            clue = Clue(text=text, kind=kind)
            if clue.key not in taken and len(words(text)) >= config.shortest:
                taken.add(clue.key)
                fresh.append(clue)
        if len(fresh) > config.most_clues:
            more = counted(len(fresh) - config.most_clues, "clue", "clues")
            notes.append(f"{more} of kind {LABELS[kind]!r} beyond {config.most_clues} dropped")
        found += fresh[: config.most_clues]
    return found, notes


def _pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text without markers and quotation marks, long ones as groups of sentences."""
    for line in text.splitlines():
        bare = collapse(_MARKER.sub("", line)).strip(_QUOTES).strip()
        if not bare:
            continue
        if count(bare) <= _LONGEST:
            yield bare
        else:
            yield from _packed([bare[one.start : one.end] for one in sentences(bare)])


def _packed(parts: Sequence[str]) -> Iterator[str]:
    held = ""
    for part in parts:
        longer = f"{held} {part}".strip()
        if held and count(longer) > _LONGEST:
            yield held
            held = part
        else:
            held = longer
    if held:
        yield held

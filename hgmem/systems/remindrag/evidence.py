"""What the answer is shown of walks: findings, relations, and the chunks that they rest on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.retrieval.context_packing import tokens_of, within
from hgmem.retrieval.hybrid_search import hybrid_chunks
from hgmem.retrieval.rendering import statements
from hgmem.retrieval.step_evidence import FUSION
from hgmem.services import Services
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.walk import Walk
from hgmem.values.graph_elements import Chunk

_STATING = 2  # chunks that are shown for a relation
_WORDS = Ranking(k=60, over=10_000, k1=1.5, b=0.75)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the answer is shown: statements with the numbers of chunks, and the chunks.

    `filled` are chunks of the question itself, with their weights, which take the room that walks leave.
    """

    statements: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    filled: dict[str, float]


def shown(services: Services, walks: Sequence[Walk], *, scope: Scope, config: ReMindRAGConfig) -> Shown:
    """Return the evidence of walks: passages in the order of reading, then chunks that state relations.

    Passages of which the walk noted a finding come first.
    """
    told = [statement for walk in walks for statement in _told(walk)]
    read = {uid: chunk for walk in walks for uid, chunk in walk.read_chunks.items()}
    noted = dict.fromkeys(uid for walk in walks for finding in walk.findings for uid in finding.chunks)
    stating = list(dict.fromkeys(uid for _, uids in told for uid in uids if uid not in read))
    known = read | find_chunks(services.database, corpus=scope.corpus, uids=stating)
    order = list(dict.fromkeys([*(uid for uid in noted if uid in read), *read, *stating]))
    allowed = [known[uid] for uid in order if uid in known and _within(known[uid], scope)]
    kept = within(allowed, tokens=config.evidence_tokens)
    filled: dict[str, float] = {}
    if config.fill:
        room = config.evidence_tokens - tokens_of(*kept)
        if all(walk.enough and walk.findings for walk in walks):  # rules find enough without saying what
            room = min(room, config.beside)
        more = _nearest(services, walks[0], scope=scope)
        filled = _fitting(more, kept, room)
        kept += [chunk for chunk, _ in more if chunk.uid in filled]
    kept.sort(key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    return Shown(statements=tuple(statements(told, kept)), chunks=tuple(kept), filled=filled)


def _told(walk: Walk) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what a walk knows, each with the chunks (uids) that state it: summaries, and findings or else relations."""
    for finding in walk.findings:
        yield finding.text, finding.chunks
    for uid, text in walk.summaries.items():
        yield text, [chunk.uid for chunk in walk.passages[uid]]
    for way in walk.came.values():
        if way.told and not walk.findings:
            yield way.told, way.chunks[:_STATING]


def _nearest(services: Services, walk: Walk, *, scope: Scope) -> list[tuple[Chunk, float]]:
    query = services.embed([walk.question], kind="query")[0]
    asked = (walk.question, query)
    return hybrid_chunks(services.database, asked, scope=scope, ranking=_WORDS, fusion=FUSION)


def _fitting(more: Sequence[tuple[Chunk, float]], kept: Sequence[Chunk], room: int) -> dict[str, float]:
    """Return the first chunks that are not kept and fit into the room, with their weights."""
    held, found = {chunk.uid for chunk in kept}, {}
    for chunk, weight in more:
        if chunk.uid in held:
            continue
        room -= tokens_of(chunk)
        if room < 0:
            break
        found[chunk.uid] = weight
    return found


def _within(chunk: Chunk, scope: Scope) -> bool:
    return scope.documents is None or chunk.document in scope.documents

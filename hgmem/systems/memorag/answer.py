"""Ask: memory writes clues, the clues and the question search the text, and the answer is drawn from what they find."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.retrieval import Scope
from hgmem.retrieval.context_packing import tokens_of, within
from hgmem.retrieval.fusion import reciprocal_ranks
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.memorag.build import BUILD
from hgmem.systems.memorag.memory_models import Clues, memory_model
from hgmem.systems.memorag.recipes import RECIPES, MemoRAGConfig
from hgmem.systems.memorag.statements import search_chunks
from hgmem.systems.memorag.tasks import LABELS
from hgmem.systems.single_step import SingleStep
from hgmem.text.language import counted
from hgmem.values.evidence import Evidence, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk

_NO_CLUE = "memory wrote no clue: the question alone searched"
_FILLING = 100  # chunks of the question that may fill a budget at most
ROUNDS_PROMPT = 700  # tokens of a prompt around its memory and passages


def retrieve(services: Services, question: str, *, scope: Scope, config: MemoRAGConfig) -> Evidence:
    """Return the union of what the question and its clues find, in the order of the text (paper, section 3.1).

    What exceeds the evidence's budget is left out, the worst ranks first, and noted. The answer sees no clue.
    """
    memory = memory_model(services, scope, config).clues(question, config.kinds) if config.kinds else Clues()
    texts = [question, *(clue.text for clue in memory.clues)]
    searched = chunks_by_clues(services, texts, scope=scope, config=config)
    labels = ["question", *(LABELS[clue.kind] for clue in memory.clues)]
    reads = (memory.read, *(() for _ in memory.clues))
    retrieved = tuple(
        Retrieved(
            subquery=Subquery(text=text, concern=label, strategy="clues"),
            chunks=_hits(hits, searched.chunks),
            built=read,
        )
        for text, label, hits, read in zip(texts, labels, searched.hits, reads, strict=True)
    )
    left = counted(searched.left, "chunk", "chunks")
    dropped = f"{left} that clues found did not fit into {config.evidence_tokens:,} tokens"
    kept = sorted(searched.kept, key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    none = config.kinds and not memory.clues
    notes = (*memory.notes, *([_NO_CLUE] if none else []), *([dropped] if searched.left else []))
    return Evidence(retrieved=retrieved, chunks=tuple(kept), notes=notes)


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
    by_words = config.chunk_search == "hybrid"
    hits, chunks = search_chunks(services, texts, scope=scope, by_words=by_words, most=config.hits)
    order = [chunks[uid] for uid in reciprocal_ranks(hits)]
    kept = within(order, tokens=config.evidence_tokens)
    if config.fill and len(kept) == len(order):
        (asked,), more = search_chunks(services, texts[:1], scope=scope, by_words=by_words, most=_FILLING)
        room = config.evidence_tokens - tokens_of(*kept)
        fresh = [more[uid] for uid in asked if uid not in chunks]
        added = within(fresh, tokens=room, least=0)
        kept, chunks = [*kept, *added], {**more, **chunks}
        wanted = {chunk.uid for chunk in added} | hits[0].keys()
        hits = [{uid: score for uid, score in asked.items() if uid in wanted}, *hits[1:]]
    return Searched(hits=tuple(hits), chunks=chunks, kept=tuple(kept), left=max(len(order) - len(kept), 0))


def _hits(scores: Mapping[str, float], chunks: Mapping[str, Chunk]) -> tuple[Hit, ...]:
    return tuple(
        Hit(uid=uid, rank=rank, score=score, source_id=chunks[uid].source_id)
        for rank, (uid, score) in enumerate(scores.items(), start=1)
    )


def cost(config: MemoRAGConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the most model calls of a question, and about how many tokens their prompts have at most."""
    each = len(config.kinds) if config.calls == "paper" else min(1, len(config.kinds))
    deeper = config.descents if each and config.calls == "few" and config.memory == "gists" else 0
    memory = 0 if config.memory == "none" else config.memory_tokens
    clues = (each + deeper) * (memory + ROUNDS_PROMPT)
    queries = 1 + len(config.kinds) * config.most_clues * (1 + deeper)
    evidence = min(config.evidence_tokens, queries * config.hits * settings.chunk_tokens)
    return each + deeper + 1, clues + evidence + ROUNDS_PROMPT


def _needs_build(config: MemoRAGConfig) -> bool:
    return config.memory == "gists" and bool(config.kinds)


SYSTEM = SingleStep(
    name="memorag",
    summary="Reads the whole corpus into gists, writes clues from them, and answers from what the clues find.",
    config=MemoRAGConfig,
    recipes=RECIPES,
    retrieve=retrieve,
    form_option="form",
    build=BUILD,
    needs_build=_needs_build,
    cost=cost,
)

"""Ask: memory writes clues, the clues and the question search the text, and the answer is drawn from what they find."""

from collections.abc import Mapping, Sequence

from hgmem.graph.retrieval import Scope
from hgmem.retrieval.fusion import reciprocal_ranks
from hgmem.retrieval.rendering import tokens_of, within
from hgmem.retrieval.step_evidence import hits_of
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.memorag.build import BUILD
from hgmem.systems.memorag.memory_models import MEMORIES, Clues
from hgmem.systems.memorag.recipes import RECIPES, MemoRAGConfig
from hgmem.systems.memorag.statements import search_chunks
from hgmem.systems.memorag.tasks import LABELS
from hgmem.systems.single_step import SingleStep
from hgmem.text.language import counted
from hgmem.values.evidence import Evidence, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk

_NO_CLUE = "memory wrote no clue: the question alone searched"
_FILLING = 100  # chunks of the question that may fill a budget at most
ROUNDS_PROMPT = 700  # tokens of a prompt around its memory and passages


def retrieve(services: Services, question: str, *, scope: Scope, config: MemoRAGConfig) -> Evidence:
    """Return the union of what the question and its clues find, in the order of the text (paper, section 3.1).

    What exceeds the evidence's budget is left out, the worst ranks first, and noted. The answer sees no clue.
    """
    model = MEMORIES[config.memory](services=services, scope=scope, config=config, question=question)
    memory = model.clues() if config.kinds else Clues()
    texts = [question, *(clue.text for clue in memory.clues)]
    found, chunks, kept = _chunks_by_clues(services, texts, scope=scope, config=config)
    labels = ["question", *(LABELS[clue.kind] for clue in memory.clues)]
    reads = (memory.read, *(() for _ in memory.clues))
    retrieved = tuple(
        Retrieved(
            subquery=Subquery(text=text, concern=label, strategy="clues"),
            chunks=hits_of(hits, chunks),
            built=read,
        )
        for text, label, hits, read in zip(texts, labels, found, reads, strict=True)
    )
    notes = [*memory.notes]
    if config.kinds and not memory.clues:
        notes.append(_NO_CLUE)
    if left := len({uid for hits in found for uid in hits} - {chunk.uid for chunk in kept}):
        dropped = f"{counted(left, 'chunk')} that clues found did not fit into {config.evidence_tokens:,} tokens"
        notes.append(dropped)
    kept.sort(key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    return Evidence(retrieved=retrieved, chunks=tuple(kept), notes=tuple(notes))


def _chunks_by_clues(
    services: Services, texts: Sequence[str], *, scope: Scope, config: MemoRAGConfig
) -> tuple[Sequence[Mapping[str, float]], Mapping[str, Chunk], list[Chunk]]:
    """Return what the question, which comes first, and its clues find: `hits` chunks (uids) each, with their scores.

    Also all of these chunks by uid, and those that the answer reads: the ones that rank best over all searches, within
    the evidence's budget. With `fill`, further chunks of the question take the room that is left.
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
    return hits, chunks, kept


def cost(config: MemoRAGConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the most model calls of a question, and about how many tokens their prompts have at most."""
    each = len(config.kinds) if config.calls == "paper" else min(1, len(config.kinds))
    deeper = config.descents if each and config.calls == "few" and config.memory == "gists" else 0
    memory = 0 if config.memory == "none" else config.memory_tokens
    clues = (each + deeper) * (memory + ROUNDS_PROMPT)
    queries = 1 + len(config.kinds) * config.most_clues * (1 + deeper)
    evidence = min(config.evidence_tokens, queries * config.hits * settings.chunk_tokens)
    return each + deeper + 1, clues + evidence + ROUNDS_PROMPT


SYSTEM = SingleStep(
    name="memorag",
    summary="Reads the whole corpus into gists, writes clues from them, and answers from what the clues find.",
    config=MemoRAGConfig,
    recipes=RECIPES,
    retrieve=retrieve,
    form_option="form",
    build=BUILD,
    needs_build=lambda config: config.memory == "gists" and bool(config.kinds),
    cost=cost,
)

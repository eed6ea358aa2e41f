"""Ask: memory writes clues, the clues and the question search the text, and the answer is drawn from what they find."""

from collections.abc import Sequence
from dataclasses import replace

from hgmem.graph.retrieval import Scope
from hgmem.retrieval.rendering import tokens_of, within
from hgmem.retrieval.step_evidence import RetrievalConfig, Scene, fuse, gather, hits_of, rerank_chunks
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.memorag.build import BUILD
from hgmem.systems.memorag.memory_models import MEMORIES
from hgmem.systems.memorag.recipes import RECIPES, MemoRAGConfig
from hgmem.systems.memorag.tasks import LABELS
from hgmem.systems.single_step import SingleStep
from hgmem.text.language import counted
from hgmem.values.evidence import BuiltHit, Evidence, Subquery
from hgmem.values.graph_elements import Chunk

_NO_CLUE = "memory wrote no clue: the question alone searched"
_FILLING = 100  # chunks of the question that may fill a budget at most, without a reranker
_CHUNKS_ALONE = RetrievalConfig(entities=1, relations=0, chunks=0, exclude=False)
ROUNDS_PROMPT = 700  # tokens of a prompt around its memory and passages


def retrieve(services: Services, question: str, *, scope: Scope, config: MemoRAGConfig) -> Evidence:
    """Return the union of what the question and its clues find, in the order of the text (paper, equation 2: Γ(y, C)).

    What exceeds the evidence's budget is left out, the worst ranks first, and noted. The answer sees no clue.
    """
    memory = MEMORIES[config.memory](services=services, scope=scope, config=config, question=question)
    if config.kinds:
        memory.write()
    asked = [
        Subquery(text=question, concern="question", strategy="clues"),
        *(Subquery(text=clue.text, concern=LABELS[clue.kind], strategy="clues") for clue in memory.clues.values()),
    ]
    found = _search(services, asked, scope=scope, config=config, most=config.hits)
    first, *others = found.retrieved
    order = _by_rank(found)
    kept = within(order, tokens=config.evidence_tokens)
    if len(kept) < len(order) and config.rerank:
        best = services.reranked(question, order, most=config.rerank, text=lambda chunk: chunk.text)
        kept = within([chunk for chunk, _ in best], tokens=config.evidence_tokens)
    elif config.fill and len(kept) == len(order):
        wider = _search(services, asked[:1], scope=scope, config=config, most=max(_FILLING, config.rerank))
        known = {chunk.uid: chunk for chunk in order}
        fresh = {chunk.uid: chunk for chunk in wider.chunks if chunk.uid not in known}
        pairs = [(fresh[hit.uid], hit.score) for hit in wider.retrieved[0].chunks if hit.uid in fresh]
        ranked = rerank_chunks(services, question, pairs, most=config.rerank)
        added = within([chunk for chunk, _ in ranked], tokens=config.evidence_tokens - tokens_of(*kept), least=0)
        scores = {hit.uid: hit.score for hit in first.chunks} | {
            chunk.uid: score for chunk, score in ranked[: len(added)]
        }
        first = replace(first, chunks=hits_of(scores, known | fresh))
        kept += added
    notes = list(dict.fromkeys(memory.notes))
    if config.kinds and not memory.clues:
        notes.append(_NO_CLUE)
    if (left := len(order) - len(kept)) > 0:
        dropped = f"{counted(left, 'chunk')} that clues found did not fit into {config.evidence_tokens:,} tokens"
        notes.append(dropped)
    kept.sort(key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    read = [BuiltHit(uid=one.uid, kind=one.kind, rank=at, text=one.text) for at, one in enumerate(memory.read, start=1)]
    return Evidence(retrieved=(replace(first, built=tuple(read)), *others), chunks=tuple(kept), notes=tuple(notes))


def _search(
    services: Services, asked: Sequence[Subquery], *, scope: Scope, config: MemoRAGConfig, most: int
) -> Evidence:
    """Return the chunks that each sub-query finds by its text, so many at most, by one statement."""
    vectors = services.embed([one.text for one in asked], kind="query")
    scene = Scene(scope=scope, covered=0, entities=0, chosen=((),) * len(asked))  # no entity is looked for
    search = replace(_CHUNKS_ALONE, searched_chunks=most, chunk_search=config.chunk_search, titles=config.titles)
    return gather(services.database, asked, vectors, scene=scene, config=search)[0]


def _by_rank(found: Evidence) -> list[Chunk]:
    """Return the chunks that were found by their ranks over all searches, the best first."""
    known = {chunk.uid: chunk for chunk in found.chunks}
    return [known[uid] for uid in fuse([hit.uid for hit in each.chunks] for each in found.retrieved)]


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

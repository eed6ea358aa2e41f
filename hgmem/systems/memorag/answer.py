"""Ask: memory writes clues, the clues and the question search the text, and the answer is drawn from what they find."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hgmem.graph.retrieval import Scope
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.clues import LABELS, WriteClues
from hgmem.retrieval.rendering import tokens_of, within
from hgmem.retrieval.step_evidence import RetrievalConfig, Scene, fuse, gather, hits_of, rerank_chunks
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.costs import around, packed, passages, total
from hgmem.systems.gists.build import NAME as GISTS
from hgmem.systems.gists.recipes import GistsConfig
from hgmem.systems.memorag import own_memories
from hgmem.systems.memorag.memory_models import MemoryModel, memory_model
from hgmem.systems.memorag.recipes import RECIPES, MemoRAGConfig, ignored
from hgmem.systems.single_step import SingleStep
from hgmem.text.language import counted
from hgmem.values.evidence import BuiltHit, Evidence, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk

_SIZE = re.compile(r"(?:messages/)?(\d+)")  # begins how a document was cut into chunks
_NO_CLUE = "memory wrote no clue: the question alone searched"
_FILLING = 100  # chunks of the question that may fill a budget at most, without a reranker
_CHUNKS_ALONE = RetrievalConfig(entities=1, relations=0, chunks=0, exclude=False)
_BESIDE_WORDS = 2  # tokens of a reply beside the words of each clue


def retrieve(services: Services, question: str, *, scope: Scope, config: MemoRAGConfig) -> Evidence:
    """Return the union of what the question and its clues find, in the order of the text (paper, equation 2: Γ(y, C)).

    What exceeds the evidence's budget is left out, the worst ranks first, and noted. The answer sees no clue.
    """
    memory = memory_model(config.memory)(services=services, scope=scope, config=config, question=question)
    if config.kinds:
        memory.write()
    return _found(memory, searched=question)


def retrieve_all(services: Services, question: str, *, scope: Scope, config: MemoRAGConfig, theme: str) -> Evidence:
    """Return what clues of all of memory find, and what the theme finds if there is one."""
    model, about = memory_model(config.memory), bool(theme)
    memory = model(services=services, scope=scope, config=config, question=question, whole=True, theme=about)
    memory.write()
    return _found(memory, searched=theme)


def _found(memory: MemoryModel, *, searched: str) -> Evidence:
    """Return what a text, unless it is empty, and the clues of memory find."""
    config = memory.config
    clues = [Subquery(text=each.text, concern=LABELS[each.kind], strategy="clues") for each in memory.clues.values()]
    text = searched or ("" if clues else memory.question)
    asked = [*([Subquery(text=text, concern="question", strategy="clues")] if text else []), *clues]
    found = _search(memory, asked, most=config.hits)
    order = _by_rank(found)
    kept = within(order, tokens=config.evidence_tokens)
    retrieved = list(found.retrieved)
    if len(kept) < len(order) and config.rerank:
        best = memory.services.reranked(memory.question, order, most=config.rerank, text=lambda chunk: chunk.text)
        kept = within([chunk for chunk, _ in best], tokens=config.evidence_tokens)
    elif config.fill and text and len(kept) == len(order):
        added, retrieved[0] = _filling(memory, asked[0], order, first=retrieved[0])
        kept += added
    notes = list(dict.fromkeys(memory.notes))
    if config.kinds and not memory.clues:
        notes.append(_NO_CLUE)
    if (left := len(order) - len(kept)) > 0:
        dropped = f"{counted(left, 'chunk')} that clues found did not fit into {config.evidence_tokens:,} tokens"
        notes.append(dropped)
    kept.sort(key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    read = [BuiltHit(uid=one.uid, kind=one.kind, rank=at, text=one.text) for at, one in enumerate(memory.read, start=1)]
    retrieved[0] = replace(retrieved[0], built=tuple(read))
    remarks = tuple(memory.remarks)
    return Evidence(retrieved=tuple(retrieved), chunks=tuple(kept), notes=tuple(notes), remarks=remarks)


def _filling(
    memory: MemoryModel, asked: Subquery, order: Sequence[Chunk], *, first: Retrieved
) -> tuple[list[Chunk], Retrieved]:
    """Return the next chunks of the first text that have room beside these, and all that it found with them."""
    config = memory.config
    wider = _search(memory, [asked], most=max(_FILLING, config.rerank))
    known = {chunk.uid: chunk for chunk in order}
    fresh = {chunk.uid: chunk for chunk in wider.chunks if chunk.uid not in known}
    pairs = [(fresh[hit.uid], hit.score) for hit in wider.retrieved[0].chunks if hit.uid in fresh]
    ranked = rerank_chunks(memory.services, memory.question, pairs, most=config.rerank)
    added = within([chunk for chunk, _ in ranked], tokens=config.evidence_tokens - tokens_of(*order), least=0)
    scores = {hit.uid: hit.score for hit in first.chunks}
    scores |= {chunk.uid: score for chunk, score in ranked[: len(added)]}
    return added, replace(first, chunks=hits_of(scores, known | fresh))


def _search(memory: MemoryModel, asked: Sequence[Subquery], *, most: int) -> Evidence:
    """Return the chunks that each sub-query finds by its text, so many at most, by one statement."""
    config, services = memory.config, memory.services
    vectors = services.embed([one.text for one in asked], kind="query")
    scene = Scene(scope=memory.scope, covered=0, entities=0, chosen=((),) * len(asked))  # no entity is looked for
    search = replace(_CHUNKS_ALONE, searched_chunks=most, chunk_search=config.chunk_search, titles=config.titles)
    return gather(services.database, asked, vectors, scene=scene, config=search)[0]


def _by_rank(found: Evidence) -> list[Chunk]:
    """Return the chunks that were found by their ranks over all searches, the best first."""
    known = {chunk.uid: chunk for chunk in found.chunks}
    return [known[uid] for uid in fuse([hit.uid for hit in each.chunks] for each in found.retrieved)]


def cost(config: MemoRAGConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the most model calls of a question, and how many tokens their prompts have at most.

    A reply has as many clues as its tokens let it, of the fewest words. What a memory of another package asks of a
    model is not known.
    """
    kinds, paper = len(set(config.kinds)), config.calls == "paper"
    replies = 0 if config.own else kinds if paper else min(1, kinds)
    looks = config.descents if replies and not paper and config.memory == "gists" else 0
    memory = 0 if config.memory == "none" else packed(config.memory_tokens)
    of_reply = (config.clue_tokens or settings.max_tokens) // (config.shortest + _BESIDE_WORDS)
    of_kinds = config.most_clues if paper else kinds * config.most_clues
    clues = kinds * config.most_clues if config.own else (replies + looks) * min(of_kinds, of_reply)
    found = passages((1 + clues) * config.hits, tokens=config.evidence_tokens, settings=settings)
    evidence = packed(config.evidence_tokens) if config.fill else found
    return total([*(replies + looks) * [around(WriteClues) + memory], around(AnswerQuestion) + evidence])


def sampling(config: MemoRAGConfig) -> Mapping[str, Mapping[str, Any]]:
    """Return the sampling parameters of clues and answers that a recipe gives."""
    heat = {} if config.temperature is None else {"temperature": config.temperature}
    limit = {"max_tokens": config.clue_tokens} if config.clue_tokens else {}
    return {WriteClues.name: heat | limit, AnswerQuestion.name: heat}


def notes(services: Services, config: MemoRAGConfig) -> Sequence[str]:
    """Return a note where the corpus has larger chunks than the recipe searches, or a memory's name is taken."""
    return (*_notes_on_names(config), *_notes_on_chunks(services, config))


def _notes_on_names(config: MemoRAGConfig) -> Sequence[str]:
    if config.memory not in ignored():
        return ()
    return (f"memory={config.memory} is hgmem's own: a package's memory of that name is ignored until it is renamed",)


def _notes_on_chunks(services: Services, config: MemoRAGConfig) -> Sequence[str]:
    if not config.chunk_tokens:
        return ()
    rows = services.database.run("chunkings", corpus=services.corpus)
    sizes = {int(found[1]) if (found := _SIZE.match(row["chunking"] or "")) else 0 for row in rows}
    others = sorted(size for size in sizes if not 0 < size <= config.chunk_tokens)
    if not others:
        return ()
    held = ", ".join(f"up to {size}" if size else "the sizes of an imported graph" for size in others)
    return (
        f"chunk_tokens={config.chunk_tokens}, but chunks of corpus {services.corpus!r} have {held}: to search as the "
        f"recipe does, index the documents into another corpus with HGMEM_CHUNK_TOKENS={config.chunk_tokens} and "
        "HGMEM_CHUNK_OVERLAP=0",
    )


def needs(config: MemoRAGConfig) -> Mapping[str, MemoRAGConfig | GistsConfig]:
    """Return the build that clues are written from, with its config: of a memory of its own, or of gists."""
    if not config.kinds or config.memory in ("full", "none"):
        return {}
    return {own_memories.SYSTEM: config} if config.own else {GISTS: config.gists}


SYSTEM = SingleStep(
    name=own_memories.SYSTEM,
    summary="Writes clues from gists of the whole corpus, and answers from what the clues find.",
    config=MemoRAGConfig,
    recipes=RECIPES,
    retrieve=retrieve,
    form_option="form",
    build=own_memories.BUILD,
    needs=needs,
    asked_options=["temperature"],
    sampling=sampling,
    notes=notes,
    cost=cost,
)

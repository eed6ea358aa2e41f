"""The tasks of MemoRAG: write a gist, and write clues from memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from hgmem.models.embedding import Vectors
from hgmem.models.extractive.entity_recognition import aspects
from hgmem.models.extractive.sentences import passages, quotable, rank
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.models.prompts import quoted
from hgmem.models.reply import Leniently, Reply, TextReply, named, with_fields
from hgmem.retrieval import rendering
from hgmem.systems.memorag.recipes import Kind
from hgmem.text.segmentation import collapse
from hgmem.text.tokens import count
from hgmem.values.evidence import BuiltPassage, Citable

_CONSIDERED = 40  # sentences of memory that share most words with the question
_MOST_SENTENCES = 2_000  # of one passage or memory
_REPETITION = 0.7  # how much likeness to what was chosen counts against a sentence
_LOOKED_INTO = 3
_NEAR_QUESTION = 0.5  # share of nearness to the question in a key point; the rest is how central it is


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Sentences of memory nearest to a question, sentences that stand for all of it, and the question's key phrases."""

    nearest: tuple[str, ...] = ()
    diverse: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()


def central_sentences(texts: Sequence[str], tokens: int, vectors: VectorCache) -> list[str]:
    """Return the sentences that stand best for texts, together at most so many tokens, in the order of the texts.

    Each next one is nearest to the mean of all vectors, and unlike those that were chosen. Texts without a sentence are
    returned as they are.
    """
    paragraphs = [part for text in texts for part in text.split("\n\n")]
    found = _sentences([BuiltPassage(uid="", kind="", text=part) for part in paragraphs])
    if not found:
        return [collapse(text) for text in texts]
    every = vectors.of(found)
    costs = [count(sentence) for sentence in found]
    chosen = _diverse(every, every @ _centre(every), costs, tokens=tokens)
    return [found[at] for at in sorted(chosen)]


def _sentences(memory: Sequence[Citable]) -> list[str]:
    return [each.text for each in quotable(passages(memory))[:_MOST_SENTENCES]]


def extractive_clues(question: str, memory: Sequence[Citable], *, most: int, vectors: VectorCache) -> Found:
    """Return clues from the sentences of memory, and from the question alone, at most so many of each kind."""
    each = [aspect.text for aspect in aspects(question)]
    phrases = (", ".join(each), *each)[:most] if each else ()
    found = quotable(passages(memory))[:_MOST_SENTENCES]
    if not found:
        return Found(phrases=phrases)
    ranked = rank(found, [question], vectors, limit=_CONSIDERED, prior={})
    texts = [each.text for each in found]
    every = vectors.of(texts)
    asked = vectors.of([question], kind="query")[0]
    worth = _NEAR_QUESTION * (every @ asked) + (1 - _NEAR_QUESTION) * (every @ _centre(every))
    diverse = _diverse(every, worth, [1] * len(texts), tokens=most)
    return Found(
        nearest=tuple(each.passage.text for each in ranked[:most]),
        diverse=tuple(texts[at] for at in diverse),
        phrases=phrases,
    )


def nearest(question: str, gists: Sequence[Citable], vectors: VectorCache) -> tuple[int, ...]:
    """Return the numbers of the gists nearest to a question, nearest first."""
    near = vectors.of([gist.text for gist in gists]) @ vectors.of([question], kind="query")[0]
    return tuple(int(at) for at in np.argsort(-near, kind="stable")[:_LOOKED_INTO])


def _centre(every: Vectors) -> Vectors:
    mean = every.mean(axis=0)
    length = float(np.linalg.norm(mean))
    centre: Vectors = mean / length if length else mean
    return centre


def _diverse(every: Vectors, worth: Vectors, costs: Sequence[int], *, tokens: int) -> list[int]:
    """Return the indices of sentences in the order of choice: worth much, and unlike each other. At least one."""
    chosen: list[int] = []
    alike = np.zeros(len(every), dtype=np.float32)
    open_ = np.ones(len(every), dtype=bool)
    left = tokens
    while open_.any():
        at = int(np.argmax(np.where(open_, worth - _REPETITION * alike, -np.inf)))
        open_[at] = False
        if chosen and costs[at] > left:
            continue
        chosen.append(at)
        left -= costs[at]
        alike = np.maximum(alike, every @ every[at])
        if left <= 0:
            break
    return chosen


PROMPTS = Path(__file__).parent / "prompts"
_LINES = Leniently(sentences=True)
_DRAFT = named("draft", "answer", "rough_answer", "draft_answer")
_SPANS = named("spans", "passages", "text_spans", "recall")
_QUERIES = named("queries", "questions", "surrogate_queries", "surrogates", "subqueries")
_KEY_POINTS = named("key_points", "points", "keypoints")
_LOOK = named("look", "gists", "numbers", "look_into")


class GistReply(TextReply):
    """The text of a gist."""


class CluesReply(Reply):
    """Clues by kind. `look` are numbers of gists, as the prompt has them, to look into before."""

    draft: Annotated[str, _DRAFT] = ""
    spans: Annotated[tuple[str, ...], _SPANS, _LINES] = ()
    queries: Annotated[tuple[str, ...], _QUERIES, _LINES] = ()
    key_points: Annotated[tuple[str, ...], _KEY_POINTS, _LINES] = ()
    look: Annotated[tuple[int, ...], _LOOK] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteGist:
    """Ask for the gist of a passage, of at most so many tokens (MemoRAG-Lite: one call for each passage).

    `texts` are its parts in order, each with the title of its document.
    """

    texts: tuple[tuple[str, str], ...]
    tokens: int
    name: ClassVar[str] = "gist"
    prompt_file: ClassVar[Path] = PROMPTS / "gist.md"
    reply_type: ClassVar[type[GistReply]] = GistReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        parts = [text if text.startswith(title) else f"{title}\n{text}" for title, text in self.texts]
        return {"passage": quoted("\n\n".join(parts)), "tokens": str(self.tokens)}

    def extractive(self, vectors: VectorCache) -> GistReply:
        """Return the most central sentences of the passage, verbatim, without a language model."""
        chosen = central_sentences([text for _, text in self.texts], self.tokens, vectors)
        return GistReply(text="\n".join(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteClues:
    """Ask for clues of some kinds (paper, equation 6: y = Θ_mem(q | θ_mem)), at most `most` of each.

    `parts` are what was looked into, numbered on from `memory`. With `look`, the reply may name gists to look into.
    `leads` are names that the corpus ties to the question: the rule-based model writes queries with them.
    """

    question: str
    memory: tuple[Citable, ...]
    kinds: tuple[Kind, ...]
    most: int
    parts: tuple[Citable, ...] = ()
    look: bool = False
    leads: tuple[str, ...] = ()
    name: ClassVar[str] = "clues"
    prompt_file: ClassVar[Path] = PROMPTS / "clues.md"
    reply_type: ClassVar[type[CluesReply]] = CluesReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders. Memory comes first and is the same for all questions."""
        wanted = {kind: "yes" if kind in self.kinds else "" for kind in ("draft", "spans", "queries", "key_points")}
        return {
            **wanted,
            "memory": rendering.passages(self.memory) if self.memory else "",
            "parts": rendering.passages(self.parts, start=len(self.memory)) if self.parts else "",
            "question": rendering.text(self.question),
            "form": _form(self.kinds, look=self.look),
            "most": str(self.most),
            "look": "yes" if self.look else "",
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the reply with the fields that the prompt names, and no others."""
        return with_fields(schema, (*self.kinds, *(("look",) if self.look else ())))

    def extractive(self, vectors: VectorCache) -> CluesReply:
        """Return sentences of memory near the question, and its key phrases, without a language model.

        It has no draft, and key points only where nothing else is asked for: its clues tell less, so they are fewer.
        """
        found = extractive_clues(self.question, (*self.memory, *self.parts), most=self.most, vectors=vectors)
        few = max(1, self.most // 2)
        alone = {"spans", "queries"}.isdisjoint(self.kinds)
        return CluesReply(
            spans=found.nearest[:few] if "spans" in self.kinds else (),
            queries=(*found.phrases, *self.leads)[:few] if "queries" in self.kinds else (),
            key_points=found.diverse if alone and "key_points" in self.kinds else (),
            look=self._nearest(vectors) if self.look else (),
        )

    def _nearest(self, vectors: VectorCache) -> tuple[int, ...]:
        """Return the numbers of the gists nearest to the question, of the parts if there are any."""
        start = len(self.memory) if self.parts else 0
        return tuple(start + at for at in nearest(self.question, self.parts or self.memory, vectors))


def _form(kinds: Sequence[Kind], *, look: bool) -> str:
    """Return the form of the reply as JSON."""
    parts = [f'"{kind}": "…"' if kind == "draft" else f'"{kind}": ["…"]' for kind in kinds]
    return "{" + ", ".join([*parts, *(['"look": [0]'] if look else [])]) + "}"

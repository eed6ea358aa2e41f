"""Gists and clues without a language model: sentences of the text, chosen by their vectors, verbatim."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hgmem.models.embedding import Vectors
from hgmem.models.extractive.question_aspects import aspects
from hgmem.models.extractive.sentence_ranking import rank
from hgmem.models.extractive.sentences import passages, quotable
from hgmem.models.extractive.vector_cache import VectorCache
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

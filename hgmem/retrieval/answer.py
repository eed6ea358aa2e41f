"""The answer task of all systems: what a system knows and numbered passages in, a text with citation markers out."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Annotated

from hgmem.models.extractive.entity_recognition import Aspect, aspects, names
from hgmem.models.extractive.sentences import Passage, Ranked, bridge, passages, quotable, rank
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.models.prompts import PromptTask
from hgmem.models.reply import TextReply
from hgmem.retrieval import rendering
from hgmem.retrieval.citations import MARKER, Cited, cite
from hgmem.retrieval.rendering import Language, PromptMemory, Text
from hgmem.services import Services
from hgmem.text.segmentation import collapse, is_question
from hgmem.values.evidence import Citable

_CONSIDERED = 40
_SENTENCES = 4
_MOST_SENTENCES = 5
_ASKS = 0.1
_FARTHEST = 0.15
_BELOW_BEST = 0.55
_REMEMBERED = 0.08
_NEW_ASPECT = 0.35
_REPETITION = 0.5
_ALIKE = 0.85
_LONGEST = 1_200


class AnswerReply(TextReply):
    """The answer's text. Its markers `[n]` cite passages by number, from 1."""


@dataclass(frozen=True, kw_only=True)
class AnswerQuestion(PromptTask):
    """The task of writing the answer. `[n]` cites the n-th of `passages`, from 1.

    `memory` is what the system has worked out, and may be empty.
    """

    question: Text
    memory: PromptMemory
    passages: Annotated[tuple[Citable, ...], lambda found: rendering.passages(found, start=1), "chunks"]
    form: Annotated[str, lambda form: form or "as long as the question needs, in plain prose"] = ""
    language: Language = ""
    name = "answer"
    reply_type = AnswerReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        memory = "" if self.memory == PromptMemory() else rendering.remembered(self.memory, self.passages)
        return {**super().fields(), "memory": memory}

    def extractive(self, vectors: VectorCache) -> AnswerReply:
        """Return the sentences that best cover the question, each with its marker, without a language model."""
        remembered = [*self.memory.statements, *(point.description for point in self.memory.points)]
        return AnswerReply(text=extractive_answer(self.question, self.passages, remembered=remembered, vectors=vectors))


def cited_answer(services: Services, task: AnswerQuestion) -> Cited:
    """Return the model's answer with its citations checked, the notes of the reply first."""
    reply = services.write(task)
    cited = cite(reply.text, task.passages)
    return replace(cited, notes=(*reply.notes, *cited.notes))


def extractive_answer(
    question: str, found_in: Sequence[Citable], *, remembered: Sequence[str], vectors: VectorCache
) -> str:
    """Return a few sentences of the passages, verbatim except for whitespace, each followed by its marker `[n]`."""
    every = quotable(passages(found_in))
    # A "[3]" in a source text would be read as a marker.
    found = [passage for passage in every if not MARKER.search(passage.text)] or every
    remembered = [collapse(text) for text in remembered]
    prior = {passage: _prior(passage, remembered) for passage in found}
    ranked = rank(found, [question], vectors, limit=_CONSIDERED, prior=prior)
    bridged = bridge(ranked, lambda text: _names(text) if any(text in statement for statement in remembered) else [])
    chosen = _chosen(bridged, aspects(question))
    return " ".join(f"{each.text} [{each.chunk + 1}]" for each in _ordered(chosen))


def _names(text: str) -> list[str]:
    return [name.text for name in names([text])[0]]


def _prior(passage: Passage, remembered: Sequence[str]) -> float:
    """Return a passage's prior score: a bonus if memory holds it, a penalty if it is a question."""
    asks = is_question(passage.text.rstrip("\"'”’»"))
    return _REMEMBERED * any(passage.text in text for text in remembered) - _ASKS * asks


def _chosen(ranked: Sequence[Ranked], wanted: Sequence[Aspect]) -> list[Ranked]:
    """Return the sentences to quote: near the question, dissimilar, and together covering its aspects."""
    chosen: list[Ranked] = []
    covered: set[str] = set()
    least = max(_FARTHEST, _BELOW_BEST * ranked[0].score) if ranked else 0.0
    left = [each for each in ranked if each.score >= least] or list(ranked[:1])
    while left and len(chosen) < _MOST_SENTENCES:
        best = max(left, key=lambda each: _gain(each, chosen, wanted, covered))
        fresh = {each.text for each in wanted if each.covered_by(best.passage.stems)} - covered
        if len(chosen) >= _SENTENCES and not fresh:
            break
        chosen.append(best)
        covered |= fresh
        room = _LONGEST - sum(len(each.passage.text) for each in chosen)
        left = [each for each in left if each is not best and _adds(each, best) and len(each.passage.text) < room]
    return chosen


def _gain(each: Ranked, chosen: Sequence[Ranked], wanted: Sequence[Aspect], covered: AbstractSet[str]) -> float:
    fresh = sum(1 for aspect in wanted if aspect.text not in covered and aspect.covered_by(each.passage.stems))
    alike = max((float(each.vector @ other.vector) for other in chosen), default=0.0)
    return each.score + _NEW_ASPECT * fresh / max(len(wanted), 1) - _REPETITION * max(alike - 0.5, 0.0)


def _adds(each: Ranked, best: Ranked) -> bool:
    mine, theirs = each.passage.stems, best.passage.stems
    return float(each.vector @ best.vector) < _ALIKE and len(mine & theirs) < _ALIKE * len(mine)


def _ordered(chosen: Sequence[Ranked]) -> list[Passage]:
    """Return the best sentence first, then the others in document order."""
    rest = sorted((each.passage for each in chosen[1:]), key=lambda passage: (passage.chunk, passage.at))
    return [each.passage for each in chosen[:1]] + rest

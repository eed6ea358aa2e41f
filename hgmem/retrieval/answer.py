"""The answer task of all systems: what a system knows and numbered passages in, a text with citation markers out."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.models.reply import TextReply
from hgmem.retrieval import rendering
from hgmem.retrieval.citations import Cited, cite
from hgmem.retrieval.extractive_answer import answer
from hgmem.retrieval.rendering import Shown
from hgmem.services import Services
from hgmem.values.evidence import Citable

PROMPTS = Path(__file__).parent / "prompts"


class AnswerReply(TextReply):
    """The answer's text. Its markers `[n]` cite passages by number, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    """The task of writing the answer. `[n]` cites the n-th of `passages`, from 1.

    `memory` is what the system has worked out, and may be empty.
    """

    question: str
    memory: Shown
    passages: tuple[Citable, ...]
    form: str = ""
    language: str = ""
    name: ClassVar[str] = "answer"
    prompt_file: ClassVar[Path] = PROMPTS / "answer.md"
    reply_type: ClassVar[type[AnswerReply]] = AnswerReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "question": rendering.text(self.question),
            "memory": "" if self.memory == Shown() else rendering.remembered(self.memory, self.passages),
            "chunks": rendering.passages(self.passages, start=1),
            "form": self.form or "as long as the question needs, in plain prose",
            "language": rendering.language(self.language),
        }

    def extractive(self, vectors: VectorCache) -> AnswerReply:
        """Return the sentences that best cover the question, each with its marker, without a language model."""
        remembered = [*self.memory.statements, *(point.description for point in self.memory.points)]
        return AnswerReply(text=answer(self.question, self.passages, remembered=remembered, vectors=vectors))


def cited_answer(services: Services, task: AnswerQuestion) -> Cited:
    """Return the model's answer with its citations checked, the notes of the reply first."""
    reply = services.write(task)
    cited = cite(reply.text, task.passages)
    return replace(cited, notes=(*reply.notes, *cited.notes))

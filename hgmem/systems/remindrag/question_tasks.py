"""Tasks before and instead of a walk: is a search needed, sub-questions, and an answer without a search."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.systems.remindrag.replies import PlainReply, SearchReply, SplitReply

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedSearch:
    """Ask whether a question needs a search of the documents (official code, `query_main`)."""

    question: str
    history: str
    name: ClassVar[str] = "search_needed"
    prompt_file: ClassVar[Path] = PROMPTS / "search_needed.md"
    reply_type: ClassVar[type[SearchReply]] = SearchReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"question": rendering.text(self.question), "history": self.history}

    def extractive(self, vectors: VectorCache) -> SearchReply:
        """Return that it does: nothing is known without a search, where there is no language model."""
        return SearchReply(search=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitQuestion:
    """Ask for the sub-questions of a question, at most so many.

    Source: paper, section 3.2.
    """

    question: str
    most: int
    history: str
    name: ClassVar[str] = "split_question"
    prompt_file: ClassVar[Path] = PROMPTS / "split_question.md"
    reply_type: ClassVar[type[SplitReply]] = SplitReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {"question": rendering.text(self.question), "most": str(self.most), "history": self.history}

    def extractive(self, vectors: VectorCache) -> SplitReply:
        """Return the question as it is, without a language model."""
        return SplitReply(questions=(self.question,))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlainly:
    """Ask for an answer from the conversation alone, where no search is needed (official code)."""

    question: str
    history: str
    language: str = ""
    name: ClassVar[str] = "plain_answer"
    prompt_file: ClassVar[Path] = PROMPTS / "plain_answer.md"
    reply_type: ClassVar[type[PlainReply]] = PlainReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "question": rendering.text(self.question),
            "history": self.history,
            "language": rendering.language(self.language),
        }

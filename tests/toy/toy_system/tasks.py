"""The system's tasks: one that the rule-based model can answer, and one that needs a language model."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hgmem.models.reply import TextReply

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class SumUp:
    """Sums a document up."""

    text: str
    words: int
    name: ClassVar[str] = "sum_up"
    prompt_file: ClassVar[Path] = PROMPTS / "sum_up.md"
    reply_type: ClassVar[type[TextReply]] = TextReply

    def fields(self) -> Mapping[str, str]:
        return {"text": self.text}

    def extractive(self, vectors: Any) -> TextReply:
        """Return the first words."""
        return TextReply(text=" ".join(self.text.split()[: self.words]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reword:
    """Words a question anew. Only a language model can."""

    question: str
    name: ClassVar[str] = "reword"
    prompt_file: ClassVar[Path] = PROMPTS / "reword.md"
    reply_type: ClassVar[type[TextReply]] = TextReply

    def fields(self) -> Mapping[str, str]:
        return {"question": self.question}

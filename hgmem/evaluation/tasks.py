"""What is asked of a model as judge: scores for the answers on one sheet."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from hgmem.models.prompt_delimiters import quoted
from hgmem.models.reply import Reply, named

PROMPTS = Path(__file__).parent / "prompts"


class LetterScore(BaseModel):
    """The score of one answer, with the reason."""

    model_config = ConfigDict(frozen=True)
    letter: Annotated[str, named("letter", "answer", "name", "id")]
    score: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), named("score", "points", "rating")]
    reason: Annotated[str, named("reason", "explanation", "rationale")] = ""


class JudgeReply(Reply):
    """The scores of a sheet."""

    scores: tuple[LetterScore, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """The task of scoring answers (by letter) to a question. It has no extractive function: it needs a model."""

    question: str
    reference: str
    evidence: tuple[str, ...]
    answers: Mapping[str, str]
    name: ClassVar[str] = "judge"
    prompt_file: ClassVar[Path] = PROMPTS / "judge.md"
    reply_type: ClassVar[type[JudgeReply]] = JudgeReply

    def fields(self) -> Mapping[str, str]:
        """Return the values of the prompt's placeholders."""
        return {
            "question": quoted(self.question.strip()),
            "reference": quoted(self.reference.strip()) or "(none)",
            "evidence": "\n".join(f"- {quoted(' '.join(text.split()))}" for text in self.evidence) or "(none)",
            "letters": ", ".join(self.answers),
            "answers": "\n\n".join(f"Answer {letter}:\n{quoted(text)}" for letter, text in self.answers.items()),
        }

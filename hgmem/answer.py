"""The answer: asked for once, its markers checked against the evidence, its quotes cut from the chunks."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from hgmem.model import Chunk, MemoryPoint


class Reply(BaseModel):
    """The answer's text, with markers `[n]` that name evidence chunks by number, from 1."""

    model_config = ConfigDict(frozen=True)
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerQuestion:
    """Ask for the answer; chunk n of `chunks`, from 1, is cited as `[n]`. `points` may be empty."""

    question: str
    points: tuple[MemoryPoint, ...]
    chunks: tuple[Chunk, ...]
    name = "answer"
    reply_type = Reply

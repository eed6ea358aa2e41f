"""A model as judge: it scores sheet by sheet, and every score is saved at once."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from hgmem.client.connecting import find_embedder, find_model
from hgmem.errors import BadReplyError, ModelError, UsageError
from hgmem.evaluation.results import append_row
from hgmem.evaluation.sheets import Sheet
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm import LanguageModel, close
from hgmem.models.llm.task_routing import serving
from hgmem.models.metering import measuring
from hgmem.models.prompts import PromptTask, quoted
from hgmem.models.reply import Reply, named
from hgmem.settings import Settings
from hgmem.values.reports import Progress


class LetterScore(BaseModel):
    """The score of one answer, with the reason."""

    model_config = ConfigDict(frozen=True)
    letter: Annotated[str, named("letter", "answer", "name", "id")]
    score: Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), named("score", "points", "rating")]
    reason: Annotated[str, named("reason", "explanation", "rationale")] = ""


class JudgeReply(Reply):
    """The scores of a sheet."""

    scores: tuple[LetterScore, ...]


@dataclass(frozen=True, kw_only=True)
class Judge(PromptTask):
    """The task of scoring the answers of a sheet. It has no extractive function: it needs a model."""

    sheet: Sheet
    name = "judge"
    reply_type = JudgeReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        sheet = self.sheet
        return {
            "question": quoted(sheet.question.strip()),
            "reference": quoted(sheet.reference.strip()) or "(none)",
            "evidence": "\n".join(f"- {quoted(' '.join(text.split()))}" for text in sheet.evidence) or "(none)",
            "letters": ", ".join(sheet.answers),
            "answers": "\n\n".join(f"Answer {letter}:\n{quoted(text)}" for letter, text in sheet.answers.items()),
        }


class UnfitJudgeError(ModelError):
    """The judge does not score sheets in the form that is asked for."""


@contextmanager
def judge_of(settings: Settings) -> Iterator[LanguageModel]:
    """Yield the configured model as a judge. Raises `UsageError` for the rule-based one, which cannot judge."""
    model = find_model(settings, embedder=find_embedder(settings))
    if serving(model, Judge.name).name == ExtractiveModel.name:
        raise UsageError(
            "the built-in rule-based model cannot judge: set HGMEM_MODEL, or let people judge with --sheet"
        )
    try:
        yield model
    finally:
        close(model)


def waiting(found: Sequence[Sheet], file: Path, *, judge: str) -> list[Sheet]:
    """Return the sheets that this judge has not scored in the file yet."""
    done = judged(found, file, judge=judge)
    return [sheet for sheet in found if sheet.id not in done]


def judge_sheets(
    model: LanguageModel,
    found: Sequence[Sheet],
    file: Path,
    *,
    limits: Mapping[str, int | None],
    report: Callable[[Progress], None] = lambda _: None,
) -> list[str]:
    """Score the sheets that wait, append each to the file, and return notes on those without usable scores.

    Raises `UnfitJudgeError` if the first one is not scored as asked: nothing else is paid for.
    """
    todo = waiting(found, file, judge=model.name)
    notes: list[str] = []
    with measuring(**limits):
        for at, sheet in enumerate(todo):
            try:
                scores = scored(model, sheet)
            except (BadReplyError, UnfitJudgeError) as error:
                if at == 0:
                    raise UnfitJudgeError(
                        f"judge {model.name!r} did not score the first sheet as asked ({error}): choose another "
                        "HGMEM_MODEL, or let people judge with --sheet"
                    ) from error
                notes.append(f"sheet {sheet.id!r} has no scores: {error}")
            else:
                append_row(file, {"sheet": sheet.id, "digest": sheet.digest, "judge": model.name, "scores": scores})
            report(Progress(done=at + 1, total=len(todo), document=sheet.id, unit="questions"))
    return notes


def scored(model: LanguageModel, sheet: Sheet) -> dict[str, dict[str, object]]:
    """Return the scores of a sheet with their reasons, by letter.

    Raises `UnfitJudgeError` if a letter has none or two.
    """
    reply: JudgeReply = model.reply(Judge(sheet=sheet))
    found: dict[str, dict[str, object]] = {}
    for given in reply.scores:
        letter = given.letter.strip().upper().removeprefix("ANSWER ")
        if letter in found or letter not in sheet.answers:
            raise UnfitJudgeError(f"the reply scores answer {letter!r} twice, or there is none")
        found[letter] = {"score": given.score, "reason": given.reason}
    missing = [letter for letter in sheet.answers if letter not in found]
    if missing:
        raise UnfitJudgeError(f"the reply has no score for answer {missing[0]!r}")
    return found


def judged(found: Sequence[Sheet], file: Path, *, judge: str) -> dict[str, dict[str, object]]:
    """Return this judge's scores of the sheets as they are now, by sheet and letter."""
    digests = {sheet.id: sheet.digest for sheet in found}
    return {row["sheet"]: row["scores"] for row in _rows(file, judge) if digests.get(row["sheet"]) == row["digest"]}


def _rows(file: Path, judge: str) -> list[dict[str, Any]]:
    if not file.exists():
        return []
    rows = []
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:  # a kill cut it short
            continue
        if isinstance(row, dict) and {"sheet", "digest", "scores"} <= row.keys() and row.get("judge") == judge:
            rows.append(row)
    return rows

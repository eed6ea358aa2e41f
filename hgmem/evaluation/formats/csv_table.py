"""A CSV of questions and answers."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from hgmem.errors import DocumentError
from hgmem.evaluation.formats.data_set import EvalQuestion, Problems, QuestionLine, Sources, read_lines, with_evidence
from hgmem.sources.json_records import text_of

NEEDED = ("question", "answer")
_YES = frozenset({"1", "true", "yes"})


def read_csv(file: Path, sources: Sources) -> tuple[EvalQuestion, ...]:
    """Return the questions of a CSV file, their evidence as words of the documents.

    Columns: question, answer; and if wanted id, kind, document, quote, pair, held_back. Others are ignored.
    """
    problems = Problems(file)
    lines = read_lines(_lines(file), QuestionLine, problems)
    return with_evidence(lines, sources, problems, field="quote")


def _lines(file: Path) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows as lines of our own format, with the numbers of the lines where they end."""
    reader = csv.DictReader(io.StringIO(text_of(file), newline=""), strict=True, restval="")
    missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
    if missing:
        raise DocumentError(f"{str(file)!r}, line 1: no column {missing[0]!r}: name the columns question and answer")
    try:
        for number, row in enumerate(reader, start=1):
            given = {name: value.strip() for name, value in row.items() if isinstance(value, str)}
            quote = {"document": given.get("document", ""), "quote": given.get("quote", "")}
            yield (
                reader.line_num,
                {
                    "id": given.get("id") or f"q{number}",
                    "kind": given.get("kind") or "question",
                    "question": given["question"],
                    "answer": given["answer"],
                    "evidence": (quote,) if quote["quote"] else (),
                    "pair": given.get("pair", ""),
                    "held_back": given.get("held_back", "").lower() in _YES,
                },
            )
    except csv.Error as error:
        raise DocumentError(f"{str(file)!r}, line {reader.line_num}: not CSV: {error}") from error

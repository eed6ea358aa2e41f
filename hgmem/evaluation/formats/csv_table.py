"""A CSV of questions and answers, beside a folder of documents."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from hgmem.errors import DocumentError, UsageError
from hgmem.evaluation.formats.data_set import (
    DataSet,
    EvalQuestion,
    EvidenceLine,
    Problems,
    Sources,
    check_pairs,
    text_documents,
)
from hgmem.sources.json_records import distinct, text_of

QUESTIONS, DOCUMENTS = "questions.csv", "documents"
NEEDED = ("question", "answer")
_YES = frozenset({"1", "true", "yes"})


def read_csv(path: Path) -> DataSet:
    """Return the questions of a CSV file (of a folder: `questions.csv`) on the texts in `documents/` beside it.

    Columns: question, answer; and if wanted id, kind, document, quote, pair, held_back. Others are ignored.
    """
    file = path / QUESTIONS if path.is_dir() else path
    folder = file.parent / DOCUMENTS
    if not folder.is_dir():
        raise UsageError(f"{str(folder)!r} does not exist: put the documents there, a text file each")
    documents = {document.id: document for document in text_documents(folder)}
    return DataSet(
        name=file.resolve().parent.name if path.is_dir() else file.stem,
        documents=tuple(documents.values()),
        questions=_questions(file, Sources(documents=documents)),
    )


def _questions(file: Path, sources: Sources) -> tuple[EvalQuestion, ...]:
    problems = Problems(file)
    rows = list(_rows(file))
    ids = distinct(row.get("id") or f"q{at}" for at, (_, row) in enumerate(rows, start=1))
    found: list[tuple[int, EvalQuestion]] = []
    for id_, (line, row) in zip(ids, rows, strict=True):
        if row.get("id", id_) not in ("", id_):
            problems.add_duplicate(row["id"], line=line)
        for name in NEEDED:
            if not row.get(name):
                problems.add("it is blank: fill it in", line=line, field=name)
        found.append((line, _question(id_, row, line, sources=sources, problems=problems)))
    check_pairs(found, problems)
    problems.check()
    return tuple(question for _, question in found)


def _rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the rows with the lines where they end."""
    reader = csv.DictReader(io.StringIO(text_of(file), newline=""), strict=True)
    missing = [name for name in NEEDED if name not in (reader.fieldnames or ())]
    if missing:
        raise DocumentError(f"{str(file)!r}, line 1: no column {missing[0]!r}: name the columns question and answer")
    try:
        for row in reader:
            yield reader.line_num, {name: (value or "").strip() for name, value in row.items() if isinstance(name, str)}
    except csv.Error as error:
        raise DocumentError(f"{str(file)!r}, line {reader.line_num}: not CSV: {error}") from error


def _question(id_: str, row: dict[str, str], line: int, *, sources: Sources, problems: Problems) -> EvalQuestion:
    quote = row.get("quote")
    given = [("quote", EvidenceLine(document=row.get("document", ""), quote=quote))] if quote else []
    return EvalQuestion(
        id=id_,
        kind=row.get("kind") or "question",
        question=row.get("question", ""),
        answer=row.get("answer", ""),
        evidence=sources.evidence(given, problems, line=line),
        pair=row.get("pair", ""),
        held_back=row.get("held_back", "").lower() in _YES,
    )

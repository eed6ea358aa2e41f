"""Our own format: a folder with documents, questions (JSON lines or CSV), and perhaps a graph (docs/evaluation.md)."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hgmem.errors import DocumentError, UsageError
from hgmem.evaluation.formats.data_set import (
    DataSet,
    EvalQuestion,
    Problems,
    QuestionLine,
    Sources,
    read_documents,
    read_lines,
    read_questions,
    with_evidence,
)
from hgmem.evaluation.formats.graphs import QUESTIONS, chunks_of, graph_of, graph_sources
from hgmem.sources.conversations.reading import read_conversations
from hgmem.sources.conversations.rendering import document_of, in_order_of_time
from hgmem.sources.json_records import text_of
from hgmem.values.inputs import Document

NEEDED = ("question", "answer")  # columns of a CSV
_YES = frozenset({"1", "true", "yes"})


def read_own(
    path: Path, *, questions: str = QUESTIONS, graph: Path | None = None, given: Sources | None = None
) -> DataSet:
    """Return the data set of a folder, or of a file of questions with documents beside it.

    `questions` is the file's name in a folder. A file of questions with a `graph`, or with documents that are `given`,
    is not about those beside it.
    """
    file, folder = (path / questions, path) if path.is_dir() else (path, path.parent)
    if graph and not path.is_dir():
        given = graph_sources(graph)
    graph = graph or (None if given else graph_of(folder))
    sources = given or _sources(folder, graph)
    return DataSet(
        name=folder.resolve().name if path.is_dir() else path.stem,
        documents=tuple(sources.documents),
        questions=(read_csv if file.suffix.lower() == ".csv" else read_questions)(file, sources),
        graph=graph,
    )


def _sources(folder: Path, graph: Path | None) -> Sources:
    found = _documents(folder)
    if found:
        return Sources(documents=tuple(found.values()), chunks=chunks_of(graph, found))
    if graph is None:
        added = "add documents/, documents.jsonl or conversations.jsonl, or name documents, graph or corpus in the plan"
        raise UsageError(f"{str(folder)!r} has no documents: {added}")
    return graph_sources(graph)


def _documents(folder: Path) -> dict[str, Document]:
    places = [place for name in ("documents", "documents.jsonl") if (place := folder / name).exists()]
    if len(places) > 1:
        raise UsageError(f"{str(folder)!r} has both documents/ and documents.jsonl: keep one")
    found = read_documents(places[0]) if places else {}
    said = folder / "conversations.jsonl"
    for conversation in read_conversations(said) if said.exists() else ():
        if conversation.id in found:
            raise UsageError(f"{str(folder)!r}: {conversation.id!r} is a document and a conversation: rename one")
        messages = in_order_of_time(conversation.messages)
        found[conversation.id] = document_of(replace(conversation, messages=messages))
    return found


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

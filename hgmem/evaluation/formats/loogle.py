"""LooGLE (Li et al., 2023): JSON Lines of long documents, each with questions and the sentences that answer them."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, Evidence, first_place
from hgmem.sources.json_records import Record, distinct, line_record, lines_of
from hgmem.values.inputs import Document

_NONE = "none"  # stands for no questions, in the summarization task


def read_loogle(path: Path) -> DataSet:
    """Return the documents of a file, each once, and their questions."""
    lines = [line_record(text, number, path) for number, text in lines_of(path)]
    documents = _documents(lines)
    asked = [(line, record) for line in lines for record in _questions(line)]
    names = distinct(record.text("id", default=f"{_document_of(line, documents).id}-1") for line, record in asked)
    return DataSet(
        name=path.resolve().stem,
        documents=tuple(documents.values()),
        questions=tuple(
            EvalQuestion(
                id=name,
                kind=record.text("type", "task", default="question"),
                question=record.text("Q", "question"),
                answer=record.text("A", "answer"),
                evidence=tuple(_evidence(record, _document_of(line, documents))),
            )
            for name, (line, record) in zip(names, asked, strict=True)
        ),
    )


def _documents(lines: list[Record]) -> dict[str, Document]:
    """Return the documents by their texts. Several lines may ask about one."""
    texts = {line.text("input", "context"): line.text("title", "doc_id", default="") for line in reversed(lines)}
    titles = dict(reversed(texts.items()))
    ids = distinct(title or "document" for title in titles.values())
    return {
        text: Document(id=id_, title=title or id_, text=text)
        for id_, (text, title) in zip(ids, titles.items(), strict=True)
    }


def _document_of(line: Record, documents: dict[str, Document]) -> Document:
    return documents[line.text("input", "context")]


def _questions(line: Record) -> Iterator[Record]:
    """Yield the questions of a line: a list, a list written as text, or the line itself."""
    if not line.has("qa_pairs"):
        yield line
        return
    pairs = _literal(line.values["qa_pairs"], line, "qa_pairs")
    if pairs == _NONE:
        return
    if not isinstance(pairs, list):
        line.fail("it is not a list", "qa_pairs")
    for number, value in enumerate(pairs, start=1):
        yield Record(value, path=line.path, place=f"{line.place}, qa_pairs {number}")


def _literal(value: Any, line: Record, field: str) -> Any:
    """Return what a text holds that was written as a Python literal or as JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith(("[", "{")):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            line.fail("it is a list that cannot be read", field)


def _evidence(record: Record, document: Document) -> Iterator[Evidence]:
    """Yield the evidence. Sentences that differ from the document, as some published ones do, have no place in it."""
    field = "S" if record.has("S") else "evidence"
    values = _literal(record.values.get(field), record, field)
    for words in Record({field: values}, path=record.path, place=record.place).texts(field):
        if words.strip():
            yield first_place(document, words) or Evidence(document=document.id, text=words.strip())

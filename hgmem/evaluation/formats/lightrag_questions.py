"""A LightRAG working directory with `questions.jsonl` in it: the graph is imported in place of indexing."""

import json
from pathlib import Path

from hgmem.errors import DocumentError, UsageError
from hgmem.evaluation.data_set import DataSet, EvalQuestion
from hgmem.evaluation.formats.evidence import Sources
from hgmem.evaluation.formats.graphs import chunks_of, is_lightrag
from hgmem.evaluation.formats.questions import read_questions
from hgmem.sources import lightrag
from hgmem.sources.json_files import lines_of
from hgmem.sources.json_records import Record

QUESTIONS = "questions.jsonl"
_REFERENCE = "reference_answer"  # of the official code's questions, which have no ids, kinds or evidence


def read(path: Path) -> DataSet:
    """Return the documents of the directory and the questions: lines of our own, or of HGMem's official code."""
    if not is_lightrag(path):
        raise UsageError(f"{str(path)!r} is not a LightRAG working directory: {lightrag.GRAPH} is missing")
    documents = lightrag.read(path).documents
    file = path / QUESTIONS
    sources = Sources(documents={one.id: one for one in documents}, chunks=chunks_of(path, {}))
    questions = _bare(file) or read_questions(file, sources)
    return DataSet(name=path.resolve().name, documents=documents, questions=questions, graph=path)


def _bare(file: Path) -> tuple[EvalQuestion, ...]:
    """Return the questions if the file's first line has reference answers, else none."""
    lines = list(lines_of(file))
    if not lines or f'"{_REFERENCE}"' not in lines[0][1]:
        return ()
    found = []
    for number, text in lines:
        try:
            one = Record(json.loads(text), path=file, place=f"line {number}")
        except ValueError as error:
            raise DocumentError(f"{str(file)!r}, line {number}: not JSON: {error}") from None
        question, wanted = one.text("question"), (one.texts(_REFERENCE) or [""])[0].strip()
        if not wanted:
            one.fail("it is missing", _REFERENCE)
        found.append(EvalQuestion(id=f"q{number}", kind="question", question=question, answer=wanted))
    return tuple(found)

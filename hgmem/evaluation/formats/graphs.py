"""The graph of a data set, an archive or a LightRAG directory: its chunks as evidence, or with questions of its own."""

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hgmem.errors import DocumentError, UsageError
from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, Evidence, Sources, read_questions
from hgmem.sources import lightrag
from hgmem.sources.json_records import line_record, lines_of, text_of
from hgmem.text.identity import uid
from hgmem.values.inputs import Document

QUESTIONS = "questions.jsonl"
_REFERENCE = "reference_answer"  # of the official code's questions, which have no ids, kinds or evidence
_PACKED = b"\x1f\x8b"  # what gzip begins with


def graph_of(folder: Path) -> Path | None:
    """Return the graph of a data set: `graph.jsonl…`, the folder `graph`, or the folder that `graph.txt` names."""
    named = folder / "graph.txt"
    found = [path for path in sorted(folder.glob("graph.jsonl*")) if path.is_file()]
    found += [path for path in [folder / "graph"] if path.is_dir()]
    found += [folder / Path(text_of(named).strip()).expanduser()] if named.is_file() else []
    if len(found) > 1:
        raise UsageError(f"{str(folder)!r} has several graphs: keep one of {', '.join(path.name for path in found)}")
    for path in found:
        if path.suffix != ".txt" and not path.is_file() and not is_lightrag(path):
            raise UsageError(f"{str(path)!r} is not a LightRAG working directory: correct graph.txt, or the folder")
    return found[0] if found else None


def is_lightrag(path: Path) -> bool:
    """Return whether a path is a LightRAG working directory."""
    return (path / lightrag.GRAPH).is_file()


def corpus_of(archive: Path) -> str:
    """Return the corpus that an archive names, and is imported into."""
    header = next((record for record in _records(archive) if record.get("kind") == "archive"), {})
    corpus = header.get("corpus")
    if not isinstance(corpus, str) or not corpus:
        raise DocumentError(f"{str(archive)!r}: not an archive of hgmem export: its first line names no corpus")
    return corpus


def chunks_of(graph: Path | None, documents: Mapping[str, Document]) -> Mapping[str, Evidence]:
    """Return the graph's chunks as evidence, by the ids that a caller may know them by."""
    if graph is None:
        return {}
    if not is_lightrag(graph):
        return _archive_chunks(graph, documents)
    return {
        chunk.id: Evidence(
            document=chunk.document,
            text=chunk.text,
            start=chunk.start,
            end=None if chunk.start is None else chunk.start + len(chunk.text),
            source=chunk.id,
        )
        for chunk in lightrag.read_lightrag(graph).chunks
    }


def _archive_chunks(graph: Path, documents: Mapping[str, Document]) -> Mapping[str, Evidence]:
    """Return the chunks of an archive by their uids, and by their ids in the data that it came from."""
    found: dict[str, Evidence] = {}
    known: dict[str, str] = {}
    for record in _records(graph):
        if record.get("kind") == "archive":
            known = {uid(str(record.get("corpus")), "document", name): name for name in documents}
        if record.get("kind") == "Chunk" and record.get("document") in known:
            names = [str(record[name]) for name in ("uid", "source_id") if record.get(name)]
            document, text = known[record["document"]], str(record.get("text", ""))
            start, end = record.get("start"), record.get("end")
            found |= {name: Evidence(document=document, text=text, start=start, end=end, source=name) for name in names}
    return found


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of an archive. `hgmem import` is what checks it."""
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == _PACKED
        with gzip.open(path, "rb") if packed else path.open("rb") as opened:
            for line in opened:
                record = json.loads(line)
                yield record if isinstance(record, dict) else {}
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise DocumentError(f"{str(path)!r}: not an archive of hgmem export: {error}") from error


def read_lightrag(path: Path) -> DataSet:
    """Return the documents of the directory and the questions: lines of our own, or of HGMem's official code."""
    if not is_lightrag(path):
        raise UsageError(f"{str(path)!r} is not a LightRAG working directory: {lightrag.GRAPH} is missing")
    documents = lightrag.read_lightrag(path).documents
    file = path / QUESTIONS
    sources = Sources(documents={document.id: document for document in documents}, chunks=chunks_of(path, {}))
    questions = _bare(file) or read_questions(file, sources)
    return DataSet(name=path.resolve().name, documents=documents, questions=questions, graph=path)


def _bare(file: Path) -> tuple[EvalQuestion, ...]:
    """Return the questions if the file's first line has reference answers, else none."""
    lines = list(lines_of(file))
    if not lines or f'"{_REFERENCE}"' not in lines[0][1]:
        return ()
    found = []
    for number, text in lines:
        record = line_record(text, number, file)
        question, answer = record.text("question"), (record.texts(_REFERENCE) or [""])[0].strip()
        if not answer:
            record.fail("it is missing", _REFERENCE)
        found.append(EvalQuestion(id=f"q{number}", kind="question", question=question, answer=answer))
    return tuple(found)

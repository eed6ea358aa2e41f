"""The graph of a data set, an archive or a LightRAG directory: its chunks as evidence, or with questions of its own."""

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hgmem.errors import DocumentError, UsageError
from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, Evidence, Sources, read_questions
from hgmem.sources import lightrag
from hgmem.sources.json_records import line_record, lines_of, text_of
from hgmem.text.identity import uid
from hgmem.values.conversations import MessagePlace
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Document, GivenChunk

QUESTIONS = "questions.jsonl"
_REFERENCE = "reference_answer"  # of the official code's questions, which have no ids, kinds or evidence
_FIELDS = ("uid", "document", "position", "text", "start", "end", "source_id")  # of an archive's chunks
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
    if is_lightrag(graph):
        return {chunk.id: _evidence(chunk, chunk.document, chunk.id) for chunk in lightrag.read_lightrag(graph).chunks}
    corpus = corpus_of(graph)
    return _stored_chunks(_chunks(graph), {uid(corpus, "document", name): name for name in documents})


def _stored_chunks(chunks: Iterable[Chunk], names: Mapping[str, str]) -> Mapping[str, Evidence]:
    """Return chunks as evidence by uid and the caller's id. Documents (uids) have `names` of the caller's."""
    return {
        key: _evidence(chunk, names.get(chunk.document, chunk.document), key)
        for chunk in chunks
        for key in (chunk.uid, chunk.source_id)
        if key
    }


def _evidence(chunk: Chunk | GivenChunk, document: str, key: str) -> Evidence:
    end = None if chunk.start is None else chunk.start + len(chunk.text)
    return Evidence(document=document, text=chunk.text, start=chunk.start, end=end, source=key)


def graph_sources(graph: Path) -> Sources:
    """Return the documents of a graph as sources of evidence."""
    if is_lightrag(graph):
        return Sources(documents=lightrag.read_lightrag(graph).documents, chunks=chunks_of(graph, {}))
    rows = [record for record in _records(graph) if record.get("kind") == "Document"]
    return stored_sources(corpus_of(graph), list(_chunks(graph)), rows)


def stored_sources(corpus: str, chunks: Sequence[Chunk], rows: Iterable[Mapping[str, Any]]) -> Sources:
    """Return the documents of a corpus (rows of uid, title and source), put together from their chunks.

    Chunks of other documents, which may have come meanwhile, are left out.
    """
    named = sorted((row["uid"], row.get("title", ""), row.get("source", "")) for row in rows)
    documents = {name: Document(id=name, title=title, source=source, text="") for name, title, source in named}
    chunks = [chunk for chunk in chunks if chunk.document in documents]
    for chunk in sorted(chunks, key=lambda chunk: chunk.position):
        before = documents[chunk.document]
        start = len(before.text) if chunk.start is None else chunk.start
        places = {place.id: place for place in before.messages}
        for place in chunk.messages:  # a long message goes on in the next chunk
            first = places.get(place.id, replace(place, start=start + place.start))
            places[place.id] = replace(first, end=start + place.end)
        text = before.text[:start].ljust(start) + chunk.text
        documents[chunk.document] = replace(before, text=text, messages=tuple(places.values()))
    return Sources(documents=tuple(documents.values()), chunks=_stored_chunks(chunks, {}), corpus=corpus)


def _chunks(archive: Path) -> Iterator[Chunk]:
    for record in _records(archive):
        if record.get("kind") == "Chunk":
            fields: dict[str, Any] = {name: record.get(name) for name in _FIELDS}
            try:
                messages = tuple(MessagePlace(**place) for place in json.loads(record.get("messages") or "[]"))
                fields["text"] = str(record["text"])
            except (KeyError, TypeError, ValueError) as error:
                raise DocumentError(f"{str(archive)!r}: a chunk is damaged: {error}") from error
            yield Chunk(tokens=0, messages=messages, **fields)


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
    file, sources = path / QUESTIONS, graph_sources(path)
    questions = _bare(file) or read_questions(file, sources)
    return DataSet(name=path.resolve().name, documents=tuple(sources.documents), questions=questions, graph=path)


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

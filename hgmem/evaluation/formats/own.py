"""Our own format: a folder with documents, conversations, questions, and perhaps their graph (docs/evaluation.md)."""

from dataclasses import replace
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.formats.csv_table import read_csv
from hgmem.evaluation.formats.data_set import DataSet, Sources, read_documents, read_questions
from hgmem.evaluation.formats.graphs import QUESTIONS, chunks_of, graph_of, graph_sources
from hgmem.sources.conversations.reading import read_conversations
from hgmem.sources.conversations.rendering import document_of, in_order_of_time
from hgmem.values.inputs import Document


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

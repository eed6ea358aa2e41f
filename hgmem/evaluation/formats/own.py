"""Our own format: a folder with documents, conversations, questions, and perhaps their graph (docs/evaluation.md)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.data_set import DataSet, Problems
from hgmem.evaluation.formats.evidence import Sources
from hgmem.evaluation.formats.graphs import chunks_of, graph_of, is_lightrag
from hgmem.evaluation.formats.own_lines import DocumentLine, MessageLine, read_lines, text_documents
from hgmem.evaluation.formats.questions import read_questions
from hgmem.sources import lightrag
from hgmem.sources.conversations.rendering import document_of, in_order_of_time
from hgmem.text.segmentation import Span
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document

QUESTIONS = "questions.jsonl"


def read(path: Path) -> DataSet:
    """Return the data set of a folder."""
    if not path.is_dir():
        raise UsageError(f"{str(path)!r} is not a folder: name the folder of {QUESTIONS}")
    graph = graph_of(path)
    conversations = read_conversations(path / "conversations.jsonl")
    documents = {one.id: one for one in _documents(path, graph)}
    for one in conversations:
        if one.id in documents:
            raise UsageError(f"{str(path)!r}: {one.id!r} is a document and a conversation: rename one")
        documents[one.id] = one
    if not documents:
        raise UsageError(f"{str(path)!r} has no documents: add documents/, documents.jsonl or conversations.jsonl")
    sources = Sources(documents=documents, messages=_places(conversations), chunks=chunks_of(graph, documents))
    return DataSet(
        name=path.resolve().name,
        documents=tuple(documents.values()),
        questions=read_questions(path / QUESTIONS, sources),
        graph=graph,
    )


def read_conversations(path: Path) -> list[Document]:
    """Return the conversations of a file as documents, none if there is no file."""
    if not path.is_file():
        return []
    problems = Problems(path)
    messages: dict[str, dict[str, Message]] = defaultdict(dict)
    titles: dict[str, str] = {}
    for number, line in read_lines(path, MessageLine, problems):
        if line.id in messages[line.conversation]:
            problems.add(f"message {line.id!r} is a duplicate: ids must be unique", line=number, field="id")
        messages[line.conversation][line.id] = Message(id=line.id, time=line.time, speaker=line.speaker, text=line.text)
        titles[line.conversation] = titles.get(line.conversation) or line.title
    problems.check()
    return [
        document_of(Conversation(id=name, title=titles[name], messages=in_order_of_time(said.values())))
        for name, said in messages.items()
    ]


def _documents(folder: Path, graph: Path | None) -> list[Document]:
    texts, lines = folder / "documents", folder / "documents.jsonl"
    if texts.is_dir() and lines.is_file():
        raise UsageError(f"{str(folder)!r} has both documents/ and documents.jsonl: keep one")
    if texts.is_dir():
        return _unique(text_documents(texts), texts)
    if lines.is_file():
        return _document_lines(lines)
    return list(lightrag.read(graph).documents) if graph and is_lightrag(graph) else []


def _unique(documents: list[Document], folder: Path) -> list[Document]:
    seen: set[str] = set()
    for one in documents:
        if one.id in seen:
            raise UsageError(f"{str(folder)!r} has two files {one.id!r} with different suffixes: rename one")
        seen.add(one.id)
    return documents


def _document_lines(path: Path) -> list[Document]:
    problems = Problems(path)
    found: dict[str, Document] = {}
    for number, line in read_lines(path, DocumentLine, problems):
        if line.id in found:
            problems.add(f"id {line.id!r} is a duplicate: ids must be unique", line=number, field="id")
        found[line.id] = Document(id=line.id, title=line.title or line.id, text=line.text, metadata=line.metadata)
    problems.check()
    return list(found.values())


def _places(conversations: Iterable[Document]) -> Mapping[tuple[str, str], Span]:
    return {(one.id, place.id): Span(place.start, place.end) for one in conversations for place in one.messages}

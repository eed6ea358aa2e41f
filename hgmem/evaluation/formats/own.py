"""Our own format: a folder with documents, conversations, questions, and perhaps their graph (docs/evaluation.md)."""

from collections import defaultdict
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.formats.data_set import (
    DataSet,
    DocumentLine,
    MessageLine,
    Problems,
    Sources,
    at_place,
    read_lines,
    read_questions,
    text_documents,
)
from hgmem.evaluation.formats.graphs import QUESTIONS, chunks_of, graph_of, is_lightrag
from hgmem.sources import lightrag
from hgmem.sources.conversations.rendering import document_of, in_order_of_time
from hgmem.text.segmentation import Span
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document


def read_own(path: Path) -> DataSet:
    """Return the data set of a folder."""
    if not path.is_dir():
        raise UsageError(f"{str(path)!r} is not a folder: name the folder of {QUESTIONS}")
    graph = graph_of(path)
    conversations = _conversations(path / "conversations.jsonl")
    documents = {document.id: document for document in _documents(path, graph)}
    for conversation in conversations:
        if conversation.id in documents:
            raise UsageError(f"{str(path)!r}: {conversation.id!r} is a document and a conversation: rename one")
        documents[conversation.id] = conversation
    if not documents:
        raise UsageError(f"{str(path)!r} has no documents: add documents/, documents.jsonl or conversations.jsonl")
    messages = {
        (conversation.id, message.id): at_place(conversation, Span(message.start, message.end), source=message.id)
        for conversation in conversations
        for message in conversation.messages
    }
    sources = Sources(documents=documents, messages=messages, chunks=chunks_of(graph, documents))
    return DataSet(
        name=path.resolve().name,
        documents=tuple(documents.values()),
        questions=read_questions(path / QUESTIONS, sources),
        graph=graph,
    )


def _conversations(path: Path) -> list[Document]:
    """Return the conversations of a file as documents, none if there is no file."""
    if not path.is_file():
        return []
    problems = Problems(path)
    messages: dict[str, dict[str, Message]] = defaultdict(dict)
    titles: dict[str, str] = {}
    for number, line in read_lines(path, MessageLine, problems):
        if line.id in messages[line.conversation]:
            problems.add_duplicate(line.id, line=number, what="message")
        messages[line.conversation][line.id] = Message(id=line.id, time=line.time, speaker=line.speaker, text=line.text)
        titles[line.conversation] = titles.get(line.conversation) or line.title
    problems.check()
    return [
        document_of(Conversation(id=name, title=titles[name], messages=in_order_of_time(by_id.values())))
        for name, by_id in messages.items()
    ]


def _documents(folder: Path, graph: Path | None) -> list[Document]:
    texts, lines = folder / "documents", folder / "documents.jsonl"
    if texts.is_dir() and lines.is_file():
        raise UsageError(f"{str(folder)!r} has both documents/ and documents.jsonl: keep one")
    if texts.is_dir():
        return _unique(text_documents(texts), texts)
    if lines.is_file():
        return _document_lines(lines)
    return list(lightrag.read_lightrag(graph).documents) if graph and is_lightrag(graph) else []


def _unique(documents: list[Document], folder: Path) -> list[Document]:
    seen: set[str] = set()
    for document in documents:
        if document.id in seen:
            raise UsageError(f"{str(folder)!r} has two files {document.id!r} with different suffixes: rename one")
        seen.add(document.id)
    return documents


def _document_lines(path: Path) -> list[Document]:
    problems = Problems(path)
    found: dict[str, Document] = {}
    for number, line in read_lines(path, DocumentLine, problems):
        if line.id in found:
            problems.add_duplicate(line.id, line=number)
        found[line.id] = Document(id=line.id, title=line.title or line.id, text=line.text, metadata=line.metadata)
    problems.check()
    return list(found.values())

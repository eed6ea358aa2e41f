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
from hgmem.sources.json_records import lines_of
from hgmem.text.segmentation import Span
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document


def read_own(path: Path) -> DataSet:
    """Return the data set of a folder."""
    if not path.is_dir():
        raise UsageError(f"{str(path)!r} is not a folder: name the folder of {QUESTIONS}")
    graph = graph_of(path)
    conversations = _conversations(path / "conversations.jsonl")
    documents = _documents(path, graph)
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
    messages: dict[str, list[Message]] = defaultdict(list)
    titles: dict[str, str] = {}
    for line in read_lines(lines_of(path), MessageLine, problems).values():
        messages[line.conversation].append(Message(id=line.id, time=line.time, speaker=line.speaker, text=line.text))
        titles[line.conversation] = titles.get(line.conversation) or line.title
    problems.check()
    return [
        document_of(Conversation(id=name, title=titles[name], messages=in_order_of_time(said)))
        for name, said in messages.items()
    ]


def _documents(folder: Path, graph: Path | None) -> dict[str, Document]:
    texts, lines = folder / "documents", folder / "documents.jsonl"
    if texts.is_dir() and lines.is_file():
        raise UsageError(f"{str(folder)!r} has both documents/ and documents.jsonl: keep one")
    if texts.is_dir():
        return text_documents(texts)
    if lines.is_file():
        return _document_lines(lines)
    given = lightrag.read_lightrag(graph).documents if graph and is_lightrag(graph) else ()
    return {document.id: document for document in given}


def _document_lines(path: Path) -> dict[str, Document]:
    problems = Problems(path)
    lines = read_lines(lines_of(path), DocumentLine, problems).values()
    problems.check()
    return {
        line.id: Document(id=line.id, title=line.title or line.id, text=line.text, metadata=line.metadata)
        for line in lines
    }

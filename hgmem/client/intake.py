"""Client methods that take texts in: documents, conversations, pre-built graphs."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, Unpack

from hgmem.client.ask_options import Limits, limited
from hgmem.client.async_variants import async_variant
from hgmem.corpus.adding import add_graph
from hgmem.corpus.appending import append, stored_messages
from hgmem.corpus.cost_estimate import plan_index, plan_retry
from hgmem.corpus.importing import import_graph
from hgmem.corpus.indexing import Report, aggregation_progress, index, retry_failed
from hgmem.errors import UsageError
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.sources.conversations.reading import load_conversations
from hgmem.sources.conversations.reading import messages_in as messages_in
from hgmem.sources.conversations.rendering import document_of
from hgmem.sources.files import load
from hgmem.sources.lightrag import read_lightrag
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document, Given, Skipped
from hgmem.values.reports import IndexPlan, IndexReport

Path_: TypeAlias = str | os.PathLike[str]


class Intake(ABC):
    """Methods that index documents, conversations and pre-built graphs, and estimate the cost."""

    settings: Settings

    @abstractmethod
    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        """Return the services for work on a corpus."""

    def add(
        self,
        items: Any,
        *,
        corpus: str | None = None,
        graph: bool = True,
        report: Report = lambda _: None,
        **limits: Unpack[Limits],
    ) -> IndexReport:
        """Index documents and return what was done.

        `items` is a `Document`, a `Conversation`, the path of a file or folder, or several of these. `Skipped` ones,
        as `load_conversations` returns them, are reported. `report` is a
        progress callback. With `graph=False`, chunks are embedded and nothing is extracted: no model is called, and
        the same call with `graph=True` extracts what is missing. Raises `BudgetError` after `max_calls` requests or
        `max_tokens` tokens: finished work is saved, and the same call resumes.
        """
        with limited(**limits):
            return index(self._services(corpus), self._loaded(items), graph=graph, report=report)

    def load_conversations(
        self, paths: Path_ | Iterable[Path_], *, fields: Mapping[str, str] | None = None
    ) -> list[Document | Skipped]:
        """Return the conversations of files and folders as documents to `add`, and the files that can't be used.

        `hgmem.read_conversations` describes the formats and `fields`, and raises an error for a bad file instead.
        """
        named = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        return list(load_conversations(named, fields=fields, max_bytes=self.settings.max_file_bytes))

    def append(
        self,
        conversation: str | Conversation,
        messages: Message | Iterable[Message] = (),
        *,
        graph: bool = False,
        corpus: str | None = None,
        report: Report = lambda _: None,
        **limits: Unpack[Limits],
    ) -> IndexReport:
        """Append messages to a conversation and return what was done. They can be asked about at once.

        `conversation` is its id, or a `Conversation` without messages whose title and metadata count if it is new. A
        message whose id the conversation has is skipped if it is the same, so that a call can be repeated, and refused
        if it is not. An id that is not given is the message's number. Messages stand in the order in which they are
        given, also where their times run backwards. With `graph=True`, whatever of the conversation is not extracted
        is extracted, also without messages. Several writers may append at a time. Raises `ConflictError` if others
        were always faster.
        """
        if isinstance(conversation, str):
            conversation = Conversation(id=conversation)
        if conversation.messages:
            raise UsageError(f"conversation {conversation.id!r} has messages itself: pass them as messages to append")
        if not conversation.id:
            raise UsageError("conversation '' has no id: pass one that identifies it across runs")
        said: Sequence[Any] = [messages]  # other values are refused by name
        if isinstance(messages, Iterable) and not isinstance(messages, str | Mapping):
            said = list(messages)
        with limited(**limits):
            return append(self._services(corpus), conversation, said, graph=graph, report=report)

    def messages(self, conversation: str, *, corpus: str | None = None) -> tuple[Message, ...]:
        """Return the messages of a conversation (id) in order.

        Runs of blanks and line breaks in their texts have become one space. Raises `UsageError` if there is no such
        conversation.
        """
        return stored_messages(self._services(corpus), conversation)

    def retry_failed(
        self,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
    ) -> IndexReport:
        """Extract failed chunks again and return what was done. The original documents are not needed."""
        with limited(max_calls=max_calls, max_tokens=max_tokens):
            return retry_failed(self._services(corpus), report=report)

    def plan(self, items: Any, *, corpus: str | None = None, graph: bool = True) -> IndexPlan:
        """Estimate the work and the maximum cost of `add` for the same items, without writing."""
        return plan_index(self._services(corpus), self._loaded(items), graph=graph)

    def plan_retry(self, *, corpus: str | None = None) -> IndexPlan:
        """Estimate the work and the maximum cost of `retry_failed`, without writing."""
        return plan_retry(self._services(corpus))

    def add_graph(self, given: Given, *, corpus: str | None = None) -> None:
        """Add a pre-built graph of documents, chunks, entities and relations, without extraction."""
        add_graph(self._services(corpus), given)

    def import_lightrag(
        self, directory: str | Path, *, corpus: str | None = None, report: Report = lambda _: None
    ) -> bool:
        """Import a LightRAG working directory into an empty corpus. Return whether anything was written."""
        given = read_lightrag(directory)
        return import_graph(
            self._services(corpus), given, report=lambda done, total: report(aggregation_progress(done, total))
        )

    aadd = async_variant(add)
    aload_conversations = async_variant(load_conversations)
    aappend = async_variant(append)
    amessages = async_variant(messages)
    aretry_failed = async_variant(retry_failed)
    aplan = async_variant(plan)
    aplan_retry = async_variant(plan_retry)
    aadd_graph = async_variant(add_graph)
    aimport_lightrag = async_variant(import_lightrag)

    def _loaded(self, items: Any) -> Iterator[Document | Skipped]:
        """Yield the documents among the items, then those that the paths contain."""
        paths: list[str | os.PathLike[str]] = []
        for item in [items] if isinstance(items, Document | Conversation | Skipped | str | os.PathLike) else items:
            if isinstance(item, Conversation):
                yield document_of(item)
            elif isinstance(item, Document | Skipped):
                yield item
            else:
                paths.append(item)
        if paths:
            settings = self.settings
            yield from load(paths, max_bytes=settings.max_file_bytes, max_seconds=settings.max_file_seconds)

"""The front door: everything that hgmem does, as methods of one object."""

import os
from collections.abc import AsyncGenerator, Generator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

from hgmem.asking import Asking, answered, checked, fitting, limited
from hgmem.connecting import adapted_embedder, adapted_model, find_database, find_embedder, find_model
from hgmem.corpus.adding import add_graph
from hgmem.corpus.delete import delete_corpus, delete_documents
from hgmem.corpus.importing import import_graph
from hgmem.corpus.index import IndexReport, Report, folded, index, retry_failed
from hgmem.corpus.planning import IndexPlan, plan_index, plan_retry
from hgmem.embed import CheckedEmbedder, Embedder
from hgmem.errors import UsageError
from hgmem.events import Answered, Event, Listener
from hgmem.graph.database import Database, adopt
from hgmem.graph.memory import corpus_of
from hgmem.graph.schema import ensure_schema
from hgmem.identity import check_corpus_name
from hgmem.inputs import Document, Given, Skipped
from hgmem.inspecting import Inspecting
from hgmem.lightrag import read as read_lightrag
from hgmem.llm import LanguageModel, close
from hgmem.load import load
from hgmem.model import Answer
from hgmem.passages import Passages
from hgmem.pruning import delete_memory
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.settings import load as load_settings
from hgmem.sharing import Shared
from hgmem.streaming import Streams
from hgmem.twins import twin
from hgmem.upkeep import Upkeep

_SHORT = {"uri": "neo4j_uri", "username": "neo4j_username", "password": "neo4j_password", "database": "neo4j_database"}


class HGMem(Inspecting, Upkeep, Passages, Shared):
    """A client of one Neo4j. Safe between threads; close it, or use it as a context manager.

    `corpus` is the one that methods mean when they are not told another. Copies are the client itself; it can't be
    pickled.
    """

    instead = "open another client there (HGMem.open), and make there what asks with it, such as a retriever"

    def __init__(
        self, database: Database, *, corpus: str, settings: Settings, model: LanguageModel, embedder: CheckedEmbedder
    ) -> None:
        self.corpus = corpus
        self.settings = settings
        self._database = database
        self.model = model
        self.embedder = embedder
        self._owned = False
        self._streams = Streams()

    @classmethod
    def open(
        cls,
        corpus: str = "default",
        *,
        driver: Any = None,
        model: LanguageModel | str | Any = None,
        embedder: Embedder | str | Any = None,
        **settings: Any,
    ) -> "HGMem":
        """Return a client that is connected, its schema in place.

        `uri`, `username`, `password`, `database` and every field of `Settings` may be given by name; what is not
        comes from the environment, `.env` and `hgmem.toml`, then from the server that `hgmem up` started. `model` and
        `embedder` are names, or objects of one's own, LangChain's included. A `driver` stays the caller's. Raises
        `UsageError` where there is no Neo4j, `GraphError` where it does not answer.
        """
        named = {"model": _name(model), "embedding_model": _name(embedder)}
        given = {_SHORT.get(name, name): value for name, value in settings.items()}
        found = load_settings(**given | {name: value for name, value in named.items() if value})
        database = _adopted(driver, found) if driver is not None else find_database(found)
        try:
            ensure_schema(database)
            checked = find_embedder(found) if _by_name(embedder) else adapted_embedder(embedder)
            chosen = find_model(found, embedder=checked) if _by_name(model) else adapted_model(model, found)
            client = cls(database, corpus=check_corpus_name(corpus), settings=found, model=chosen, embedder=checked)
            client._owned = _by_name(model)
            return client
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """End the streams that are open and close the connections; what was given by the caller stays open."""
        self._streams.close()
        self._database.close()
        if self._owned:
            close(self.model)

    def __enter__(self) -> "HGMem":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(
        self,
        items: Any,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
    ) -> IndexReport:
        """Return what was done to index `items`: a `Document`, a path of a file or folder, or several of either.

        Once so many requests went to a language model, or so many tokens are spent, what was extracted is kept, and
        `BudgetError` raised: the same again goes on.
        """
        with limited(max_calls=max_calls, max_tokens=max_tokens):
            return index(self._services(corpus), self._loaded(items), report=report)

    def retry_failed(
        self,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
        max_calls: int | None = None,
        max_tokens: int | None = None,
    ) -> IndexReport:
        """Return what was done to extract the chunks that failed before; the documents themselves are not needed."""
        with limited(max_calls=max_calls, max_tokens=max_tokens):
            return retry_failed(self._services(corpus), report=report)

    def plan(self, items: Any, *, corpus: str | None = None) -> IndexPlan:
        """Return what `add` would do with the same items, and what it would cost at most; nothing is written."""
        return plan_index(self._services(corpus), self._loaded(items))

    def plan_retry(self, *, corpus: str | None = None) -> IndexPlan:
        """Return what `retry_failed` would do, and what it would cost at most; nothing is written."""
        return plan_retry(self._services(corpus))

    def add_graph(self, given: Given, *, corpus: str | None = None) -> None:
        """Add documents, chunks, entities and relations of one's own, without any extraction."""
        add_graph(self._services(corpus), given)

    def import_lightrag(
        self, directory: str | Path, *, corpus: str | None = None, report: Report = lambda _: None
    ) -> bool:
        """Return whether anything was written to import a LightRAG working directory into an empty corpus."""
        given = read_lightrag(directory)
        return import_graph(self._services(corpus), given, report=lambda done, total: report(folded(done, total)))

    def ask(self, question: str = "", **asking: Unpack[Asking]) -> Answer:
        """Return the answer with its memory, which stays in Neo4j; see `Asking` for what may be said by name.

        Given a `memory`, that one goes on: with another question, or without one where it stopped.
        """
        return self._answered(question, asking, Listener())

    def stream(self, question: str = "", **asking: Unpack[Asking]) -> Generator[Event, None, None]:
        """Yield what happens while a question is answered, as it happens; takes what `ask` takes.

        Closing the iterator ends the question before its next call; its whole steps stay, and can be continued.
        """
        return self._streams.streamed(lambda listener: self._answered(question, asking, listener))

    def astream(self, question: str = "", **asking: Unpack[Asking]) -> AsyncGenerator[Event, None]:
        """Yield what `stream` yields, without blocking the event loop."""
        return self._streams.astreamed(lambda listener: self._answered(question, asking, listener))

    async def aask(self, question: str = "", **asking: Unpack[Asking]) -> Answer:
        """Return what `ask` returns, without blocking the event loop; cancelled, the question ends like a stream."""
        answer: Answer | None = None
        async with aclosing(self.astream(question, **asking)) as events:
            async for event in events:
                answer = event.answer if isinstance(event, Answered) else answer
        if answer is None:
            raise AssertionError("a question ends with an answer or with an error")
        return answer

    def delete(
        self,
        *,
        document: str | Iterable[str] | None = None,
        memory: str | None = None,
        corpus: str | None = None,
    ) -> None:
        """Delete documents, each by uid, id or path, or a memory (uid), or the whole corpus with its memories."""
        if document is not None and memory is not None:
            raise UsageError("a document and a memory are deleted by a call each: give one of them")
        if memory is not None:
            delete_memory(self._services(self._corpus_of(memory, corpus)), uid=memory)
        elif document is not None:
            delete_documents(self._services(corpus), [document] if isinstance(document, str) else list(document))
        else:
            delete_corpus(self._services(corpus))

    aadd = twin(add)
    aretry_failed = twin(retry_failed)
    aplan = twin(plan)
    aplan_retry = twin(plan_retry)
    aadd_graph = twin(add_graph)
    aimport_lightrag = twin(import_lightrag)
    adelete = twin(delete)

    def _services(self, corpus: str | None) -> Services:
        return Services(
            database=self._database,
            model=self.model,
            embedder=self.embedder,
            settings=self.settings,
            corpus=check_corpus_name(self.corpus if corpus is None else corpus),
        )

    def _loaded(self, items: Any) -> Iterator[Document | Skipped]:
        """Yield documents as they come, then what the paths among them hold."""
        paths: list[str | os.PathLike[str]] = []
        for item in [items] if isinstance(items, Document | str | os.PathLike) else items:
            if isinstance(item, Document):
                yield item
            else:
                paths.append(item)
        if paths:
            settings = self.settings
            yield from load(paths, max_bytes=settings.max_file_bytes, max_seconds=settings.max_file_seconds)

    def _corpus_of(self, memory: str, corpus: str | None) -> str:
        """Return the corpus of a memory that goes on."""
        held, uid = corpus_of(self._database, uid=memory)
        if uid != memory:
            raise UsageError(f"{memory!r} is a point or an answer of memory {uid!r}: go on with that")
        if corpus not in (None, held):
            raise UsageError(f"corpus {corpus!r} has no memory {memory!r}: it is one of {held!r}")
        return held

    def _answered(self, question: str, asking: Asking, listener: Listener) -> Answer:
        fitting(asking)
        memory, corpus = asking.get("memory"), asking.get("corpus")
        if memory is not None:
            corpus = self._corpus_of(memory, corpus)
        goes_on = memory and question in ("", None)  # with its last question
        text = "" if goes_on else checked(question, most=self.settings.max_question_characters)
        return answered(replace(self._services(corpus), listener=listener), text, asking)


def _by_name(chosen: object) -> bool:
    return chosen is None or isinstance(chosen, str)


def _name(chosen: object) -> str | None:
    return chosen if isinstance(chosen, str) else None


def _adopted(driver: Any, settings: Settings) -> Database:
    return adopt(driver, database=settings.neo4j_database, statement_timeout=settings.statement_timeout)

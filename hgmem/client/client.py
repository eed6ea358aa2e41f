"""The client class `HGMem`."""

from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import Any, Unpack

from hgmem.client.ask_options import Asking, answer_question, check_ask_options, checked
from hgmem.client.async_variants import async_variant
from hgmem.client.builds import Builds
from hgmem.client.connecting import adapted_embedder, adapted_model, find_database, find_embedder, find_model
from hgmem.client.foundations import Foundations
from hgmem.client.inspection import Inspecting
from hgmem.client.intake import Intake
from hgmem.client.passages import Passages
from hgmem.client.streaming import Streams
from hgmem.client.upkeep import Upkeep
from hgmem.client.verbs import Verbs
from hgmem.corpus.chunk_extraction import is_language_model
from hgmem.corpus.deletion import Named, delete_corpus, delete_documents
from hgmem.errors import UsageError
from hgmem.graph.database import Database, wrap_driver
from hgmem.graph.memory import corpus_of
from hgmem.graph.schema import ensure_schema
from hgmem.memory.pruning import delete_memory
from hgmem.models.embedding import CheckedEmbedder, Embedder
from hgmem.models.llm import LanguageModel, close
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.settings import load as load_settings
from hgmem.systems.building import remove_build
from hgmem.text.identity import check_corpus_name
from hgmem.values.arguments import OWNER, check
from hgmem.values.events import Answered, Event, Listener
from hgmem.values.records import Answer
from hgmem.values.sharing import Shared

_SHORT = {"uri": "neo4j_uri", "username": "neo4j_username", "password": "neo4j_password", "database": "neo4j_database"}


class HGMem(Intake, Inspecting, Upkeep, Builds, Verbs, Passages, Foundations, Shared):
    """A client of one Neo4j database, safe between threads. Close it, or use it as a context manager.

    `corpus` is the default corpus for all methods, and `owner` the default owner of memories. `copy` returns the client
    itself, and it can't be pickled.
    """

    instead = "open another client there (HGMem.open), and create there what uses it, such as a retriever"

    def __init__(
        self, database: Database, *, corpus: str, settings: Settings, model: LanguageModel, embedder: CheckedEmbedder
    ) -> None:
        self.corpus = corpus
        self.owner: str | None = None
        self.settings = settings
        self._database = database
        self.model = model
        self.embedder = embedder
        self._owned: list[object] = []  # what is closed with the client
        self._streams = Streams()

    @classmethod
    def open(
        cls,
        corpus: str = "default",
        *,
        driver: Any = None,
        model: LanguageModel | str | Any = None,
        embedder: Embedder | str | Any = None,
        owner: str | None = None,
        **settings: Any,
    ) -> "HGMem":
        """Connect to Neo4j, create missing indexes and constraints, and return the client.

        `uri`, `username`, `password`, `database` and every field of `Settings` are accepted by name. Missing values
        come from the environment, `.env`, `hgmem.toml`, then from the server that `hgmem up` started. `model` and
        `embedder` are names, objects of your own or LangChain objects. The caller keeps ownership of a `driver`. With
        an `owner`, the client sees only that owner's and everybody's memories, and makes the owner's. Raises
        `UsageError` if no Neo4j is configured, `GraphError` if it does not answer.
        """
        check({"owner": owner}, {"owner": OWNER})
        named = {"model": _name(model), "embedding_model": _name(embedder)}
        given = {_SHORT.get(name, name): value for name, value in settings.items()}
        found = load_settings(**given | {name: value for name, value in named.items() if value})
        database = _adopted(driver, found) if driver is not None else find_database(found)
        try:
            ensure_schema(database)
            checked = find_embedder(found) if _by_name(embedder) else adapted_embedder(embedder)
            chosen = find_model(found, embedder=checked) if _by_name(model) else adapted_model(model, found)
            client = cls(database, corpus=check_corpus_name(corpus), settings=found, model=chosen, embedder=checked)
            client.owner = owner
            client._owned = [own for own, given in ((chosen, model), (checked, embedder)) if _by_name(given)]
            return client
        except BaseException:
            database.close()
            raise

    def close(self) -> None:
        """End open streams and close the connections. A driver, model or embedder of the caller's stays open."""
        self._streams.close()
        self._database.close()
        for owned in self._owned:
            close(owned)

    @property
    def extracts_with_language_model(self) -> bool:
        """Whether indexing calls a language model, which costs calls and tokens."""
        return is_language_model(self.model)

    def __enter__(self) -> "HGMem":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def ask(self, question: str = "", **asking: Unpack[Asking]) -> Answer:
        """Answer a question and return the answer, whose memory is stored in Neo4j.

        `AskOptions` lists the options. With `memory=`, that memory is continued: with another question, or without one
        from where it stopped.
        """
        return self._answered(question, asking, Listener())

    def stream(self, question: str = "", **asking: Unpack[Asking]) -> Generator[Event, None, None]:
        """Yield events while a question is answered. Takes the same arguments as `ask`.

        Closing the iterator stops the work before its next model call. Finished steps stay and can be continued.
        """
        return self._streams.streamed(lambda listener: self._answered(question, asking, listener))

    def astream(self, question: str = "", **asking: Unpack[Asking]) -> AsyncGenerator[Event, None]:
        """Yield the events of `stream` without blocking the event loop."""
        return self._streams.astreamed(lambda listener: self._answered(question, asking, listener))

    async def aask(self, question: str = "", **asking: Unpack[Asking]) -> Answer:
        """Answer a question without blocking the event loop. Cancelling it stops the work like closing a stream."""
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
        document: Named | None = None,
        memory: str | None = None,
        system: str | None = None,
        corpus: str | None = None,
        owner: str | None = None,
    ) -> int:
        """Delete documents, a memory (uid), a system's build or the whole corpus. Return how many documents went.

        A document is named by its uid, its id or its path. The path of a file with several documents, such as a table
        with a document a row, names all of them: `documents(document=…)` tells which. One name that is unknown raises
        `UsageError`, and nothing is deleted. With an `owner`, the memory has to be the owner's own.
        """
        if sum(each is not None for each in (document, memory, system)) > 1:
            raise UsageError("document=, memory= and system= cannot be combined: make one call for each")
        if owner is not None and memory is None:
            raise UsageError("owner= needs memory=: pass the memory to delete, or omit owner=")
        if system is not None:
            remove_build(self._services(corpus), system)
            return 0
        if memory is not None:
            services = self._services(corpus, owner)
            delete_memory(replace(services, corpus=self._corpus_of(memory, corpus, owner=services.owner)), uid=memory)
            return 0
        if document is not None:
            return delete_documents(self._services(corpus), document)
        return delete_corpus(self._services(corpus))

    adelete = async_variant(delete)

    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        check({"owner": owner}, {"owner": OWNER})
        chosen = self.owner if owner is None else owner
        return Services(
            database=self._database,
            model=self.model,
            embedder=self.embedder,
            settings=self.settings,
            corpus=check_corpus_name(self.corpus if corpus is None else corpus),
            owner=None if chosen is None else chosen.strip(),
        )

    def _corpus_of(self, memory: str, corpus: str | None, *, owner: str | None) -> str:
        """Return the corpus of a memory to continue or to delete."""
        held, uid = corpus_of(self._database, uid=memory, owner=owner)
        if uid != memory:
            raise UsageError(f"{memory!r} is a point or an answer of memory {uid!r}: pass memory={uid!r}")
        if corpus not in (None, held):
            raise UsageError(f"corpus {corpus!r} has no memory {memory!r}: it belongs to corpus {held!r}")
        return held

    def _answered(self, question: str, asking: Asking, listener: Listener) -> Answer:
        check_ask_options(asking)
        memory, corpus = asking.get("memory"), asking.get("corpus")
        services = self._services(corpus, asking.get("owner"))
        if memory is not None:
            services = replace(services, corpus=self._corpus_of(memory, corpus, owner=services.owner))
        continued = memory and question in ("", None)  # no new question: continue the latest one
        text = "" if continued else checked(question, most=self.settings.max_question_characters)
        return answer_question(replace(services, listener=listener), text, asking)


def _by_name(chosen: object) -> bool:
    return chosen is None or isinstance(chosen, str)


def _name(chosen: object) -> str | None:
    return chosen if isinstance(chosen, str) else None


def _adopted(driver: Any, settings: Settings) -> Database:
    return wrap_driver(driver, database=settings.neo4j_database, statement_timeout=settings.statement_timeout)

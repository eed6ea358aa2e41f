"""The client class `HGMem`: every capability as a method. The work is done by the functions that the methods call."""

from collections.abc import AsyncGenerator, Generator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Unpack

from hgmem.client import connecting, inspection, intake, upkeep
from hgmem.client.asking import answer_among, answer_question
from hgmem.client.comparing import Comparing
from hgmem.client.deciding import Deciding
from hgmem.client.searching import Searching
from hgmem.client.streaming import Streams, async_variant
from hgmem.client.upkeep import ExportOptions
from hgmem.client.verbs import SystemAttributes, SystemVerbs
from hgmem.corpus import adding, appending, checking, cost_estimate
from hgmem.corpus.deletion import Named
from hgmem.corpus.indexing import is_language_model
from hgmem.corpus.pruning import prune
from hgmem.errors import UsageError
from hgmem.graph.corpus import all_corpora
from hgmem.graph.database import Database
from hgmem.memory.browser.view import View
from hgmem.memory.stored_memories import load_lineage, load_memory
from hgmem.models.embedding import CheckedEmbedder, Embedder
from hgmem.models.llm import LanguageModel, close
from hgmem.models.metering import limited
from hgmem.models.reranking import CheckedReranker
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems import answering, building, registry
from hgmem.systems.verbs import Note, warned
from hgmem.text.identity import check_corpus_name
from hgmem.values import arguments, reports
from hgmem.values.arguments import AppendOptions, AskOptions, BuildOptions, CallLimits, IndexOptions, Recipe
from hgmem.values.conversations import Conversation, Message
from hgmem.values.events import Event, Listener, Watcher
from hgmem.values.foreign_graph import Adopting
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import ONCE, Document, Given, Repeatable, Skipped
from hgmem.values.records import Answer, Lineage, Memory, MemorySummary, Passage
from hgmem.values.reports import Report
from hgmem.values.sharing import Shared
from hgmem.values.systems import SystemInfo


class HGMem(SystemAttributes, Comparing, Deciding, Searching, Shared):
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
        self.reranker: CheckedReranker | None = None
        self.watcher = Watcher()
        self.roles: Mapping[str, str] = {}  # who serves each: a model's name, and the address of its server
        self._owned: Sequence[object] = ()  # what is closed with the client
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
        `embedder` are names, objects of your own or LangChain objects, and so is `reranker`, but for LangChain's. The
        caller keeps ownership of a `driver`. With an `owner`, the client sees only that owner's and everybody's
        memories, and makes the owner's. Raises `UsageError` if no Neo4j is configured, `GraphError` if it does not
        answer.
        """
        arguments.check({"owner": owner}, {"owner": arguments.OWNER})
        name = check_corpus_name(corpus)
        made = connecting.connected(settings, driver=driver, model=model, embedder=embedder)
        client = cls(made.database, corpus=name, settings=made.settings, model=made.model, embedder=made.embedder)
        client.owner, client.reranker, client.roles, client._owned = owner, made.reranker, made.roles, made.owned
        return client

    def close(self) -> None:
        """End open streams and close the connections. A driver, model or embedder of the caller's stays open."""
        self._streams.close()
        self._database.close()
        for owned in self._owned:
            close(owned)

    def __enter__(self) -> "HGMem":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        arguments.check({"owner": owner}, {"owner": arguments.OWNER})
        return Services(
            database=self._database,
            model=self.model,
            embedder=self.embedder,
            reranker=self.reranker,
            settings=self.settings,
            corpus=check_corpus_name(self.corpus if corpus is None else corpus),
            owner=(owner or self.owner or "").strip() or None,
            watcher=self.watcher,
        )

    # Texts and graphs -------------------------------------------------------------------------------------------

    def add(
        self,
        items: Any,
        *,
        corpus: str | None = None,
        graph: bool = True,
        report: Report = lambda _: None,
        **options: Unpack[IndexOptions],
    ) -> reports.IndexReport:
        """Index documents and return what was done.

        `items` is a `Document`, a `Conversation`, the path of a file or folder, or several of these. `Skipped` ones, as
        `load_conversations` returns them, are reported. With `graph=False`, chunks are embedded and nothing is
        extracted; the same call with `graph=True` extracts what is missing. With `stages`, what each stage makes is
        kept in that folder; with `ray`, a cluster makes it. Raises `BudgetError` at a limit: the same call resumes.
        """
        if options.get("ray"):
            intake.check_ray(options, own={"model": self.model, "embedder": self.embedder}, made=self._owned)
        with limited(max_calls=options.get("max_calls"), max_tokens=options.get("max_tokens")):
            return intake.add(self._services(corpus), items, options, graph=graph, report=report)

    def plan(self, items: Any, *, corpus: str | None = None, graph: bool = True) -> reports.IndexPlan:
        """Estimate the work and the maximum cost of `add` for the same items, without writing."""
        return cost_estimate.plan_index(self._services(corpus), intake.loaded(items, self.settings), graph=graph)

    def retry_failed(
        self, *, corpus: str | None = None, report: Report = lambda _: None, **limits: Unpack[CallLimits]
    ) -> reports.IndexReport:
        """Extract failed chunks again and return what was done. The original documents are not needed."""
        with limited(**limits):
            return intake.retry(self._services(corpus), report=report)

    def plan_retry(self, *, corpus: str | None = None) -> reports.IndexPlan:
        """Estimate the work and the maximum cost of `retry_failed`, without writing."""
        return cost_estimate.plan_retry(self._services(corpus))

    def load_conversations(
        self, paths: intake.PathLike | Iterable[intake.PathLike], *, fields: Mapping[str, str] | None = None
    ) -> list[Document | Skipped]:
        """Return the conversations of files and folders as documents to `add`, and the files that can't be used.

        `hgmem.read_conversations` describes the formats and `fields`, and raises an error for a bad file instead.
        """
        return intake.loaded_conversations(paths, self.settings, fields=fields)

    def append(
        self,
        conversation: str | Conversation,
        messages: Message | Iterable[Message] = (),
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
        **options: Unpack[AppendOptions],
    ) -> reports.AppendReport:
        """Append messages to a conversation and return what was done. They can be asked about at once.

        `conversation` is its id, or a `Conversation` without messages whose title and metadata count if it is new; with
        `existing=True` a new one is refused. A message whose id the conversation has is skipped if it is the same, so
        that a call can be repeated, and refused if it is not. An id that is not given is the message's number. Messages
        stand in the order in which they are given, also where their times run backwards. With `graph=True`, whatever of
        the conversation is not extracted is extracted, also without messages. Several writers may append at a time.
        Raises `ConflictError` if others were always faster.
        """
        return intake.append_messages(self._services(corpus), conversation, messages, options=options, report=report)

    def messages(self, conversation: str, *, corpus: str | None = None) -> tuple[Message, ...]:
        """Return the messages of a conversation (id) in order.

        Runs of blanks and line breaks in their texts have become one space. Raises `UsageError` if there is no such
        conversation.
        """
        return appending.stored_messages(self._services(corpus), conversation)

    def add_graph(self, given: Given, *, corpus: str | None = None) -> None:
        """Add a pre-built graph of documents, chunks, entities and relations, without extraction."""
        adding.add_graph(self._services(corpus), given)

    def import_lightrag(
        self, directory: str | Path, *, corpus: str | None = None, report: Report = lambda _: None
    ) -> bool:
        """Import a LightRAG working directory into an empty corpus. Return whether anything was written."""
        return intake.import_lightrag(self._services(corpus), directory, report=report)

    def adopt(
        self, *, corpus: str | None = None, report: Report = lambda _: None, **graph: Unpack[Adopting]
    ) -> reports.AdoptReport:
        """Copy a graph that neo4j-graphrag wrote into an empty corpus. Return what was imported.

        Nothing is extracted again, and hgmem never writes to the source graph. Importing the same graph again writes
        nothing.
        """
        return upkeep.adopt(self._services(corpus), graph, report=report)

    aadd = async_variant(add)
    aplan = async_variant(plan)
    aretry_failed = async_variant(retry_failed)
    aplan_retry = async_variant(plan_retry)
    aload_conversations = async_variant(load_conversations)
    aappend = async_variant(append)
    amessages = async_variant(messages)
    aadd_graph = async_variant(add_graph)
    aimport_lightrag = async_variant(import_lightrag)
    aadopt = async_variant(adopt)

    # Questions --------------------------------------------------------------------------------------------------

    def ask(self, question: str = "", **options: Unpack[AskOptions]) -> Answer:
        """Answer a question and return the answer, whose memory is stored in Neo4j.

        `AskOptions` lists the options. With `memory=`, that memory is continued: with another question, or without one
        from where it stopped.
        """
        return self._answered(question, options, Listener())

    def stream(self, question: str = "", **options: Unpack[AskOptions]) -> Generator[Event, None, None]:
        """Yield events while a question is answered. Takes the same arguments as `ask`.

        Closing the iterator stops the work before its next model call. Finished steps stay and can be continued.
        """
        return self._streams.streamed(lambda listener: self._answered(question, options, listener))

    def astream(self, question: str = "", **options: Unpack[AskOptions]) -> AsyncGenerator[Event, None]:
        """Yield the events of `stream` without blocking the event loop."""
        return self._streams.astreamed(lambda listener: self._answered(question, options, listener))

    async def aask(self, question: str = "", **options: Unpack[AskOptions]) -> Answer:
        """Answer a question without blocking the event loop. Cancelling it stops the work like closing a stream."""
        return await answer_among(self.astream(question, **options))

    def _answered(self, question: str, options: AskOptions, listener: Listener, once: Repeatable = ONCE) -> Answer:
        arguments.check_ask_options(options)
        services = self._services(options.get("corpus"), options.get("owner"))
        return answer_question(replace(services, listener=listener, repeatable=once), question, options)

    def plan_question(
        self, *, system: str | None = None, recipe: Recipe = None, settings: Mapping[str, object] | None = None
    ) -> reports.QuestionPlan:
        """Estimate what one question takes at most, without a model call and without reading the database.

        Raises `UsageError` for an unknown system, recipe or option.
        """
        return answering.estimate(self._services(None), {"system": system, "recipe": recipe, "settings": settings})

    aplan_question = async_variant(plan_question)

    # Memories ---------------------------------------------------------------------------------------------------

    def memories(self, *, corpus: str | None = None, owner: str | None = None) -> list[MemorySummary]:
        """Return the corpus's memories, newest first. With an `owner`, only those that the owner sees."""
        return inspection.memories(self._services(corpus, owner))

    def memory(self, uid: str, *, step: int | None = None, owner: str | None = None) -> Memory:
        """Return a memory as it stood at the end of `step`, by default the last.

        With an `owner`, another's memory is not found.
        """
        return load_memory(self._services(None, owner), uid, step=step)

    def passages(
        self, uid: str, *, step: int | None = None, limit: int | None = None, owner: str | None = None
    ) -> tuple[Passage, ...]:
        """Return the chunks that support memory `uid` at the end of `step` (default: the last), the best first.

        These are the chunks that its recipe draws an answer from: at most `limit`, by default as many as the recipe
        says. If a recipe that answers from `read` chunks has read fewer than `limit`, further chunks of the same
        sub-queries follow, without score and step. With an `owner`, another's memory is not found.
        """
        return inspection.passages(self._services(None, owner), uid, step=step, limit=limit)

    def lineage(self, point: str, *, owner: str | None = None) -> Lineage:
        """Return a memory point (uid) with the points that were revised or merged into it, recursively.

        With an `owner`, points of another's memory are not found.
        """
        return load_lineage(self._services(None, owner), point)

    def replay(self, uid: str, *, owner: str | None = None) -> str:
        """Return a self-contained HTML page that replays a memory step by step without a network.

        With an `owner`, another's memory is not found. Raises `UsageError`, with the remedy, if this build lacks the
        page's graph library.
        """
        return inspection.replay(self._services(None, owner), uid)

    def browse(
        self,
        uid: str | None = None,
        *,
        corpus: str | None = None,
        browser: str | None = None,
        port: int = 0,
        owner: str | None = None,
    ) -> AbstractContextManager[View]:
        """Return a context with the link that opens a memory in Neo4j Browser with a guide and a style.

        The default memory is the corpus's newest that the `owner` sees. This machine serves guide and style, at `port`
        or a free port, until the block ends. `browser` is the address of a Browser other than the server's own.
        Entities get styling labels after their types. Without write privileges, they all stay in one colour.
        """
        return inspection.browse(self._services(corpus, owner), uid, browser=browser, port=port)

    def prune(
        self,
        *,
        older_than: timedelta,
        keep_answers: bool = False,
        dry_run: bool = False,
        corpus: str | None = None,
        owner: str | None = None,
    ) -> reports.Pruned:
        """Delete memories inactive for `older_than` and return their uids. A dry run writes nothing.

        `keep_answers` keeps each memory with its answers and citations only. Such a memory can't be continued. With an
        `owner`, only that owner's own memories are deleted, not everybody's.
        """
        return prune(self._services(corpus, owner), older_than=older_than, keep=keep_answers, dry_run=dry_run)

    amemories = async_variant(memories)
    amemory = async_variant(memory)
    apassages = async_variant(passages)
    alineage = async_variant(lineage)
    areplay = async_variant(replay)
    aprune = async_variant(prune)

    # Systems ----------------------------------------------------------------------------------------------------

    def systems(self) -> tuple[SystemInfo, ...]:
        """Return the systems that can answer, by name."""
        return registry.systems()

    def system(self, name: str) -> SystemInfo:
        """Return what is known of a system by its name, such as `memory.system`, even if it is not installed."""
        return registry.describe(name)

    def build(
        self, system: str, *, report: Report = lambda _: None, **options: Unpack[BuildOptions]
    ) -> reports.BuildReport:
        """Make what a system needs of the corpus before it can answer, and return what was done.

        Only units whose texts, settings, prompts or models have changed are made. Raises `BudgetError` after
        `max_calls` requests or `max_tokens` tokens: finished units are saved, and the same call resumes. Raises
        `ConflictError` while another process makes the same build.
        """
        with limited(max_calls=options.get("max_calls"), max_tokens=options.get("max_tokens")):
            return building.make_build(self._services(options.get("corpus")), system, options, report=report)

    def plan_build(self, system: str, **options: Unpack[BuildOptions]) -> reports.BuildPlan:
        """Estimate the work and the maximum cost of `build`, without writing."""
        return building.estimate_build(self._services(options.get("corpus")), system, options)

    def builds(self, *, corpus: str | None = None) -> tuple[reports.BuildStatus, ...]:
        """Return the builds of the corpus by system, those of systems that are not installed as well."""
        return building.build_states(self._services(corpus))

    def verbs(self, system: str, *, note: Note = warned) -> SystemVerbs:
        """Return the verbs of a system as methods, which `hg.<system>` does too unless `hg` has that name itself.

        `note` receives that a verb reads a stale build, which is a warning by default.
        """
        return SystemVerbs(system, self._services, note=note)

    abuild = async_variant(build)
    aplan_build = async_variant(plan_build)
    abuilds = async_variant(builds)

    # Corpora ----------------------------------------------------------------------------------------------------

    @property
    def server(self) -> tuple[str, str, str]:
        """The server's address, version and edition."""
        return self._database.address.uri, self._database.version, self._database.edition

    @property
    def extracts_with_language_model(self) -> bool:
        """Whether indexing calls a language model, which costs calls and tokens."""
        return is_language_model(self.model)

    def corpora(self) -> list[dict[str, str]]:
        """Return every corpus: name, status, embedding model, dimensions, time of creation."""
        return all_corpora(self._database)

    def status(self, *, corpus: str | None = None) -> reports.CorpusStatus:
        """Return the counts of all contents of the corpus, with its builds."""
        return inspection.status(self._services(corpus))

    def documents(self, *, document: Named | None = None, corpus: str | None = None) -> list[dict[str, str | int]]:
        """Return the corpus's documents by title: uid, id, title, source, status, conversation (its id), chunks.

        `document` names the ones that are wanted, as in `delete`.
        """
        return inspection.documents(self._services(corpus), document)

    def chunks(self, *, corpus: str | None = None) -> tuple[Chunk, ...]:
        """Return all chunks of the corpus by document title, document and position."""
        return inspection.chunks(self._services(corpus))

    def chunks_beneath(self, rows: Sequence[str], *, corpus: str | None = None) -> Mapping[str, tuple[str, ...]]:
        """Return by built row (uid) the uids of the chunks that it rests on at any distance.

        Rows that a later build has deleted are missing.
        """
        return inspection.chunks_under(self._services(corpus), rows)

    def export(
        self,
        file: str | Path,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
        **options: Unpack[ExportOptions],
    ) -> reports.ArchiveReport:
        """Write the corpus to an archive file that any other Neo4j can import. Return what was written.

        `memories=False` and `embeddings=False` leave these out, `force=True` overwrites a file. Concurrent writes may
        be missing, which `notes` report.
        """
        return upkeep.export(self._services(corpus), Path(file), options, report=report)

    def import_archive(self, file: str | Path, *, report: Report = lambda _: None) -> reports.ArchiveReport:
        """Import an archive into the corpus that it names. Return what it holds.

        `written` is False if the corpus already held it. The whole file is checked before the first write. The client's
        embedder computes missing vectors.
        """
        return upkeep.import_archive(self._services(None), Path(file), report=report)

    def reembed(
        self, embedder: Embedder | str | Any = None, *, corpus: str | None = None, report: Report = lambda _: None
    ) -> int:
        """Recompute all vectors of the corpus with an embedder, and return their number.

        `embedder` is a name or an object, by default the client's embedder. If interrupted, the same call resumes. The
        client keeps its embedder: open another client to ask with the new one.
        """
        return upkeep.reembed(self._services(corpus), embedder, report=report)

    def check(self, *, corpus: str | None = None) -> reports.Checkup:
        """Check the corpus's integrity and return violations and notes.

        It reads the whole corpus and writes nothing. Installed systems check what they have built.
        """
        return checking.check(self._services(corpus), own=building.own_invariants())

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

        A document is named by its uid, its id or its path. The path of a file with several documents names all of them:
        `documents(document=…)` tells which. One name that is unknown raises `UsageError`, and nothing is deleted. With
        an `owner`, the memory has to be the owner's own.
        """
        if owner is not None and memory is None:
            raise UsageError("owner= needs memory=: pass the memory to delete, or omit owner=")
        services = self._services(corpus, owner)
        return upkeep.delete(services, document=document, memory=memory, system=system, corpus=corpus)

    acorpora = async_variant(corpora)
    astatus = async_variant(status)
    adocuments = async_variant(documents)
    achunks = async_variant(chunks)
    achunks_beneath = async_variant(chunks_beneath)
    aexport = async_variant(export)
    aimport_archive = async_variant(import_archive)
    areembed = async_variant(reembed)
    acheck = async_variant(check)
    adelete = async_variant(delete)

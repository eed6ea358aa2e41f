"""Client methods that read corpora, documents and memories."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from hgmem.client.async_variants import async_variant
from hgmem.corpus.deletion import Named, named_documents
from hgmem.errors import ForbiddenError, UsageError
from hgmem.graph.corpus import corpora, count_corpus
from hgmem.graph.database import Database
from hgmem.graph.documents import list_documents
from hgmem.memory.browser.view import View as View
from hgmem.memory.browser.view import add_styling_labels, save, viewing
from hgmem.memory.replay.page import page
from hgmem.memory.replay.scene import scene
from hgmem.memory.stored_memories import load_history, load_lineage, load_memory, summaries
from hgmem.services import Services, known_corpus
from hgmem.settings import Settings
from hgmem.systems.building import build_states
from hgmem.systems.registry import describe, drawing
from hgmem.systems.registry import systems as systems
from hgmem.values.records import Lineage, Memory, MemorySummary
from hgmem.values.reports import CorpusStatus
from hgmem.values.systems import SystemInfo


class Inspecting(ABC):
    """Read methods. They write nothing except the styling labels of `browse`."""

    settings: Settings
    _database: Database

    @abstractmethod
    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        """Return the services for work on a corpus."""

    @property
    def server(self) -> tuple[str, str, str]:
        """The server's address, version and edition."""
        return self._database.address.uri, self._database.version, self._database.edition

    def systems(self) -> tuple[SystemInfo, ...]:
        """Return the systems that can answer, by name."""
        return systems()

    def system(self, name: str) -> SystemInfo:
        """Return what is known of a system by its name, such as `memory.system`, even if it is not installed."""
        return describe(name)

    def memories(self, *, corpus: str | None = None, owner: str | None = None) -> list[MemorySummary]:
        """Return the corpus's memories, newest first. With an `owner`, only those that the owner sees."""
        services = self._services(corpus, owner)
        known_corpus(services)
        timeout = self.settings.claim_timeout
        return summaries(self._database, corpus=services.corpus, claim_timeout=timeout, owner=services.owner)

    def memory(self, uid: str, *, step: int | None = None, owner: str | None = None) -> Memory:
        """Return a memory as it stood at the end of `step`, by default the last.

        With an `owner`, another's memory is not found.
        """
        owner, timeout = self._services(None, owner).owner, self.settings.claim_timeout
        return load_memory(self._database, uid, step=step, claim_timeout=timeout, owner=owner)

    def replay(self, uid: str, *, owner: str | None = None) -> str:
        """Return a self-contained HTML page that replays a memory step by step without a network.

        With an `owner`, another's memory is not found. Raises `UsageError`, with the remedy, if this build lacks the
        page's graph library.
        """
        owner, timeout = self._services(None, owner).owner, self.settings.claim_timeout
        return page(scene(load_history(self._database, uid, claim_timeout=timeout, owner=owner)))

    @contextmanager
    def browse(
        self,
        uid: str | None = None,
        *,
        corpus: str | None = None,
        browser: str | None = None,
        port: int = 0,
        owner: str | None = None,
    ) -> Iterator[View]:
        """Yield the link that opens a memory in Neo4j Browser with a guide and a style.

        The default memory is the corpus's newest that the `owner` sees. This machine serves guide and style, at `port`
        or a free port, until the block ends. `browser` is the address of a Browser other than the server's own.
        Entities get styling labels after their types. Without write privileges, they all stay in one colour.
        """
        memory = self.memory(uid or self._newest(corpus, owner), owner=owner)
        with suppress(ForbiddenError):
            add_styling_labels(self._database, corpus=memory.corpus)
        with viewing(self._database, memory, drawing=drawing(memory.system), browser=browser, port=port) as view:
            yield view

    def _newest(self, corpus: str | None, owner: str | None) -> str:
        if stored := self.memories(corpus=corpus, owner=owner):
            return stored[0].uid
        name = self._services(corpus).corpus
        raise UsageError(f"corpus {name!r} has no memories: ask a question first (`hgmem ask`)")

    def lineage(self, point: str, *, owner: str | None = None) -> Lineage:
        """Return a memory point (uid) with the points that were revised or merged into it, recursively.

        With an `owner`, points of another's memory are not found.
        """
        return load_lineage(self._database, point, owner=self._services(None, owner).owner)

    def status(self, *, corpus: str | None = None) -> CorpusStatus:
        """Return the counts of all contents of the corpus, with its builds."""
        services = self._services(corpus)
        counts = count_corpus(self._database, corpus=known_corpus(services))
        return replace(counts, builds=build_states(services))

    def documents(self, *, document: Named | None = None, corpus: str | None = None) -> list[dict[str, str | int]]:
        """Return the corpus's documents by title: uid, title, source, status, conversation (its id), chunks.

        `document` names the ones that are wanted, as in `delete`.
        """
        services = self._services(corpus)
        corpus = known_corpus(services).corpus
        wanted = None if document is None else {state.uid for state in named_documents(services, document)}
        rows = list_documents(self._database, corpus=corpus)
        return rows if wanted is None else [row for row in rows if row["uid"] in wanted]

    def corpora(self) -> list[dict[str, str]]:
        """Return every corpus: name, status, embedding model, dimensions, time of creation."""
        return corpora(self._database)

    amemories = async_variant(memories)
    amemory = async_variant(memory)
    areplay = async_variant(replay)
    alineage = async_variant(lineage)
    astatus = async_variant(status)
    adocuments = async_variant(documents)
    acorpora = async_variant(corpora)


def save_browser_files(folder: Path) -> list[Path]:
    """Copy the style and the favourites of Neo4j Browser into a folder, created if missing. Return the files."""
    return save(folder, drawing())

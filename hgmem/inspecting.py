"""What lies in Neo4j, as methods of the client: corpora, their documents, and the memories that questions left."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from hgmem.browser.painting import paint
from hgmem.browser.view import View, viewing
from hgmem.errors import ForbiddenError, UsageError
from hgmem.graph.corpus import corpora, count_corpus
from hgmem.graph.database import Database
from hgmem.graph.documents import list_documents
from hgmem.memories import load_history, load_lineage, load_memory, summaries
from hgmem.model import CorpusStatus, Lineage, Memory, MemorySummary
from hgmem.replay.page import page
from hgmem.replay.scene import scene
from hgmem.services import Services, known_corpus
from hgmem.settings import Settings
from hgmem.twins import twin


class Inspecting(ABC):
    """Reading back; nothing here writes but the labels of a picture."""

    settings: Settings
    _database: Database

    @abstractmethod
    def _services(self, corpus: str | None) -> Services:
        """Return what work on a corpus needs."""

    @property
    def server(self) -> tuple[str, str, str]:
        """The server's address, version and edition."""
        return self._database.address.uri, self._database.version, self._database.edition

    def memories(self, *, corpus: str | None = None) -> list[MemorySummary]:
        """Return the corpus's memories, newest first."""
        services = self._services(corpus)
        known_corpus(services)
        return summaries(self._database, corpus=services.corpus, claim_timeout=self.settings.claim_timeout)

    def memory(self, uid: str, *, step: int | None = None) -> Memory:
        """Return a memory as it stood at the end of `step`, by default the last."""
        return load_memory(self._database, uid, step=step, claim_timeout=self.settings.claim_timeout)

    def replay(self, uid: str) -> str:
        """Return a page (HTML) that shows a memory from its first step to its last; it needs no network.

        Raises `UsageError` where the graph library of the page was not built in; it says how to get it.
        """
        history = load_history(self._database, uid, claim_timeout=self.settings.claim_timeout)
        return page(scene(history))

    @contextmanager
    def browse(
        self, uid: str | None = None, *, corpus: str | None = None, browser: str | None = None, port: int = 0
    ) -> Iterator[View]:
        """Yield the link that opens a memory, by default the corpus's newest, in Neo4j Browser with guide and style.

        Both are served on this machine, at `port` or a free one, until the block ends. `browser` is the address of a
        Browser that is not the server's own. Entities get second labels after their types, for the style; where that
        may not be written, they stay in one colour.
        """
        memory = self.memory(uid or self._newest(corpus))
        with suppress(ForbiddenError):
            paint(self._database, corpus=memory.corpus)
        with viewing(self._database, memory, browser=browser, port=port) as view:
            yield view

    def _newest(self, corpus: str | None) -> str:
        if stored := self.memories(corpus=corpus):
            return stored[0].uid
        name = self._services(corpus).corpus
        raise UsageError(f"corpus {name!r} has no memory yet: ask it a question first (`hgmem ask`)")

    def lineage(self, point: str) -> Lineage:
        """Return a memory point (uid) and, parts within parts, the points that became it."""
        return load_lineage(self._database, point)

    def status(self, *, corpus: str | None = None) -> CorpusStatus:
        """Return how much of everything the corpus holds."""
        return count_corpus(self._database, corpus=known_corpus(self._services(corpus)))

    def documents(self, *, corpus: str | None = None) -> list[dict[str, str | int]]:
        """Return the corpus's documents by title: uid, title, source, status, number of chunks."""
        return list_documents(self._database, corpus=known_corpus(self._services(corpus)).corpus)

    def corpora(self) -> list[dict[str, str]]:
        """Return every corpus: name, status, embedding model, dimensions, time of creation."""
        return corpora(self._database)

    amemories = twin(memories)
    amemory = twin(memory)
    areplay = twin(replay)
    alineage = twin(lineage)
    astatus = twin(status)
    adocuments = twin(documents)
    acorpora = twin(corpora)

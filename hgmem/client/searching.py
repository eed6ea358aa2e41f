"""Search and look through a corpus as methods of the client: without a model call, a memory or an answer."""

from typing import Any

from hgmem.client import holdings, inspection
from hgmem.client.streaming import async_variant
from hgmem.services import Services
from hgmem.values.graph_elements import Chunk
from hgmem.values.holdings import BuiltRow, ShownThing, Thing
from hgmem.values.inputs import Filters
from hgmem.values.records import Passage


class Searching:
    """The methods that search the texts of a corpus, and that read what it holds part by part."""

    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        raise NotImplementedError

    def search(
        self, text: str, *, limit: int = 5, filters: Filters | None = None, corpus: str | None = None
    ) -> tuple[Passage, ...]:
        """Return the chunks that words and meaning rank best together, the best first, and write nothing.

        `filters` select documents as in `AskOptions`. Raises `UsageError` if no document matches.
        """
        return inspection.search(self._services(corpus), text, limit=limit, filters=filters)

    def things(self, words: str = "", *, skip: int = 0, limit: int = 50, corpus: str | None = None) -> list[Thing]:
        """Return entities whose names contain this text, one of each class, those that most chunks mention first."""
        return holdings.things(self._services(corpus), words, skip=skip, limit=limit)

    def thing(self, entity: str, *, corpus: str | None = None) -> ShownThing:
        """Return what an entity (uid) names: its names, passages that mention it, and what ties it to others."""
        return holdings.thing(self._services(corpus), entity)

    def text(
        self, document: str, *, chunk: str | None = None, skip: int = 0, limit: int = 20, corpus: str | None = None
    ) -> list[Chunk]:
        """Return chunks of a document (uid or id) in order, from shortly before `chunk` (uid) on if that is given."""
        return holdings.text_of(self._services(corpus), document, chunk=chunk, skip=skip, limit=limit)

    def built(
        self, system: str, *, kind: str = "", skip: int = 0, limit: int = 50, corpus: str | None = None
    ) -> list[BuiltRow]:
        """Return rows of a system's build: those of a kind, or those on which no other row rests."""
        return holdings.built(self._services(corpus), system, kind=kind, skip=skip, limit=limit)

    def built_parts(self, row: str, *, skip: int = 0, limit: int = 50, corpus: str | None = None) -> list[BuiltRow]:
        """Return what a built row (uid) rests on directly: rows of builds, then chunks."""
        return holdings.parts(self._services(corpus), row, skip=skip, limit=limit)

    def scene(self, uid: str, *, owner: str | None = None) -> dict[str, Any]:
        """Return what a page draws of a memory: all its points, steps and answers, without the texts of chunks.

        With an `owner`, another's memory is not found.
        """
        return holdings.scene_of(self._services(None, owner), uid)

    asearch = async_variant(search)
    athings = async_variant(things)
    athing = async_variant(thing)
    atext = async_variant(text)
    abuilt = async_variant(built)
    abuilt_parts = async_variant(built_parts)
    ascene = async_variant(scene)

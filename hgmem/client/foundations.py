"""Client methods for measurements: a corpus's chunks, what built rows rest on, and what a question will take."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from hgmem.client.async_variants import async_variant
from hgmem.graph.builds import chunks_to_build
from hgmem.graph.built import chunks_beneath
from hgmem.services import Services, known_corpus
from hgmem.systems.registry import Asked, Recipe, estimate
from hgmem.values.graph_elements import Chunk
from hgmem.values.reports import QuestionPlan


class Foundations(ABC):
    """Methods that read what answers are founded on."""

    @abstractmethod
    def _services(self, corpus: str | None) -> Services:
        """Return the services for work on a corpus."""

    def chunks(self, *, corpus: str | None = None) -> tuple[Chunk, ...]:
        """Return all chunks of the corpus by document title, document and position."""
        services = self._services(corpus)
        return tuple(chunks_to_build(services.database, corpus=known_corpus(services).corpus))

    def chunks_beneath(self, rows: Sequence[str], *, corpus: str | None = None) -> Mapping[str, tuple[str, ...]]:
        """Return by built row (uid) the uids of the chunks that it rests on at any distance.

        Rows that a later build has deleted are missing.
        """
        services = self._services(corpus)
        found = chunks_beneath(services.database, corpus=services.corpus, uids=list(rows)) if rows else {}
        return {row: tuple(chunks) for row, chunks in found.items()}

    def plan_question(
        self, *, system: str | None = None, recipe: Recipe = None, settings: Mapping[str, object] | None = None
    ) -> QuestionPlan:
        """Estimate what one question takes at most, without a model call and without reading the database.

        Raises `UsageError` for an unknown system, recipe or option.
        """
        return estimate(self._services(None), Asked(system=system, recipe=recipe, changes=settings or {}))

    achunks = async_variant(chunks)
    achunks_beneath = async_variant(chunks_beneath)
    aplan_question = async_variant(plan_question)

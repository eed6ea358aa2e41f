"""Search passages as a method of the client: without a model call, a memory or an answer."""

from hgmem.client import inspection
from hgmem.client.streaming import async_variant
from hgmem.services import Services
from hgmem.values.inputs import Filters
from hgmem.values.records import Passage


class Searching:
    """The methods that search the texts of a corpus."""

    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        raise NotImplementedError

    def search(
        self, text: str, *, limit: int = 5, filters: Filters | None = None, corpus: str | None = None
    ) -> tuple[Passage, ...]:
        """Return the chunks that words and meaning rank best together, the best first, and write nothing.

        `filters` select documents as in `AskOptions`. Raises `UsageError` if no document matches.
        """
        return inspection.search(self._services(corpus), text, limit=limit, filters=filters)

    asearch = async_variant(search)

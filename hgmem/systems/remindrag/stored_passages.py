"""The passages behind an answer, ranked, from a stored walk."""

from collections.abc import Mapping, Sequence
from typing import Any

from hgmem.graph.full_text import Ranking
from hgmem.retrieval.step_evidence import hybrid_chunks
from hgmem.services import Services
from hgmem.systems.answering import recorded_chunks, scope_of
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.spec import loaded
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Memory

DEPTH = 100  # ranks of the question's own search


def passages(services: Services, memory: Memory, *, settings: Mapping[str, Any], limit: int | None) -> Sequence[Chunk]:
    """Return the chunks that the walk read, the best first: as words and vectors rank them for the question.

    A walk reads in an order of its own, and what it read first need not be best. Those that this search does not find
    follow in the order of reading.
    """
    read = {chunk.uid: chunk for chunk in recorded_chunks(services, memory, limit=None)}
    question = memory.steps[-1].question
    asked = (question, services.embed([question], kind="query")[0])
    ranking = Ranking(k=DEPTH, titles=loaded(ReMindRAGConfig, settings).titles)
    found = hybrid_chunks(services.database, asked, scope=scope_of(services, memory), ranking=ranking)
    order = dict.fromkeys([*(chunk.uid for chunk, _ in found if chunk.uid in read), *read])
    return [read[uid] for uid in order][:limit]

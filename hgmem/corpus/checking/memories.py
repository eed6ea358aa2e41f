"""Check the points, lineage and steps of memories, and the index of points."""

import json
from collections.abc import Iterator, Sequence

from hgmem.corpus.checking.contents import first_axis
from hgmem.corpus.checking.tally import Tally
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.invariants import MemoryRow, broken_memories, indexed_points, memory_page, stored_points
from hgmem.services import Services
from hgmem.values.records import PRUNING


def check_memories(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally violations in memories, page by page."""
    timeout = services.settings.claim_timeout
    for page in _pages(services):
        tally.add("stale-claim", [one.uid for one in page if one.held and (one.silent or 0) > timeout])
        tally.add("unfinished-prune", [one.uid for one in page if one.status == PRUNING])
        whole = [one for one in page if one.status != PRUNING]
        uids, adding = [one.uid for one in whole], [one.uid for one in whole if _adds(one)]
        tally.take(broken_memories(services.database, corpus=services.corpus, memories=uids, adding=adding))
        tally.add("point-not-in-index", _unindexed(services, row, uids))


def _pages(services: Services) -> Iterator[list[MemoryRow]]:
    after = ""
    while page := memory_page(services.database, corpus=services.corpus, after=after):
        yield page
        after = page[-1].uid


def _adds(memory: MemoryRow) -> bool:
    """Return whether merging keeps the parts, which is fixed for the memory's lifetime."""
    return bool(json.loads(memory.settings or "{}").get("merge") == "add")


def _unindexed(services: Services, row: CorpusRow, memories: Sequence[str]) -> list[str]:
    database, corpus = services.database, services.corpus
    wanted = stored_points(database, corpus=corpus, memories=memories, dimensions=row.dimensions)
    if not wanted:
        return []
    most = 2 * len(wanted)  # leaves room for points that are written meanwhile
    found = indexed_points(database, corpus=corpus, memories=memories, query=first_axis(row), most=most)
    return [uid for uid in wanted if uid not in found]

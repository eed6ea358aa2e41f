"""Memories: points, lineage and steps as their own settings have them, and points in their index."""

import json
from collections.abc import Iterator, Sequence

from hgmem.checking.contents import first_axis
from hgmem.checking.tally import Tally
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.invariants import MemoryRow, broken_memories, indexed_points, memory_page, stored_points
from hgmem.model import PRUNING
from hgmem.services import Services


def check_memories(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally what is wrong with memories, some at a time."""
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
    """Whether a merged point stands beside its parts; that never changes in a memory's life."""
    return bool(json.loads(memory.settings or "{}").get("merge") == "add")


def _unindexed(services: Services, row: CorpusRow, memories: Sequence[str]) -> list[str]:
    database, corpus = services.database, services.corpus
    wanted = stored_points(database, corpus=corpus, memories=memories, dimensions=row.dimensions)
    if not wanted:
        return []
    most = 2 * len(wanted)  # all of them, and what may be there of memories that are written meanwhile
    found = indexed_points(database, corpus=corpus, memories=memories, query=first_axis(row), most=most)
    return [uid for uid in wanted if uid not in found]

"""Iterate over a corpus by uid: long pages of uids, split into batches."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from hgmem.graph.exporting import chunk_uids, entity_uids, relation_uids
from hgmem.graph.values import Runner

PAGE = 20_000  # uids per page: each page scans all uids of its kind

# `listed(database, corpus=…, after=…, most=…)` returns the next uids.
Listed: TypeAlias = Callable[..., list[str]]

CHUNKS: Listed = chunk_uids
ENTITIES: Listed = partial(entity_uids, shared=True)
RELATIONS: Listed = partial(relation_uids, shared=True)
PROVISIONALS: Listed = partial(entity_uids, shared=False)
OWN_RELATIONS: Listed = partial(relation_uids, shared=False)


def pages(database: Runner, listed: Listed, *, corpus: str, size: int) -> Iterator[list[str]]:
    """Yield all uids in order, in lists of at most `size`."""
    after = ""
    while uids := listed(database, corpus=corpus, after=after, most=PAGE):
        for at in range(0, len(uids), size):
            yield uids[at : at + size]
        after = uids[-1]

"""Going through a corpus by uid: long pages of uids, then a batch at a time of what they name."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

from hgmem.graph.exporting import chunk_uids, entity_uids, relation_uids
from hgmem.graph.values import Runner

PAGE = 20_000  # uids read at once: a page takes one look at all uids of its kind

# `listed(database, corpus=…, after=…, most=…)` gives the next uids.
Listed: TypeAlias = Callable[..., list[str]]

CHUNKS: Listed = chunk_uids
ENTITIES: Listed = partial(entity_uids, shared=True)
RELATIONS: Listed = partial(relation_uids, shared=True)
PROVISIONALS: Listed = partial(entity_uids, shared=False)
OWN_RELATIONS: Listed = partial(relation_uids, shared=False)


def pages(database: Runner, listed: Listed, *, corpus: str, size: int) -> Iterator[list[str]]:
    """Yield the uids that there are, in order, in lists of at most `size`."""
    after = ""
    while uids := listed(database, corpus=corpus, after=after, most=PAGE):
        for at in range(0, len(uids), size):
            yield uids[at : at + size]
        after = uids[-1]

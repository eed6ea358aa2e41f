"""Take many things in parts: the uids of a corpus page by page, and anything in batches."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias, TypeVar

from hgmem.graph.values import Runner, uids_of

PAGE = 20_000  # uids per page: each page scans all uids of its kind
BATCH = 500  # things per batch, unless told otherwise
T = TypeVar("T")

# `listed(database, corpus=…, after=…, most=…)` returns the next uids.
Listed: TypeAlias = Callable[..., list[str]]


def listing(name: str, **given: Any) -> Listed:
    """Return what lists uids by a statement of this name, which takes the corpus, `after`, `most` and what is given."""
    return lambda database, **page: uids_of(database, name, **given, **page)


def built_rows(*, learnt: bool) -> Listed:
    """Return what lists built rows, on request without what was learnt from questions."""
    return listing("built_uids", learnt=learnt)


DOCUMENTS = listing("document_uids")
CHUNKS = listing("chunk_uids")
DECISIONS = listing("decision_uids")
UNITS = listing("unit_uids")
MEMORIES = listing("memory_uids")
POINTS = listing("point_uids")
EVERY_ENTITY = listing("entity_page")
EVERY_RELATION = listing("relation_page")
# Those of the corpus, then those of its memories.
ENTITIES, PROVISIONALS = (listing("entity_uids", shared=shared) for shared in (True, False))
RELATIONS, OWN_RELATIONS = (listing("relation_uids", shared=shared) for shared in (True, False))
BUILT = built_rows(learnt=True)


def pages(database: Runner, listed: Listed, *, corpus: str, size: int) -> Iterator[list[str]]:
    """Yield all uids in order, in lists of at most `size`."""
    after = ""
    while uids := listed(database, corpus=corpus, after=after, most=PAGE):
        yield from batches(uids, size=size)
        after = uids[-1]


def filled(items: Iterable[T], *, size: int, most: int, weight: Callable[[T], int]) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`, which weigh at most `most` together, unless one alone weighs more."""
    batch: list[T] = []
    held = 0
    for item in items:
        more = weight(item)
        if batch and held + more > most:
            yield batch
            batch, held = [], 0
        batch.append(item)
        held += more
        if len(batch) == size or held >= most:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def batches(items: Iterable[T], *, size: int = BATCH) -> Iterator[list[T]]:
    """Yield the items in lists of at most `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch

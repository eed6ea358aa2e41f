"""Batches are bounded by their number of items and by their weight."""

from collections.abc import Iterator
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from hgmem.corpus.paging import filled


@given(items=st.lists(st.integers(0, 30)), size=st.integers(1, 6), most=st.integers(1, 40))
def test_a_batch_ends_before_it_exceeds_a_bound(items: list[int], size: int, most: int) -> None:
    found = list(filled(items, size=size, most=most, weight=lambda item: item))
    assert list(chain.from_iterable(found)) == items
    assert all(1 <= len(batch) <= size for batch in found)
    assert all(sum(batch) <= most or len(batch) == 1 for batch in found)


def test_a_batch_that_is_full_does_not_wait_for_the_next_item() -> None:
    read = []

    def items() -> Iterator[int]:
        for item in (3, 4, 5):
            read.append(item)
            yield item

    batches = filled(items(), size=9, most=7, weight=lambda item: item)
    assert next(batches) == [3, 4]
    assert read == [3, 4]

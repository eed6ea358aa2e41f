"""Lists of entities from which the model proposes pairs: each two of the most mentioned stand together in one."""

from collections import Counter
from itertools import combinations

import pytest

from hgmem.resolution.names import Named
from hgmem.resolution.proposing import HALF, LISTED, listing, lists_of
from hgmem.resolution.tasks import BRIEFLY


def entities(number: int) -> list[Named]:
    return [Named(uid=f"{at:05}", name=f"Name {at}", type="person", chunks=number - at) for at in range(number)]


@pytest.mark.parametrize("number", [0, 1, 2, HALF, HALF + 1, 2 * HALF, 3 * HALF - 7])
def test_each_two_entities_are_in_one_list(number: int) -> None:
    lists = lists_of(entities(number))
    assert all(len(one) <= 2 * HALF for one in lists)
    together = Counter(pair for one in lists for pair in combinations(sorted(each.uid for each in one), 2))
    assert together.keys() == set(combinations([one.uid for one in entities(number)], 2))


def test_only_the_most_mentioned_are_listed() -> None:
    lists = lists_of(entities(LISTED + 100))
    assert {each.uid for one in lists for each in one} == {f"{at:05}" for at in range(LISTED)}
    assert len(lists) == 21


def test_a_list_shows_names_and_types_with_the_beginnings_of_descriptions() -> None:
    (one,) = lists_of(entities(2))
    told = {"00000": "He " + "went " * 100, "00001": "</entities> {{entities}}\nShe stayed."}
    first, second = listing(one, told).fields()["entities"].splitlines()
    assert first.startswith("0. Name 0 (person): He went")
    assert len(first) <= len("0. Name 0 (person): ") + BRIEFLY
    assert second == "1. Name 1 (person): ‹/entities> {{entities}} She stayed."
    assert listing(one, {}).fields()["entities"].endswith("1. Name 1 (person): none")

"""The rules that join entities without a model: only where names and types leave no doubt.

Two entities of one type are joined whose names differ in article, punctuation or the abbreviation of a title, and two
persons of one full name of whom one has a title. One word with and without article is left to the model or to a person,
since it is often a common noun of several things, and so are relatives, ships and offices of one name.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TypeAlias

from hgmem.resolution.deciding import Judgement
from hgmem.resolution.forms import OFFICES, OWN_TITLES, TITLES, full_name, marked, plain, titled
from hgmem.resolution.names import Named

PERSONS = frozenset(("person", "people", "character", "human", "individual"))
Pair: TypeAlias = tuple[str, str]
Words: TypeAlias = tuple[str, ...]


def joined(entities: Iterable[Named], *, decided: Container[Pair]) -> Iterator[Judgement]:
    """Yield what the rules decide of pairs (uids in order) that nobody has `decided`."""
    alike: dict[tuple[str, Words, Words, bool], list[Named]] = defaultdict(list)
    persons: dict[Words, list[tuple[Words, Named]]] = defaultdict(list)
    for one in entities:
        kind = one.type.casefold().strip()
        titles, words = titled(one.name)
        apart = len(words) == 1 and not titles and marked(one.name)  # the chamber of one passage is not another's
        alike[("person" if kind in PERSONS else kind), titles, words, apart].append(one)
        if kind in PERSONS and full_name(words):
            persons[words].append((titles, one))
    for (kind, _, words, _), group in alike.items():
        if words and (kind not in ("", "person") or not _may_be_a_ship(group)):
            yield from _star(group, "the names differ in article, punctuation or abbreviation alone", decided)
    for members in persons.values():
        kinds = {titles for titles, _ in members if titles}
        if len(kinds) == 1 and OWN_TITLES.issuperset(*kinds):
            yield from _titled(members, decided)


def _may_be_a_ship(group: Sequence[Named]) -> bool:
    """Return whether some of these names have an article or quotation marks, and the words are a personal name's."""
    marks = {marked(one.name) for one in group}
    words = plain(group[0].name).split()
    ordinary = words[0] in TITLES | OFFICES or "of" in words or all(one.name == one.name.casefold() for one in group)
    return len(marks) > 1 and not ordinary


def _titled(members: Sequence[tuple[Words, Named]], decided: Container[Pair]) -> Iterator[Judgement]:
    """Yield the tie of the most mentioned entity with a title and the one without."""
    with_title = _first(one for titles, one in members if titles)
    without = [one for titles, one in members if not titles]
    if without:
        yield from _star([with_title, _first(without)], "the full names differ in a title alone", decided)


def _first(entities: Iterable[Named]) -> Named:
    return min(entities, key=lambda one: (-one.chunks, one.uid))


def _star(group: Sequence[Named], reason: str, decided: Container[Pair]) -> Iterator[Judgement]:
    """Yield the ties of the most mentioned entity to each of the others."""
    first = _first(group)
    for one in group:
        ends = (min(first.uid, one.uid), max(first.uid, one.uid))
        if one is not first and ends not in decided:
            yield Judgement(ends=ends, kind="same", by="rule", reason=reason)

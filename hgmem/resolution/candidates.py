"""Candidates: pairs of entities that may be one, by their names and surroundings, without comparing all pairs.

Descriptions are not compared: on labelled pairs, the cosine of name and description separated nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

import numpy as np
from rapidfuzz import fuzz

from hgmem.models.embedding import Vectors
from hgmem.resolution.forms import bare, opposed, plain, titled
from hgmem.resolution.names import Named

GROUP = 8  # entities of one form whose pairs are all candidates; of more, each is paired with the most mentioned
HOLDERS = 30  # entities with a word, above which the word alone makes no candidate
WINDOW = 4  # neighbours in the order of names, and of names read backwards, that are compared letter by letter
LETTERS = 86  # similarity of these, of 100
SHORTEST = 4  # letters of a name that is compared so
NEAR = 0.8  # cosine of two names
NEAREST = 3  # names near a name
SHARED, MOST_TIES = 3, 100  # neighbours that two entities share, of those that have no more ties than this
ALIKE = 0.5  # the part of their neighbours that two entities share
ACRONYM = range(2, 7)  # letters
APART = frozenset(("person", "organization", "place", "event"))  # types, of which an entity has one

Pair = tuple[str, str]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Two entities that may be one, the more likely the higher its score, and what speaks for it."""

    a: Named
    b: Named
    score: float
    why: str

    @property
    def ends(self) -> Pair:
        """The uids of both, in order."""
        return self.a.uid, self.b.uid


@dataclass(frozen=True, slots=True)
class _Form:
    entity: Named
    titles: tuple[str, ...]
    words: tuple[str, ...]


class Candidates:
    """The candidates found so far, each with its best score."""

    def __init__(self) -> None:
        self._found: dict[Pair, Candidate] = {}

    def add(self, first: Named, second: Named, *, score: float, why: str) -> None:
        """Add a pair unless its types or a better score speak against it."""
        a, b = (first, second) if first.uid < second.uid else (second, first)
        known = self._found.get((a.uid, b.uid))
        kinds = {a.type.casefold(), b.type.casefold()}
        if a.uid != b.uid and not (len(kinds) > 1 and kinds <= APART) and (known is None or known.score < score):
            self._found[(a.uid, b.uid)] = Candidate(a=a, b=b, score=score, why=why)

    def add_group(self, group: Iterable[Named], *, score: float, why: str) -> None:
        """Add the pairs of entities that may all be one. What spoke for a pair before counts in addition."""
        for one, other in _pairs(group, of=lambda entity: entity):
            known = self._found.get((min(one.uid, other.uid), max(one.uid, other.uid)))
            before = known.score if known and known.why != why else 0.0
            self.add(one, other, score=1 - (1 - score) * (1 - before), why=why)

    def doubt(self, lists: Sequence[Collection[str]], *, together: Sequence[Collection[str]], factor: float) -> None:
        """Lower the scores of pairs that a list (of uids) shows, unless they are together in a group (of uids)."""

        def within(pair: Pair, groups: Sequence[Collection[str]]) -> bool:
            return any(pair[0] in group and pair[1] in group for group in groups)

        for ends, one in self._found.items():
            if within(ends, lists) and not within(ends, together):
                self._found[ends] = replace(one, score=one.score * factor)

    def best(self) -> list[Candidate]:
        """Return all, the likeliest first."""
        return sorted(self._found.values(), key=lambda one: (-one.score, one.ends))


def by_names(entities: Iterable[Named]) -> Candidates:
    """Return the candidates that names alone give."""
    found = Candidates()
    forms = [_form(one) for one in entities]
    _same_words(forms, found)
    _fewer_words(forms, found)
    _initials(forms, found)
    _acronyms(forms, found)
    _similar_letters(forms, found)
    return found


def _form(entity: Named) -> _Form:
    titles, words = titled(entity.name)
    return _Form(entity, titles, bare(words))


def _same_words(forms: Sequence[_Form], found: Candidates) -> None:
    groups: dict[tuple[str, ...], list[_Form]] = defaultdict(list)
    for form in forms:
        if form.words:
            groups[form.words].append(form)
    for group in groups.values():
        for one, other in _pairs(group, of=lambda form: form.entity):
            if not opposed(one.titles, other.titles):
                two = bool(one.titles and other.titles and one.titles != other.titles)  # such as Captain and Mrs.
                found.add(one.entity, other.entity, score=0.6 if two else 0.95, why="the same words")


def _pairs(group: Iterable[T], *, of: Callable[[T], Named]) -> Iterator[tuple[T, T]]:
    ordered = sorted(group, key=lambda one: (-of(one).chunks, of(one).uid))
    yield from combinations(ordered[:GROUP], 2)
    yield from ((ordered[0], other) for other in ordered[GROUP:])


def _fewer_words(forms: Sequence[_Form], found: Candidates) -> None:
    """Add pairs of which one has some of the words of the other, such as a surname."""
    holders: dict[str, list[_Form]] = defaultdict(list)
    for form in forms:
        for word in set(form.words):
            holders[word].append(form)
    for form in forms:
        words = set(form.words)
        if form.entity.name == form.entity.name.casefold():  # an ordinary word, such as house
            continue
        rarest = min((holders[word] for word in words if len(word) > 1), key=len, default=())
        if len(rarest) > HOLDERS:
            continue
        for other in rarest:
            if words < set(other.words) and not opposed(form.titles, other.titles):
                part = len(words) / len(other.words)
                found.add(
                    form.entity, other.entity, score=0.5 + 0.4 * part - len(rarest) / 200, why="some of the words"
                )


def _initials(forms: Sequence[_Form], found: Candidates) -> None:
    """Add pairs of one last word of which one has initials for the other's words."""
    groups: dict[tuple[str, str], list[_Form]] = defaultdict(list)
    for form in forms:
        if len(form.words) > 1:
            groups[form.words[0][0], form.words[-1]].append(form)
    for group in groups.values():
        short = [form for form in group if len(form.words[0]) <= 2]
        for form in short if len(group) <= HOLDERS else ():
            for other in group:
                if len(other.words[0]) > 2 and not opposed(form.titles, other.titles):
                    found.add(form.entity, other.entity, score=0.85 - len(group) / 200, why="initials")


def _acronyms(forms: Sequence[_Form], found: Candidates) -> None:
    letters: dict[str, list[_Form]] = defaultdict(list)
    for form in forms:
        if len(form.words) in ACRONYM:
            letters["".join(word[0] for word in form.words)].append(form)
    for form in forms:
        name = plain(form.entity.name)
        if len(name) in ACRONYM and sum(map(str.isupper, form.entity.name)) == len(name):
            whole = letters.get(name, ())
            for other in whole if len(whole) <= HOLDERS else ():
                found.add(form.entity, other.entity, score=0.8 - len(whole) / 200, why="an acronym")


def _similar_letters(forms: Sequence[_Form], found: Candidates) -> None:
    """Add pairs whose letters are similar, among names that stand near each other in one of two orders."""
    named = {" ".join(form.words): form for form in forms if sum(map(len, form.words)) >= SHORTEST}
    for ordered in (sorted(named), sorted(named, key=lambda name: name[::-1])):
        for at, name in enumerate(ordered):
            for other in ordered[at + 1 : at + 1 + WINDOW]:
                alike = fuzz.ratio(name, other, score_cutoff=LETTERS)
                if alike and _digits(name) == _digits(other):
                    one, two = named[name], named[other]
                    if not opposed(one.titles, two.titles):
                        found.add(one.entity, two.entity, score=alike / 100 - 0.1, why="similar letters")


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))


def add_by_vectors(found: Candidates, entities: Sequence[Named], vectors: Vectors) -> None:
    """Add pairs whose names have near vectors (unit vectors, float32 of shape (entities, dimensions))."""
    near = vectors @ vectors.T
    np.fill_diagonal(near, -1)
    best = np.argsort(-near, axis=1)[:, :NEAREST]
    for at, others in enumerate(best):
        for other in others:
            if near[at, other] >= NEAR:
                found.add(entities[at], entities[other], score=float(near[at, other]) - 0.15, why="near names")


def add_by_neighbours(found: Candidates, entities: Sequence[Named], neighbours: Mapping[str, frozenset[str]]) -> None:
    """Add pairs of one type that share at least half of their neighbours, such as a man and his alias."""
    sharing: dict[str, list[Named]] = defaultdict(list)
    for one in entities:
        for neighbour in neighbours.get(one.uid, ()):
            sharing[neighbour].append(one)
    shared: dict[tuple[Named, Named], int] = defaultdict(int)
    for group in sharing.values():
        for one, other in combinations(group, 2) if len(group) <= MOST_TIES else ():
            if one.type == other.type:
                shared[one, other] += 1
    for (one, other), number in shared.items():
        part = number / len(neighbours[one.uid] | neighbours[other.uid])
        if number >= SHARED and part >= ALIKE:
            found.add(one, other, score=0.3 + 0.4 * part, why="the same neighbours")

"""Aspects of a question: its names and key phrases, each of which a memory covers or not."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from hgmem.models.extractive.entity_recognition import names
from hgmem.models.extractive.key_phrases import joins, stem, written
from hgmem.models.extractive.stopwords import ASKING, stopwords
from hgmem.text.segmentation import collapse, words

_MOST = 8
_LONGEST_PHRASE = 3
_ENOUGH = 0.5
_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Aspect:
    """A name or key phrase of a question, with the stems of its words."""

    text: str
    stems: frozenset[str]
    name: bool

    def covered_by(self, covered: AbstractSet[str]) -> bool:
        """Whether at least half of the words are among the stems `covered`."""
        return len(self.stems & covered) >= _ENOUGH * len(self.stems)


def aspects(question: str) -> list[Aspect]:
    """Return the names of `question`, then its other key phrases in order, without question words."""
    text = collapse(question)[:_CHARACTERS]
    found: dict[frozenset[str], Aspect] = {}
    for name in dict.fromkeys(name.text for name in names([text])[0]):
        _add(found, words(name), name=name, is_name=True)
    taken = {word for each in found for word in each}
    for phrase in _phrases(text, taken):
        _add(found, phrase, name=written(phrase), is_name=False)
    return list(found.values())[:_MOST]


def _add(found: dict[frozenset[str], Aspect], tokens: list[str], *, name: str, is_name: bool) -> None:
    key = frozenset(stem(word) for word in tokens if word not in stopwords([]))
    if key:
        found.setdefault(key, Aspect(name, key, is_name))


def _phrases(text: str, taken: AbstractSet[str]) -> list[list[str]]:
    """Return the runs of words without stop words, question words and parts of names."""
    tokens = words(text)
    stop = stopwords(tokens) | ASKING
    phrases: list[list[str]] = [[]]
    for word in tokens:
        plain = word in stop or stem(word) in taken or joins(word)
        if plain or len(phrases[-1]) == _LONGEST_PHRASE:
            phrases.append([])
        if not plain:
            phrases[-1].append(word)
    return [phrase for phrase in phrases if phrase]

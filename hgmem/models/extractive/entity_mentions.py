"""Mentions of known entities in a text."""

from collections.abc import Iterable, Iterator, Sequence

from hgmem.models.extractive.entity_types import TITLES
from hgmem.models.extractive.key_phrases import stem
from hgmem.models.extractive.stopwords import STOPWORDS
from hgmem.text.segmentation import words
from hgmem.values.graph_elements import Entity

_LONGEST = 8
_NARRATORS = frozenset({"narrator", "the narrator", "protagonist", "the protagonist", "the speaker", "speaker"})
_FIRST_PERSON = frozenset({"i", "me", "my", "myself", "mine"})
_SHORTEST_SURNAME = 4


class EntityMentions:
    """Finds entity names in texts, at word boundaries and with any ending. The longest name wins.

    Names are also found without "the" and without a title, and a person by a last name that is unique.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        self._unspaced: dict[str, str] = {}
        known = {entity.name: entity.type for entity in entities}
        for name in known:
            self._add(name)
        for key, name in _aliases(name for name, kind in known.items() if kind.casefold() == "person").items():
            self._names.setdefault(key, name)
        self._longest = min(_LONGEST, max(map(len, self._names), default=0))

    def named(self, text: str) -> list[str]:
        """Return the names of the entities that `text` names, in order of mention, each once."""
        found = dict.fromkeys(self._walk(_key(text)))
        if self._unspaced:
            low = text.casefold()
            found.update(dict.fromkeys(name for key, name in self._unspaced.items() if key in low))
        return list(found)

    def _add(self, name: str) -> None:
        low = name.casefold()
        if not low.isascii() and any(_wide(character) for character in low):
            self._unspaced.setdefault(low, name)
            return
        key = _key(name)
        if key and len(key) <= _LONGEST and not all(word in STOPWORDS for word in words(name)):
            self._names.setdefault(key, name)

    def _walk(self, tokens: Sequence[str]) -> Iterator[str]:
        at = 0
        while at < len(tokens):
            for length in range(min(self._longest, len(tokens) - at), 0, -1):
                name = self._names.get(tuple(tokens[at : at + length]))
                if name is not None:
                    yield name
                    at += length
                    break
            else:
                at += 1


def narrators(text: str, entities: Sequence[Entity]) -> list[str]:
    """Return the entity that stands for "I" in a first-person text, as a list of at most one."""
    if not _FIRST_PERSON.intersection(words(text)):
        return []
    return [entity.name for entity in entities if entity.name.casefold() in _NARRATORS][:1]


def _key(text: str) -> tuple[str, ...]:
    tokens = [stem(word) for word in words(text)]
    return tuple(tokens[1:] if len(tokens) > 1 and tokens[0] == "the" else tokens)


def _aliases(people: Iterable[str]) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], set[str]] = {}
    for name in people:
        tokens = words(name)
        if tokens and tokens[0] in TITLES and len(tokens) > 1:
            tokens = tokens[1:]
            found.setdefault(tuple(map(stem, tokens)), set()).add(name)
        if len(tokens) in (2, 3) and len(tokens[-1]) >= _SHORTEST_SURNAME and name.split()[0].casefold() != "the":
            found.setdefault((stem(tokens[-1]),), set()).add(name)
    return {key: next(iter(names)) for key, names in found.items() if len(names) == 1}


def _wide(character: str) -> bool:
    return "\u3040" <= character <= "\u9fff" or "\u0e00" <= character <= "\u0eff"

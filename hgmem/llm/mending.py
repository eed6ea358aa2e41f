"""Mending: broken JSON, read as what was meant. It never takes much longer than reading the text does."""

import json
import re
from typing import Any, Self, SupportsIndex

import json_repair

_BRACKET = re.compile(r"[{\[}\]]")
_DEEPEST = 100  # brackets within brackets; replies have four
_CURLY = str.maketrans("“”„", '"""')
_LOOKS_PER_CHARACTER = 30  # what can be mended takes 2 to 6; a model that has gone round in circles, thousands
_LOOKS = 20_000


class Mender:
    """Mends what is broken in one text of `length` characters, as long as its patience lasts."""

    def __init__(self, length: int) -> None:
        self._patience = _Patience(_LOOKS_PER_CHARACTER * length + _LOOKS)

    def values(self, text: str) -> list[Any]:
        """Return the objects and lists that a piece of the text was meant to be; none where nobody can tell."""
        if _depth(text) > _DEEPEST:
            return []
        if '"' not in text:
            text = text.translate(_CURLY)
        try:
            # By way of a text, so that nothing in the value is watched any longer.
            value = json.loads(json_repair.repair_json(_Watched.of(text, self._patience), skip_json_loads=True))
        except Exception:  # what breaks the mender can't be mended
            return []
        values = value if isinstance(value, list) and text.startswith("{") else [value]
        return [each for each in values if isinstance(each, dict | list)]


class _Patience:
    def __init__(self, looks: int) -> None:
        self.looks = looks

    def spend(self, looks: int) -> None:
        self.looks -= looks
        if self.looks < 0:
            raise TimeoutError


class _Watched(str):
    """A text that counts how often it is looked at: json_repair looks back and forth, without a limit of its own."""

    __slots__ = ("patience",)
    patience: _Patience

    @classmethod
    def of(cls, text: str, patience: _Patience) -> Self:
        watched = cls(text)
        watched.patience = patience
        return watched

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        found = super().__getitem__(key)
        self.patience.spend(len(found))
        return self.of(found, self.patience) if isinstance(key, slice) else found

    def __add__(self, other: str) -> str:
        return self.of(super().__add__(other), self.patience)


def _depth(text: str) -> int:
    """Return how many brackets are open at once at most."""
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket[0] in "{[" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest

"""JSON repair: broken JSON, parsed as intended. Its running time is bounded relative to the text's length."""

import json
import re
from typing import Any, Self, SupportsIndex

_BRACKET = re.compile(r"[{\[}\]]")
_DEEPEST = 100  # nesting depth; replies have four levels
_CURLY = str.maketrans("“”„", '"""')
_LOOKS_PER_CHARACTER = 30  # repairable JSON takes 2 to 6; output of a looping model takes thousands
_LOOKS = 20_000


class JsonRepair:
    """Repairs broken JSON in one text of `length` characters, within a bound on its work."""

    def __init__(self, length: int) -> None:
        self._patience = _Patience(_LOOKS_PER_CHARACTER * length + _LOOKS)

    def values(self, text: str) -> list[Any]:
        """Return the objects and lists that a piece of the text was meant to contain, or none if unclear."""
        import json_repair  # few replies are broken

        if _depth(text) > _DEEPEST:
            return []
        if '"' not in text:
            text = text.translate(_CURLY)
        try:
            # Serialised once, so that no watched string remains in the value.
            value = json.loads(json_repair.repair_json(_Watched.of(text, self._patience), skip_json_loads=True))
        except Exception:  # JSON that crashes the repair can't be repaired
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
    """A string that counts accesses, because json_repair scans back and forth without a limit."""

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
    """Return the maximum number of brackets open at once."""
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket[0] in "{[" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest

"""The pyramid of gists: which of them a prompt shows, and what lies below each."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hgmem.systems.memorag.statements import Place


@dataclass(slots=True, kw_only=True)
class Pyramid:
    """The gists of a scope in the order of the text, without their texts."""

    places: Sequence[Place]
    _by_uid: dict[str, Place] = field(init=False)
    _below: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        """Find what lies below each gist."""
        self._by_uid = {place.uid: place for place in self.places}
        self._below = defaultdict(list)
        for place in self.places:
            for above in place.above:
                self._below[above].append(place.uid)

    def shown(self, budget: int, *, looking: int = 0) -> tuple[list[str], int]:
        """Return the gists (uids) of the most detailed view that fits into `budget` tokens, and how many are left out.

        A view at a level holds the gists of that level, and those below it that none of them condenses. One with
        further gists below it has to leave `looking` tokens free. If none fits so, it is the highest, as far as it fits
        into the whole budget.
        """
        views = [self._view(level) for level in sorted({place.level for place in self.places})]
        if not views:
            return [], 0
        for view in views:
            if self.tokens(view) <= budget - (looking if self.depth(view) else 0):
                return view, 0
        held = self.within(views[-1], budget)
        return held, len(views[-1]) - len(held)

    def below(self, uid: str) -> Sequence[str]:
        """Return the gists that one condenses, in the order of the text."""
        return self._below.get(uid, ())

    def depth(self, uids: Iterable[str]) -> int:
        """Return how many levels lie below these gists, 0 if none of them condenses others."""
        return max((self._by_uid[uid].level - 1 for uid in uids if self._below.get(uid)), default=0)

    def tokens(self, uids: Iterable[str]) -> int:
        """Return how many tokens gists have together."""
        return sum(self._by_uid[uid].tokens for uid in uids)

    def within(self, uids: Iterable[str], budget: int) -> list[str]:
        """Return the first gists that fit into `budget` tokens."""
        kept: list[str] = []
        for uid in uids:
            budget -= self._by_uid[uid].tokens
            if budget < 0:
                break
            kept.append(uid)
        return kept

    def _view(self, level: int) -> list[str]:
        held = {place.uid for place in self.places if place.level <= level}
        return [place.uid for place in self.places if place.uid in held and held.isdisjoint(place.above)]

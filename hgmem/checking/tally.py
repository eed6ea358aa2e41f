"""Counting broken promises: how often each, and the uids of the first ones."""

from collections.abc import Iterable, Sequence

from hgmem.checking.promises import GO_ON, PROMISES, UNFINISHED, Checkup, Finding
from hgmem.graph.invariants import MOST, Broken


class Tally:
    """What was found so far, by promise."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self._uids: dict[str, list[str]] = {}

    def take(self, broken: Iterable[Broken]) -> None:
        """Add what a statement found."""
        for one in broken:
            self.add(one.promise, one.uids, found=one.found)

    def add(self, promise: str, uids: Sequence[str], *, found: int | None = None) -> None:
        """Add a promise that is broken for these uids, of `found` in all."""
        if not uids:
            return
        self._found[promise] = self._found.get(promise, 0) + (len(uids) if found is None else found)
        named = self._uids.setdefault(promise, [])
        named += uids[: MOST - len(named)]

    def checkup(self, corpus: str) -> Checkup:
        """Return all of it, in the order in which promises are declared."""
        found = [self._finding(name) for name in PROMISES if name in self._found]
        return Checkup(
            corpus=corpus,
            findings=tuple(one for one in found if not PROMISES[one.name].note),
            notes=tuple(one for one in found if PROMISES[one.name].note),
        )

    def _finding(self, name: str) -> Finding:
        promise = PROMISES[name]
        first = GO_ON if promise.passing and UNFINISHED in self._found else ""
        return Finding(
            name=name,
            count=self._found[name],
            uids=tuple(self._uids[name]),
            meaning=promise.meaning,
            remedy=f"{first}{promise.remedy}",
        )

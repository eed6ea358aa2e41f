"""Count violations of each invariant, and keep the first uids."""

from collections.abc import Iterable, Sequence

from hgmem.corpus.checking.findings import GO_ON, INVARIANTS, UNFINISHED, Invariant
from hgmem.graph.invariants import MOST, Violation
from hgmem.values.reports import Checkup, Finding


class Tally:
    """The violations found so far, by invariant."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self._uids: dict[str, list[str]] = {}
        self._invariants = dict(INVARIANTS)

    def take(self, violations: Iterable[Violation]) -> None:
        """Add the violations that a statement returned."""
        for one in violations:
            self.add(one.invariant, one.uids, found=one.found)

    def add(self, invariant: str, uids: Sequence[str], *, found: int | None = None) -> None:
        """Add a violation for these uids, of `found` in total."""
        if not uids:
            return
        self._found[invariant] = self._found.get(invariant, 0) + (len(uids) if found is None else found)
        named = self._uids.setdefault(invariant, [])
        named += uids[: MOST - len(named)]

    def add_own(self, name: str, uids: Sequence[str], *, meaning: str, remedy: str, failed: bool = False) -> None:
        """Add a violation of a system's own invariant, or that it could not be checked (`failed`)."""
        self._invariants[name] = Invariant(meaning=meaning, remedy=remedy, note=failed)
        if failed:
            self._found[name], self._uids[name] = 1, []
        self.add(name, uids)

    def checkup(self, corpus: str) -> Checkup:
        """Return all findings, in the order in which invariants are declared, those of systems last."""
        found = [self._finding(name) for name in self._invariants if name in self._found]
        return Checkup(
            corpus=corpus,
            findings=tuple(one for one in found if not self._invariants[one.name].note),
            notes=tuple(one for one in found if self._invariants[one.name].note),
        )

    def _finding(self, name: str) -> Finding:
        invariant = self._invariants[name]
        first = GO_ON if invariant.passing and UNFINISHED in self._found else ""
        return Finding(
            name=name,
            count=self._found[name],
            uids=tuple(self._uids[name]),
            meaning=invariant.meaning,
            remedy=f"{first}{invariant.remedy}",
        )

"""Entity resolution as methods of the client: decisions on which entities are the same, made and taken back."""

from hgmem.client.streaming import async_variant
from hgmem.resolution import deciding
from hgmem.services import Services
from hgmem.values.decisions import Author, Decision, DecisionStatus


class Deciding:
    """Methods that decide which entities of a corpus are the same. Entities are named by their names or uids."""

    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        raise NotImplementedError

    def same(self, a: str, b: str, *, reason: str = "", corpus: str | None = None) -> DecisionStatus:
        """Decide that two entities are the same, and return the decision with what it comes to.

        It is void where other decisions keep the two apart, as its `why` says. Raises `UsageError` for an unknown
        entity.
        """
        return deciding.decide_pair(self._services(corpus), a, b, kind="same", reason=reason)

    def different(self, a: str, b: str, *, reason: str = "", corpus: str | None = None) -> DecisionStatus:
        """Decide that two entities are different, and return the decision. It undoes no other, but prevails."""
        return deciding.decide_pair(self._services(corpus), a, b, kind="different", reason=reason)

    def undo(self, *named: str, by: Author | None = None, corpus: str | None = None) -> list[Decision]:
        """Take decisions back, and return them.

        `named` are uids of decisions, or the names or uids of two entities; `by` restricts them to one author, and
        without names means all of that author's. A pair that a rule or the model had decided stays as an open decision,
        so that it is not decided again, until that is undone too.
        """
        return deciding.undo(self._services(corpus), named, by=by)

    def decisions(self, *, corpus: str | None = None) -> list[DecisionStatus]:
        """Return all decisions on entities of the corpus: persons' first, then rules', then the model's."""
        return deciding.decisions(self._services(corpus))

    asame = async_variant(same)
    adifferent = async_variant(different)
    aundo = async_variant(undo)
    adecisions = async_variant(decisions)

"""Entity resolution as methods of the client: decisions on which entities are the same, made and taken back."""

from pathlib import Path
from typing import Unpack

from hgmem.client.streaming import async_variant
from hgmem.models.metering import limited
from hgmem.resolution import deciding, exchange, resolving
from hgmem.services import Services
from hgmem.values.arguments import CallLimits
from hgmem.values.decisions import Author, Decision, DecisionStatus, OpenPair, ResolutionReport
from hgmem.values.reports import Report, counting


class Deciding:
    """Methods that decide which entities of a corpus are the same. Entities are named by their names or uids."""

    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        raise NotImplementedError

    def resolve(
        self,
        *,
        rules_only: bool = False,
        dry_run: bool = False,
        corpus: str | None = None,
        report: Report = lambda _: None,
        **limits: Unpack[CallLimits],
    ) -> ResolutionReport:
        """Decide which entities are the same, by rules and then by the model, and return what was done.

        Pairs that are decided already are not looked at. Without a language model, what rules leave is left to a
        person: `open_pairs` returns it. With `dry_run`, nothing is written. Raises `BudgetError` after `max_calls`
        requests or `max_tokens` tokens: decisions are saved, and the same call resumes.
        """
        with limited(**limits):
            services, pairs = self._services(corpus), counting(report, "pairs")
            return resolving.resolve(services, rules_only=rules_only, dry_run=dry_run, report=pairs)

    def open_pairs(self, *, most: int = 100, corpus: str | None = None) -> list[OpenPair]:
        """Return at most `most` pairs of entities that may be one, the likeliest first, each with passages.

        Nobody has decided on them, or the model could not tell.
        """
        return resolving.open_pairs(self._services(corpus), most=most)

    def same(
        self, a: str, b: str, *, reason: str = "", replace_others: bool = True, corpus: str | None = None
    ) -> DecisionStatus:
        """Decide that two entities are the same, and return the decision with what it comes to.

        It is void where other decisions keep the two apart, as its `why` says. It replaces what a person decided on
        them before, as `replaced` says; with `replace_others=False`, `ConflictError` says so, and nothing is written.
        Raises `UsageError` for an unknown entity.
        """
        services = self._services(corpus)
        return deciding.decide_pair(services, (a, b), kind="same", reason=reason, replace_others=replace_others)

    def different(
        self, a: str, b: str, *, reason: str = "", replace_others: bool = True, corpus: str | None = None
    ) -> DecisionStatus:
        """Decide that two entities are different, as `same` does. It undoes no other decision, but prevails."""
        services = self._services(corpus)
        return deciding.decide_pair(services, (a, b), kind="different", reason=reason, replace_others=replace_others)

    def undo(self, *named: str, by: Author | None = None, corpus: str | None = None) -> list[Decision]:
        """Take decisions back, and return them.

        `named` are uids of decisions, or the names or uids of two entities; `by` restricts them to one author, and
        without names means all of that author's, if there are any. A pair that a rule or the model had decided stays as
        an open decision, so that it is not decided again, until that is undone too.
        """
        return deciding.undo(self._services(corpus), named, by=by)

    def decisions(self, *, corpus: str | None = None) -> list[DecisionStatus]:
        """Return all decisions on entities of the corpus: persons' first, then rules', then the model's."""
        return deciding.decisions(self._services(corpus))

    def export_decisions(self, file: str | Path, *, force: bool = False, corpus: str | None = None) -> int:
        """Write all decisions to a file that ends in .json or .csv, and return their number."""
        return exchange.export_decisions(self._services(corpus), Path(file), force=force)

    def import_decisions(self, file: str | Path, *, corpus: str | None = None) -> list[Decision]:
        """Write the decisions of a file that ends in .json or .csv, all or none, and return them.

        Raises `UsageError` that names every entity that the corpus lacks.
        """
        return exchange.import_decisions(self._services(corpus), Path(file))

    aresolve = async_variant(resolve)
    aopen_pairs = async_variant(open_pairs)
    asame = async_variant(same)
    adifferent = async_variant(different)
    aundo = async_variant(undo)
    adecisions = async_variant(decisions)
    aexport_decisions = async_variant(export_decisions)
    aimport_decisions = async_variant(import_decisions)

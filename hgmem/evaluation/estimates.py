"""What a run takes at most: calls and tokens of indexing, builds and questions, before any is spent."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hgmem.client import HGMem
from hgmem.evaluation.entries import Entry, Subject
from hgmem.evaluation.plan import PlannedSystem
from hgmem.models.extractive import ExtractiveModel
from hgmem.text.plurals import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a run. Calls and reply tokens are upper bounds, prompt tokens estimates, and None is unknown."""

    name: str
    calls: int | None = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0

    @property
    def line(self) -> str:
        """One line for people."""
        if self.calls is None:
            return f"{self.name}: model calls unknown before (limit them with max_calls and max_tokens)"
        if not self.calls:
            return f"{self.name}: no model calls"
        return (
            f"{self.name}: at most {counted(self.calls, 'model call')}, "
            f"about {self.prompt_tokens or 0:,} prompt tokens, at most {self.completion_tokens or 0:,} reply tokens"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What a run has still to do, part by part, and how many questions it finds answered."""

    parts: tuple[Part, ...]
    questions: int
    done: int

    @property
    def calls(self) -> int | None:
        """The most model calls, or None if those of a part are unknown."""
        return None if any(part.calls is None for part in self.parts) else self.known_calls

    @property
    def known_calls(self) -> int:
        """The most model calls of the parts where that is known."""
        return sum(part.calls or 0 for part in self.parts)

    @property
    def lines(self) -> list[str]:
        """Lines for people, the sum last."""
        first = f"{counted(self.questions, 'question')} to ask, {self.done:,} done before"
        known = [part for part in self.parts if part.calls is not None]
        total = Part(
            name="together" if len(known) == len(self.parts) else "together, without what is unknown",
            calls=self.known_calls,
            prompt_tokens=sum(part.prompt_tokens or 0 for part in known),
            completion_tokens=sum(part.completion_tokens or 0 for part in known),
        )
        return [first, *(part.line for part in self.parts), f"{total.line}; repeated requests come on top"]


def estimate(client: HGMem, waiting: Sequence[Entry], *, done: int) -> Estimate:
    """Return what the entries that wait will take. It writes nothing and calls no model."""
    found = {id(entry.subject): entry.subject for entry in waiting}.values()
    existing = {row["corpus"] for row in client.corpora()}
    parts = [_indexing(client, subject) for subject in found if subject.data.graph is None]
    parts += _builds(client, waiting, existing)
    counts = Counter(entry.system.shown for entry in waiting)
    systems = {entry.system.shown: entry.system for entry in waiting}
    parts += [_asking(client, system, counts[label]) for label, system in systems.items()]
    return Estimate(parts=tuple(parts), questions=len(waiting), done=done)


def _indexing(client: HGMem, subject: Subject) -> Part:
    plan = client.plan(subject.data.documents, corpus=subject.corpus)
    return Part(
        name=f"indexing {subject.data.name!r}, {counted(plan.documents, 'document')}",
        calls=plan.calls,
        prompt_tokens=plan.prompt_tokens,
        completion_tokens=plan.completion_tokens_at_most,
    )


def _builds(client: HGMem, waiting: Iterable[Entry], existing: set[str]) -> list[Part]:
    wanted = {(entry.subject.corpus, entry.system.shown): entry for entry in waiting}
    return [
        _build(client, entry.subject, entry.system, known=corpus in existing)
        for (corpus, _), entry in wanted.items()
        if client.system(entry.system.name).builds
    ]


def _build(client: HGMem, subject: Subject, system: PlannedSystem, *, known: bool) -> Part:
    name = f"build of {system.shown!r} for {subject.data.name!r}"
    if not known:
        free = client.model.name == ExtractiveModel.name and not client.extracts_with_language_model
        return Part(name=name, calls=0 if free else None)
    recipe = system.recipe or client.system(system.name).default
    plan = client.plan_build(system.name, corpus=subject.corpus, recipe=recipe, settings=system.settings)
    return Part(
        name=name,
        calls=plan.calls,
        prompt_tokens=plan.prompt_tokens,
        completion_tokens=plan.completion_tokens_at_most,
    )


def _asking(client: HGMem, system: PlannedSystem, questions: int) -> Part:
    plan = client.plan_question(system=system.name, recipe=system.recipe, settings=system.settings)
    name = f"{counted(questions, 'question')} to {system.shown!r}"
    if plan.calls is None:
        return Part(name=name, calls=None)
    return Part(
        name=name,
        calls=questions * plan.calls,
        prompt_tokens=questions * (plan.prompt_tokens or 0),
        completion_tokens=questions * (plan.completion_tokens_at_most or 0),
    )

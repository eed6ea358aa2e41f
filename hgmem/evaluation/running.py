"""Runs: every question of a plan asked once, resumable to the question, within budgets."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from hgmem.client import HGMem
from hgmem.errors import AccessError, BudgetError, HGMemError, UnreachableError, UsageError
from hgmem.evaluation.asking import asked, failed
from hgmem.evaluation.plan import Entry, Plan, PlannedSystem, Subject, entries, subjects
from hgmem.evaluation.quotes import CorpusChunks
from hgmem.evaluation.results import Results
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.metering import measuring
from hgmem.settings import Settings
from hgmem.text.language import counted
from hgmem.values.reports import BuildPlan, BuildReport, IndexPlan, Progress, QuestionPlan

# Opens a client with a seed of sampling, or with that of the settings.
Opens: TypeAlias = Callable[[int | None], AbstractContextManager[HGMem]]
Report: TypeAlias = Callable[[Progress], None]

ENDS = (AccessError, BudgetError, UnreachableError)  # after these, every further question would fail as well


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a run. Calls and tokens are upper bounds, and None is unknown."""

    name: str
    calls: int | None = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def line(self) -> str:
        """One line for people."""
        if self.calls is None:
            return f"{self.name}: model calls unknown before (limit them with max_calls and max_tokens)"
        if not self.calls:
            return f"{self.name}: no model calls"
        return (
            f"{self.name}: at most {counted(self.calls, 'model call')}, "
            f"about {self.prompt_tokens:,} prompt tokens, at most {self.completion_tokens:,} reply tokens"
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
        known = [part.calls for part in self.parts if part.calls is not None]
        return sum(known) if len(known) == len(self.parts) else None

    @property
    def lines(self) -> list[str]:
        """Lines for people, the sum last."""
        first = f"{counted(self.questions, 'question')} to ask, {self.done:,} done before"
        total = Part(
            name="together, without what is unknown" if self.calls is None else "together",
            calls=sum(part.calls or 0 for part in self.parts),
            prompt_tokens=sum(part.prompt_tokens for part in self.parts),
            completion_tokens=sum(part.completion_tokens for part in self.parts),
        )
        return [first, *(part.line for part in self.parts), f"{total.line}; repeated requests come on top"]


def _part(name: str, plan: IndexPlan | BuildPlan | QuestionPlan, *, times: int = 1) -> Part:
    return Part(
        name=name,
        calls=None if plan.calls is None else times * plan.calls,
        prompt_tokens=times * (plan.prompt_tokens or 0),
        completion_tokens=times * (plan.completion_tokens_at_most or 0),
    )


def _indexing(client: HGMem, subject: Subject) -> Part:
    plan = client.plan(subject.data.documents, corpus=subject.corpus)
    return _part(f"indexing {subject.data.name!r}, {counted(plan.documents, 'document')}", plan)


def _builds(client: HGMem, waiting: Iterable[Entry]) -> Iterator[Part]:
    existing = {row["corpus"] for row in client.corpora()}
    free = client.model.name == ExtractiveModel.name and not client.extracts_with_language_model
    for (corpus, title), entry in {(entry.subject.corpus, entry.system.title): entry for entry in waiting}.items():
        name = f"build of {title!r} for {entry.subject.data.name!r}"
        for build, options in client.plan_question(**entry.system.asking).builds.items():
            if corpus not in existing:
                yield Part(name=name, calls=0 if free else None)
            elif not _has_build(client, entry.subject, build):
                yield _part(name, client.plan_build(build, corpus=corpus, recipe=options))


def _has_build(client: HGMem, subject: Subject, build: str) -> bool:
    """Whether a corpus that the plan only asks has the build, which is used as it is."""
    corpus = subject.data.corpus
    return bool(corpus) and any(one.system == build and one.finished_at for one in client.builds(corpus=corpus))


@dataclass(slots=True, kw_only=True)
class RunReport:
    """What a run did. `failed` counts all questions with an error, `notes` tell of indexing and builds."""

    asked: int = 0
    done_before: int = 0
    failed: int = 0
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Run:
    """A plan at work: its entries, the results so far, and the clients by seed."""

    plan: Plan
    results: Results
    entries: tuple[Entry, ...]
    clients: Callable[[int | None], HGMem]
    retry_failed: bool = False
    report: RunReport = field(default_factory=RunReport)

    @property
    def waiting(self) -> list[Entry]:
        """The entries without a row, and those with an error if they are to be asked again."""
        rows = self.results.rows
        again = {key for key, row in rows.items() if row["error"]} if self.retry_failed else set()
        return [entry for entry in self.entries if entry.key not in rows or entry.key in again]

    @property
    def settings(self) -> Settings:
        """The settings of the clients."""
        return self.clients(None).settings

    def estimate(self) -> Estimate:
        """Return what is still to do, and what it takes at most. It writes nothing and calls no model."""
        client, waiting = self.clients(None), self.waiting
        found = {id(entry.subject): entry.subject for entry in waiting}.values()
        parts = [_indexing(client, subject) for subject in found if not (subject.data.graph or subject.data.corpus)]
        parts += _builds(client, waiting)
        counts = Counter(entry.system.title for entry in waiting)
        systems = {entry.system.title: entry.system for entry in waiting}
        for title, system in systems.items():
            name = f"{counted(counts[title], 'question')} to {title!r}"
            parts.append(_part(name, client.plan_question(**system.asking), times=counts[title]))
        return Estimate(parts=tuple(parts), questions=len(waiting), done=len(self.entries) - len(waiting))

    def work(self, report: Report = lambda _: None) -> RunReport:
        """Ask everything that waits, and return what was done.

        Raises `BudgetError` when a limit of the plan is reached: the same plan resumes.
        """
        with self.results.writing():
            waiting = self.waiting
            self.report.done_before = len(self.entries) - len(waiting)
            try:
                with measuring(max_calls=self.plan.max_calls, max_tokens=self.plan.max_tokens):
                    for subject in {id(entry.subject): entry.subject for entry in waiting}.values():
                        self._measure(subject, [entry for entry in waiting if entry.subject is subject], report)
            except BudgetError as error:
                left = counted(len(waiting) - self.report.asked, "question")
                raise BudgetError(f"{error}: finished questions are saved, {left} left; rerun to continue") from error
        self.report.failed = sum(bool(row["error"]) for row in self.results.rows.values())
        return self.report

    def _measure(self, subject: Subject, waiting: list[Entry], report: Report) -> None:
        client = self.clients(None)
        corpus = _prepare(client, subject, report=report, note=self.report.notes.append)
        chunks = CorpusChunks(corpus=corpus, chunks=client.chunks(corpus=corpus))
        for system in {entry.system.title: entry.system for entry in waiting}.values():
            for build, options in client.plan_question(**system.asking).builds.items():
                if not _has_build(client, subject, build):
                    made = client.build(build, corpus=corpus, recipe=options, report=report)
                    self._note(made, f"build of {system.title!r} in corpus {corpus!r}")
            for entry in [entry for entry in waiting if entry.system == system]:
                self.results.add(self._row(entry, chunks))
                self.report.asked += 1
                done = self.report.done_before + self.report.asked
                report(Progress(done=done, total=len(self.entries), document=system.title, unit="questions"))

    def _row(self, entry: Entry, corpus: CorpusChunks) -> dict[str, object]:
        try:
            return asked(self.clients(entry.seed), entry, corpus)
        except ENDS:
            raise
        except Exception as error:  # the other questions go on, whatever a system does
            return failed(entry, error)

    def _note(self, made: BuildReport, what: str) -> None:
        if not made.whole:
            left = counted(made.failed + made.waiting + made.dropped, "unit")
            self.report.notes.append(f"{what}: {left} failed or waiting")


@contextmanager
def running(plan: Plan, opens: Opens, *, retry_failed: bool = False) -> Iterator[Run]:
    """Yield the run of a plan, everything in it checked. Nothing is asked yet, and no corpus is written.

    Raises `UsageError` for data, systems, recipes and options that do not fit.
    """
    with ExitStack() as stack:
        clients: dict[int | None, HGMem] = {}

        def client(seed: int | None) -> HGMem:
            if seed not in clients:
                clients[seed] = stack.enter_context(opens(seed))
            return clients[seed]

        first = client(None)
        options = [_options(first, system, at) for at, system in enumerate(plan.systems)]
        data = subjects(plan, first)
        _check_fit(first, plan, data)
        found = tuple(entries(plan, data, options))
        results = Results.read(plan.output, {entry.key: entry.system.title for entry in found})
        yield Run(plan=plan, results=results, entries=found, clients=client, retry_failed=retry_failed)


def _options(client: HGMem, system: PlannedSystem, at: int) -> Mapping[str, object]:
    """Return the options of the recipe of a system. Raises `UsageError` with the field if there is no such system."""
    try:
        return client.plan_question(**system.asking).options
    except HGMemError as error:
        raise UsageError(f"plan: systems.{at}: {error}") from error


def _check_fit(client: HGMem, plan: Plan, data: Sequence[Subject]) -> None:
    """Raise `UsageError` for a system that cannot answer a data set, whatever it is asked."""
    talks = {subject.data.name: any(one.messages for one in subject.data.documents) for subject in data}
    for at, system in enumerate(plan.systems):
        lacking = [name for name, found in talks.items() if not found]
        if lacking and client.system(system.name).only_conversations:
            raise UsageError(
                f"plan: systems.{at}: {system.title!r} answers from conversations alone, and data set {lacking[0]!r} "
                "has none: drop one of them, or move the data set to another plan"
            )


def _prepare(client: HGMem, subject: Subject, *, report: Report, note: Callable[[str], None]) -> str:
    """Index or import a data set, unless it is there, and return its corpus. An archive names its corpus itself."""
    data, corpus = subject.data, subject.corpus
    if data.corpus:
        return corpus
    if data.graph is None:
        done = client.add(data.documents, corpus=corpus, report=report)
        if done.skipped:
            first = done.skipped[0]
            raise UsageError(f"data set {data.name!r} cannot be indexed: {first.path}: {first.reason}")
        failed_chunks = client.status(corpus=corpus).failed
        if failed_chunks:
            chunks = counted(failed_chunks, "chunk")
            note(f"{chunks} of {corpus!r} failed: retry with `hgmem index --retry-failed --corpus {corpus}`")
        return corpus
    if data.graph.is_dir():
        client.import_lightrag(data.graph, corpus=corpus, report=report)
        return corpus
    try:
        return client.import_archive(data.graph, report=report).corpus
    except UsageError as error:
        raise UsageError(f"{error}, or ask it as it is: corpus = {corpus!r} in the plan, without a graph") from error

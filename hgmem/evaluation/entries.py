"""What a run has to ask: data sets × systems × seeds × questions, each with a key that tells whether it was done."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

from hgmem.errors import HGMemError, UsageError
from hgmem.evaluation import formats as data_sets
from hgmem.evaluation.formats import DataSet, EvalQuestion
from hgmem.evaluation.formats.graphs import corpus_of
from hgmem.evaluation.plan import Plan, PlannedData, PlannedSystem, check_ids, chosen
from hgmem.settings import Settings
from hgmem.text.identity import text_hash
from hgmem.values.reports import QuestionPlan

_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A data set with the questions that a plan asks of it, and the digest of all that its corpus is made of."""

    data: DataSet
    questions: tuple[EvalQuestion, ...]
    settings: Settings

    @cached_property
    def digest(self) -> str:
        """The digest of the documents or graph, and of the settings that indexing depends on."""
        settings = self.settings
        made = [settings.embedding_model]
        if self.data.graph is None:
            chunking = (settings.chunk_tokens, settings.chunk_overlap, settings.chunk_restart)
            extraction = (settings.extraction_model or settings.model, settings.gleaning, settings.entity_types)
            made += [json.dumps([chunking, extraction], default=str)]
            made += [json.dumps(asdict(one), sort_keys=True) for one in self.data.documents]
        else:
            made += [_contents(file) for file in _files(self.data.graph)]
        return text_hash(json.dumps(made))

    @cached_property
    def corpus(self) -> str:
        """The name of the corpus that is made for it. An archive names its corpus itself."""
        if self.data.graph is not None and not self.data.graph.is_dir():
            return corpus_of(self.data.graph)
        name = _UNFIT.sub("-", self.data.name).strip("-._") or "data"
        return f"eval-{name[:40]}-{self.digest[:12]}"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One question for one system, with one seed. `options` are those of its recipe with the plan's changes."""

    subject: Subject
    system: PlannedSystem
    options: Mapping[str, object]
    seed: int | None
    question: EvalQuestion

    @cached_property
    def key(self) -> str:
        """What tells this entry from all others: a change of any of it means that it is asked anew.

        The label of the system is only a name in tables, so it may change.
        """
        parts = {
            "data": [self.subject.data.name, self.subject.digest],
            "question": asdict(self.question),
            "system": self.system.model_dump(exclude={"label"}),
            "options": self.options,
            "seed": self.seed,
            **self._settings,
        }
        return text_hash(json.dumps(parts, sort_keys=True, default=str))[:32]

    @property
    def made_with(self) -> dict[str, str]:
        """What all results of one label on one data set have in common, as plain text. Otherwise they are no seeds."""
        shared = {name: json.dumps(value, sort_keys=True, default=str) for name, value in self._settings.items()}
        return {**shared, "documents": self.subject.digest[:12]}

    @property
    def _settings(self) -> dict[str, object]:
        settings = self.subject.settings
        return {
            "model": settings.model,
            "sampling": [settings.temperature, settings.top_p, settings.max_tokens, settings.sampling],
            "language": settings.answer_language,
        }


def subjects(plan: Plan, settings: Settings) -> tuple[Subject, ...]:
    """Return the data sets of a plan, read and checked. Raises `UsageError` for one that does not fit."""
    read = [_read(at, one) for at, one in enumerate(plan.data)]
    names = [one.name for one in read]
    if double := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"plan: data: two data sets have the name {double!r}: give each a name of its own")
    check_ids(plan, (question.id for one in read for question in one.questions))
    return tuple(
        Subject(data=one, questions=chosen(plan, one.questions, name=one.name), settings=settings) for one in read
    )


def entries(plan: Plan, found: tuple[Subject, ...], options: Sequence[Mapping[str, object]]) -> Iterator[Entry]:
    """Yield everything to ask, in order. `options` are those of each system."""
    for subject in found:
        for system, own in zip(plan.systems, options, strict=True):
            for seed in plan.every_seed:
                for question in subject.questions:
                    yield Entry(subject=subject, system=system, options=own, seed=seed, question=question)


def options_of(plan: Plan, planned: Callable[[PlannedSystem], QuestionPlan]) -> Iterator[Mapping[str, object]]:
    """Yield the options of each system. Raises `UsageError` with the field of the first that `planned` refuses."""
    for at, one in enumerate(plan.systems):
        try:
            yield planned(one).options
        except HGMemError as error:
            raise UsageError(f"plan: systems.{at}: {error}") from error


def _read(at: int, planned: PlannedData) -> DataSet:
    if not planned.path.exists():
        raise UsageError(f"plan: data.{at}.path: {str(planned.path)!r} does not exist: correct it")
    if planned.graph and not planned.graph.exists():
        raise UsageError(f"plan: data.{at}.graph: {str(planned.graph)!r} does not exist: correct it")
    try:
        found = data_sets.read_data(planned.path, format=planned.format)
    except UsageError as error:
        raise UsageError(f"plan: data.{at}: {error}") from error
    return replace(found, name=planned.name or found.name, graph=planned.graph or found.graph)


def _files(graph: Path) -> list[Path]:
    return sorted(graph.iterdir()) if graph.is_dir() else [graph]


def _contents(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else file.name

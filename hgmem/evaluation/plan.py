"""The plan of a run, read from a TOML file, and what it has to ask.

A plan names data sets, systems, seeds, which questions, and limits. Each of its entries, data sets × systems × seeds ×
questions, has a key that tells whether it was done.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from hgmem.client import HGMem
from hgmem.errors import UsageError
from hgmem.evaluation import formats
from hgmem.evaluation.formats import DataSet, EvalQuestion
from hgmem.evaluation.formats.data_set import Sources, read_documents
from hgmem.evaluation.formats.graphs import corpus_of, stored_sources
from hgmem.settings import Settings
from hgmem.text.identity import text_hash

Choice = Literal["all", "open", "held_back"]
_STRICT = ConfigDict(extra="forbid", frozen=True)
_Count = Annotated[int, Field(ge=1)]
_Path = Annotated[Path, AfterValidator(lambda path, info: info.context / path)]  # relative to the plan's folder
_UNFIT = re.compile(r"[^A-Za-z0-9._-]+")


class PlannedData(BaseModel):
    """A data set of a plan. `graph` is imported in place of indexing, and `corpus` exists already."""

    model_config = _STRICT
    path: _Path
    format: str = "hgmem"
    name: str = ""
    documents: _Path | None = None
    graph: _Path | None = None
    corpus: str = ""


class PlannedSystem(BaseModel):
    """A system of a plan, with its recipe and single options."""

    model_config = _STRICT
    name: str
    recipe: str | None = None
    settings: dict[str, Any] = {}
    label: str = ""

    @property
    def title(self) -> str:
        """Its name in tables: the label, by default the name with the recipe and the options."""
        options = " ".join(f"{name}={value}" for name, value in self.settings.items())
        return self.label or " ".join(part for part in (self.name, self.recipe, options) if part)

    @property
    def asking(self) -> dict[str, Any]:
        """The arguments that ask it."""
        return {"system": self.name, "recipe": self.recipe, "settings": self.settings}


class Plan(BaseModel):
    """A whole plan. `questions` are all, those open to everybody, or those held back."""

    model_config = _STRICT
    data: Annotated[list[PlannedData], Field(min_length=1)]
    systems: Annotated[list[PlannedSystem], Field(min_length=1)]
    output: _Path
    seeds: list[int] = []
    questions: Choice = "all"
    ids: list[str] = []
    limit: _Count | None = None
    max_calls: _Count | None = None
    max_tokens: _Count | None = None


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
            made += [json.dumps(asdict(document), sort_keys=True) for document in self.data.documents]
        else:
            graph = self.data.graph
            files = sorted(graph.iterdir()) if graph.is_dir() else [graph]
            made += [hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else file.name for file in files]
        return text_hash(json.dumps(made))

    @cached_property
    def corpus(self) -> str:
        """The name of the corpus that it has, or that is made for it. An archive names its corpus itself."""
        if self.data.corpus:
            return self.data.corpus
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
        reranker = {"reranker": settings.reranker} if self.options.get("rerank") else {}
        return {
            **reranker,
            "model": settings.model,
            "sampling": [settings.temperature, settings.top_p, settings.max_tokens, settings.sampling],
            "language": settings.answer_language,
        }


def read_plan(file: Path) -> Plan:
    """Return the plan in a file. Its paths are relative to the file's folder.

    Raises `UsageError` that names the file and the field.
    """
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read plan {str(file)!r}: {getattr(error, 'strerror', None) or error}") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"plan {str(file)!r} is not TOML: {error}") from error
    try:
        plan = Plan.model_validate(values, context=file.resolve().parent)
    except ValidationError as error:
        raise UsageError(f"plan {str(file)!r}: {_first(error)}") from None
    _check_labels(plan, file)
    return plan


def subjects(plan: Plan, client: HGMem) -> tuple[Subject, ...]:
    """Return the data sets of a plan, read and checked. Raises `UsageError` for one that does not fit."""
    data_sets = [_data_set(at, planned, client) for at, planned in enumerate(plan.data)]
    names = [data.name for data in data_sets]
    if double := next((name for name in names if names.count(name) > 1), ""):
        raise UsageError(f"plan: data: two data sets have the name {double!r}: give each a name of its own")
    missing = sorted(set(plan.ids).difference(question.id for data in data_sets for question in data.questions))
    if missing:
        raise UsageError(f"plan: ids: no data set has question {missing[0]!r}: correct or drop it")
    return tuple(Subject(data=data, questions=_chosen(plan, data), settings=client.settings) for data in data_sets)


def entries(plan: Plan, found: Sequence[Subject], options: Sequence[Mapping[str, object]]) -> Iterator[Entry]:
    """Yield everything to ask, in order. `options` are those of each system."""
    seeds: Sequence[int | None] = tuple(dict.fromkeys(plan.seeds)) or (None,)  # None is that of the settings
    for subject in found:
        for system, own in zip(plan.systems, options, strict=True):
            for seed in seeds:
                for question in subject.questions:
                    yield Entry(subject=subject, system=system, options=own, seed=seed, question=question)


def _check_labels(plan: Plan, file: Path) -> None:
    labels = [system.title for system in plan.systems]
    double = next((label for label in labels if labels.count(label) > 1), None)
    if double is not None:
        raise UsageError(f"plan {str(file)!r}: systems: {double!r} is there twice: give each a label of its own")
    unlabelled = [system.model_copy(update={"label": ""}) for system in plan.systems]
    for at, system in enumerate(unlabelled):
        first = unlabelled.index(system)
        if first < at:
            names = f"{labels[first]!r} and {labels[at]!r}"
            raise UsageError(f"plan {str(file)!r}: systems: {names} are the same system and options: drop one of them")


def _first(error: ValidationError) -> str:
    problem = error.errors()[0]
    place = problem["loc"]
    where = ".".join(str(part) for part in place)
    if problem["type"] == "extra_forbidden":
        table = Plan if len(place) == 1 else PlannedData if place[0] == "data" else PlannedSystem
        return f"{where}: unknown field: choose from {', '.join(table.model_fields)}"
    if problem["type"] == "missing":
        return f"{where}: missing: add it"
    return f"{where}: {problem['msg']}, got {problem['input']!r}"


def _data_set(at: int, planned: PlannedData, client: HGMem) -> DataSet:
    given = {name: value for name in ("documents", "graph", "corpus") if (value := getattr(planned, name))}
    if len(given) > 1:
        raise UsageError(f"plan: data.{at}: it has {' and '.join(given)}: name one of them")
    for name, path in {"path": planned.path, **given}.items():
        if name != "corpus" and not path.exists():
            raise UsageError(f"plan: data.{at}.{name}: {str(path)!r} does not exist: correct it")
    try:
        sources = _given(planned, client)
        found = formats.read_data(planned.path, format=planned.format, graph=planned.graph, given=sources)
    except UsageError as error:
        raise UsageError(f"plan: data.{at}: {error}") from error
    return replace(found, name=planned.name or found.name, corpus=planned.corpus)


def _given(planned: PlannedData, client: HGMem) -> Sources | None:
    """Return the documents that a plan names. Raises `UsageError` for a corpus that the client can't ask."""
    if planned.documents:
        return Sources(documents=tuple(read_documents(planned.documents).values()))
    if not planned.corpus:
        return None
    client.plan((), corpus=planned.corpus)  # which refuses another embedder
    rows = client.documents(corpus=planned.corpus)
    return stored_sources(planned.corpus, client.chunks(corpus=planned.corpus), rows)


def _chosen(plan: Plan, data: DataSet) -> tuple[EvalQuestion, ...]:
    """Return the questions of a data set that a plan asks. Raises `UsageError` if there are none."""
    wanted = {"all": (True, False), "open": (False,), "held_back": (True,)}[plan.questions]
    kept = [
        question
        for question in data.questions
        if question.held_back in wanted and (not plan.ids or question.id in plan.ids)
    ]
    if not kept:
        raise UsageError(f"data set {data.name!r} has no question that the plan asks: change questions or ids")
    return tuple(kept[: plan.limit])

"""The figures of runs: by system, kind of question and amount shown, with intervals, and two systems compared."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from statistics import fmean
from typing import TypeAlias, TypeVar

import numpy as np

from hgmem.errors import UsageError
from hgmem.evaluation.recall import FIGURES
from hgmem.evaluation.results import Row, blind_answer, grouped
from hgmem.models.extractive.key_phrases import stems
from hgmem.text.segmentation import words

Value: TypeAlias = Callable[[Row], float | None]
Name = TypeVar("Name")

# Intervals of means are by bootstrap over questions, seeded, by percentiles.
RESAMPLES = 4_000
SEED = 20_251
BOUNDS = (2.5, 97.5)  # percentiles
PER = 10_000  # characters that a share is divided by
COSTS: Mapping[str, tuple[str, Value]] = {  # with their names in tables
    "answer_length": ("answer, characters", lambda row: len(row.get("answer", "")) if not row["error"] else None),
    "calls": ("calls", lambda row: row.get("calls")),
    "tokens": ("tokens", lambda row: sum(row["tokens"].values()) if "tokens" in row else None),
    "characters": ("prompts, characters", lambda row: sum(row["characters"].values()) if "characters" in row else None),
    "seconds": ("seconds", lambda row: row.get("seconds")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over `n` questions with its interval."""

    mean: float
    low: float
    high: float
    n: int


def mean_of(values: Sequence[float]) -> Mean | None:
    """Return the mean of the questions' values, or None without any."""
    if not values:
        return None
    numbers = np.asarray(values, dtype=np.float64)
    picked = np.random.default_rng(SEED).integers(0, len(numbers), size=(RESAMPLES, len(numbers)))
    low, high = np.percentile(numbers[picked].mean(axis=1), BOUNDS)
    return Mean(mean=float(numbers.mean()), low=float(low), high=float(high), n=len(numbers))


def difference(first: Mapping[str, float], second: Mapping[str, float]) -> Mean | None:
    """Return the mean difference, first minus second, over the questions that both have."""
    return mean_of([first[name] - second[name] for name in first if name in second])


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The figures of one system on one data set. Questions with an error count as not found.

    `unplaced` counts the pieces of evidence that stand nowhere in the corpus. `key_words` is a rough figure: the share
    of the reference's key words that the answers have.
    """

    data: str
    label: str
    questions: int
    errors: int
    unplaced: int
    found: Mapping[str, Mean | None]
    all_found: Mapping[str, Mean | None]
    per_characters: Mapping[str, Mean | None]
    key_words: Mean | None
    costs: Mapping[str, float | None]
    characters: Mapping[int, Mean | None]
    chunks: Mapping[int, Mean | None]
    kinds: Mapping[str, Mapping[str, Mean | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two systems on one data set: the mean difference, first minus second, over the questions of both."""

    data: str
    first: str
    second: str
    found: Mapping[str, Mean | None]
    all_found: Mapping[str, Mean | None]


def scores(rows: Sequence[Row]) -> tuple[Scores, ...]:
    """Return the figures by data set and system, in the order of the rows."""
    return tuple(_scores(data, label, kept) for (data, label), kept in _groups(rows).items())


def compare(rows: Sequence[Row], first: str, second: str) -> tuple[Compared, ...]:
    """Return two systems (labels) compared on each data set that has both.

    Raises `UsageError` for a label without rows, and if no data set has both.
    """
    groups = _groups(rows)
    labels = {label for _, label in groups}
    for label in (first, second):
        if label not in labels:
            raise UsageError(f"no results of {label!r}: choose two of {', '.join(map(repr, sorted(labels)))}")
    shared = [data for data, label in groups if label == first and (data, second) in groups]
    if not shared:
        raise UsageError(f"no data set has results of both {first!r} and {second!r}: run them on the same data")
    return tuple(
        Compared(
            data=data,
            first=first,
            second=second,
            found=_differences(groups[data, first], groups[data, second], "share"),
            all_found=_differences(groups[data, first], groups[data, second], "all"),
        )
        for data in shared
    )


def costs_of(rows: Sequence[Row]) -> dict[str, dict[str, float | None]]:
    """Return the mean costs of a question, by system over all data sets."""
    labels = dict.fromkeys(row["label"] for row in rows)
    return {label: _costs([row for row in rows if row["label"] == label]) for label in labels}


def _costs(rows: Sequence[Row]) -> dict[str, float | None]:
    values = {name: _by_question(rows, value).values() for name, (_, value) in COSTS.items()}
    return {name: fmean(numbers) if numbers else None for name, numbers in values.items()}


def _differences(first: Sequence[Row], second: Sequence[Row], what: str) -> dict[str, Mean | None]:
    values = _figures(what).items()
    return {name: difference(_by_question(first, value), _by_question(second, value)) for name, value in values}


def _by_question(rows: Iterable[Row], value: Value) -> dict[str, float]:
    """Return a value for each question, the mean over its seeds. Rows without the value are left out."""
    found: dict[str, list[float]] = {}
    for row in rows:
        number = value(row)
        if number is not None:
            found.setdefault(f"{row['data']}/{row['question']}", []).append(float(number))
    return {question: fmean(numbers) for question, numbers in found.items()}


def _found(*path: str) -> Value:
    """Return the value at a path in the rows of questions with evidence. With an error, nothing was found."""

    def value(row: Row) -> float | None:
        if not row["evidence"]:
            return None
        return 0.0 if row["error"] else float(reduce(getitem, path, row))  # type: ignore[arg-type]

    return value


def _figures(what: str) -> dict[str, Value]:
    return {name: _found("figures", name, what) for name in FIGURES}


def _per_characters(figure: str) -> Value:
    share, characters = _found("figures", figure, "share"), _found("figures", figure, "characters")

    def value(row: Row) -> float | None:
        found = share(row)
        return PER * found / (characters(row) or 1.0) if found else found

    return value


def _curves(rows: Sequence[Row], axis: str) -> dict[int, Mean | None]:
    amounts = {int(at) for row in rows if row.get("curves") for at in row["curves"][axis]}
    return _means(rows, {at: _found("curves", axis, str(at)) for at in sorted(amounts)})


def _scores(data: str, label: str, rows: Sequence[Row]) -> Scores:
    kinds = grouped(rows, lambda row: str(row["kind"]))
    return Scores(
        data=data,
        label=label,
        questions=len({row["question"] for row in rows}),
        errors=sum(bool(row["error"]) for row in rows),
        unplaced=_unplaced(rows),
        found=_means(rows, _figures("share")),
        all_found=_means(rows, _figures("all")),
        per_characters=_means(rows, {name: _per_characters(name) for name in FIGURES}),
        key_words=mean_of(list(_by_question(rows, _key_words).values())),
        costs=_costs(rows),
        characters=_curves(rows, "characters"),
        chunks=_curves(rows, "chunks"),
        kinds={kind: _means(kept, _figures("share")) for kind, kept in sorted(kinds.items())},
    )


def _key_words(row: Row) -> float | None:
    """Return the share of the reference's key words that the answer has. Those of the question do not count."""
    split = stems if stems(row["reference"]) else words  # of an answer such as "At six", all words
    wanted = set(split(row["reference"])).difference(split(row["asked"]))
    return len(wanted.intersection(split(blind_answer(row)))) / len(wanted) if wanted else None


def _unplaced(rows: Iterable[Row]) -> int:
    """Return the pieces of evidence that the corpus does not hold, those of each question once."""
    found: dict[str, int] = {}
    for row in rows:
        found[row["question"]] = max(found.get(row["question"], 0), row.get("unplaced", 0))
    return sum(found.values())


def _groups(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    return grouped(rows, lambda row: (row["data"], row["label"]))


def _means(rows: Sequence[Row], values: Mapping[Name, Value]) -> dict[Name, Mean | None]:
    return {name: mean_of(list(_by_question(rows, value).values())) for name, value in values.items()}

"""The figures of runs: by system, kind of question and amount shown, with intervals, and two systems compared."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeAlias

from hgmem.errors import UsageError
from hgmem.evaluation.intervals import Mean, difference, mean_of
from hgmem.evaluation.recall import FIGURES
from hgmem.evaluation.results import Row, grouped

Value: TypeAlias = Callable[[Row], float | None]

PER = 10_000  # characters that a share is divided by
COSTS: Mapping[str, Value] = {
    "answer_length": lambda row: len(row.get("answer", "")) if not row["error"] else None,
    "calls": lambda row: row.get("calls"),
    "tokens": lambda row: sum(row["tokens"].values()) if "tokens" in row else None,
    "characters": lambda row: sum(row["characters"].values()) if "characters" in row else None,
    "seconds": lambda row: row.get("seconds"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The figures of one system on one data set. Questions with an error count as not found.

    `unplaced` counts the pieces of evidence that stand nowhere in the corpus.
    """

    data: str
    label: str
    questions: int
    errors: int
    unplaced: int
    found: Mapping[str, Mean | None]
    all_found: Mapping[str, Mean | None]
    per_characters: Mapping[str, Mean | None]
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
            found=_differences(groups[data, first], groups[data, second], _share),
            all_found=_differences(groups[data, first], groups[data, second], _whole),
        )
        for data in shared
    )


def costs_of(rows: Sequence[Row]) -> dict[str, dict[str, float | None]]:
    """Return the mean costs of a question, by system over all data sets."""
    labels = dict.fromkeys(row["label"] for row in rows)
    return {label: _costs([row for row in rows if row["label"] == label]) for label in labels}


def _costs(rows: Sequence[Row]) -> dict[str, float | None]:
    values = {name: _by_question(rows, value).values() for name, value in COSTS.items()}
    return {name: fmean(numbers) if numbers else None for name, numbers in values.items()}


def _differences(first: Sequence[Row], second: Sequence[Row], value: Callable[[str], Value]) -> dict[str, Mean | None]:
    values = {name: value(name) for name in FIGURES}
    return {name: difference(_by_question(first, each), _by_question(second, each)) for name, each in values.items()}


def _by_question(rows: Iterable[Row], value: Value) -> dict[str, float]:
    """Return a value for each question, the mean over its seeds. Rows without the value are left out."""
    found: dict[str, list[float]] = {}
    for row in rows:
        number = value(row)
        if number is not None:
            found.setdefault(f"{row['data']}/{row['question']}", []).append(float(number))
    return {question: fmean(numbers) for question, numbers in found.items()}


def _of_evidence(read: Callable[[Row], float]) -> Value:
    """Return a value that only questions with evidence have. With an error, nothing was found."""

    def value(row: Row) -> float | None:
        if not row["evidence"]:
            return None
        return 0.0 if row["error"] else float(read(row))

    return value


def _share(figure: str) -> Value:
    return _of_evidence(lambda row: row["figures"][figure]["share"])


def _whole(figure: str) -> Value:
    return _of_evidence(lambda row: row["figures"][figure]["all"])


def _per_characters(figure: str) -> Value:
    def read(row: Row) -> float:
        found = row["figures"][figure]
        return float(PER * found["share"] / found["characters"]) if found["characters"] else 0.0

    return _of_evidence(read)


def _curve(axis: str, at: int) -> Value:
    return _of_evidence(lambda row: row["curves"][axis][str(at)])


def _curves(rows: Sequence[Row], axis: str) -> dict[int, Mean | None]:
    amounts = {int(at) for row in rows if row.get("curves") for at in row["curves"][axis]}
    return {at: _mean(rows, _curve(axis, at)) for at in sorted(amounts)}


def _scores(data: str, label: str, rows: Sequence[Row]) -> Scores:
    kinds = grouped(rows, lambda row: str(row["kind"]))
    return Scores(
        data=data,
        label=label,
        questions=len({row["question"] for row in rows}),
        errors=sum(bool(row["error"]) for row in rows),
        unplaced=_unplaced(rows),
        found=_means(rows, _share),
        all_found=_means(rows, _whole),
        per_characters=_means(rows, _per_characters),
        costs=_costs(rows),
        characters=_curves(rows, "characters"),
        chunks=_curves(rows, "chunks"),
        kinds={kind: _means(kept, _share) for kind, kept in sorted(kinds.items())},
    )


def _unplaced(rows: Iterable[Row]) -> int:
    """Return the pieces of evidence that the corpus does not hold, those of each question once."""
    found: dict[str, int] = {}
    for row in rows:
        found[row["question"]] = max(found.get(row["question"], 0), row.get("unplaced", 0))
    return sum(found.values())


def _groups(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    return grouped(rows, lambda row: (row["data"], row["label"]))


def _means(rows: Sequence[Row], value: Callable[[str], Value]) -> dict[str, Mean | None]:
    return {name: _mean(rows, value(name)) for name in FIGURES}


def _mean(rows: Iterable[Row], value: Value) -> Mean | None:
    return mean_of(list(_by_question(rows, value).values()))

"""Scores of judges: read from files, turned back from letters to systems, and summed up."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

from hgmem.errors import DocumentError
from hgmem.evaluation.intervals import Mean, correlation, mean_of
from hgmem.evaluation.sheets import CONTROLS, RIGHT

Key = Mapping[str, Mapping[str, str]]  # by sheet, what each letter stands for
Given = dict[str, dict[str, float]]  # by sheet, the score of each system (label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What judges say: means by system, wins of one over another (a tie is half), and how judges agree.

    `fooled` counts the sheets on which a control answer was not ranked below the right one.
    """

    judges: tuple[str, ...]
    sheets: int
    missing: int
    means: Mapping[str, Mean | None]
    wins: Mapping[str, Mapping[str, float]]
    correlations: Mapping[str, float | None]
    fooled: int | None = None


def read_scores(file: Path, key: Key) -> Given:
    """Return the scores of a file: one JSON object of sheets with letters, or a line for each sheet.

    Raises `DocumentError` with the place for a sheet, letter or score that does not fit.
    """
    return turned(dict(_sheets(file)), key, str(file))


def turned(scores: Mapping[str, object], key: Key, place: str) -> Given:
    """Return scores of letters as scores of systems. `place` says in errors where they come from."""
    found: Given = {}
    for sheet, row in scores.items():
        where = f"{place!r}, sheet {sheet!r}"
        if sheet not in key:
            raise DocumentError(f"{where}: no such sheet: write scores for the sheets of these results")
        if not isinstance(row, Mapping):
            raise DocumentError(f'{where}: not an object of letters: use {{"A": 80, "B": 20}}')
        found[sheet] = {}
        for letter, value in row.items():
            label = key[sheet].get(letter)
            if label is None:
                raise DocumentError(f"{where}: no answer {letter!r}: choose from {', '.join(key[sheet])}")
            found[sheet][label] = _score(value, f"{where}, answer {letter!r}")
    return found


def verdict(judges: Mapping[str, Given], key: Key) -> Verdict:
    """Return what the judges (by name) say together. A system's score on a sheet is their mean."""
    labels = sorted({label for row in key.values() for label in row.values()})
    together: Given = {}
    for sheet, row in key.items():
        for label in row.values():
            given = [one[sheet][label] for one in judges.values() if label in one.get(sheet, {})]
            if given:
                together.setdefault(sheet, {})[label] = fmean(given)
    wanted = sum(len(row) for row in key.values()) * len(judges)
    return Verdict(
        judges=tuple(judges),
        sheets=len(together),
        missing=wanted - sum(len(one.get(sheet, ())) for one in judges.values() for sheet in key),
        means={label: mean_of([row[label] for row in together.values() if label in row]) for label in labels},
        wins={one: {other: _wins(together, one, other) for other in labels if other != one} for one in labels},
        correlations={f"{one} and {other}": _agreement(judges[one], judges[other]) for one, other in _pairs(judges)},
        fooled=_fooled(together) if RIGHT in labels else None,
    )


def _sheets(file: Path) -> Iterator[tuple[str, object]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"cannot read scores {str(file)!r}: {error}") from error
    try:
        whole = json.loads(text)
        lines = [whole] if isinstance(whole, Mapping) and {"sheet", "scores"} <= whole.keys() else None
    except ValueError:
        lines = [_line(file, at, line) for at, line in enumerate(text.splitlines(), start=1) if line.strip()]
        whole = {}
    if lines is None and not isinstance(whole, Mapping):
        raise DocumentError(f'scores {str(file)!r} are not an object: use {{"SHEET": {{"A": 80}}}}')
    if lines is None:
        yield from whole.items()
        return
    for line in lines:
        yield str(line["sheet"]), line["scores"]


def _line(file: Path, number: int, line: str) -> Mapping[str, object]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DocumentError(f"{str(file)!r}, line {number}: not JSON ({error}): correct it") from error
    if not isinstance(row, Mapping) or not {"sheet", "scores"} <= row.keys():
        raise DocumentError(f"{str(file)!r}, line {number}: it needs sheet and scores: correct it")
    return row


def _score(value: object, where: str) -> float:
    number = value.get("score") if isinstance(value, Mapping) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 100:
        raise DocumentError(f"{where}: invalid score {number!r}: use a number from 0 to 100")
    return float(number)


def _wins(together: Given, one: str, other: str) -> float:
    pairs = [(row[one], row[other]) for row in together.values() if one in row and other in row]
    return fmean(1.0 if mine > theirs else 0.5 if mine == theirs else 0.0 for mine, theirs in pairs) if pairs else 0.0


def _pairs(judges: Mapping[str, Given]) -> Sequence[tuple[str, str]]:
    return list(combinations(judges, 2))


def _agreement(one: Given, other: Given) -> float | None:
    shared = [(sheet, label) for sheet, row in one.items() for label in row if label in other.get(sheet, {})]
    return correlation([one[sheet][label] for sheet, label in shared], [other[sheet][label] for sheet, label in shared])


def _fooled(together: Given) -> int:
    """Return on how many sheets the right control answer is not above both others."""
    others = [name for name in CONTROLS if name != RIGHT]
    return sum(any(row.get(name, -1.0) >= row[RIGHT] for name in others) for row in together.values() if RIGHT in row)

"""Sheets for judges, with the answers of several systems under shuffled letters, and what the judges' scores say."""

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from statistics import StatisticsError, correlation, fmean
from string import ascii_uppercase

from hgmem.errors import DocumentError, UsageError
from hgmem.evaluation.report import Mean, mean_of
from hgmem.evaluation.results import Row, blind_answer, grouped, read_rows
from hgmem.sources.json_records import text_of
from hgmem.text.atomic_files import replacing
from hgmem.text.identity import text_hash

Key = Mapping[str, Mapping[str, str]]  # by sheet, what each letter stands for
Given = dict[str, dict[str, float]]  # by sheet, the score of each system (label)

RIGHT, WRONG, EMPTY = "control: right and short", "control: wrong", "control: long and empty"
CONTROLS = (RIGHT, WRONG, EMPTY)
NO_ANSWER = "(no answer)"
_LETTERS = (*ascii_uppercase, *map("".join, product(ascii_uppercase, repeat=2)))
_SCORED = {"sheet": str, "scores": dict}  # what a line of scores has
_EMPTY = Path(__file__).with_name("empty_answer.txt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A question with answers by letter, and the label of each letter, which judges do not see."""

    id: str
    kind: str
    question: str
    reference: str
    evidence: tuple[str, ...]
    answers: Mapping[str, str]
    labels: Mapping[str, str]

    @property
    def digest(self) -> str:
        """The digest of all that a judge reads, and of what the letters stand for."""
        parts = [self.question, self.reference, self.evidence, dict(self.answers), dict(self.labels)]
        return text_hash(json.dumps(parts))[:16]


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


def sheets(rows: Sequence[Row], *, seed: int = 1, controls: bool = False) -> tuple[Sheet, ...]:
    """Return a sheet for each question and seed of sampling, the letters shuffled by `seed` and question."""
    groups = grouped(rows, _id)
    wrong = _wrong_answers([kept[0] for kept in groups.values()], seed) if controls else {}
    found = []
    for name, kept in groups.items():
        answers = {row["label"]: blind_answer(row) or NO_ANSWER for row in kept}
        if controls:
            empty = _EMPTY.read_text(encoding="utf-8").rstrip()
            answers |= {RIGHT: kept[0]["reference"], WRONG: wrong[name], EMPTY: empty}
        found.append(_sheet(name, kept[0], answers, seed=seed))
    return tuple(found)


def write_sheets(found: Sequence[Sheet], file: Path, *, force: bool) -> Path:
    """Write the sheets for people to a Markdown file, and beside it what the letters stand for. Return that file."""
    key = key_file(file)
    if not force:
        for path in (file, key):
            if path.exists():
                raise UsageError(f"{str(path)!r} exists: name another file, or pass --force to replace it")
    with replacing(file, force=force) as written:
        written.write("\n\n".join([*_introduction(found), *(_text(sheet) for sheet in found), ""]).encode())
    with replacing(key, force=force) as written:
        written.write(json.dumps(key_of(found), ensure_ascii=False, indent=1).encode())
    return key


def key_of(found: Iterable[Sheet]) -> dict[str, dict[str, str]]:
    """Return what the letters of sheets stand for, by sheet."""
    return {sheet.id: dict(sheet.labels) for sheet in found}


def read_key(file: Path) -> dict[str, dict[str, str]]:
    """Return what the letters of written sheets stand for, by sheet."""
    key = key_file(file)
    try:
        found: dict[str, dict[str, str]] = json.loads(key.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {str(key)!r} ({error}): write the sheets anew with --sheet") from error
    return found


def read_scores(file: Path, key: Key) -> Given:
    """Return the scores of a file: one JSON object of sheets with letters, or a line for each sheet.

    Raises `DocumentError` with the place for a sheet, letter or score that does not fit.
    """
    return turned(_scored_sheets(file), key, str(file))


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
            given = [scores[sheet][label] for scores in judges.values() if label in scores.get(sheet, {})]
            if given:
                together.setdefault(sheet, {})[label] = fmean(given)
    wanted = sum(len(row) for row in key.values()) * len(judges)
    return Verdict(
        judges=tuple(judges),
        sheets=len(together),
        missing=wanted - sum(len(scores.get(sheet, ())) for scores in judges.values() for sheet in key),
        means={label: mean_of([row[label] for row in together.values() if label in row]) for label in labels},
        wins={label: {other: _wins(together, label, other) for other in labels if other != label} for label in labels},
        correlations={
            f"{first} and {second}": _agreement(judges[first], judges[second])
            for first, second in combinations(judges, 2)
        },
        fooled=_fooled(together) if RIGHT in labels else None,
    )


def key_file(file: Path) -> Path:
    """Return the file beside written sheets that holds what their letters stand for."""
    return file.with_name(f"{file.name}.key.json")


def _id(row: Row) -> str:
    seed = "" if row.get("seed") is None else f"#{row['seed']}"
    return f"{row['data']}/{row['question']}{seed}"


def _sheet(name: str, row: Row, answers: Mapping[str, str], *, seed: int) -> Sheet:
    labels = sorted(answers)
    random.Random(f"{seed}:{name}").shuffle(labels)  # noqa: S311
    letters = dict(zip(_LETTERS, labels, strict=False))
    return Sheet(
        id=name,
        kind=row["kind"],
        question=row["asked"],
        reference=row["reference"],
        evidence=tuple(row["evidence"]),
        answers={letter: answers[label] for letter, label in letters.items()},
        labels=letters,
    )


def _wrong_answers(rows: Sequence[Row], seed: int) -> dict[str, str]:
    """Return for each question the reference of another one, of the same data and kind if there is such."""
    found = {}
    for row in rows:
        others = [other for other in rows if other["reference"].casefold() != row["reference"].casefold()]
        near = [other for other in others if other["data"] == row["data"]] or others
        alike = [other for other in near if other["kind"] == row["kind"]] or near
        chosen = random.Random(f"{seed}:wrong:{_id(row)}")  # noqa: S311
        found[_id(row)] = chosen.choice(alike)["reference"] if alike else "The opposite is true."
    return found


def _introduction(found: Iterable[Sheet]) -> list[str]:
    first = next(iter(found), None)
    example = {first.id: dict.fromkeys(first.answers, 50)} if first else {}
    return [
        "Score each answer from 0 (wrong) to 100 (all of the reference, nothing wrong), by content alone.",
        f"Write the scores to a JSON file: `{json.dumps(example, ensure_ascii=False)}`",
    ]


def _text(sheet: Sheet) -> str:
    evidence = [f"> {' '.join(text.split())}" for text in sheet.evidence] or ["> (none)"]
    head = [f"# {sheet.id}", f"Question: {sheet.question}", f"Reference answer: {sheet.reference}"]
    answers = [f"## {sheet.id}, answer {letter}\n\n{text}" for letter, text in sheet.answers.items()]
    return "\n\n".join([*head, "Evidence:\n\n" + "\n>\n".join(evidence), *answers])


def _scored_sheets(file: Path) -> Mapping[str, object]:
    try:
        whole = json.loads(text_of(file))
    except ValueError:
        whole = None
    if isinstance(whole, Mapping) and not _SCORED.keys() <= whole.keys():
        return whole
    return {row["sheet"]: row["scores"] for row in read_rows(file, _SCORED)}


def _score(value: object, where: str) -> float:
    number = value.get("score") if isinstance(value, Mapping) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= 100:
        raise DocumentError(f"{where}: invalid score {number!r}: use a number from 0 to 100")
    return float(number)


def _wins(together: Given, system: str, other: str) -> float:
    pairs = [(row[system], row[other]) for row in together.values() if system in row and other in row]
    return fmean(1.0 if mine > theirs else 0.5 if mine == theirs else 0.0 for mine, theirs in pairs) if pairs else 0.0


def _agreement(first: Given, second: Given) -> float | None:
    shared = [(sheet, label) for sheet, row in first.items() for label in row if label in second.get(sheet, {})]
    try:
        return correlation([first[sheet][label] for sheet, label in shared], [second[at][of] for at, of in shared])
    except StatisticsError:  # too few, or a judge whose scores do not vary
        return None


def _fooled(together: Given) -> int:
    """Return on how many sheets the right control answer is not above both others."""
    others = [name for name in CONTROLS if name != RIGHT]
    return sum(any(row.get(name, -1.0) >= row[RIGHT] for name in others) for row in together.values() if RIGHT in row)

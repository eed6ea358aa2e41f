"""Sheets for judges: a question with the answers of several systems under shuffled letters."""

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from hgmem.errors import UsageError
from hgmem.evaluation.results import Row
from hgmem.text.atomic_files import replacing
from hgmem.text.identity import text_hash

RIGHT, WRONG, EMPTY = "control: right and short", "control: wrong", "control: long and empty"
CONTROLS = (RIGHT, WRONG, EMPTY)
NO_ANSWER = "(no answer)"
_MARKS = re.compile(r"[ \t]*\[\d+\]|\*\*|^#+ ", re.MULTILINE)  # tell who wrote an answer: citations, headings
_EMPTY = (
    "This is a question that deserves a careful and thorough answer. Several aspects have to be considered, and each "
    "of them can be seen from more than one side.",
    "On the one hand, the documents contain a great deal of material that bears on the matter in one way or another. "
    "On the other hand, such material always needs to be read in its context, and with due regard to its origin.",
    "Taking everything together, the various elements complement one another and form a complex picture, in which "
    "many factors play a part and no single one should be considered in isolation.",
    "In conclusion, the question touches on important points, and a full understanding of it requires weighing all "
    "of these considerations against each other with the necessary care.",
)


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


def sheets(rows: Sequence[Row], *, seed: int = 1, controls: bool = False) -> tuple[Sheet, ...]:
    """Return a sheet for each question and seed of sampling, the letters shuffled by `seed` and question."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(_id(row), []).append(row)
    wrong = _wrong_answers([kept[0] for kept in groups.values()], seed) if controls else {}
    found = []
    for name, kept in groups.items():
        answers = {row["label"]: shown(row) for row in kept}
        if controls:
            answers |= {RIGHT: kept[0]["reference"], WRONG: wrong[name], EMPTY: "\n\n".join(_EMPTY)}
        found.append(_sheet(name, kept[0], answers, seed=seed))
    return tuple(found)


def shown(row: Row) -> str:
    """Return the answer of a row without marks that tell who wrote it."""
    return _MARKS.sub("", row.get("answer") or "").strip() or NO_ANSWER


def write_sheets(found: Sequence[Sheet], file: Path, *, force: bool) -> Path:
    """Write the sheets for people to a Markdown file, and beside it what the letters stand for. Return that file."""
    key = key_file(file)
    if not force:
        for one in (file, key):
            if one.exists():
                raise UsageError(f"{str(one)!r} exists: name another file, or pass --force to replace it")
    with replacing(file, force=force) as written:
        written.write("\n\n".join([*_introduction(found), *(_text(one) for one in found), ""]).encode())
    with replacing(key, force=force) as written:
        written.write(json.dumps({one.id: dict(one.labels) for one in found}, ensure_ascii=False, indent=1).encode())
    return key


def read_key(file: Path) -> dict[str, dict[str, str]]:
    """Return what the letters of written sheets stand for, by sheet."""
    key = key_file(file)
    try:
        found: dict[str, dict[str, str]] = json.loads(key.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {str(key)!r} ({error}): write the sheets anew with --sheet") from error
    return found


def kinds_of(rows: Iterable[Row]) -> dict[str, list[str]]:
    """Return the ids of the sheets by kind of question."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row["kind"], {})[_id(row)] = None
    return {kind: list(names) for kind, names in sorted(found.items())}


def key_file(file: Path) -> Path:
    """Return the file beside written sheets that holds what their letters stand for."""
    return file.with_name(f"{file.name}.key.json")


def _id(row: Row) -> str:
    seed = "" if row.get("seed") is None else f"#{row['seed']}"
    return f"{row['data']}/{row['question']}{seed}"


def _sheet(name: str, row: Row, answers: Mapping[str, str], *, seed: int) -> Sheet:
    labels = sorted(answers)
    random.Random(f"{seed}:{name}").shuffle(labels)  # noqa: S311
    letters = dict(zip(_letters(), labels, strict=False))
    return Sheet(
        id=name,
        kind=row["kind"],
        question=row["asked"],
        reference=row["reference"],
        evidence=tuple(row["evidence"]),
        answers={letter: answers[label] for letter, label in letters.items()},
        labels=letters,
    )


def _letters() -> Iterator[str]:
    yield from ascii_uppercase
    yield from (f"{first}{second}" for first in ascii_uppercase for second in ascii_uppercase)


def _wrong_answers(rows: Sequence[Row], seed: int) -> dict[str, str]:
    """Return for each question the reference of another one, of the same data and kind if there is such."""
    found = {}
    for row in rows:
        others = [one for one in rows if one["reference"].casefold() != row["reference"].casefold()]
        near = [one for one in others if one["data"] == row["data"]] or others
        alike = [one for one in near if one["kind"] == row["kind"]] or near
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


def _text(one: Sheet) -> str:
    evidence = [f"> {' '.join(text.split())}" for text in one.evidence] or ["> (none)"]
    head = [f"# {one.id}", f"Question: {one.question}", f"Reference answer: {one.reference}"]
    answers = [f"## {one.id}, answer {letter}\n\n{text}" for letter, text in one.answers.items()]
    return "\n\n".join([*head, "Evidence:\n\n" + "\n>\n".join(evidence), *answers])

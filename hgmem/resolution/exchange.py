"""Decisions as files: JSON or CSV, with names instead of uids, so that they fit another corpus of the same texts."""

import csv
import io
import json
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError

from hgmem.errors import DocumentError
from hgmem.resolution.deciding import Judgement, decide, decisions, find_entities
from hgmem.services import Services
from hgmem.text.atomic_files import replacing
from hgmem.values.decisions import Decision


def _time(text: str) -> str:
    return text and datetime.fromisoformat(text).isoformat()


def _listed(value: object) -> object:
    return value.split() if isinstance(value, str) else value


class _Line(BaseModel):
    """A decision in a file: the names or uids of two entities, and what was decided."""

    model_config = ConfigDict(extra="forbid")
    a: Annotated[str, Field(min_length=1)]
    b: Annotated[str, Field(min_length=1)]
    kind: Literal["same", "different", "open"]
    by: Literal["person", "rule", "model"] = "person"
    reason: str = ""
    evidence: Annotated[tuple[str, ...], BeforeValidator(_listed)] = ()
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    created_at: Annotated[str, AfterValidator(_time)] = ""


COLUMNS = tuple(_Line.model_fields)
_LINES = TypeAdapter(list[_Line])


def export_decisions(services: Services, file: Path, *, force: bool = False) -> int:
    """Write decisions to a file, JSON or CSV by its suffix, and return how many. Raises `DocumentError`.

    Those on entities that the corpus lacks now are left out: nothing could read them back.
    """
    form = _form(file)
    found = [status.decision for status in decisions(services) if status.state != "asleep"]
    lines = [{"a": one.name_a, "b": one.name_b} | {name: getattr(one, name) for name in COLUMNS[2:]} for one in found]
    text = io.StringIO()
    if form == ".json":
        text.write(json.dumps(lines, ensure_ascii=False, indent=1) + "\n")
    else:
        writer = csv.DictWriter(text, COLUMNS)
        writer.writeheader()
        writer.writerows({**line, "evidence": " ".join(line["evidence"])} for line in lines)
    with replacing(file, force=force) as raw:
        raw.write(text.getvalue().encode())
    return len(lines)


def import_decisions(services: Services, file: Path) -> list[Decision]:
    """Write the decisions of a file, all or none, and return them.

    Raises `DocumentError` for a file that is not readable, `UsageError` that names every unknown entity.
    """
    lines = _read(file)
    ends = find_entities(services, list(dict.fromkeys(name for line in lines for name in (line.a, line.b))))
    places: dict[tuple[frozenset[str], str], int] = {}
    for at, line in enumerate(lines, start=1):
        if ends[line.a] == ends[line.b]:
            raise DocumentError(f"{str(file)!r}, decision {at}: {line.a!r} and {line.b!r} name one entity: name two")
        first = places.setdefault((frozenset((ends[line.a], ends[line.b])), line.by), at)
        if first != at:
            raise DocumentError(
                f"{str(file)!r}, decisions {first} and {at}: both on {line.a!r} and {line.b!r} by a {line.by}: keep one"
            )
    judged = [Judgement(ends=(ends[line.a], ends[line.b]), **line.model_dump(exclude={"a", "b"})) for line in lines]
    return decide(services, judged, whole=True)


def _read(file: Path) -> list[_Line]:
    form = _form(file)
    try:
        text = file.read_bytes().decode("utf-8-sig")
        table = io.StringIO(text, newline="")
        rows = json.loads(text) if form == ".json" else [_filled(row) for row in csv.DictReader(table, restkey="more")]
        return _LINES.validate_python(rows)
    except OSError as error:
        raise DocumentError(f"{str(file)!r} cannot be read: {error.strerror or error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = "".join(" " + str(each + 1 if isinstance(each, int) else repr(each)) for each in first["loc"])
        raise DocumentError(
            f"{str(file)!r}, decision{place}: {first['msg']}: it needs a, b, kind; others are {', '.join(COLUMNS[3:])}"
        ) from None
    except ValueError as error:
        raise DocumentError(f"{str(file)!r} is not {form[1:].upper()} in UTF-8: {error}") from None


def _filled(row: dict[str, str]) -> dict[str, str]:
    """Return the cells of a row that are not empty: the others have their defaults."""
    return {name: cell for name, cell in row.items() if cell}


def _form(file: Path) -> str:
    if file.suffix.lower() not in (".json", ".csv"):
        raise DocumentError(f"{str(file)!r} is neither JSON nor CSV: name a file that ends in .json or .csv")
    return file.suffix.lower()

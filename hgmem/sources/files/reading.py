"""Read one file as documents."""

import os
from collections.abc import Iterator
from pathlib import Path

from hgmem.sources.files import records, tables
from hgmem.sources.files.converter_subprocess import ConverterProcess
from hgmem.sources.files.decoding import decode, heading
from hgmem.sources.files.formats import Kind, format_of
from hgmem.sources.files.items import Converted, Item, UnusableError, one_line, why
from hgmem.values.inputs import Document, Skipped


def items_of(path: Path, *, converter: ConverterProcess, text_field: str) -> Iterator[Item]:
    """Yield the file's documents and skipped parts, reporting every problem as a skipped item."""
    source = str(Path(os.path.abspath(path)))
    found = format_of(path)
    try:
        if found.packages:
            yield from _converted(converter.converted(Path(source), found.kind), source)
        else:
            yield from _parsed(decode(Path(path).read_bytes()), source, kind=found.kind, text_field=text_field)
    except OSError as error:
        yield Skipped(path=source, reason=why(error))
    except MemoryError:
        yield Skipped(path=source, reason="needs more memory than available: split it")
    except UnusableError as error:
        yield Skipped(path=source, reason=one_line(str(error)))


def _parsed(text: str, source: str, *, kind: Kind, text_field: str) -> Iterator[Item]:
    if not text.strip():
        raise UnusableError("empty")
    match kind:
        case "jsonl":
            yield from records.lines(text, source, text_field)
        case "json":
            yield from records.objects(text, source, text_field)
        case "table":
            yield from tables.rows(text, source, text_field)
        case _:
            yield Document(id=source, text=text, title=heading(text) or Path(source).stem, source=source)


def _converted(found: Converted, source: str) -> Iterator[Item]:
    title = found.title or Path(source).stem
    yield Document(id=source, text=found.text, title=title, source=source, metadata=found.metadata)
    for page, reason in found.unread.items():
        yield Skipped(path=f"{source}#{page}", reason=reason)

"""Archives as files: gzip-compressed lines, written beside their place and moved there whole, read within bounds."""

import gzip
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from hgmem.corpus.archive.lines import Chain, LineError, Record
from hgmem.corpus.archive.records import OwnNamesCheck, Records, nothing_installed
from hgmem.errors import DocumentError, UsageError
from hgmem.text.atomic_files import replacing
from hgmem.values.built import Installed


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much may be read: bytes of one line, and of all of them, both uncompressed."""

    line: int
    total: int


@contextmanager
def writing(path: Path, *, force: bool, bounds: Bounds) -> Iterator[Callable[[Record], None]]:
    """Yield a function that writes the next line. The file is written atomically when the block ends."""
    # No name and no time in it: the same corpus gives the same bytes.
    with (
        replacing(path, force=force) as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
    ):
        yield _writer(path, packed, bounds)


def _writer(path: Path, packed: gzip.GzipFile, bounds: Bounds) -> Callable[[Record], None]:
    chain, total = Chain(), 0

    def write(record: Record) -> None:
        nonlocal total
        line = chain.line(record)
        total += len(line)
        if len(line) > bounds.line or total > bounds.total:
            setting = "MAX_ARCHIVE_LINE_BYTES" if len(line) > bounds.line else "MAX_ARCHIVE_BYTES"
            raise UsageError(f"{str(path)!r} would exceed the size limit for reading: raise HGMEM_{setting}")
        packed.write(line)

    return write


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """Yield the open file, to be read more than once: nobody puts another one in its place meanwhile."""
    if not path.is_file():
        raise DocumentError(f"{str(path)!r} is not a file: name an archive that `hgmem export` wrote")
    try:
        raw = path.open("rb")
    except OSError as error:
        raise DocumentError(f"{str(path)!r} cannot be read: {error.strerror or error}") from error
    with raw:
        yield raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line: its record, and how long it was."""

    record: dict[str, Any]
    length: int


class Reader:
    """Reads an archive from its beginning. After the last line, `records` and `digest` cover the whole archive."""

    def __init__(
        self, raw: IO[bytes], *, bounds: Bounds, schema_version: int, installed: Installed = nothing_installed
    ) -> None:
        self.records = Records(schema_version=schema_version, own_names=OwnNamesCheck(installed))
        self._raw = raw
        self._bounds = bounds
        self._chain = Chain()
        self._number = 0

    @property
    def digest(self) -> str:
        """The digest of the last line that was read, which stands for all before it."""
        return self._chain.digest

    def lines(self) -> Iterator[Line]:
        """Yield the checked lines. Raises `DocumentError` at the first invalid line."""
        try:
            for line in self._plain():
                record = self._chain.record(line)
                self.records.check(record)
                yield Line(record=record, length=len(line))
            if not self.records.ended:
                self._number += 1
                raise LineError("the last record is missing: the file is truncated")
        except LineError as error:
            raise DocumentError(f"{self._raw.name!r}, line {self._number}: {error}") from None

    def _plain(self) -> Iterator[bytes]:
        """Yield the lines as they are, no more of them in memory than one."""
        total = 0
        try:
            self._raw.seek(0)
            with gzip.GzipFile(fileobj=self._raw, mode="rb") as packed:
                while line := packed.readline(self._bounds.line + 1):
                    self._number += 1
                    total += len(line)
                    if len(line) > self._bounds.line:
                        raise LineError(f"longer than {self._bounds.line:,} bytes: raise HGMEM_MAX_ARCHIVE_LINE_BYTES")
                    if total > self._bounds.total:
                        raise LineError(
                            f"the archive has more than {self._bounds.total:,} bytes: raise HGMEM_MAX_ARCHIVE_BYTES"
                        )
                    yield line
        except EOFError:
            self._number += 1
            raise LineError("the compressed data end early: the file is truncated") from None
        except (OSError, zlib.error) as error:  # a file that is not gzip is an OSError too
            self._number += 1
            raise LineError(f"cannot be decompressed ({error}): the file is damaged or not an archive") from None

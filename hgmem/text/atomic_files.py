"""Atomic files: written beside their destination, then moved into place."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hgmem.errors import DocumentError, UsageError


@contextmanager
def replacing(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """Yield a file that appears at `path` when the block ends. Overwriting needs `force`.

    Raises `DocumentError` if it can't be written.
    """
    _refuse_existing(path, force)
    path = path.resolve()  # a symbolic link stays: its target is written
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        _refuse_existing(path, force)
        part.replace(path)
    except OSError as error:
        raise DocumentError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            part.unlink()


def _refuse_existing(path: Path, force: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder: name a file")
    if path.exists() and not path.is_file():
        raise UsageError(f"{str(path)!r} is not a regular file: name another")
    if path.exists() and not force:
        raise UsageError(f"{str(path)!r} exists: name another file, or pass --force (force=True) to replace it")

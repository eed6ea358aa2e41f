"""The page's graph library: a third-party file, downloaded when the package is built."""

import hashlib
from dataclasses import dataclass

from hgmem.errors import UsageError
from hgmem.memory.replay.fetching import FILES, FOLDER, NAME, VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The library's source and its licence."""

    text: str
    licence: str


def library() -> Library:
    """Return the library.

    Raises `UsageError`, with the remedy, if it is missing.
    """
    found: dict[str, str] = {}
    for name, digest in FILES.items():
        try:
            data = (FOLDER / name).read_bytes()
        except OSError:
            raise UsageError(
                f"{NAME} {VERSION}, which the page needs, is missing from {str(FOLDER)!r}: fetch it with `python "
                "-m hgmem.memory.replay.fetching` (npm or Maven); wheels include it"
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise UsageError(f"{str(FOLDER / name)!r} does not match {NAME} {VERSION}: delete it, then fetch it again")
        found[name] = data.decode()
    text, licence = (found[name] for name in FILES)
    return Library(text=text, licence=licence)

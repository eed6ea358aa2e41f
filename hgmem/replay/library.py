"""The graph library of the page: one file of another project, which is fetched when the package is built."""

import hashlib
from dataclasses import dataclass

from hgmem.errors import UsageError
from hgmem.replay.fetching import FILES, FOLDER, NAME, VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """The library's program and its licence."""

    text: str
    licence: str


def library() -> Library:
    """Return the library, or say how it is had."""
    found: dict[str, str] = {}
    for name, digest in FILES.items():
        try:
            data = (FOLDER / name).read_bytes()
        except OSError:
            raise UsageError(
                f"{NAME} {VERSION}, which draws the page, is not in {str(FOLDER)!r}: `python -m hgmem.replay.fetching` "
                "fetches it with npm or Maven; wheels bring it"
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise UsageError(f"{str(FOLDER / name)!r} is not the {NAME} {VERSION} that this version knows: delete it")
        found[name] = data.decode()
    text, licence = (found[name] for name in FILES)
    return Library(text=text, licence=licence)

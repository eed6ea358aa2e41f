"""One memory, ready to be looked at: painted, its guide and style served, the link that opens them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hgmem.browser.address import browser_of, checked, origins
from hgmem.browser.favourites import favourites
from hgmem.browser.guide import guide
from hgmem.browser.serving import Text, serving
from hgmem.errors import DocumentError
from hgmem.graph.database import Address, Database
from hgmem.graph.painting import pictured
from hgmem.links import link
from hgmem.model import Memory
from hgmem.resources import resource

GUIDE, STYLE = "guide.html", "hgmem.grass"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The link that opens Browser, the addresses of guide and style, and who is asked for a password there."""

    link: str
    guide: str
    style: str
    username: str
    password: str = field(default="", repr=False)


@contextmanager
def viewing(database: Database, memory: Memory, *, browser: str | None, port: int) -> Iterator[View]:
    """Yield what opens the memory in Browser; guide and style can be read until the block ends."""
    at = browser_of(database) if browser is None else checked(browser)
    style = resource("cypher", "browser", STYLE).read_text(encoding="utf-8")
    drawn = pictured(database, corpus=memory.corpus, memory=memory.uid)

    def texts(address: str) -> dict[str, Text]:
        return {
            GUIDE: Text(content=guide(memory, drawn, style=f"{address}/{STYLE}"), type="text/html"),
            STYLE: Text(content=style, type="text/plain"),
        }

    with serving(texts, origins=origins(at), port=port) as address:
        yield _view(at, database.address, address)


def _view(browser: str, to: Address, served: str) -> View:
    played = f"{served}/{GUIDE}"
    return View(
        link=link(browser, uri=to.uri, username=to.username, database=to.database, guide=played),
        guide=played,
        style=f"{served}/{STYLE}",
        username=to.username,
        password=to.password,
    )


def save(folder: Path) -> list[Path]:
    """Return the files of the style and of the favourites, copied into a folder: Browser imports both by hand, too."""
    files = [resource("cypher", "browser", STYLE), *(one.path for one in favourites().values())]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
    except OSError as error:
        raise DocumentError(f"{str(folder)!r} can't be written: {error.strerror or error}") from error
    return [folder / file.name for file in files]

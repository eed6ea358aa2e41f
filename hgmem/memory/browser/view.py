"""One memory, ready for Neo4j Browser: labels added, guide and style served, and the link that opens them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hgmem.errors import DocumentError
from hgmem.graph.browser_link import link
from hgmem.graph.database import Database
from hgmem.graph.painting import pictured
from hgmem.graph.translating import Address
from hgmem.memory.browser.address import browser_of, checked, origins
from hgmem.memory.browser.favourites import favourites
from hgmem.memory.browser.guide import guide
from hgmem.memory.browser.serving import Text, serving
from hgmem.text.resources import resource
from hgmem.values.records import Memory
from hgmem.values.systems import SystemInfo

GUIDE, STYLE = "guide.html", "hgmem.grass"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The link that opens Browser, the URLs of guide and style, and the user that the login form expects."""

    link: str
    guide: str
    style: str
    username: str
    password: str = field(default="", repr=False)


@contextmanager
def viewing(
    database: Database, memory: Memory, *, system: SystemInfo, browser: str | None, port: int
) -> Iterator[View]:
    """Serve guide and style until the block ends, and yield the view that opens the memory in Browser."""
    at = browser_of(database) if browser is None else checked(browser)
    style = resource("cypher", "browser", STYLE).read_text(encoding="utf-8")
    drawn = pictured(database, corpus=memory.corpus, memory=memory.uid)

    def texts(address: str) -> dict[str, Text]:
        return {
            GUIDE: Text(content=guide(memory, drawn, style=f"{address}/{STYLE}", system=system), type="text/html"),
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
    """Copy the files of the style and the favourites into a folder, for manual import. Return them."""
    files = [resource("cypher", "browser", STYLE), *(one.path for one in favourites().values())]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / file.name).write_bytes(file.read_bytes())
    except OSError as error:
        raise DocumentError(f"cannot write to {str(folder)!r}: {error.strerror or error}") from error
    return [folder / file.name for file in files]

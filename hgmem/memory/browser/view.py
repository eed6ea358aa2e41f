"""One memory, ready for Neo4j Browser: labels added, guide and style served, and the link that opens them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hgmem.errors import DocumentError
from hgmem.graph.database import Address, Database
from hgmem.graph.painting import pictured
from hgmem.graph.server import link
from hgmem.memory.browser.favourites import Caption, Favourite, favourites, styled
from hgmem.memory.browser.guide import guide
from hgmem.memory.browser.serving import Text, browser_of, checked, origins, serving
from hgmem.text.resources import resource
from hgmem.values.records import Memory
from hgmem.values.systems import SystemInfo

GUIDE, STYLE = "guide.html", "hgmem.grass"
# Types as models and users write them. Labels come from this list, never from a document.
KINDS = {
    "person": ("person", "people", "character", "human", "role"),
    "organization": ("organization", "organisation", "company", "institution", "group", "team", "agency"),
    "place": ("place", "location", "geo", "city", "country", "region", "building", "facility"),
    "event": ("event", "incident", "date", "time", "period"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The link that opens Browser, the URLs of guide and style, and the user that the login form expects."""

    link: str
    guide: str
    style: str
    username: str
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What systems add to guide and style: captions of what they build, favourites, and the memory's system."""

    captions: Sequence[Caption] = ()
    favourites: Sequence[Favourite] = ()
    system: SystemInfo | None = None


NOTHING = Drawing()


@contextmanager
def viewing(database: Database, memory: Memory, *, drawing: Drawing, browser: str | None, port: int) -> Iterator[View]:
    """Serve guide and style until the block ends, and yield the view that opens the memory in Browser."""
    system = drawing.system or SystemInfo(name=memory.system)
    at = browser_of(database) if browser is None else checked(browser)
    style = _style(drawing)
    drawn = pictured(database, corpus=memory.corpus, memory=memory.uid)

    def written(address: str) -> str:
        return guide(memory, drawn, style=f"{address}/{STYLE}", system=system, own=drawing.favourites)

    def texts(address: str) -> dict[str, Text]:
        return {
            GUIDE: Text(content=written(address), type="text/html"),
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


def save(folder: Path, drawing: Drawing = NOTHING) -> list[Path]:
    """Copy the style and the favourites into a folder, for manual import. Return the files."""
    texts = {STYLE: _style(drawing), **{one.path.name: one.text for one in favourites().values()}}
    texts |= {one.path.name: one.text for one in drawing.favourites}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise DocumentError(f"cannot write to {str(folder)!r}: {error.strerror or error}") from error
    return [folder / name for name in texts]


def _style(drawing: Drawing) -> str:
    return styled(resource("cypher", "browser", STYLE).read_text(encoding="utf-8"), drawing.captions)


def add_styling_labels(database: Database, *, corpus: str) -> int:
    """Add styling labels to the corpus and return the number of changed nodes. Unlisted types get none."""
    [entities] = database.run(
        "paint_entities",
        corpus=corpus,
        persons=KINDS["person"],
        organizations=KINDS["organization"],
        places=KINDS["place"],
        events=KINDS["event"],
    )
    [points] = database.run("paint_points", corpus=corpus)
    return int(entities["painted"]) + int(points["painted"])

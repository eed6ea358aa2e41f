"""One memory in Neo4j Browser: the link that opens it, and a small loopback server of its guide and style.

Also where Browser is, and the labels by which it draws.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from hgmem.errors import DocumentError, GraphError, UsageError
from hgmem.graph.database import Database
from hgmem.graph.painting import pictured
from hgmem.graph.server import link, server_settings
from hgmem.memory.browser.favourites import Favourite, favourites, styled
from hgmem.memory.browser.guide import guide
from hgmem.text.resources import resource
from hgmem.values.built import BuiltKind
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
HOST = "localhost"  # the host name that Browser's whitelist contains
_BINDING = "127.0.0.1"
_USUAL = 80  # the default port, which clients omit
HOSTED = "https://browser.neo4j.io"  # Neo4j's hosted Browser, for servers without one
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - addresses that local servers advertise
_SCHEMES = ("http", "https")
_SETTINGS = tuple(f"server.{scheme}.{what}" for scheme in _SCHEMES for what in ("enabled", "advertised_address"))


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
    """What systems add to guide and style: the kinds of what they build, favourites, and the memory's system."""

    kinds: Sequence[BuiltKind] = ()
    favourites: Sequence[Favourite] = ()
    system: SystemInfo | None = None


@contextmanager
def viewing(database: Database, memory: Memory, *, drawing: Drawing, browser: str | None, port: int) -> Iterator[View]:
    """Serve guide and style until the block ends, and yield the view that opens the memory in Browser."""
    system = drawing.system or SystemInfo(name=memory.system)
    at = browser_of(database) if browser is None else checked(browser)
    style = _style(drawing)
    drawn = pictured(database, corpus=memory.corpus, memory=memory.uid)

    def texts(address: str) -> dict[str, str]:
        text = guide(memory, drawn, style=f"{address}/{STYLE}", system=system, own=drawing.favourites)
        return {GUIDE: text, STYLE: style}

    with serving(texts, origins=origins(at), port=port) as served:
        to, played = database.address, f"{served}/{GUIDE}"
        yield View(
            link=link(at, uri=to.uri, username=to.username, database=to.database, guide=played),
            guide=played,
            style=f"{served}/{STYLE}",
            username=to.username,
            password=to.password,
        )


def save(folder: Path, drawing: Drawing) -> list[Path]:
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
    return styled(resource("cypher", "browser", STYLE).read_text(encoding="utf-8"), drawing.kinds)


def add_styling_labels(database: Database, *, corpus: str) -> int:
    """Add styling labels to the corpus and return the number of changed entities. Unlisted types get none."""
    [entities] = database.run(
        "paint_entities",
        corpus=corpus,
        persons=KINDS["person"],
        organizations=KINDS["organization"],
        places=KINDS["place"],
        events=KINDS["event"],
    )
    return int(entities["painted"])


@contextmanager
def serving(texts: Callable[[str], Mapping[str, str]], *, origins: frozenset[str], port: int = 0) -> Iterator[str]:
    """Serve texts by name until the block ends, and yield their base URL. `texts` is called with that URL.

    Only pages of `origins` can read them. Raises `UsageError` if the port is in use.
    """
    try:
        server = ThreadingHTTPServer((_BINDING, port), BaseHTTPRequestHandler)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another with --port") from error
    address = f"http://{HOST}:{server.server_address[1]}"
    server.RequestHandlerClass = _handler(texts(address), origins=origins, port=int(server.server_address[1]))
    thread = Thread(target=server.serve_forever, name="hgmem-browser", daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(texts: Mapping[str, str], *, origins: frozenset[str], port: int) -> type[BaseHTTPRequestHandler]:
    hosts = {f"{name}:{port}" for name in (HOST, _BINDING)} | ({HOST, _BINDING} if port == _USUAL else set())

    class Handler(BaseHTTPRequestHandler):
        """Serves exactly these texts, and only under this machine's expected host name."""

        def do_GET(self) -> None:
            name = self.path.partition("?")[0].removeprefix("/")
            found = texts.get(name)
            if self.headers.get("Host") not in hosts or found is None:
                self.send_error(404)
                return
            body = found.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"text/{'html' if name.endswith('.html') else 'plain'}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_OPTIONS(self) -> None:
            self.send_response(204)
            self.send_header("Access-Control-Allow-Methods", "GET, OPTIONS")
            self.send_header("Access-Control-Allow-Headers", self.headers.get("Access-Control-Request-Headers", ""))
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def end_headers(self) -> None:
            """Allow Browser's pages to read the response, and no others."""
            origin = self.headers.get("Origin", "") if hasattr(self, "headers") else ""
            if origin in origins:
                self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Vary", "Origin")
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    return Handler


def browser_of(database: Database) -> str:
    """Return the address of the server's own Browser, or of the hosted one for Aura."""
    parts = urlsplit(database.address.uri)
    if (parts.hostname or "").endswith(".databases.neo4j.io"):
        return HOSTED
    try:
        found = server_settings(database, names=_SETTINGS)
    except GraphError:  # the user lacks the privilege to ask
        found = {}
    for scheme in _SCHEMES:
        if found.get(f"server.{scheme}.enabled") == "true":
            advertised = found[f"server.{scheme}.advertised_address"]
            return f"{scheme}://{_reachable(advertised, parts.hostname)}/browser/"
    raise UsageError(
        f"the Neo4j Browser address of {database.address.uri!r} is unknown: pass it, such as --browser "
        "http://host:7474/browser/"
    )


def _reachable(advertised: str, host: str | None) -> str:
    """Return host and port. A server that advertises localhost is replaced by the host that the driver reaches."""
    parts = urlsplit(f"//{advertised}")
    if host and parts.hostname in LOOPBACK:
        named = f"[{host}]" if ":" in host else host
        return f"{named}:{parts.port}" if parts.port else named
    return advertised


def checked(browser: str) -> str:
    """Return a Browser address from the user, without the additions of a link.

    Raises `UsageError` if it is not an HTTP address.
    """
    try:
        parts = urlsplit(browser)
        usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        usable = False
    if not usable:
        raise UsageError(f"invalid Neo4j Browser address {browser!r}: use, for example, http://host:7474/browser/")
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def origins(browser: str) -> frozenset[str]:
    """Return the possible origins of that Browser's pages. A Browser on this machine has several."""
    parts = urlsplit(browser)
    port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    names = ("localhost", "127.0.0.1", "[::1]") if parts.hostname in LOOPBACK else (parts.hostname or "",)
    return frozenset(f"{parts.scheme}://{name}{port}" for name in names)

"""Where Neo4j Browser is, as the server says or as somebody gave it."""

from urllib.parse import urlsplit

from hgmem.errors import GraphError, UsageError
from hgmem.graph.database import Database
from hgmem.graph.server import server_settings

HOSTED = "https://browser.neo4j.io"  # Neo4j's own, for servers that bring none along
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - what servers say of themselves
_SCHEMES = ("http", "https")
_SETTINGS = tuple(f"server.{scheme}.{what}" for scheme in _SCHEMES for what in ("enabled", "advertised_address"))


def browser_of(database: Database) -> str:
    """Return the address of the server's own Browser, or of the hosted one for Aura."""
    parts = urlsplit(database.address.uri)
    if (parts.hostname or "").endswith(".databases.neo4j.io"):
        return HOSTED
    try:
        said = server_settings(database, names=_SETTINGS)
    except GraphError:  # the user may not ask
        said = {}
    for scheme in _SCHEMES:
        if said.get(f"server.{scheme}.enabled") == "true":
            return f"{scheme}://{_seen_from_here(said[f'server.{scheme}.advertised_address'], parts.hostname)}/browser/"
    raise UsageError(
        f"{database.address.uri!r} does not say where its Neo4j Browser is: give its address, such as "
        "--browser http://host:7474/browser/"
    )


def _seen_from_here(advertised: str, host: str | None) -> str:
    """Return host and port; a server that calls itself localhost is where the driver reaches it."""
    parts = urlsplit(f"//{advertised}")
    if host and parts.hostname in LOOPBACK:
        named = f"[{host}]" if ":" in host else host
        return f"{named}:{parts.port}" if parts.port else named
    return advertised


def checked(browser: str) -> str:
    """Return the address of a Browser that somebody gave, without what a link adds to it."""
    try:
        parts = urlsplit(browser)
        usable = parts.scheme in _SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        usable = False
    if not usable:
        raise UsageError(f"{browser!r} is no address of a Neo4j Browser: give one such as http://host:7474/browser/")
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def origins(browser: str) -> frozenset[str]:
    """Return what a page of that Browser calls its origin; on this machine by either of its names."""
    parts = urlsplit(browser)
    port = f":{parts.port}" if parts.port not in (None, 80, 443) else ""
    names = ("localhost", "127.0.0.1", "[::1]") if parts.hostname in LOOPBACK else (parts.hostname or "",)
    return frozenset(f"{parts.scheme}://{name}{port}" for name in names)

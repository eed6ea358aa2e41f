"""The address of Neo4j Browser, from the server or from the user."""

from urllib.parse import urlsplit

from hgmem.errors import GraphError, UsageError
from hgmem.graph.database import Database
from hgmem.graph.server import server_settings

HOSTED = "https://browser.neo4j.io"  # Neo4j's hosted Browser, for servers without one
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")  # noqa: S104 - addresses that local servers advertise
_SCHEMES = ("http", "https")
_SETTINGS = tuple(f"server.{scheme}.{what}" for scheme in _SCHEMES for what in ("enabled", "advertised_address"))


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

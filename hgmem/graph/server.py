"""The server itself: its settings, whether it answers, and links to its Neo4j Browser."""

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from hgmem.errors import GraphError

if TYPE_CHECKING:
    from hgmem.graph.values import Runner  # which imports the driver: `hgmem up` need not wait for it


def server_settings(database: "Runner", *, names: Sequence[str]) -> dict[str, str]:
    """Return settings of the server by name, without those that the user may not read."""
    return {str(row["name"]): str(row["value"] or "") for row in database.run("server_settings", names=list(names))}


def ping(uri: str, *, username: str, password: str, timeout: float) -> str | None:
    """Return the version of the server if it answers `RETURN 1` within `timeout` seconds, else None.

    Raises `GraphError` if it refuses the password, since waiting does not help.
    """
    # Importing the driver is slow. An open port alone proves nothing.
    import neo4j
    from neo4j.exceptions import AuthError, DriverError, Neo4jError

    try:
        with (
            neo4j.GraphDatabase.driver(
                uri,
                auth=(username, password),
                connection_timeout=timeout,
                connection_acquisition_timeout=timeout,
                telemetry_disabled=True,
            ) as driver,
            driver.session() as session,
        ):
            agent = session.run("RETURN 1").consume().server.agent
    except AuthError as error:
        raise GraphError(f"{uri!r} rejected user {username!r} or the password: check both") from error
    except (DriverError, Neo4jError):
        return None
    return agent.removeprefix("Neo4j/")


def link(browser: str, *, uri: str, username: str, database: str | None = None, guide: str = "") -> str:
    """Return the address of a Browser with server, user and database filled in.

    With `guide`, Browser plays that guide.
    """
    scheme, _, rest = uri.partition("://")
    given = {"dbms": f"{scheme}://{quote(username, safe='')}@{rest}"}
    if database:
        given["db"] = database
    if guide:
        given |= {"cmd": "play", "arg": guide}
    return f"{browser}?{urlencode(given, safe=':/@')}"

"""Check whether a server answers queries."""

from hgmem.errors import GraphError


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

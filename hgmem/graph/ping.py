"""Whether a server answers: the question that decides readiness, before anything else is known of it."""

from hgmem.errors import GraphError


def ping(uri: str, *, username: str, password: str, timeout: float) -> str | None:
    """Return the version of the server that answered `RETURN 1`, or None if none did in `timeout` seconds.

    A refused password is an answer too, and no waiting helps against it: `GraphError`.
    """
    # Importing the driver takes longer than most callers have; an open port alone proves nothing.
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
        raise GraphError(f"{uri!r} refuses the user {username!r} or the password: check both") from error
    except (DriverError, Neo4jError):
        return None
    return agent.removeprefix("Neo4j/")

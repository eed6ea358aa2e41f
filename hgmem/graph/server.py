"""Typed twins of `cypher/server.cypher`."""

from collections.abc import Sequence

from hgmem.graph.values import Runner


def server_settings(database: Runner, *, names: Sequence[str]) -> dict[str, str]:
    """Return settings of the server by name; those that the user may not read are missing."""
    return {str(row["name"]): str(row["value"] or "") for row in database.run("server_settings", names=list(names))}

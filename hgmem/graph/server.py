"""Typed wrappers for `cypher/server.cypher`."""

from collections.abc import Sequence

from hgmem.graph.values import Runner


def server_settings(database: Runner, *, names: Sequence[str]) -> dict[str, str]:
    """Return settings of the server by name, without those that the user may not read."""
    return {str(row["name"]): str(row["value"] or "") for row in database.run("server_settings", names=list(names))}

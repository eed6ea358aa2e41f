"""Typed wrappers for `cypher/embeddings.cypher`."""

from hgmem.graph.values import Runner


def leased_memories(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the uids of memories whose lease was renewed in the last `timeout` seconds."""
    return [row["uid"] for row in database.run("leased_memories", corpus=corpus, timeout=timeout)]


def leased_builds(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the systems whose build's lease was renewed in the last `timeout` seconds."""
    return [row["system"] for row in database.run("leased_builds", corpus=corpus, timeout=timeout)]

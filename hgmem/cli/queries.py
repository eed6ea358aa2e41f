"""Queries for people to paste into Neo4j Browser: each draws a picture."""

_POINTS = "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_POINT]->(p:MemoryPoint)-[:INVOLVES]->(:Entity)"
_NOW = " WHERE p.died IS NULL"
_ALIVE = " WHERE p.born <= {step} AND (p.died IS NULL OR p.died > {step})"
_CITED = (
    "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_ANSWER]->(:Answer)-[:HAS_CITATION]->(:Citation)-[:CITES]->(:Chunk)"
)


def picture(memory: str, *, points: bool = True, step: int | None = None) -> str:
    """Return the query that draws a memory: its points with their entities, alive at the end of a step or now.

    A memory without points, such as that of the naive system, is drawn as its answer with what that cites.
    """
    uid = memory.replace("\\", "\\\\").replace("'", "\\'")
    if not points:
        return f"{_CITED.format(uid=uid)} RETURN path"
    alive = _NOW if step is None else _ALIVE.format(step=step)
    return f"{_POINTS.format(uid=uid)}{alive} RETURN path"

"""Queries for people to paste into Neo4j Browser: each draws a picture."""

_POINTS = "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_POINT]->({point}:MemoryPoint)-[:INVOLVES]->(:Entity)"
_ALIVE = " WHERE p.born <= {step} AND (p.died IS NULL OR p.died > {step})"
_CITED = (
    "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_ANSWER]->(:Answer)-[:HAS_CITATION]->(:Citation)-[:CITES]->(:Chunk)"
)


def picture(memory: str, *, points: bool = True, step: int | None = None) -> str:
    """Return the query that draws a memory: its points with their entities, at the end of a step or all of them.

    A memory without points, such as that of the naive system, is drawn as its answer with what that cites.
    """
    uid = memory.replace("\\", "\\\\").replace("'", "\\'")
    if not points:
        return f"{_CITED.format(uid=uid)} RETURN path"
    alive = "" if step is None else _ALIVE.format(step=step)
    return f"{_POINTS.format(uid=uid, point='' if step is None else 'p')}{alive} RETURN path"

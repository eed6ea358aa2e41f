"""Cypher queries that draw a memory, for users to paste into Neo4j Browser."""

_POINTS = "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_POINT]->(p:MemoryPoint)-[:INVOLVES]->(:Entity)"
_NOW = " WHERE p.died IS NULL"
_ACTIVE_AT = " WHERE p.born <= {step} AND (p.died IS NULL OR p.died > {step})"
_CITED = (
    "MATCH path = (:Memory {{uid: '{uid}'}})-[:HAS_ANSWER]->(:Answer)-[:HAS_CITATION]->(:Citation)-[:CITES]->(:Chunk)"
)


def picture(memory: str, *, points: bool = True, step: int | None = None) -> str:
    """Return the query that draws a memory: the points active now, or at the end of `step`, with their entities.

    A memory without points, such as that of another system, is drawn as its answer with the cited chunks.
    """
    uid = memory.replace("\\", "\\\\").replace("'", "\\'")
    if not points:
        return f"{_CITED.format(uid=uid)} RETURN path"
    active = _NOW if step is None else _ACTIVE_AT.format(step=step)
    return f"{_POINTS.format(uid=uid)}{active} RETURN path"

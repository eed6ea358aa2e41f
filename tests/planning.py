"""How tests have a statement planned."""


def forced(query: str) -> str:
    """Return the query to explain, planned anew: kept plans may be of an emptier database."""
    return f"EXPLAIN {query.replace(' replan=skip', '', 1).replace('CYPHER 25', 'CYPHER 25 replan=force', 1)}"

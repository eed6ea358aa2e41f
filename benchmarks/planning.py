"""Measure how long Neo4j plans each statement on a server just started, and whether it plans it again for other sizes.

Each statement is explained with lists of 0, 1, 3, 30 and 300 elements, with and without documents. The first time pays
for the plan; any later one that takes as long was planned again. Prints JSON: the seconds of the first plans in all and
of the slowest, the slowest later one in milliseconds, and the statements that were planned again.
"""

import json
import sys
import time
from typing import Any

import neo4j
from running import access, running

from hgmem import HGMem
from hgmem.graph.statements import Statement, statements
from hgmem.testing import DeterministicEmbedder

SIZES = (0, 1, 3, 30, 300)
SLOWEST = 10  # statements that are named
AGAIN = 0.1  # seconds: a cached plan is found in a hundredth of it


def main() -> None:
    """Print the figures."""
    with running() as (server, _):
        HGMem.open("planning", embedder=DeterministicEmbedder(), **access(server)).close()  # makes the schema
        login = (server.username, server.password.get_secret_value())
        with (
            neo4j.GraphDatabase.driver(server.uri, auth=login, notifications_min_severity="OFF") as driver,
            driver.session() as session,
        ):
            asked = {name: one for name, one in statements().items() if one.mode != "schema"}
            json.dump(report({name: explained(session, one) for name, one in asked.items()}), sys.stdout, indent=2)


def explained(session: neo4j.Session, statement: Statement) -> list[float]:
    """Return the seconds of explaining the statement with each size of its lists."""
    seconds = []
    for size in SIZES:
        for documents in (None, [str(number) for number in range(size)]):
            given: dict[str, Any] = {
                name: [{"uid": str(number)} for number in range(size)] for name in statement.parameters
            }
            given |= {"documents": documents} if "documents" in given else {}
            began = time.perf_counter()
            session.run(f"EXPLAIN {statement.query}", {"in": given}).consume()
            seconds.append(time.perf_counter() - began)
    return seconds


def report(seconds: dict[str, list[float]]) -> dict[str, Any]:
    """Return the figures of all statements from the seconds of each."""
    first = {name: some[0] for name, some in seconds.items()}
    later = {name: max(some[1:]) for name, some in seconds.items()}
    slowest = sorted(first, key=lambda name: -first[name])[:SLOWEST]
    return {
        "statements": len(seconds),
        "first_seconds": round(sum(first.values()), 1),
        "slowest_first_seconds": {name: round(first[name], 2) for name in slowest},
        "slowest_later_ms": round(1000 * max(later.values()), 1),
        "planned_again": {name: round(some, 2) for name, some in later.items() if some > AGAIN},
    }


if __name__ == "__main__":
    main()

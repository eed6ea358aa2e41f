"""Fill an empty corpus from stages by 1, 2 and 4 writers, and the ordinary way: rows a second, and repeated attempts.

    python benchmarks/stages.py FILE… [--times 2]

`tests/long/ways.py` compares the graphs.
"""

import argparse
import json
import time
from tempfile import TemporaryDirectory
from typing import Any

from measures import timed
from neo4j import GraphDatabase
from running import access, running

from hgmem import HGMem
from hgmem.stages.parallel_writes import Writers
from hgmem.testing import DeterministicEmbedder

ROWS = "MATCH (n) WHERE n.corpus = $corpus RETURN count(n) + sum(COUNT { (n)-->() }) AS rows"
CORPUS = "stages"


def rows_of(given: dict[str, Any]) -> int:
    """Return how many nodes and relationships the corpus has."""
    auth = (given["username"], given["password"].get_secret_value())
    with GraphDatabase.driver(given["uri"], auth=auth, notifications_min_severity="OFF") as driver:
        return int(driver.execute_query(ROWS, corpus=CORPUS).records[0]["rows"])


def writers(files: list[str], *, times: int) -> dict[str, Any]:
    """Fill an empty corpus by several numbers of writers, and return rows a second: nodes and relationships."""
    found: dict[str, Any] = {}
    with (
        running() as (server, _),
        TemporaryDirectory() as folder,
        HGMem.open(CORPUS, embedder=DeterministicEmbedder(384), resolve=False, **access(server)) as client,
    ):
        client.add(files, stages=folder)
        rows = rows_of(access(server))
        repeated: list[Writers] = []
        closing = Writers.__exit__

        def exit_(self: Writers, *given: object) -> None:
            repeated.append(self)
            closing(self, *given)

        Writers.__exit__ = exit_  # type: ignore[method-assign]
        for number in (1, 2, 4) * times:
            client.delete()
            began = time.perf_counter()
            client.add(files, stages=folder, writers=number)
            took = time.perf_counter() - began
            run = {"seconds": round(took, 2), "rows_a_second": round(rows / took)}
            found.setdefault(f"writers_{number}", []).append({**run, "repeated": repeated[-1].repeated})
        client.delete()
        took = timed(lambda: client.add(files))
        found["ordinary"] = {"seconds": took, "rows_a_second": round(rows / took)}
        found["rows"] = rows
    return found


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--times", type=int, default=2)
    options = parser.parse_args()
    print(json.dumps(writers(options.files, times=options.times), indent=1))


if __name__ == "__main__":
    main()

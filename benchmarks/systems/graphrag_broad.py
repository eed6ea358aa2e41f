"""Neo4j's GraphRAG package, asked as broadly as the floor: 100 candidates of each index.

It reads what `systems.graphrag` wrote. The ratio of candidates is an option of the package's own search.
"""

from systems.graphrag import System as Narrow


class System(Narrow):
    """See `serve.Benched`."""

    pool = 100

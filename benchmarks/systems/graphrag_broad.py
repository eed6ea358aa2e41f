"""Neo4j's GraphRAG package with as many candidates as the floor: 100 from each index.

It reads the graph that `systems.graphrag` wrote. The ratio of candidates is an option of the package's own search.
"""

from systems.graphrag import System as Narrow


class System(Narrow):
    """See `serve.Benched`."""

    pool = 100

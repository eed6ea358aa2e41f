"""The workloads, as data. What each is for and what it does not say is in `README.md`."""

from dataclasses import dataclass

NEO4J_PEERS = ("graphrag", "langchain")
QUICK = ("floor", "product", *NEO4J_PEERS, "lightrag")
FULL = (*QUICK, "lightrag_neo4j", "graphiti")
OWN_SERVER = ("graphiti",)  # its labels are the product's


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """Steps of `size` sub-queries each, beside a memory of `points` points of `of` entities."""

    name: str
    size: int
    points: int = 0
    of: int = 4
    local: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much of everything a run does. A graph is 1,279 entities, 1,791 relations and 754 chunks."""

    systems: tuple[str, ...]
    writes: int  # measured, after one that warms up
    steps: int  # different ones of a case
    rounds: int  # that each step is run in, after two that warm up
    seconds: float  # of each throughput
    sizes: tuple[int, ...]  # graphs in one corpus, one after the other
    floor_until: int  # graphs
    peers_until: int
    corpora: int  # that a graph each is spread over
    points: tuple[int, ...]  # of a memory that grows
    stored: tuple[int, ...]  # memories beside a question


RETRIEVALS = (
    Retrieval(name="global, 1 sub-query", size=1),
    Retrieval(name="global, 3 sub-queries", size=3),
    Retrieval(name="global, 8 sub-queries", size=8),
    Retrieval(name="global, 3, without 50 entities", size=3, points=13),
    Retrieval(name="global, 3, without 500 entities", size=3, points=125),
    Retrieval(name="local, 3, memory of 5 points", size=3, points=5, local=True),
    Retrieval(name="local, 3, memory of 20 points", size=3, points=20, local=True),
    Retrieval(name="local, 3, memory of 50 points", size=3, points=50, local=True),
)
THREADS = (1, 4, 16)
PLANS = {
    "bench": Plan(
        systems=QUICK,
        writes=3,
        steps=10,
        rounds=4,
        seconds=4,
        sizes=(1, 10),
        floor_until=10,
        peers_until=1,
        corpora=0,
        points=(10, 100, 1_000),
        stored=(0, 1_000),
    ),
    "full": Plan(
        systems=FULL,
        writes=5,
        steps=20,
        rounds=6,
        seconds=10,
        sizes=(1, 10, 50, 500),
        floor_until=50,
        peers_until=10,
        corpora=50,
        points=(10, 100, 1_000),
        stored=(0, 1_000, 10_000),
    ),
}

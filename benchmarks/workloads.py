"""The workloads, as data. `README.md` describes their purpose and limits."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

NEO4J_PEERS = ("graphrag", "graphrag_broad", "langchain")
QUICK = ("floor", "product", *NEO4J_PEERS, "lightrag")
FULL = (*QUICK, "lightrag_neo4j", "graphiti")
IN_NEO4J = (*NEO4J_PEERS, "lightrag_neo4j", "graphiti")  # peers with their graph in Neo4j
OWN_SERVER = ("graphiti",)  # uses hgmem's labels
LABELS = {"product": "hgmem", "graphrag_broad": "graphrag, asked as broadly"}  # the others keep their names


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
    """The size of a run. Sizes are in graphs: one is the whole graph of the run."""

    systems: tuple[str, ...]
    writes: int  # measured, after some for warm-up
    steps: int  # different ones per case
    rounds: int  # runs of each step, after some for warm-up
    windows: int  # per throughput, which is their median, after one for warm-up; systems take turns
    seconds: float  # per window
    warm: float  # seconds of warm-up by whole questions
    sizes: tuple[int, ...]  # graphs in one corpus, one after the other
    floor_until: int  # graphs
    peers_until: int
    corpora: int  # with one graph each; 0 for none
    large: int  # graphs in the kept corpus of hgmem alone; 0 for none
    asked: int  # whole questions
    points: tuple[int, ...]  # of a memory that grows
    stored: tuple[int, ...]  # memories beside a question
    characters: int  # of the indexed text, 0 for all of it
    heap: str  # of each server
    pagecache: str

    def until(self, name: str) -> int:
        """Return the maximum number of graphs of a system in the workloads that grow."""
        if name == "product":
            return max(*self.sizes, self.corpora)
        return self.floor_until if name == "floor" else self.peers_until


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
# Features of a case, beside nearest entities, relations and chunks, that peers leave to their caller or lack.
LEFT_TO_THE_CALLER = {
    "graphrag": "keeps no memory: the caller names what to leave out",
    "graphrag_broad": "keeps no memory: the caller names what to leave out",
    "langchain": "keeps no memory: the caller names what to leave out",
}
LACKING = {
    "graphrag": "a statement a sub-query",
    "graphrag_broad": "a statement a sub-query; with 500 entities left out it asks for up to 1,010 candidates, where "
    "hgmem asks for at most 650",
    "langchain": "no index for a filtered search; two statements a sub-query",
    "lightrag_neo4j": "vectors and chunks outside Neo4j, no words",
    "graphiti": "chunks by words alone, no vector index",
}
TINY = Plan(  # of the tests
    systems=("floor", "product"),
    writes=1,
    steps=2,
    rounds=1,
    windows=1,
    seconds=0.1,
    warm=0,
    sizes=(1, 2),
    floor_until=2,
    peers_until=1,
    corpora=2,
    large=0,
    asked=1,
    points=(10, 20),
    stored=(0, 10),
    characters=2_000,
    heap="512m",
    pagecache="128m",
)
PLANS = {
    "tiny": TINY,
    "peers": replace(TINY, systems=FULL, sizes=(1,), floor_until=1, corpora=1),  # checks that every system runs
    "bench": Plan(
        systems=QUICK,
        writes=7,
        steps=10,
        rounds=3,
        windows=4,
        seconds=0.5,
        warm=12,
        sizes=(5,),
        floor_until=5,
        peers_until=0,
        corpora=0,
        large=0,
        asked=8,
        points=(10, 100, 1_000),
        stored=(0, 1_000),
        characters=30_000,
        heap="2g",
        pagecache="2g",
    ),
    "full": Plan(
        systems=FULL,
        writes=9,
        steps=20,
        rounds=6,
        windows=9,
        seconds=1.2,
        warm=30,
        sizes=(1, 10, 50),
        floor_until=50,
        peers_until=10,
        corpora=50,
        large=500,
        asked=8,
        points=(10, 100, 1_000),
        stored=(0, 1_000, 10_000),
        characters=0,
        heap="4g",
        pagecache="4g",
    ),
}


def ordered(systems: Iterable[str]) -> list[str]:
    """Return the systems, each once, in the order of all tables and plots; a system that you add comes last."""
    there = set(systems)
    return [name for name in FULL if name in there] + sorted(there.difference(FULL))


def label(name: str) -> str:
    """Return the name for tables and plots."""
    return LABELS.get(name, name)

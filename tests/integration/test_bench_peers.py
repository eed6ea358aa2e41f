"""Results of the benchmarks' peers, each in its own environment, on a server without other users."""

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from servers import own_server
from small_graph import ENTITIES, write

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from environments import HERE, SAME, Child, Unsupported, peers, python
from graphs import Found, load, queries, steps
from nearest import recall, wanted

pytestmark = pytest.mark.long

WRITTEN = {"mine": (0, 2), "theirs": (1,)}  # corpora, and the copies in each


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a graph."""
    folder = tmp_path_factory.mktemp("graph")
    write(folder)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """An empty server, because some peers use labels like ours."""
    with own_server(tmp_path_factory.mktemp("peers")) as own:
        yield {
            "uri": own.server.uri,
            "username": own.server.username,
            "password": own.server.password.get_secret_value(),
            "folder": str(tmp_path_factory.mktemp("files")),
        }


@pytest.fixture(scope="module", params=list(peers()))
def peer(request: pytest.FixtureRequest, place: dict[str, str], graph: Path) -> Iterator[Child]:
    """Each peer, with the graph's copies in two corpora."""
    with Child(request.param, python=python(request.param)) as child:
        assert child.ask("open", **place)
        for corpus, copies in WRITTEN.items():
            child.ask("write", folder=str(graph), corpus=corpus, copies=list(copies))
        yield child
        child.ask("close")


@pytest.mark.parametrize(("corpus", "copy"), [(corpus, copy) for corpus, copies in WRITTEN.items() for copy in copies])
def test_a_peer_finds_what_is_nearest_and_nothing_of_another_corpus(
    peer: Child, graph: Path, corpus: str, copy: int
) -> None:
    own = {
        chunk["id"]: vector
        for each in WRITTEN[corpus]
        for chunk, vector in zip(load(graph, each).chunks, load(graph, each).vectors["chunks"], strict=True)
    }
    asked, chance = queries(graph, copy), Random(3)
    peer.ask("ready", folder=str(graph), corpus=corpus, size=1, steps=12, seed=3, copy=copy)
    for at in range(12):
        (query,) = chance.sample(asked, 1)
        found = peer.ask("retrieve", at=at)
        nearest = sorted(own, key=lambda chunk: -float(own[chunk] @ query.vector))
        assert nearest[0] in found["chunks"]
        assert set(found["chunks"]) <= set(own)
        assert len(found["chunks"]) == len(set(found["chunks"])) >= 5
        assert len(found["entities"]) == len(set(found["entities"])) >= 5
        assert found["relations"] >= 3
        if peer.name == "langchain":  # it compares every vector
            assert set(nearest[:5]) <= set(found["chunks"])


def test_a_peer_answers_all_sub_queries_of_a_step_for_several_threads(peer: Child, graph: Path) -> None:
    peer.ask("ready", folder=str(graph), corpus="theirs", size=1, steps=1, seed=4, copy=1)
    one = peer.ask("retrieve", at=0)
    peer.ask("ready", folder=str(graph), corpus="theirs", size=4, steps=2, seed=4, copy=1)
    several = peer.ask("retrieve", at=0)
    assert set(one["chunks"][:1]) <= set(several["chunks"])
    assert len(several["entities"]) > len(one["entities"])
    assert len(several["chunks"]) > len(one["chunks"])
    assert peer.ask("throughput", threads=3, seconds=1.0) > 0


def test_a_peer_leaves_out_what_memory_holds_or_says_that_it_can_not(peer: Child, graph: Path) -> None:
    held = {"points": 1, "of": ENTITIES - 3}
    ready = peer.ask("ready", folder=str(graph), corpus="theirs", size=1, steps=1, seed=4, copy=1, **held)
    if peer.name in ("graphrag", "langchain"):
        assert ready == 1
        assert len(peer.ask("retrieve", at=0)["entities"]) == 3
    else:
        assert isinstance(ready, Unsupported)
    local = peer.ask("ready", folder=str(graph), corpus="theirs", size=1, steps=1, seed=4, copy=1, points=2, local=True)
    assert isinstance(local, Unsupported)


def test_a_peer_that_reads_what_another_wrote_finds_as_much_and_its_own_corpus_alone(
    peer: Child, place: dict[str, str], graph: Path
) -> None:
    for name in [name for name, held in SAME.items() if held == peer.name]:
        step = {"folder": str(graph), "corpus": "theirs", "size": 3, "steps": 4, "seed": 4, "copy": 1}
        exact = wanted(steps(graph, **{name: step[name] for name in step if name != "folder"}), [load(graph, 1)])
        with Child(name, python=python(name)) as broad:
            broad.ask("open", **place)
            broad.ask("ready", **step)
            for at, nearest in enumerate(exact):
                done = broad.ask("retrieve", at=at)
                assert all(chunk.endswith(" 1") for chunk in done["chunks"])
                bought = Found(
                    entities=tuple(done["entities"]), relations=done["relations"], chunks=tuple(done["chunks"])
                )
                assert recall(bought, nearest) == {"entities": 1.0, "chunks": 1.0}


def test_a_peer_runs_what_is_written_down_of_it(peer: Child, place: dict[str, str]) -> None:
    wanted = dict(one.split("==") for one in peers()[peer.name])
    with Child(peer.name, python=python(peer.name)) as another:
        versions = another.ask("open", **place)
        another.ask("close")
    assert versions
    assert versions == {name: wanted[name] for name in versions}
    table = (HERE / "PEERS.md").read_text(encoding="utf-8")
    first = next(iter(versions))
    assert f"{first} {versions[first]}" in table

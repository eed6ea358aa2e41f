"""The benchmarks' calculations: recall, the share of waiting time, comparison with peers, sizes on disk."""

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import kept
import running
from asking import descriptions
from comparing import against_peers
from graphs import Found, Graph, Query, Step
from indexing import NotedModel, covered
from kept import home
from large import Growing, each, growth
from nearest import recall, wanted

from hgmem.settings import Settings


def graph(names: str, *, ties: str = "") -> Graph:
    """Return a graph of entities and chunks on a circle, one after the other; `ties` are pairs of names."""
    angles = np.linspace(0, np.pi / 2, len(names))
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return Graph(
        entities=[{"name": name} for name in names],
        chunks=[{"id": f"c{name}"} for name in names],
        relations=[{"source": one, "target": other, "weight": 1.0} for one, other in ties.split()],
        vectors={"entities": vectors, "chunks": vectors, "relations": vectors},
    )


def query(*entities: str) -> Query:
    return Query(text="?", vector=np.asarray([1, 0], dtype=np.float32), entities=entities)


def test_what_is_nearest_is_exact_and_leaves_out_what_memory_holds() -> None:
    steps = [
        Step(corpus="x", queries=(query(),)),
        Step(corpus="x", queries=(query(),), memory=(("A", "C"),)),
    ]
    ((plain,), (beside,)) = wanted(steps, [graph("ABCDEFGHIJ")])
    assert plain.entities == set("ABCDE")
    assert beside.entities == set("BDEFG")
    assert beside.chunks == {"cA", "cB", "cC", "cD", "cE"}


def test_what_is_nearest_to_a_local_sub_query_lies_around_its_points() -> None:
    step = Step(corpus="x", queries=(query("J"),), local=True, memory=(("J", "H"), ("A", "B")))
    ((found,),) = wanted([step], [graph("ABCDEFGHIJ", ties="JG DJ EF")])
    assert found.entities == set("DGHJ")
    assert found.chunks == {"cA", "cB", "cC", "cD", "cE"}


def test_several_graphs_are_one_corpus_and_what_is_as_near_is_as_good() -> None:
    ((found,),) = wanted([Step(corpus="x", queries=(query(),))], [graph("ABCDE"), graph("VWXYZ")])
    assert found.entities == set("AVBWCX")  # the fifth and the sixth are equally near


def test_recall_is_of_each_sub_query_and_names_may_be_written_otherwise() -> None:
    step = Step(corpus="x", queries=(query(), query()))
    (nearest,) = wanted([step], [graph("ABCDEFGH")])
    found = Found(entities=("a", " B", '"c"', "H"), relations=0, chunks=("cA", "cB", "cC", "cD", "cE", "cF"))
    assert recall(found, nearest) == {"entities": pytest.approx(0.6), "chunks": 1.0}
    assert recall(Found(entities=(), relations=0, chunks=()), nearest) == {"entities": 0.0, "chunks": 0.0}


def test_time_under_way_counts_once_and_only_within() -> None:
    spans = [(5.0, 7.0), (1.0, 3.0), (2.0, 4.0), (2.5, 2.6), (9.0, 20.0), (0.0, 0.4)]
    assert covered(spans, (0.5, 10.0)) == pytest.approx(3 + 2 + 1)
    assert covered([], (0.0, 1.0)) == 0.0
    assert covered([(-1.0, 9.0)], (0.0, 1.0)) == 1.0


def test_a_call_that_fails_is_noted_too() -> None:
    class Failing:
        name = "failing"

        def reply(self, task: object) -> object:
            raise ValueError(task)

    model = NotedModel(Failing())
    with pytest.raises(ValueError, match="what"):
        model.reply("what")
    assert len(model.spans) == 1


def case(**systems: tuple[float, float, float]) -> dict[str, Any]:
    return {
        "sub-queries": 30,
        "times": {name: {"median_ms": ms, "p95_ms": ms} for name, (ms, _, _) in systems.items()},
        "found": {
            name: {"recall_of_entities": entities, "recall_of_chunks": chunks}
            for name, (_, entities, chunks) in systems.items()
        },
    }


def test_the_fastest_peer_on_neo4j_is_told_apart_from_the_fastest_that_finds_as_much() -> None:
    systems = {
        "floor": (1.0, 1.0, 1.0), "product": (10.0, 1.0, 0.8), "lightrag": (2.0, 1.0, 1.0),
        "graphrag": (15.0, 0.98, 1.0), "graphrag_broad": (25.0, 0.99, 1.0), "langchain": (90.0, 1.0, 1.0),
    }  # fmt: skip
    (one,) = against_peers({"global, 3, without 50 entities": case(**systems)})
    assert (one["fastest"]["name"], one["fastest"]["ratio"]) == ("graphrag", 1.5)
    assert (one["fastest_as_good"]["name"], one["fastest_as_good"]["ratio"]) == ("graphrag_broad", 2.5)
    assert "keeps no memory" in one["fastest"]["lacks"]


def test_where_no_peer_can_there_is_no_ratio() -> None:
    (one,) = against_peers({"local, 3, memory of 5 points": case(product=(10.0, 1.0, 0.8), lightrag=(1.0, 1.0, 1.0))})
    assert one["fastest"] is None
    assert one["fastest_as_good"] is None


@pytest.mark.parametrize(("systems", "told"), [(("product", "graphrag"), True), (("floor", "product"), False)])
def test_a_table_of_peers_and_of_ratios_is_there_where_the_run_has_them(systems: tuple[str, ...], told: bool) -> None:
    pytest.importorskip("matplotlib", reason="reports draw with the extra `bench`")
    import report

    measured = case(**dict.fromkeys(systems, (10.0, 1.0, 0.8)))
    for found in measured["found"].values():
        found |= {"entities": 5, "relations": 5, "chunks": 7}
    machine = {"processor": "any", "cpus": 2, "memory": "8 GB", "system": "Linux", "python": "3.11", "load": 0.0}
    text = report.markdown({
        "at": "2026-11-23", "machine": machine, "server": {"heap": "2g", "pagecache": "2g"}, "seconds": 1,
        "graph": {"entities": 1, "relations": 1, "chunks": 1, "of": "a novel"}, "versions": dict.fromkeys(systems, ""),
        "W2": {"global, 3 sub-queries": measured | {"against_floor": {}}},
    })  # fmt: skip
    assert ("peer on Neo4j" in text) is told
    assert ("is against the floor" in text) is not told


def test_bytes_are_told_for_an_entity_and_for_what_an_index_holds() -> None:
    counts = {"entities": 10, "relations": 20, "chunks": 5}
    told = each({"node store": 1_000, "vector index: relations": 400, "transaction log": 9_999}, counts)
    assert told["node store, an entity"] == 100
    assert told["vector index: relations, one of them"] == 20
    assert told["all but the log, an entity"] == 140


def test_what_is_kept_goes_when_the_code_changed_unless_it_is_wanted_again(tmp_path: Path) -> None:
    now = home("large", ["a graph"], held=tmp_path)
    older = tmp_path / f"{now.name.rpartition('-')[0]}-00000000"
    other = tmp_path / home("large", ["another"], held=tmp_path).name
    for folder in (older, other):
        folder.mkdir()
    assert home("large", ["a graph"], held=tmp_path, again=True) == older
    assert home("large", ["a graph"], held=tmp_path) == now
    assert not older.exists()
    assert other.exists()


def test_servers_of_what_goes_are_stopped_wherever_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped = []
    monkeypatch.setattr(kept, "down", lambda settings: stopped.append(settings.data))
    now = home("large", ["a graph"], held=tmp_path)
    older = tmp_path / f"{now.name.rpartition('-')[0]}-00000000"
    older.mkdir()
    home("large", ["a graph"], held=tmp_path)
    assert stopped == [older, older / "neo4j"]


def test_a_script_that_prints_much_before_it_says_anything_is_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = (
        "import json, signal, sys",
        "signal.alarm(20)  # or both would wait for ever",
        "print(json.dumps({'much': 'x' * 1_000_000}), flush=True)",
        "sys.exit('a mark is missed')",
    )
    (tmp_path / "much.py").write_text("\n".join(lines))
    monkeypatch.setattr(running, "HERE", tmp_path)
    assert running.scripted("much") == {"much": "x" * 1_000_000, "failed": "a mark is missed"}


def test_points_are_of_a_real_length_and_no_memory_has_those_of_another() -> None:
    asked = ["Who was it that came to the city?", "Why?"]
    told = [text for memory in ("m1", "m2") for text in descriptions(memory, 50, asked)]
    assert len(set(told)) == 100
    assert all(150 <= len(text) <= 200 for text in told)


def rows(*seconds: float) -> list[dict[str, Any]]:
    return [{"graph": at, "seconds": each} for at, each in enumerate(seconds)]


def test_growth_of_writing_is_told_without_the_cold_start() -> None:
    written = rows(*[9.0] * 25, *[2.0] * 25, *[3.0] * 150, *[4.0] * 25)
    assert growth(written) == {"lowest_of_the_first": 2.0, "last": 4.0, "ratio": 2.0}
    assert growth(written[:124]) is None
    assert growth([*written, {"graph": 225, "seconds": 0.1, "again": True}]) == growth(written)


def test_a_graph_that_was_written_again_is_in_no_mean(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"graph": 0, "seconds": 2.0}, {"begun": 1}, {"begun": 1}]  # first: older code
    lines += [{"graph": 1, "seconds": 0.1, "again": True}, {"begun": 2}, {"graph": 2, "seconds": 4.0}]
    noted = [json.dumps({**row, "client_megabytes": 1.0}) for row in lines]
    (tmp_path / "progress.jsonl").write_text("\n".join(noted))
    grown = Growing(tmp_path, tmp_path, Settings(), Namespace(heap="1g", pagecache="1g"))
    grown._counts = {"entities": 1}
    (along,) = grown._told(3)["along"]
    assert along == {"graphs": 3, "seconds_a_graph": 3.0, "client_megabytes": 1.0}

"""Indexing with cut connections or killed indexers: after a restart, the graph is that of an undisturbed run."""

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dumping import Dump, check, driver, dump
from playing import playing
from proxy import Moment, Proxy
from troubled import environment
from typer.testing import CliRunner
from wire import Answered, Asked, WireServer

from hgmem import HGMem, IndexReport, Settings
from hgmem.cli import app
from hgmem.errors import UnreachableError

CORPUS = "faulty-indexing"  # part of uids
GONE = "cannot be reached: start one with `hgmem up`, or set NEO4J_URI to a running server"
SECONDS = 120.0  # limit for a process
WORKERS = 2
READY = "MATCH (c:Chunk {corpus: $corpus}) WHERE c.extraction IS NOT NULL RETURN count(c) AS number"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Files, and the graph of an undisturbed run over them."""

    files: list[Path]
    graph: Dump


@pytest.fixture(scope="module")
def files(affair: Path) -> list[Path]:
    return sorted(affair.glob("0[1-6]*"))


@pytest.fixture(scope="module")
def wanted(settings: Settings, files: list[Path]) -> Wanted:
    with opened(settings) as client:
        client.add(files)
        graph = dump(settings, CORPUS)
        client.delete()
    check(graph)
    return Wanted(files=files, graph=graph)


@pytest.fixture
def line(settings: Settings) -> Iterator[Proxy]:
    """A proxy to the server of the test run; deletes the corpus at the end."""
    assert settings.neo4j_uri
    with Proxy(settings.neo4j_uri) as proxy:
        yield proxy
    with opened(settings) as client:
        if CORPUS in {row["corpus"] for row in client.corpora()}:
            client.delete()


def opened(settings: Settings, **changes: Any) -> HGMem:
    return HGMem.open(CORPUS, **{**settings.model_dump(exclude_none=True), **changes})


def attempts(settings: Settings) -> Counter[int]:
    """Return the number of chunks by number of saves."""
    return Counter(chunk["attempts"] for chunk in dump(settings, CORPUS, times=True).of("Chunk").values())


# Connection -----------------------------------------------------------------------------------------------------

CUTS: list[tuple[str, Moment]] = [
    ("put_chunks", "uncommitted"),
    ("put_chunks", "unanswered"),
    ("save_extractions", "uncommitted"),
    ("save_extractions", "unanswered"),
    ("aggregate_entities", "unanswered"),
    ("aggregate_relations", "uncommitted"),
    ("put_entity_vectors", "unanswered"),
    ("finish_documents", "unanswered"),
]


@pytest.mark.parametrize(("statement", "moment"), CUTS)
def test_a_commit_nobody_heard_of_ends_the_run_and_the_next_one_goes_on(
    settings: Settings, wanted: Wanted, line: Proxy, statement: str, moment: Moment
) -> None:
    line.at(statement, moment)
    with opened(settings, neo4j_uri=line.uri) as client:
        with pytest.raises(UnreachableError, match=GONE) as error:
            client.add(wanted.files)
        assert error.value.retryable
        assert "\n" not in str(error.value)
        report = client.add(wanted.files)

    assert (report.failed, report.errors, line.rules) == (0, [], [])
    assert dump(settings, CORPUS) == wanted.graph
    assert attempts(settings) == {1: len(wanted.graph.of("Chunk"))}


def test_a_line_cut_once_while_reading_or_before_a_commit_is_asked_for_is_not_noticed(
    settings: Settings, wanted: Wanted, line: Proxy
) -> None:
    for statement in ("document_states", "open_chunks", "save_extractions", "aggregate_entities"):
        line.at(statement, "asked")
    with opened(settings, neo4j_uri=line.uri) as client:
        assert client.add(wanted.files).documents == len(wanted.files)

    assert line.rules == []
    assert dump(settings, CORPUS) == wanted.graph


@pytest.mark.parametrize(
    "statement",
    [
        "open_chunks",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("save_extractions", "aggregate_relations")),
    ],
)
def test_a_command_whose_line_is_gone_says_so_in_one_line_and_goes_on_when_it_is_back(
    settings: Settings, wanted: Wanted, line: Proxy, statement: str
) -> None:
    given = settings.model_dump(exclude_none=True) | {"neo4j_uri": line.uri, "connect_timeout": 1}
    command = ["index", *map(str, wanted.files), "-c", CORPUS]
    line.at(statement, "asked", fault=line.cut_for_good)
    cut = CliRunner().invoke(app, command, env={**os.environ, **environment(given)})
    line.mend()
    again = CliRunner().invoke(app, command, env={**os.environ, **environment(given)})

    assert (cut.exit_code, cut.stdout) == (1, "")
    (said,) = [one for one in cut.stderr.splitlines() if one.startswith("error: ")]
    assert GONE in said
    assert "Traceback" not in cut.output
    assert again.exit_code == 0, again.output
    assert dump(settings, CORPUS) == wanted.graph


# Indexer processes ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Indexers:
    """Processes that index with a model behind a slow server."""

    settings: Settings
    given: Mapping[str, Any]

    def start(self, files: list[Path]) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "hgmem", "index", *map(str, files), "--corpus", CORPUS, "--yes"],
            env={**os.environ, **environment(self.given)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_until_some_are_saved(self, number: int) -> None:
        until = time.monotonic() + SECONDS
        with driver(self.settings) as opened:
            while opened.execute_query(READY, corpus=CORPUS).records[0]["number"] < number:
                assert time.monotonic() < until
                time.sleep(0.05)


def slowly(seconds: float) -> Callable[[Asked], Answered]:
    play = playing()

    def answer(asked: Asked) -> Answered:
        time.sleep(seconds)
        return play(asked)

    return answer


def ended(process: "subprocess.Popen[str]") -> None:
    output, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, output


@pytest.fixture
def model() -> Iterator[WireServer]:
    with WireServer(slowly(0.3)) as server:
        yield server


@pytest.fixture
def indexers(settings: Settings, line: Proxy, model: WireServer, tmp_path: Path) -> Indexers:
    wire = {"model": "test-model", "openai_api_key": "secret", "openai_base_url": model.base_url}
    given = {**settings.model_dump(exclude_none=True), **wire, "cache": tmp_path / "cache", "workers": WORKERS}
    return Indexers(settings=settings, given=given)


def undisturbed(indexers: Indexers, model: WireServer, files: list[Path]) -> tuple[Dump, int]:
    """Return the graph and the number of calls of an undisturbed run, and delete its data."""
    quick, model.answer = model.answer, playing()
    cache = Path(indexers.given["cache"]).with_name("undisturbed")
    with opened(indexers.settings, **{**indexers.given, "cache": cache}) as client:
        client.add(files)
        graph = dump(indexers.settings, CORPUS)
        client.delete()
    model.answer, calls = quick, len(model.requests)
    model.requests.clear()
    return graph, calls


@pytest.mark.slow
def test_a_killed_indexer_begun_again_pays_twice_only_for_the_calls_under_way(
    indexers: Indexers, model: WireServer, files: list[Path]
) -> None:
    graph, calls = undisturbed(indexers, model, files)
    killed = indexers.start(files)
    indexers.wait_until_some_are_saved(4)
    killed.kill()
    killed.communicate()
    before = len(model.requests)
    ended(indexers.start(files))

    assert before < calls
    assert len(model.requests) <= calls + WORKERS + 1  # and one probe of the model's formats
    assert dump(indexers.settings, CORPUS) == graph


@pytest.mark.slow
def test_two_indexers_of_overlapping_documents_one_killed_and_begun_again_end_in_one_graph(
    indexers: Indexers, model: WireServer, files: list[Path]
) -> None:
    graph, calls = undisturbed(indexers, model, files)
    killed, other = indexers.start(files[:4]), indexers.start(files[2:])
    indexers.wait_until_some_are_saved(2)
    killed.kill()
    killed.communicate()
    assert other.poll() is None
    again = indexers.start(files[:4])
    ended(again)
    ended(other)

    assert dump(indexers.settings, CORPUS) == graph
    assert {status for chunk in graph.of("Chunk").values() for status in [chunk["status"]]} == {"done"}
    assert max(attempts(indexers.settings)) <= 3  # of each run, once
    assert len(model.requests) <= 2 * calls + WORKERS + 2


TWICE = """
MATCH (c:Chunk {corpus: $corpus})-[:FROM_DOCUMENT]->(d:Document)
SET c.status = 'extracted', d.status = 'pending'
CREATE (c)-[:FROM_DOCUMENT]->(d)
"""


def test_indexing_ends_where_a_chunk_is_tied_to_its_document_twice(
    client: HGMem, settings: Settings, files: list[Path]
) -> None:
    client.add(files[:1])
    with driver(settings) as opened:
        opened.execute_query(TWICE, corpus=client.corpus)
    done: list[IndexReport] = []
    adding = threading.Thread(target=lambda: done.append(client.add(files[:1])), daemon=True)
    adding.start()
    adding.join(SECONDS)
    assert [(report.documents, report.failed) for report in done] == [(1, 0)]

"""`hgmem browser` as a process, and what it does to the corpus: second labels, and nothing else."""

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from dumping import driver
from letters import LETTERS, QUESTION, wanting
from servers import own_server

from hgmem import Answer, HGMem, Settings
from hgmem.errors import ForbiddenError, GraphError, UsageError
from hgmem.inputs import Document, Given, GivenChunk, GivenEntity

COMMAND = (sys.executable, "-m", "hgmem", "browser")
TYPES = ("Person", "ORGANISATION", "geo", "event", "concept", "", "DeadPoint")


@pytest.fixture
def answer(client: HGMem) -> Answer:
    client.add_graph(LETTERS)
    return client.ask(QUESTION, steps=2)


@pytest.fixture
def labels(settings: Settings, corpus: str) -> Iterator[Any]:
    """The labels of the corpus's entities by name, of its points by uid."""
    with driver(settings) as opened:

        def read(label: str, key: str) -> dict[str, set[str]]:
            rows = opened.execute_query(
                f"MATCH (n:{label} {{corpus: $corpus}}) RETURN n.{key} AS key, labels(n) AS labels", corpus=corpus
            ).records
            return {row["key"]: set(row["labels"]) - {label} for row in rows}

        yield read


def test_the_command_prints_the_link_and_serves_until_it_is_ended(environment: dict[str, str], answer: Answer) -> None:
    command = (*COMMAND, "--corpus", answer.corpus, "--print")
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout
        lines = [run.stdout.readline() for _ in range(5)]
        said = dict(line.split(None, 1) for line in lines)
        link = said["Browser"].strip()
        guide = parse_qs(urlsplit(link).query)["arg"][0]
        assert said["guide"].strip() == f":play {guide}"
        assert environment["NEO4J_PASSWORD"] not in "".join(lines)

        connection = http.client.HTTPConnection("localhost", urlsplit(guide).port or 0, timeout=10)
        connection.request("GET", "/guide.html")
        text = connection.getresponse().read().decode()
        assert answer.memory in text
        assert "Who sold the mill" in text
        run.send_signal(signal.SIGTERM)  # taken as Ctrl-C, which shells withhold from what they start in the background
        try:
            _, errors = run.communicate(timeout=30)
        finally:
            run.kill()
        assert run.returncode == 0, errors


def test_entities_are_painted_after_their_types_and_again_when_these_change(
    client: HGMem, labels: Any, corpus: str
) -> None:
    entities = tuple(
        GivenEntity(name=f"Name {number}", type=kind, description="One.", chunks=("c",))
        for number, kind in enumerate(TYPES)
    )
    document = Document(id="d", text="One.")
    client.add_graph(
        Given(documents=(document,), chunks=(GivenChunk(id="c", document="d", text="One."),), entities=entities)
    )
    client.ask("What is one?", steps=1)
    for _ in range(2):  # the second time nothing changes
        with client.browse():
            pass
        found = labels("Entity", "name")
        assert [found[one.name] for one in entities] == [
            {"PersonEntity"}, {"OrganizationEntity"}, {"PlaceEntity"}, {"EventEntity"}, set(), set(), set(),
        ]  # fmt: skip
    client.delete(document="d")
    assert client.check().ok


def test_dead_points_bear_a_label_of_their_own(open_client: Any, labels: Any) -> None:
    client = open_client(model=wanting())
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION, steps=3)
    found = labels("MemoryPoint", "uid")
    living = {point.uid for point in client.memory(answer.memory).points}
    assert {uid for uid, marks in found.items() if marks == {"DeadPoint"}} == found.keys() - living
    assert found.keys() > living


def test_points_that_died_before_there_was_a_label_get_it(open_client: Any, labels: Any, settings: Settings) -> None:
    client = open_client(model=wanting())
    client.add_graph(LETTERS)
    client.ask(QUESTION, steps=2)
    before = labels("MemoryPoint", "uid")
    with driver(settings) as opened:
        opened.execute_query("MATCH (p:DeadPoint {corpus: $corpus}) REMOVE p:DeadPoint", corpus=client.corpus)
    with client.browse():
        pass
    assert labels("MemoryPoint", "uid") == before


def people(*names: str) -> Given:
    """A graph of people."""
    chunk = GivenChunk(id="c", document="d", text="One.")
    entities = tuple(GivenEntity(name=name, type="person", description="One.", chunks=("c",)) for name in names)
    return Given(documents=(Document(id="d", text="One."),), chunks=(chunk,), entities=entities)


def test_where_nothing_may_be_written_a_memory_is_shown_without_second_labels(tmp_path: Path) -> None:
    with own_server(tmp_path) as own:
        if own.server.pid is None:
            pytest.skip("the server of this run is a container whose configuration is not ours")
        with HGMem.open("people", **own.settings.model_dump(exclude_none=True)) as client:
            client.add_graph(people("Ann"))
            client.ask("Who is Ann?", steps=1)
        own.stop()
        own.restart(more="server.databases.default_to_read_only=true\n")
        with HGMem.open("people", **own.settings.model_dump(exclude_none=True)) as client:
            with client.browse() as view:
                assert view.guide in view.link
            with pytest.raises(ForbiddenError, match=r"does not let user 'neo4j' run statement .* grant the right"):
                client.ask("Who is Ann?", steps=1)


def test_any_other_failure_of_painting_is_raised(client: HGMem, settings: Settings) -> None:
    client.add_graph(people("Ann", "Bo"))
    client.ask("Who is Ann?", steps=1)
    with driver(settings) as opened:
        opened.execute_query("CREATE CONSTRAINT theirs FOR (e:PersonEntity) REQUIRE (e.corpus, e.type) IS UNIQUE")
        try:
            with pytest.raises(GraphError, match=r"'paint_entities' failed: .*already exists"), client.browse():
                pass
        finally:
            opened.execute_query("DROP CONSTRAINT theirs")
    with client.browse() as view:
        assert view.link


def test_a_corpus_without_a_memory_is_named(client: HGMem) -> None:
    client.add_graph(LETTERS)
    with pytest.raises(UsageError, match=f"{client.corpus!r} has no memory yet.*hgmem ask"), client.browse():
        pass


def test_an_address_that_is_none_is_named(client: HGMem, answer: Answer) -> None:
    with pytest.raises(UsageError, match="is no address of a Neo4j Browser"), client.browse(browser="db:7474"):
        pass
    with client.browse(answer.memory, browser="http://db:7474/browser/") as view:
        assert view.link.startswith("http://db:7474/browser/?dbms=")

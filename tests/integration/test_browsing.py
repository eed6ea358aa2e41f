"""Tests of `hgmem browser` as a process, and of its only change to the corpus: styling labels."""

import http.client
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from dumping import driver
from letters import LETTERS, NAMES, QUESTION, SENTENCES, wanting
from servers import own_server

from hgmem import Answer, HGMem, Settings
from hgmem.client.inspection import save_browser_files
from hgmem.errors import ForbiddenError, GraphError, UsageError
from hgmem.memory.browser.favourites import favourites
from hgmem.memory.browser.guide import newest_merge
from hgmem.systems.hgmem.replies import EvolveReply, Insertion
from hgmem.systems.registry import _loaders
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity

COMMAND = (sys.executable, "-m", "hgmem", "browser")
TYPES = ("Person", "ORGANISATION", "geo", "event", "concept", "", "DeadPoint")


@pytest.fixture
def answer(client: HGMem) -> Answer:
    client.add_graph(LETTERS)
    return client.ask(QUESTION, steps=2)


@pytest.fixture
def labels(settings: Settings, corpus: str) -> Iterator[Any]:
    """Return the labels of the corpus's entities by name and of its points by uid."""
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
        run.send_signal(signal.SIGTERM)  # like Ctrl-C, which background processes do not get
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
    for _ in range(2):  # the second run changes nothing
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


def pruned(client: HGMem) -> str:
    memory = client.ask(QUESTION, steps=2).memory
    assert client.prune(older_than=timedelta(microseconds=1), keep_answers=True).memories == (memory,)
    return memory


def withdrawn(client: HGMem) -> str:
    memory = client.ask(QUESTION, steps=2).memory
    client.delete(document="letters")
    return memory


def of_two_names(client: HGMem) -> str:
    memory = client.ask(QUESTION, steps=2, settings=MERGING).memory
    client.same("Anna", "Bo")
    return memory


def forked(client: HGMem) -> str:
    original = client.ask(QUESTION, steps=2, settings=MERGING).memory
    return client.ask(memory=client.fork(original, step=1).uid, steps=1).memory


BARE = Given(
    documents=LETTERS.documents,
    chunks=tuple(GivenChunk(id=f"c{at}", document="letters", text=text) for at, text in enumerate(SENTENCES)),
)
MERGING = {"calls": "separate", "retrieval.entities": 5}  # the second step merges, and does not tie all that is found
EVERYTHING = Insertion(entities=NAMES, description="All of them.")
KINDS: dict[str, tuple[Given, Callable[[HGMem], str], dict[str, Any], int, str]] = {
    "ordinary": (
        LETTERS,
        lambda client: client.ask(QUESTION, steps=2, settings=MERGING).memory,
        {},
        6,
        "is stored in this database as memory points",
    ),
    "of two names": (LETTERS, of_two_names, {}, 6, "have several names, and the decisions that say why"),
    "fork": (LETTERS, forked, {}, 6, "It was forked from memory m"),
    "naive": (LETTERS, lambda client: client.ask(QUESTION, system="naive").memory, {}, 5, "creates no points"),
    "without entities": (BARE, lambda client: client.ask(QUESTION, system="naive").memory, {}, 5, "creates no points"),
    "without points": (
        LETTERS,
        lambda client: client.ask(QUESTION, steps=2).memory,
        {"evolve": lambda _: EvolveReply()},
        5,
        "None of its steps created a memory point",
    ),
    "covered": (
        LETTERS,
        lambda client: client.ask(QUESTION, steps=1).memory,
        {"evolve": lambda _: EvolveReply(insert=(EVERYTHING,))},
        5,
        "<h3>Next steps</h3>",
    ),
    "unanswered": (
        LETTERS,
        lambda client: client.ask(QUESTION, steps=1, answer=False).memory,
        {},
        4,
        "is stored in this database as memory points",
    ),
    "withdrawn": (LETTERS, withdrawn, {}, 6, "No chunk that its answers quote is still in the corpus"),
    "pruned": (LETTERS, pruned, {}, 4, "its steps and points were removed; its answers and quotes are kept"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_query_of_a_guide_shows_something_and_what_is_left_out_shows_nothing(
    open_client: Callable[..., HGMem], settings: Settings, kind: str
) -> None:
    graph, asking, replies, slides, said = KINDS[kind]
    client = open_client(model=wanting(**replies))
    client.add_graph(graph)
    memory = client.memory(asking(client))
    with client.browse(memory.uid) as view, urllib.request.urlopen(view.guide, timeout=10) as page:
        text = page.read().decode()
    assert said in text
    assert (text.count("<slide"), f"{slides} slides walk" in text) == (slides, True)
    assert ("--continue" in text) == (kind not in ("naive", "without entities", "pruned"))

    blocks = [unescape(block) for block in re.findall(r'runnable">(.*?)</pre>', text, re.DOTALL)]
    queries = [block for block in blocks if not block.startswith(":")]
    values = {"memory": memory.uid, "other": memory.forked_from}
    values |= {"since": max(memory.step - 1, 0), "step": memory.step}
    named = favourites()
    if memory.step == 1:
        del named["changes-between-steps"]  # all of it is new
    if kind != "of two names":
        del named["classes"]
    if kind != "fork":
        del named["difference-of-memories"]
    usual = [one.filled(**values, point=newest_merge(memory)) for one in named.values()]
    with driver(settings) as opened:
        assert [query for query in queries if not opened.execute_query(query).records] == []
        left_out = [query for query in usual if query not in queries]
        assert [query for query in left_out if opened.execute_query(query).records] == []
    assert (not left_out) == (kind in ("ordinary", "of two names"))
    assert kind != "fork" or usual[-1] in queries


def people(*names: str) -> Given:
    """A graph of people."""
    chunk = GivenChunk(id="c", document="d", text="One.")
    entities = tuple(GivenEntity(name=name, type="person", description="One.", chunks=("c",)) for name in names)
    return Given(documents=(Document(id="d", text="One."),), chunks=(chunk,), entities=entities)


@pytest.mark.slow
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
            with pytest.raises(
                ForbiddenError, match=r"user 'neo4j' of Neo4j at .* may not run statement .* grant the privilege"
            ):
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
    with (
        pytest.raises(UsageError, match=f"{client.corpus!r} has no memories: ask .*hgmem ask"),
        client.browse(),
    ):
        pass


def test_an_address_that_is_none_is_named(client: HGMem, answer: Answer) -> None:
    with pytest.raises(UsageError, match="invalid Neo4j Browser address"), client.browse(browser="db:7474"):
        pass
    with client.browse(answer.memory, browser="http://db:7474/browser/") as view:
        assert view.link.startswith("http://db:7474/browser/?dbms=")


def test_the_guide_of_another_system_has_its_favourites_and_the_style_its_captions(
    client: HGMem, toy: Path, settings: Settings, tmp_path: Path
) -> None:
    client.add([Document(id="pier", text="Lamps burn on the pier.")], graph=False)
    client.build("toy")
    client.ask("Where do lamps burn?", system="toy")
    with client.browse() as view:
        pages = [urllib.request.urlopen(at, timeout=10).read().decode() for at in (view.guide, view.style)]
    assert "System toy: Answers from topics of gists." in pages[0]
    assert "<p>Topics with their gists, and the chunks beneath:</p>" in pages[0]
    (query,) = [
        unescape(block) for block in re.findall(r'runnable">(.*?)</pre>', pages[0], re.DOTALL) if "ToyTopic" in block
    ]
    with driver(settings) as opened:
        (row,) = opened.execute_query(query).records
    assert [min(node.labels) for node in row["path"].nodes] == ["Built", "Built", "Chunk"]
    (rule,) = re.findall(r"node.ToyTopic {\n(.*?\n)}", pages[1], re.DOTALL)
    assert 'caption: "{name}{key}"' in rule
    assert "color: #AA3377" in rule
    assert 'caption: "{name}{text}"' in pages[1].partition("node.ToyGist")[2]

    saved = save_browser_files(tmp_path)
    assert "$corpus" in (tmp_path / "toy-topics.cypher").read_text(encoding="utf-8")
    assert "node.ToyTopic" in saved[0].read_text(encoding="utf-8")


def test_a_memory_of_a_system_that_is_gone_is_shown_too(client: HGMem, toy: Path) -> None:
    client.add([Document(id="pier", text="Lamps burn on the pier.")], graph=False)
    client.build("toy")
    client.ask("Where do lamps burn?", system="toy")
    sys.path.remove(str(toy))
    _loaders.cache_clear()
    with client.browse() as view, urllib.request.urlopen(view.guide, timeout=10) as page:
        told = page.read().decode()
    assert "Lamps burn on the pier." in told
    assert "toy-topics" not in told  # its favourite went with its package

"""Tests of `hgmem browser` in the real Neo4j Browser: connection, guide, and the picture of every favourite."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import neo4j
import pytest
from neo4j_browser import SLOW, Neo4jBrowser
from playwright.sync_api import Browser, expect

from hgmem import HGMem, Memory, Settings
from hgmem.evaluation.formats import read_data
from hgmem.local import Server
from hgmem.memory.browser.favourites import favourites
from hgmem.memory.browser.guide import newest_merge
from hgmem.memory.browser.view import View
from hgmem.models.embedders import SentenceTransformerEmbedder
from hgmem.systems.registry import _loaders, room, system

pytestmark = pytest.mark.slow  # a real Neo4j Browser plays a whole guide

QUESTION = (
    "What links the Tamswell Company of Marian Dace to the museum director Edmund Sallowby and to the seven boxes of "
    "the Ravensund Orrery?"
)
TITLES = {
    "memory-at-a-step", "changes-between-steps", "lineage-of-points", "evidence-of-an-answer", "not-covered-yet",
    "bridges", "corpus-overview", "schema",
}  # fmt: skip
CORPUS = "pictures"
BOAT = Path(__file__).parents[2] / "examples" / "eval" / "boat-conversation"


@pytest.fixture(scope="module")
def client(settings: Settings, affair: Path) -> Iterator[HGMem]:
    """A client of a corpus with the affair and one answered question."""
    pytest.importorskip("sentence_transformers")
    given = settings.model_dump(exclude_none=True, exclude={"embedding_model"})
    with HGMem.open(CORPUS, embedder=SentenceTransformerEmbedder(), **given) as opened:
        opened.add(affair)
        opened.ask(QUESTION)
        yield opened
        opened.delete()


@pytest.fixture(scope="module")
def memory(client: HGMem) -> Memory:
    return client.memory(client.memories()[0].uid)


@pytest.fixture(scope="module")
def view(client: HGMem, server: Server) -> Iterator[View]:
    if not server.http:
        pytest.skip("the server of this run is a container whose Browser has no port here")
    with client.browse() as opened:
        yield opened


@pytest.fixture(scope="module")
def opened(chromium: Browser, view: View, server: Server) -> Iterator[Neo4jBrowser]:
    """Neo4j Browser, opened by the link and connected, showing the guide."""
    tab = chromium.new_context(viewport={"width": 1400, "height": 1000}).new_page()
    tab.goto(view.link)
    browser = Neo4jBrowser(tab)
    browser.connect(server.password.get_secret_value())
    expect(tab.locator(".runnable").first).to_be_visible(timeout=SLOW)
    yield browser
    tab.context.close()


@pytest.fixture
def returned(settings: Settings) -> Callable[..., int]:
    """Return the number of nodes in a query's result, including paths and lists."""

    def counting(query: str) -> int:
        password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
        with neo4j.GraphDatabase.driver(settings.neo4j_uri or "", auth=(settings.neo4j_username, password)) as driver:
            graph = driver.execute_query(query, result_transformer_=neo4j.Result.graph)
        return len(graph.nodes)

    return counting


def values(memory: Memory) -> dict[str, Any]:
    return {"memory": memory.uid, "since": memory.step - 1, "step": memory.step, "point": newest_merge(memory)}


def test_the_guide_plays_and_each_of_its_clicks_runs(
    opened: Neo4jBrowser, memory: Memory, picture: Callable[..., None], returned: Callable[..., int]
) -> None:
    tab = opened.tab
    guide = tab.get_by_test_id("frame").filter(has_text=":play")
    expect(guide.get_by_text(QUESTION[:40])).to_be_visible()
    picture(tab, "browser-guide.png")
    opened.click(tab.locator(".runnable:visible", has_text=":style"))
    expect(opened.frame).to_contain_text("node.MemoryPoint", timeout=SLOW)
    opened.click(tab.locator(".runnable:visible", has_text=":params"))
    expect(opened.frame).to_contain_text("Successfully set your parameters", timeout=SLOW)

    slides, clicked = 1, 0
    while (ahead := guide.get_by_test_id("nextSlide")).count():
        ahead.click()
        slides += 1
        blocks = guide.locator(".runnable:visible")
        for at in range(blocks.count()):
            query = blocks.nth(at).inner_text()
            opened.click(blocks.nth(at))
            assert opened.nodes(least := returned(query)) >= least >= 3, query
            opened.frame.get_by_test_id("frame-Close").or_(opened.frame.get_by_title("Close")).first.click()
            clicked += 1
    assert 3 <= slides <= 6
    assert clicked == len(TITLES) + len(memory.steps) * 2 - 1 - 2


@pytest.mark.parametrize("name", sorted(TITLES))
def test_a_favourite_draws_what_it_returns(
    opened: Neo4jBrowser,
    memory: Memory,
    picture: Callable[..., None],
    returned: Callable[..., int],
    view: View,
    name: str,
) -> None:
    favourite = favourites()[name]
    opened.clear()
    opened.run(f":style {view.style}")
    for parameter in favourite.parameters:
        value = values(memory)[parameter]
        opened.run(f":param {parameter} => {value!r}")
    opened.run(favourite.text)
    least = returned(favourite.filled(**values(memory)))
    assert least >= 3
    assert opened.nodes(least) >= least
    picture(opened.frame, f"browser-{name}.png")


def test_points_are_warm_dead_ones_pale_and_entities_cool_by_type(
    opened: Neo4jBrowser, memory: Memory, view: View
) -> None:
    opened.clear()
    opened.run(f":style {view.style}")
    opened.run(favourites()["changes-between-steps"].filled(**values(memory) | {"since": 0}))
    opened.nodes(3)
    shades = opened.frame.locator("g.node circle").evaluate_all("all => all.map(one => one.getAttribute('fill'))")
    assert {"#F2A541", "#FBE7CB", "#5B8FF0"} <= {str(shade).upper() for shade in shades}


def test_the_style_has_a_rule_for_each_label_of_the_schema(view: View) -> None:
    style = Path(str(favourites()["schema"].path.with_name("hgmem.grass"))).read_text(encoding="utf-8")
    ruled = set(re.findall(r"^node\.(\w+)", style, re.MULTILINE))
    assert ruled >= {"Corpus", "Document", "Chunk", "Entity", "Memory", "Step", "SubQuery", "MemoryPoint", "Answer"}


def test_the_schema_looks_sensible(opened: Neo4jBrowser, picture: Callable[..., None]) -> None:
    opened.clear()
    opened.run("CALL db.schema.visualization()")
    opened.nodes(10)
    picture(opened.frame, "browser-schema-visualization.png")


def test_a_favourite_of_another_system_is_clicked_in_its_guide(
    opened: Neo4jBrowser, client: HGMem, picture: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "toy")
    _loaders.cache_clear()
    try:
        client.build("toy")
        memory = client.ask(QUESTION, system="toy").memory
        with client.browse(memory) as own:
            opened.clear()
            opened.run(f":style {own.style}")
            opened.run(f":play {own.guide}")
            tab, guide = opened.tab, opened.tab.get_by_test_id("frame").filter(has_text=":play")
            shown = guide.locator(".runnable:visible", has_text="ToyTopic")
            while not shown.count():
                guide.get_by_test_id("nextSlide").click()
            picture(tab, "browser-guide-of-a-system.png")
            opened.click(shown.first)
            assert opened.nodes(5) >= 5
            picture(opened.frame, "browser-favourite-of-a-system.png")
            shades = opened.frame.locator("g.node circle").evaluate_all(
                "all => all.map(one => one.getAttribute('fill'))"
            )
            assert "#AA3377" in {str(shade).upper() for shade in shades}
    finally:
        _loaders.cache_clear()


def test_the_memory_of_a_corpus_its_text_and_the_clues_of_a_question_are_drawn(
    opened: Neo4jBrowser, client: HGMem, picture: Callable[..., None], returned: Callable[..., int]
) -> None:
    client.build("gists", settings={"passage_tokens": 256, "ratio": 4, "memory_tokens": 300})
    memory = client.ask("What do they all want to hide?", system="memorag").memory
    with client.browse(memory) as own:
        for favourite in (*room("gists").favourites, *system("memorag").favourites):
            query = favourite.filled(corpus=client.corpus, memory=memory)
            opened.clear()
            opened.run(f":style {own.style}")
            opened.run(query)
            least = returned(query)
            assert least >= 3, favourite.name
            assert opened.nodes(least) >= least
            picture(opened.frame, f"browser-memorag-{favourite.name}.png")
    client.delete(system="gists")


def test_topics_episodes_and_facts_of_a_conversation_are_drawn(
    opened: Neo4jBrowser, client: HGMem, picture: Callable[..., None], returned: Callable[..., int]
) -> None:
    corpus = "pictures-of-a-conversation"
    client.add(read_data(BOAT).documents, corpus=corpus, graph=False)
    client.build("hypermem", corpus=corpus)
    memory = client.ask("Who repaired the boat?", system="hypermem", corpus=corpus).memory
    with client.browse(memory) as own:
        for favourite in system("hypermem").favourites:
            query = favourite.filled(corpus=corpus, memory=memory)
            opened.clear()
            opened.run(f":style {own.style}")
            opened.run(query)
            if "path" not in query:
                continue  # a table
            least = returned(query)
            assert least >= 3, favourite.name
            assert opened.nodes(least) >= least
            picture(opened.frame, f"browser-hypermem-{favourite.name}.png")
    client.delete(corpus=corpus)


def test_anchors_and_trails_of_a_walk_are_drawn(
    opened: Neo4jBrowser, client: HGMem, picture: Callable[..., None], returned: Callable[..., int]
) -> None:
    client.build("remindrag", settings={"passage_tokens": 128})
    memory = client.ask(QUESTION, system="remindrag", learn=True).memory
    with client.browse(memory) as own:
        for favourite in system("remindrag").favourites:
            query = favourite.filled(corpus=client.corpus, memory=memory)
            opened.clear()
            opened.run(f":style {own.style}")
            opened.run(query)
            if "path" not in query and "chain" not in query:
                continue  # a table
            least = returned(query)
            assert least >= 2, favourite.name
            assert opened.nodes(least) >= least
            picture(opened.frame, f"browser-remindrag-{favourite.name}.png")
    client.delete(system="remindrag")

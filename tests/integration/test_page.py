"""The page of the service in Chromium: asking, watching, citations, memories, documents, entities, builds."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from desk import DESK, PHONE, Desk, desk, skip_without_library
from letters import QUESTION
from playwright.sync_api import Browser, Page, expect

from hgmem import HGMem, Settings

CORPUS = "page-letters"
GOES_ON = threading.Event()


def waits(*_: object) -> None:
    """Hold the model's reply until a test lets it go."""
    GOES_ON.wait(90)


@pytest.fixture(scope="module")
def shown(settings: Settings, chromium: Browser) -> Iterator[Desk]:
    skip_without_library()
    GOES_ON.set()
    with HGMem.open(CORPUS, **settings.model_dump(exclude_none=True)) as client:
        with desk(client, chromium, replies={"answer": waits}) as opened:
            yield opened
        client.delete()


@pytest.fixture(autouse=True)
def closing(shown: Desk) -> Iterator[None]:
    yield
    GOES_ON.set()
    shown.close()


def answered(tab: Page) -> None:
    expect(tab.locator("#answer")).to_contain_text("Anna sold it")
    expect(tab.locator("#about")).to_contain_text("Answered")


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_a_question_is_asked_watched_and_answered(shown: Desk, size: tuple[int, int]) -> None:
    GOES_ON.clear()
    tab = shown.page(f"/c/{CORPUS}", size=size)
    expect(tab.get_by_role("heading", name=f"Ask {CORPUS}")).to_be_visible()
    shown.ask(tab, QUESTION, steps=2, recipe="paper")
    expect(tab.locator("#progress")).to_be_visible()
    expect(tab.locator("#at")).to_contain_text("Step 2 of 2")
    expect(tab.locator("#step")).to_contain_text("Point 1 of step")
    expect(tab.locator("#step")).to_contain_text("merged")
    expect(tab.locator("#line")).to_contain_text("Step 2 is stored")
    grown = shown.client.memory(shown.client.memories()[0].uid).points
    expect(tab.locator("#at")).to_have_text(f"Step 2 of 2 · {len(grown)} points")
    expect(tab.locator("#cost")).to_contain_text("calls of the model")
    expect(tab.locator("#stage canvas").first).to_be_visible()
    GOES_ON.set()
    answered(tab)
    expect(tab.locator("#progress")).to_have_count(0)
    memory = shown.client.memories()[0].uid
    assert tab.url.endswith(f"#/m/{memory}")
    expect(tab.locator("#about")).to_contain_text("tokens in")


def test_a_citation_opens_its_passage_in_its_document(shown: Desk) -> None:
    tab = shown.page(f"/c/{CORPUS}")
    shown.ask(tab, QUESTION)
    answered(tab)
    tab.locator("#answer").get_by_role("link", name="[1]", exact=True).click()
    passage = tab.get_by_role("dialog")
    marked = shown.client.memory(shown.client.memories()[0].uid).answers[0].citations[0].quote
    expect(passage.locator("mark")).to_have_text(marked)
    expect(passage).to_contain_text("Eve counts the lamps of the pier.")
    passage.get_by_role("link", name="Open the document here").click()
    expect(tab.get_by_role("heading", name="Letters")).to_be_visible()
    expect(tab.locator("main mark")).to_have_text(marked)
    tab.go_back()
    answered(tab)


def test_a_memory_is_continued_stepped_through_and_replayed(shown: Desk) -> None:
    memory = shown.client.ask(QUESTION, system="hgmem", steps=1).memory
    tab = shown.page(f"/m/{memory}")
    tab.get_by_label("Further question").fill("And who bought the boat?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    answered(tab)
    expect(tab.locator("h1")).to_have_text("And who bought the boat?")
    assert len(shown.client.memory(memory).answers) == 2
    tab.get_by_role("button", name="Step back").click()
    expect(tab.locator("h1")).to_have_text(QUESTION)
    with tab.context.expect_page() as replay:
        tab.get_by_role("link", name="Replay page").click()
    expect(replay.value.locator("#at")).to_contain_text("Step")


def test_a_fork_goes_another_way_and_is_compared_in_colours(shown: Desk) -> None:
    memory = shown.client.ask(QUESTION, system="hgmem", steps=1).memory
    tab = shown.page(f"/m/{memory}")
    tab.get_by_role("button", name="Fork here").click()
    expect(tab).not_to_have_url(re.compile(memory))
    tab.get_by_label("Further question").fill("And who bought the boat?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.locator("h1")).to_have_text("And who bought the boat?")
    answered(tab)
    fork = shown.client.memories()[0]
    assert fork.uid != memory
    assert len(shown.client.memory(memory).answers) == 1
    tab.get_by_role("link", name="Compare…").click()
    tab.locator(".memory", has=tab.locator(f"a[href$='{memory}']")).get_by_role("checkbox").check()
    tab.get_by_role("button", name="Compare the two").click()
    expect(tab.get_by_role("heading", name="Two memories")).to_be_visible()
    found = shown.client.diff(fork.uid, memory)
    for sign, points in (("lost", found.lost), ("gained", found.gained), ("kept", found.kept)):
        expect(tab.locator(f".diff .{sign}")).to_have_count(len(points))
    assert found.lost
    assert found.kept
    tab.get_by_role("link", name="Swap").click()
    expect(tab.locator(".diff .gained")).to_have_count(len(found.lost))


def test_a_question_goes_on_while_one_looks_elsewhere(shown: Desk) -> None:
    GOES_ON.clear()
    tab = shown.page(f"/c/{CORPUS}")
    shown.ask(tab, "Who burned it?")
    expect(tab.locator("#at")).to_contain_text("Step 1")
    tab.get_by_role("link", name="Ask", exact=True).click()
    tab.get_by_role("link", name="A question is being answered: watch it").click()
    expect(tab.locator("#progress")).to_be_visible()
    GOES_ON.set()
    answered(tab)


def test_stopping_leaves_a_memory_that_goes_on(shown: Desk) -> None:
    GOES_ON.clear()
    tab = shown.page(f"/c/{CORPUS}")
    shown.ask(tab, "Who counts lamps?")
    expect(tab.locator("#at")).to_contain_text("Step 1")
    tab.get_by_role("button", name="Stop").click()
    expect(tab.get_by_role("alert")).to_contain_text("Stopped. What was finished is stored.")
    GOES_ON.set()
    tab.wait_for_timeout(1_500)  # the model's reply comes, and the process lets the memory go
    tab.reload()
    tab.get_by_role("button", name="Go on").click()
    answered(tab)


def test_the_history_lists_opens_and_deletes_memories(shown: Desk) -> None:
    memory = shown.client.ask("Who left the harbour?", system="naive").memory
    tab = shown.page(f"/c/{CORPUS}/memories")
    tab.get_by_role("link", name="Who left the harbour?").first.click()
    expect(tab.locator("#about")).to_contain_text("naive")
    expect(tab.locator("#stage")).to_be_hidden()  # a system without points has lists alone
    tab.get_by_role("button", name="Delete").click()
    tab.get_by_role("button", name="Delete it for good?").click()
    expect(tab.get_by_role("heading", name="Memories")).to_be_visible()
    assert memory not in [one.uid for one in shown.client.memories()]


def test_documents_are_added_read_and_deleted(shown: Desk, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text("Farah keeps the keys of the lighthouse of Anna.")
    tab = shown.page(f"/c/{CORPUS}/documents")
    tab.locator("#files").set_input_files(file)
    expect(tab.locator(".jobs .done")).to_be_visible()
    tab.locator("main .rows").last.get_by_role("link", name="note").click()
    expect(tab.locator("main")).to_contain_text("Farah keeps the keys")
    tab.go_back()
    row = tab.locator("li", has=tab.get_by_role("link", name="note")).last
    row.get_by_role("button", name="Delete").click()
    row.get_by_role("button", name="Delete it?").click()
    expect(tab.get_by_role("link", name="note")).to_have_count(0)
    assert [one["title"] for one in shown.client.documents()] == ["Letters"]


def test_a_new_corpus_begins_with_its_first_document(shown: Desk, tmp_path: Path) -> None:
    file = tmp_path / "first.txt"
    file.write_text("Farah keeps the keys.")
    tab = shown.page()
    tab.get_by_label("New corpus").fill("page-fresh")
    tab.get_by_role("button", name="Add documents").click()
    expect(tab.locator("main")).to_contain_text("Corpus page-fresh is new: it begins with its first document.")
    tab.locator("#files").set_input_files(file)
    expect(tab.get_by_role("link", name="first")).to_be_visible()
    shown.client.delete(corpus="page-fresh")


def test_entities_are_found_by_any_name_of_a_thing(shown: Desk) -> None:
    shown.client.same("Dag", "Eve", reason="one person")
    tab = shown.page(f"/c/{CORPUS}/entities")
    tab.get_by_label("Names with").fill("eve")
    row = tab.locator("main .rows li")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("also")
    row.get_by_role("link").click()
    expect(tab.locator("main")).to_contain_text("one thing with 2 names")
    expect(tab.locator("main")).to_contain_text("Dag of the letters.")
    tab.locator("summary", has_text="Letters").first.click()
    tab.get_by_role("link", name="Read it in the document").first.click()
    expect(tab.locator(".cited")).to_be_visible()
    shown.client.undo("Dag", "Eve")


def test_a_build_is_made_and_looked_through_from_the_top_to_the_passages(shown: Desk) -> None:
    tab = shown.page(f"/c/{CORPUS}/builds")
    card = tab.locator("li", has_text="gists").first
    card.get_by_role("button", name="Make it").click()
    expect(tab.locator(".jobs .done").first).to_be_visible()
    tab.get_by_role("link", name="gists").click()
    tab.locator(".tree summary").first.click()
    expect(tab.locator(".tree .tree")).to_contain_text("Anna sold the mill to Bo in spring.")
    tab.locator(".verb summary").click()
    tab.locator(".verb").get_by_role("button", name="List").click()
    expect(tab.locator("table")).to_contain_text("level")


def test_the_keyboard_alone_asks_and_follows_a_citation(shown: Desk) -> None:
    tab = shown.page(f"/c/{CORPUS}")
    expect(tab.get_by_label("Question", exact=True)).to_be_focused()
    tab.keyboard.type("Who sold the mill?")
    tab.keyboard.press("Enter")
    answered(tab)
    reach(tab, lambda name: name == "[1]")
    tab.keyboard.press("Enter")
    expect(tab.get_by_role("dialog")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_have_count(0)
    tab.keyboard.press("p")
    expect(tab.locator("#chosen")).to_be_visible()


def reach(tab: Page, wanted: Callable[[str], bool]) -> None:
    """Press Tab until what has the keyboard is what is wanted."""
    for _ in range(60):
        tab.keyboard.press("Tab")
        if wanted(tab.evaluate("document.activeElement.textContent")):
            return
    raise AssertionError("Tab does not reach it")

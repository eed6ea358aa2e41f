"""The page of the service in Chromium: asking, watching, citations, memories, documents, entities, builds."""

import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from desk import DESK, PHONE, Desk, desk, skip_without_library
from histories import history
from letters import QUESTION
from playwright.sync_api import Browser, Page, Route, expect

from hgmem import Document, HGMem, Settings
from hgmem.memory.replay.page import scene

CORPUS = "page-letters"
GOES_ON = threading.Event()
SAYS: list[str] = []  # the model's answer, if a test sets one


def waits(*_: object) -> str | None:
    """Hold the model's reply until a test lets it go."""
    GOES_ON.wait(90)
    return SAYS[0] if SAYS else None


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
    SAYS.clear()
    shown.close()
    for one in shown.client.documents():
        if one["title"] != "Letters":
            shown.client.delete(document=str(one["uid"]))


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


def test_each_number_in_an_answer_opens_the_sentence_before_it(shown: Desk) -> None:
    begins = "Farah lit the lamp of Nordhavn when these came, as the whole of the pier saw:"
    said = begins, "Karl and Farah stood by the lamp at ten."
    shown.client.add([Document(id="lamp", text="\n\n".join(said))], graph=False)
    memory = shown.client.ask("When did Farah light the lamp of Nordhavn?", system="naive").memory
    tab = shown.page(f"/m/{memory}")
    expect(tab.locator("#answer .text")).to_contain_text(f"{said[0]} [1] {said[1]} [2]")
    for number, sentence in enumerate(said, start=1):
        tab.locator("#answer .text").get_by_role("link", name=f"[{number}]", exact=True).click()
        expect(tab.get_by_role("dialog").locator("mark")).to_have_text(sentence)
        tab.keyboard.press("Escape")


def test_markdown_of_an_answer_is_shown_as_what_it_means(shown: Desk) -> None:
    SAYS.append(
        "## Who did it\n\n1. **Anna** sold it [1].\n2. `Dag` burned it [2].\n\n```\n<b>code</b>\n```\nThat is all."
    )
    tab = shown.page(f"/c/{CORPUS}")
    shown.ask(tab, QUESTION)
    told = tab.locator("#answer .text")
    expect(told.get_by_role("heading", name="Who did it")).to_be_visible()
    expect(told.locator("ol > li")).to_have_count(2)
    expect(told.locator("li strong")).to_have_text("Anna")
    expect(told.locator("li code")).to_have_text("Dag")
    expect(told.locator("pre")).to_have_text("<b>code</b>\n")
    expect(told.locator("p")).to_have_text("That is all.")
    expect(told.get_by_role("link", name="[2]", exact=True)).to_be_visible()
    expect(tab.locator("#answer")).not_to_contain_text("**")
    expect(tab.locator("#answer blockquote footer").first).to_contain_text(re.compile(r"characters \d+–\d+"))


def test_a_memory_is_continued_stepped_through_and_replayed(shown: Desk) -> None:
    memory = shown.client.ask(QUESTION, system="hgmem", steps=1).memory
    tab = shown.page(f"/m/{memory}")
    tab.get_by_label("Further question").fill("And who bought the boat?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    answered(tab)
    expect(tab.locator("h1")).to_have_text("And who bought the boat?")
    expect(tab.locator("#answer h2")).to_have_text(["Answer", "An earlier answer"])
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
    expect(tab.locator(".side").first).to_contain_text("First · the original")  # the older one
    expect(tab.locator(".side").last).to_contain_text("Second · fork of the other at step 1")
    found = shown.client.diff(memory, fork.uid)
    for sign, points in (("lost", found.lost), ("gained", found.gained), ("kept", found.kept)):
        expect(tab.locator(f".diff .{sign}")).to_have_count(len(points))
    assert found.gained
    assert found.kept
    tab.get_by_role("link", name="Swap").click()
    expect(tab.locator(".diff .lost")).to_have_count(len(found.gained))


def test_a_fork_says_what_it_is_of_and_takes_another_question_or_goes_on(shown: Desk) -> None:
    with shown.service.http() as http:
        asked = {"question": QUESTION, "steps": 2, "recipe": "paper"}
        memory = http.post(f"/corpora/{CORPUS}/questions", json=asked).json()["memory"]
    tab = shown.page(f"/m/{memory}")
    tab.get_by_role("button", name="Step back").click()
    held: list[Route] = []
    tab.route("**/fork*", lambda route: held.append(route))
    tab.get_by_role("button", name="Fork here").click()
    expect(tab.get_by_role("button", name="Forking…")).to_be_disabled()
    held[0].continue_()
    expect(tab.locator("#forked")).to_have_text(f"Fork of memory {memory} at step 1")
    expect(tab.locator("#about")).to_contain_text("Not continued yet")
    expect(tab.get_by_role("button", name="Go on")).to_be_visible()
    tab.get_by_label("Further question").fill("And who bought the boat?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.locator("h1")).to_have_text("And who bought the boat?")
    answered(tab)
    tab.get_by_role("link", name=f"memory {memory}").click()
    expect(tab.locator("h1")).to_have_text(QUESTION)
    assert len(shown.client.memory(memory).answers) == 1
    tab.goto(f"{shown.service.address}/#/c/{CORPUS}/memories")
    expect(tab.locator("main .rows li").first).to_contain_text("And who bought the boat?")
    expect(tab.locator("main .rows li").nth(1)).to_contain_text(QUESTION)


def test_a_question_is_answered_to_its_end_whoever_reloads_or_leaves_the_page(shown: Desk) -> None:
    for leaves in (Page.reload, Page.close):
        GOES_ON.clear()
        tab = shown.page(f"/c/{CORPUS}")
        shown.ask(tab, "Who counts the lamps?")
        tab.wait_for_url("**/#/m/*")
        leaves(tab)
        memory = shown.client.memories()[0].uid
        assert shown.client.memory(memory).status == "running"
        if not tab.is_closed():
            expect(tab.locator("#about")).to_contain_text("Being answered")
        GOES_ON.set()
        if not tab.is_closed():
            answered(tab)
        until(lambda uid=memory: shown.client.memory(uid).status == "answered")


def test_a_question_that_another_tab_watches_is_stopped_there(shown: Desk) -> None:
    GOES_ON.clear()
    tab = shown.page(f"/c/{CORPUS}")
    shown.ask(tab, "Who stops it?")
    expect(tab.locator("#at")).to_contain_text("Step 1")
    tab.reload()
    tab.get_by_role("button", name="Stop").click()
    expect(tab.get_by_role("button", name="Go on")).to_be_visible()
    GOES_ON.set()
    tab.get_by_role("button", name="Go on").click()
    answered(tab)


def test_while_a_further_question_is_answered_the_answer_before_is_named_so(shown: Desk) -> None:
    tab = shown.page(f"/m/{shown.client.ask(QUESTION, system='hgmem', steps=1).memory}")
    GOES_ON.clear()
    tab.get_by_label("Further question").fill("And who bought the boat?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.locator("#progress")).to_be_visible()
    expect(tab.locator("#answer h2")).to_have_text("An earlier answer")
    expect(tab.locator("#answer .asked")).to_have_text(QUESTION)
    expect(tab.locator("h1")).to_have_text("And who bought the boat?")
    expect(tab).to_have_title("And who bought the boat? · hgmem")
    GOES_ON.set()
    answered(tab)


def test_a_phone_shows_the_answer_before_the_picture_and_one_line_of_progress(shown: Desk) -> None:
    GOES_ON.clear()
    tab = shown.page(f"/c/{CORPUS}", size=PHONE)
    shown.ask(tab, QUESTION)
    expect(tab.locator("#line")).to_contain_text("Step 1 is stored")
    expect(tab.locator("#cost")).to_contain_text("tokens in")
    line, stop = (tab.locator(one).bounding_box() for one in ("#line", "#stop"))
    assert line
    assert stop
    assert line["width"] > 250
    assert max(line["height"], stop["height"]) < 60
    GOES_ON.set()
    answered(tab)
    expect(tab.locator("#further")).to_be_visible()
    answer, stage = (tab.locator(one).bounding_box() for one in ("#answer", "#stage"))
    assert answer
    assert stage
    assert answer["y"] + answer["height"] <= stage["y"]


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


def test_a_question_that_has_not_begun_is_not_lost_to_a_further_one(shown: Desk) -> None:
    tab = shown.page(f"/c/{CORPUS}")
    held = holding(tab)
    shown.ask(tab, "Who rows first?")
    tab.get_by_role("link", name="Documents").click()
    tab.get_by_role("link", name="Ask", exact=True).click()
    expect(tab.get_by_label("Question", exact=True)).to_have_value("Who rows first?")
    tab.get_by_label("Question", exact=True).fill("Who rows second?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.get_by_role("alert")).to_contain_text("The question before has not begun yet")
    held.pop().continue_()
    tab.get_by_role("button", name="Watch it").click()
    answered(tab)
    expect(tab.locator("h1")).to_have_text("Who rows first?")
    tab.unroute_all()
    tab.get_by_role("link", name="Ask", exact=True).click()
    expect(tab.get_by_label("Question", exact=True)).to_have_value("Who rows second?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.locator("h1")).to_have_text("Who rows second?")
    answered(tab)
    tab.get_by_role("link", name="Ask", exact=True).click()
    expect(tab.get_by_label("Question", exact=True)).to_have_value("")


def test_going_on_is_refused_before_another_question_begins_without_a_word_of_what_was_typed(shown: Desk) -> None:
    asked = shown.client.ask(QUESTION, system="hgmem", steps=2, recipe="paper")
    fork = shown.client.fork(asked.memory, step=1)
    tab = shown.page(f"/c/{CORPUS}")
    held = holding(tab)
    shown.ask(tab, "Who rows first?")
    tab.get_by_role("link", name="Memories").click()
    tab.locator(f"a[href$='{fork.uid}']").first.click()
    tab.get_by_role("button", name="Go on").click()
    expect(tab.get_by_role("alert")).to_contain_text("ask again when it has.")
    expect(tab.get_by_role("alert")).not_to_contain_text("typed")
    held.pop().continue_()
    tab.get_by_role("button", name="Watch it").click()
    answered(tab)


def test_going_on_and_asking_at_once_does_the_first_and_keeps_the_other(shown: Desk) -> None:
    GOES_ON.clear()
    tab = shown.page(f"/c/{CORPUS}")
    shown.ask(tab, QUESTION)
    expect(tab.locator("#at")).to_contain_text("Step 1")
    tab.get_by_role("button", name="Stop").click()
    expect(tab.get_by_role("button", name="Go on")).to_be_visible()
    GOES_ON.set()
    held = holding(tab)
    tab.get_by_label("Further question").fill("And who bought the boat?")
    with tab.expect_request("**/questions*"):
        tab.get_by_role("button", name="Go on").click()
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.get_by_role("alert")).to_contain_text("The question before has not begun yet")
    held.pop().continue_()
    answered(tab)
    expect(tab.get_by_text("Going on…")).to_have_count(0)
    expect(tab.locator("h1")).to_have_text(QUESTION)
    expect(tab.get_by_label("Further question")).to_have_value("And who bought the boat?")


def test_a_large_memory_is_left_and_opened_again_while_it_is_laid_out(shown: Desk) -> None:
    tab = shown.page(f"/m/{shown.client.ask(QUESTION, system='naive').memory}")
    tab.route("**/scene", lambda route: route.fulfill(json=scene(history(points=240, steps=4))))
    for _ in range(4):
        tab.reload()
        expect(tab.locator("#at")).to_contain_text("points")
        tab.get_by_role("link", name="Memories").click()
        tab.go_back()
        expect(tab.locator("#at")).to_contain_text("points")
    laid_out = "() => hgmem.elements('.coming').empty() && hgmem.nodes('.point:visible').length > 100"
    tab.wait_for_function(laid_out, timeout=60_000, polling=200)
    assert shown.wrong == []


def test_stopping_leaves_a_memory_that_goes_on(shown: Desk) -> None:
    GOES_ON.clear()
    tab = shown.page(f"/c/{CORPUS}")
    shown.ask(tab, "Who counts lamps?")
    expect(tab.locator("#at")).to_contain_text("Step 1")
    tab.get_by_role("button", name="Stop").click()
    expect(tab.get_by_role("alert")).to_contain_text("Stopped. What was finished is stored.")
    GOES_ON.set()
    tab.get_by_role("button", name="Go on").click()
    answered(tab)


def test_the_history_lists_opens_and_deletes_memories(shown: Desk) -> None:
    memory = shown.client.ask("Who left the harbour?", system="naive").memory
    tab = shown.page(f"/c/{CORPUS}/memories")
    tab.get_by_role("link", name="Who left the harbour?").first.click()
    expect(tab.locator("#about")).to_contain_text("naive")
    expect(tab.locator("#stage")).to_be_hidden()  # a system without points has lists alone
    tab.get_by_role("button", name="Delete").click()
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Delete", exact=True).click()
    expect(tab.get_by_role("button", name="Delete it for good?")).to_be_visible()
    expect(tab.get_by_role("button", name="Delete", exact=True)).to_be_visible()  # after some seconds
    tab.get_by_role("button", name="Delete", exact=True).click()
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
    row.get_by_role("button", name="Delete").dblclick()
    expect(row.get_by_role("button", name="Delete it?")).to_be_visible()
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
    card.get_by_role("button", name="Make it").dblclick()
    expect(tab.locator(".jobs .done").first).to_be_visible()
    tab.get_by_role("link", name="gists").click()
    with shown.service.http() as http:
        made = [job for job in http.get(f"/corpora/{CORPUS}/jobs").json()["items"] if job["kind"] == "build"]
    assert len(made) == 1
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


def holding(tab: Page) -> list[Route]:
    """Hold the questions that a tab sends until a test lets them go."""
    held: list[Route] = []
    tab.route("**/questions*", lambda route: held.append(route))
    return held


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds, at most 20 seconds."""
    for _ in range(100):
        if holds():
            return
        time.sleep(0.2)
    raise AssertionError("it does not come true")


def reach(tab: Page, wanted: Callable[[str], bool]) -> None:
    """Press Tab until what has the keyboard is what is wanted."""
    for _ in range(60):
        tab.keyboard.press("Tab")
        if wanted(tab.evaluate("document.activeElement.textContent")):
            return
    raise AssertionError("Tab does not reach it")

"""Where one is on the page: kept by its address when it is loaded again, by Back, and by what others are sent."""

import re
from collections.abc import Iterator

import pytest
from desk import Desk, desk, skip_without_library
from histories import history
from letters import QUESTION
from playwright.sync_api import Browser, Page, expect

from hgmem import HGMem, Settings
from hgmem.memory.replay.page import scene

CORPUS = "page-addresses"
LONG = " ".join(f"word{number}" for number in range(60))  # some 400 characters
FOLDED = " ".join(f"word{number}" for number in range(120))  # some 800


@pytest.fixture(scope="module")
def shown(settings: Settings, chromium: Browser) -> Iterator[Desk]:
    skip_without_library()
    with HGMem.open(CORPUS, **settings.model_dump(exclude_none=True)) as client:
        with desk(client, chromium) as opened:
            yield opened
        client.delete()


@pytest.fixture(scope="module")
def memory(shown: Desk) -> str:
    """A memory of two steps with a citation."""
    with shown.service.http() as http:
        asked = {"question": QUESTION, "steps": 2, "recipe": "paper"}
        return str(http.post(f"/corpora/{CORPUS}/questions", json=asked).json()["memory"])


@pytest.fixture(autouse=True)
def closing(shown: Desk) -> Iterator[None]:
    yield
    shown.close()


def passage(tab: Page) -> None:
    tab.locator("#answer .text").get_by_role("link", name="[1]", exact=True).click()
    expect(tab.get_by_role("dialog").locator("mark")).to_be_visible()


def test_a_step_and_a_chosen_point_are_shown_again_when_the_page_is_loaded_again(shown: Desk, memory: str) -> None:
    tab = shown.page(f"/m/{memory}")
    expect(tab.locator("#at")).to_contain_text("Step 2 of 2")
    tab.get_by_role("button", name="Step back").click()
    tab.keyboard.press("p")
    chosen = tab.locator("#chosen p.text").first.inner_text()
    for again in (tab.reload, lambda: (tab.goto("about:blank"), tab.go_back())):
        again()
        expect(tab.locator("#at")).to_contain_text("Step 1 of 2")
        expect(tab.locator("#chosen p.text").first).to_have_text(chosen)
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Step on").click()
    assert tab.url.endswith(f"#/m/{memory}")  # the last step needs no name: it is another one when the memory grows


def test_a_further_question_from_an_earlier_step_is_watched_at_its_newest(shown: Desk) -> None:
    memory = shown.client.ask(QUESTION, system="hgmem", steps=2, recipe="paper").memory
    tab = shown.page(f"/m/{memory}?step=1")
    tab.get_by_label("Further question").fill("And who bought the boat?")
    tab.get_by_role("button", name="Ask", exact=True).click()
    expect(tab.locator("h1")).to_have_text("And who bought the boat?")
    expect(tab.locator("#about")).to_contain_text("Answered")
    expect(tab.locator("#at")).to_contain_text(re.compile(r"Step (\d+) of \1"))


def test_back_closes_a_passage_and_a_reload_opens_it_again(shown: Desk, memory: str) -> None:
    tab = shown.page(f"/c/{CORPUS}/memories")
    tab.locator(f"a[href$='{memory}']").click()
    passage(tab)
    tab.go_back()
    expect(tab.get_by_role("dialog")).to_have_count(0)
    expect(tab.locator("#answer .text")).to_be_visible()
    tab.go_forward()
    expect(tab.get_by_role("dialog").locator("mark")).to_be_visible()
    tab.reload()
    expect(tab.get_by_role("dialog").locator("mark")).to_be_visible()
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_have_count(0)
    expect(tab).to_have_url(f"{shown.service.address}/#/m/{memory}")
    tab.go_back()
    expect(tab.get_by_role("heading", name="Memories")).to_be_visible()


def test_a_point_chosen_while_a_passage_closes_stays_chosen(shown: Desk, memory: str) -> None:
    tab = shown.page(f"/m/{memory}")
    passage(tab)
    tab.get_by_role("dialog").evaluate(
        "window_ => window_.addEventListener('close', () => document.body.dispatchEvent("
        "new KeyboardEvent('keydown', { key: 'p', bubbles: true })))"
    )
    tab.keyboard.press("Escape")
    expect(tab).to_have_url(re.compile(rf"#/m/{memory}\?point=\w+-\d+-\d+$"))
    expect(tab.locator("#chosen")).to_be_visible()


def test_a_passage_that_others_are_sent_is_opened_and_closed(shown: Desk, memory: str) -> None:
    first = shown.page(f"/m/{memory}")
    passage(first)
    tab = shown.page(first.url.partition("#")[2])
    expect(tab.get_by_role("dialog").locator("mark")).to_be_visible()
    tab.get_by_role("button", name="Close", exact=True).click()
    expect(tab).to_have_url(f"{shown.service.address}/#/m/{memory}")
    expect(tab.locator("#answer .text")).to_be_visible()


def test_a_replay_that_others_are_sent_begins_at_its_step(shown: Desk, memory: str) -> None:
    tab = shown.page()
    tab.goto(f"{shown.service.address}/memories/{memory}/replay#?step=1")
    expect(tab.locator("#at")).to_contain_text("Step 1 of 2")
    tab.locator("#on").click()
    expect(tab.locator("#at")).to_contain_text("Step 2 of 2")
    expect(tab).not_to_have_url(re.compile("step"))


def test_the_filter_of_entities_is_kept_by_back_and_reload(shown: Desk) -> None:
    tab = shown.page(f"/c/{CORPUS}/entities")
    expect(tab.locator("main .rows li")).not_to_have_count(1)
    tab.get_by_label("Names with").fill("cleo")
    expect(tab.locator("main .rows li")).to_have_count(1)
    tab.get_by_role("link", name="Cleo").click()
    expect(tab.get_by_role("heading", name="Cleo")).to_be_visible()
    tab.go_back()
    for again in (lambda: None, tab.reload):
        again()
        expect(tab.get_by_label("Names with")).to_have_value("cleo")
        expect(tab.locator("main .rows li")).to_have_count(1)
    tab.get_by_role("link", name="Entities").click()
    expect(tab.get_by_label("Names with")).to_have_value("")
    expect(tab.locator("main .rows li")).not_to_have_count(1)


def test_steps_to_compare_are_those_that_each_memory_has(shown: Desk, memory: str) -> None:
    other = shown.client.ask("Who left the harbour?", system="hgmem", steps=1).memory
    tab = shown.page(f"/compare/{memory}/{other}/1/9")
    expect(tab.get_by_role("status").filter(has_text="has no step 9")).to_have_text(
        "The second memory has no step 9: its last one is shown."
    )
    first, second = tab.get_by_label("Step of the first"), tab.get_by_label("Step of the second")
    expect(first).to_have_value("1")
    expect(first.locator("option")).to_have_text(["1", "2, the last"])
    expect(second.locator("option")).to_have_text(["1, the last"])
    first.select_option("2")
    tab.get_by_role("button", name="Compare").click()
    expect(tab.locator(".side").first).to_contain_text("step 2")
    expect(tab.get_by_text("has no step")).to_have_count(0)
    tab.go_back()
    expect(tab.locator(".side").first).to_contain_text("step 1")


def test_the_recipe_of_a_system_is_offered_once_by_default(shown: Desk) -> None:
    tab = shown.page(f"/c/{CORPUS}")
    tab.get_by_text("How it is answered").click()
    options = tab.get_by_label("Recipe").locator("option")
    expect(options.nth(1)).to_be_attached()  # the systems were read
    offered = options.all_inner_texts()
    assert offered[0] == "default"
    assert len(set(offered)) == len(offered)
    assert "usual" not in offered


@pytest.mark.parametrize(("rest", "folded"), [(LONG, 0), (FOLDED, 2)], ids=["short", "long"])
def test_what_a_step_revised_is_shown_in_full_with_what_changed(
    shown: Desk, memory: str, rest: str, folded: int
) -> None:
    told = scene(history(points=30, steps=3))
    step, done = next((one, op) for one in told["steps"] for op in one["operations"] if op["kind"] == "revise")
    points = {one["uid"]: one for one in told["points"]}
    points[done["parts"][0]]["description"] = f"Anna sold the mill. {rest}"
    points[done["point"]]["description"] = f"Anna sold the old mill. {rest}"
    tab = shown.page()
    tab.route("**/scene", lambda route: route.fulfill(json=told))  # before the address: of fewer steps it is another
    tab.goto(f"{shown.service.address}/#/m/{memory}?step={step['number']}")
    row = tab.locator("#step li", has=tab.locator(".revise")).filter(has_text="Anna sold the old mill").first
    expect(row.locator("summary")).to_have_count(folded)
    for summary in row.locator("summary").all():
        summary.click()
    expect(row.locator("ins").first).to_have_text(re.compile(r"^\s*old\s*$"))
    expect(row.locator(".parts a")).to_have_text(f"Anna sold the mill. {rest}")
    expect(row.get_by_role("link", name=f"Anna sold the old mill. {rest}")).to_be_visible()

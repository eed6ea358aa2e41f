"""Tests of the replay page in a real browser, opened as a file."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from histories import fetching, history
from playwright.sync_api import Browser, Page, expect

from hgmem.memory.replay.page import page as rendered
from hgmem.memory.replay.page import scene
from hgmem.memory.stored_memories import History
from hgmem.values.evidence import BuiltHit

Open: TypeAlias = Callable[..., Page]
HOSTILE = """</script><script>window.hacked = 1</script><img src=x onerror="window.hacked = 2">
<a href="javascript:window.hacked = 3">a</a> <svg onload="window.hacked = 4"> <!-- \u202e \u2028"""
DESK, PHONE = (1280, 800), (390, 844)
CONTRAST = Path(__file__).with_name("contrast.js")  # texts with too little contrast
SMALLEST = 24  # minimum target size in pixels (WCAG 2.2, 2.5.8)
LOCAL = ("file:", "data:", "blob:")


@pytest.fixture(scope="session")
def library() -> None:
    """The graph library, downloaded if it is missing, as by a build."""
    if missing := fetching.fetch():
        pytest.skip(missing)


@pytest.fixture
def opened(library: None, chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Opens the page of a history; any error in it and any network request fail the test."""
    wrong: list[str] = []
    pages: list[Page] = []

    def opening(past: History, *, size: tuple[int, int] = DESK, **context: Any) -> Page:
        path = tmp_path / f"memory{len(pages)}.html"
        path.write_text(rendered(scene(past)), encoding="utf-8")
        width, height = size
        tab = chromium.new_context(viewport={"width": width, "height": height}, **context).new_page()
        tab.on("pageerror", lambda error: wrong.append(str(error)))
        tab.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") else None)
        tab.on(
            "request",
            lambda asked: wrong.append(asked.url) if not asked.url.startswith(LOCAL) else None,
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=60_000)
        pages.append(tab)
        return tab

    yield opening
    for tab in pages:
        tab.context.close()
    assert wrong == []


def alive(past: History, step: int) -> int:
    return sum(one.point.alive(step) for one in past.points)


def draws(tab: Page, count: int) -> None:
    """Expect so many points in the picture. The library applies styles lazily, so a first query may see older ones."""
    tab.wait_for_function("count => hgmem.nodes('.point:visible').length === count", arg=count, timeout=10_000)


def press(tab: Page, key: str) -> None:
    tab.keyboard.press(key)


def test_steps_go_by_slider_buttons_and_keys(opened: Open) -> None:
    past = history(points=12, steps=3)
    tab = opened(past)
    at = tab.locator("#at")

    def shown(step: int) -> None:
        points = alive(past, step)
        expect(at).to_have_text(f"Step {step} of 3 · {points} point{'s' if points != 1 else ''}")
        expect(tab.locator("#step h2")).to_have_text(f"Step {step}")

    shown(3)
    tab.locator("#back").click()
    shown(2)
    tab.locator("#slider").fill("1")
    shown(1)
    expect(tab.locator("#back")).to_be_disabled()
    tab.locator("body").click(position={"x": 5, "y": 5})
    for key, step in (("ArrowRight", 2), ("End", 3), ("ArrowRight", 3), ("Home", 1), ("ArrowLeft", 1)):
        press(tab, key)
        shown(step)
    tab.locator("#slider").focus()
    press(tab, "ArrowRight")
    shown(2)


def test_playing_shows_step_after_step_and_ends(opened: Open) -> None:
    tab = opened(history(points=6, steps=2))
    tab.locator("#play").click()
    expect(tab.locator("#at")).to_contain_text("Step 1 of 2")
    expect(tab.locator("#play")).to_have_attribute("aria-label", "Pause")
    expect(tab.locator("#at")).to_contain_text("Step 2 of 2", timeout=10_000)
    expect(tab.locator("#play")).to_have_attribute("aria-label", "Play", timeout=10_000)


def test_a_point_tells_its_lineage_its_entities_and_its_quotes(opened: Open) -> None:
    past = history(points=20, steps=3)
    whole = next(one for one in past.points if one.merges and one.point.died is None)
    tab = opened(past)
    tab.locator("#slider").fill(str(whole.point.born))
    tab.locator("#step .merge + a", has_text=whole.point.description[:40]).first.click()

    chosen = tab.locator("#chosen")
    expect(chosen).to_contain_text(whole.point.description)
    expect(chosen.locator(".names li")).to_have_count(len(whole.point.entities))
    expect(chosen.locator(".lineage ul > li")).to_have_count(len(whole.merges))
    chosen.locator("details summary").first.click()
    expect(chosen.locator("details p").first).to_contain_text("Passage")

    chosen.locator(".names a").first.click()
    expect(chosen.locator("h2")).to_have_text(whole.point.entities[0].name)
    press(tab, "Escape")
    expect(chosen).to_be_hidden()


def test_points_are_reached_by_the_keyboard_alone(opened: Open) -> None:
    past = history(points=8, steps=2)
    tab = opened(past)
    living = [one.point for one in past.points if one.point.alive(2)]
    for point in (*living, living[0]):
        press(tab, "p")
        expect(tab.locator("#chosen p.text").first).to_have_text(point.description)
    press(tab, "Shift+P")
    expect(tab.locator("#chosen p.text").first).to_have_text(living[-1].description)


def test_a_click_into_the_picture_chooses_what_is_there(opened: Open) -> None:
    past = history(points=6, steps=2)
    tab = opened(past)
    uid = next(one.point for one in past.points if one.point.alive(2)).uid
    x, y = tab.evaluate("uid => Object.values(hgmem.getElementById(`p:${uid}`).renderedPosition())", uid)
    box = tab.locator("#graph").bounding_box()
    assert box
    tab.mouse.click(box["x"] + x, box["y"] + y)
    expect(tab.locator("#chosen")).to_contain_text(uid)


def test_what_happened_in_a_step_is_marked(opened: Open) -> None:
    past = history(points=30, steps=3)
    tab = opened(past)
    for step in (1, 2, 3):
        tab.locator("#slider").fill(str(step))
        for kind in ("insert", "revise", "merge"):
            done = [op for op in past.memory.steps[step - 1].operations if op.kind == kind]
            assert tab.evaluate("kind => hgmem.nodes(`.new-${kind}`).length", kind) == len(done)
        dead = sum(one.point.died == step for one in past.points)
        assert tab.evaluate("hgmem.nodes('.leaving').length") == dead
        draws(tab, alive(past, step) + dead)


def test_a_selected_point_has_a_ring_of_its_own_beside_the_mark_of_what_happened_to_it(opened: Open) -> None:
    past = history(points=30, steps=3)
    step, uid = next(
        (one.number, op.point) for one in past.memory.steps for op in one.operations if op.kind == "revise"
    )
    tab = opened(past)
    tab.locator("#slider").fill(str(step))
    names = ["border-width", "border-color", "border-style", "outline-width"]
    looks = "([uid, names]) => names.map((name) => hgmem.getElementById(`p:${uid}`).style(name))"
    *mark, ring = tab.evaluate(looks, [uid, names])
    tab.locator("#step li", has=tab.locator(".revise")).first.locator("a").first.click()
    assert tab.evaluate("hgmem.nodes('.chosen').id()") == f"p:{uid}"
    assert tab.evaluate(looks, [uid, names]) == [*mark, "3px"]
    assert (mark[0], ring) == ("5px", "0px")


def test_a_step_and_a_point_are_in_the_address_of_the_file(opened: Open) -> None:
    tab = opened(history(points=12, steps=3))
    tab.locator("#back").click()
    press(tab, "p")
    chosen = tab.locator("#chosen p.text").first.inner_text()
    tab.reload()
    expect(tab.locator("#at")).to_contain_text("Step 2 of 3")
    expect(tab.locator("#chosen p.text").first).to_have_text(chosen)
    tab.evaluate("location.hash = '#?step=1'")
    expect(tab.locator("#at")).to_contain_text("Step 1 of 3")
    expect(tab.locator("#chosen")).to_be_hidden()


def test_markers_lead_to_their_quotes(opened: Open) -> None:
    tab = opened(history())
    links = tab.locator("#answer a")
    expect(links).to_have_text(["[1]"])  # [7] is not a citation and stays text
    links.first.click()
    expect(tab.locator("#answer blockquote.lit")).to_contain_text("Passage 1.")


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_text_of_documents_runs_nowhere(opened: Open, size: tuple[int, int]) -> None:
    past = history(points=6, steps=2, text=HOSTILE)
    tab = opened(past, size=size)
    for _ in past.points:
        press(tab, "p")
    for summary in tab.locator("summary").all():
        summary.click()
    assert tab.evaluate("window.hacked === undefined")
    assert tab.evaluate("document.querySelectorAll('img, svg, iframe, a[href^=javascript]').length") == 0
    expect(tab.locator("#chosen")).to_contain_text("onerror=")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_it_is_readable(opened: Open, picture: Callable[..., None], size: tuple[int, int], scheme: str) -> None:
    tab = opened(history(points=14, steps=3), size=size, color_scheme=scheme)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.evaluate(CONTRAST.read_text(encoding="utf-8")) == []
    picture(tab, f"replay-{size[0]}-{scheme}.png", full_page=size == PHONE)
    press(tab, "p")
    picture(tab, f"replay-{size[0]}-{scheme}-point.png")


def test_a_finger_hits_the_slider_and_the_buttons_of_a_phone(opened: Open) -> None:
    tab = opened(history(points=14, steps=3), size=PHONE, has_touch=True)
    slider, play, at = (tab.locator(name).bounding_box() for name in ("#slider", "#play", "#at"))
    assert slider
    assert play
    assert at
    assert slider["width"] >= 250
    assert slider["y"] >= max(play["y"] + play["height"], at["y"] + at["height"])  # its own row
    thumb = "name => parseFloat(getComputedStyle(document.getElementById('slider'), '::-webkit-slider-thumb')[name])"
    assert [tab.evaluate(thumb, name) >= SMALLEST for name in ("width", "height")] == [True, True]
    assert slider["height"] >= SMALLEST

    press(tab, "p")
    boxes = [one.bounding_box() for one in tab.locator("button:visible").all()]
    assert len(boxes) == 7  # three for the view, three for the steps, one to deselect
    assert [box for box in boxes if not box or min(box["width"], box["height"]) < SMALLEST] == []
    for step, share in ((1, 0.03), (2, 0.5), (3, 0.97)):
        tab.touchscreen.tap(slider["x"] + share * slider["width"], slider["y"] + slider["height"] / 2)
        expect(tab.locator("#at")).to_contain_text(f"Step {step} of 3")


def test_nothing_ends_below_the_bar_of_a_phone(opened: Open) -> None:
    tab = opened(history(points=14, steps=3), size=PHONE)
    tab.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    last, bar = tab.locator("#step").bounding_box(), tab.locator("body > footer").bounding_box()
    assert last
    assert bar
    assert last["y"] + last["height"] <= bar["y"]


def test_two_hundred_points_are_drawn(opened: Open, picture: Callable[..., None]) -> None:
    past = history(points=200, steps=6)
    tab = opened(past)
    picture(tab, "replay-200.png")
    draws(tab, alive(past, 6) + sum(one.point.died == 6 for one in past.points))


def test_a_memory_without_steps_shows_its_answers(opened: Open) -> None:
    past = history()
    pruned = replace(past, points=(), memory=replace(past.memory, steps=(), points=(), step=3))
    tab = opened(pruned)
    expect(tab.locator("#answer")).to_contain_text("It was Name 1")
    expect(tab.locator("#stage")).to_be_hidden()
    expect(tab.locator("#slider")).to_be_hidden()


def test_keys_do_nothing_where_there_are_no_steps(opened: Open) -> None:
    past = history()
    tab = opened(replace(past, points=(), memory=replace(past.memory, status="pruned", steps=(), points=(), step=3)))
    for key in (" ", "Home", "End", "ArrowLeft", "ArrowRight", "p", "f"):
        press(tab, key)
    expect(tab.locator("#about")).to_contain_text("pruned")
    assert "NaN" not in tab.locator("body").inner_text()


def test_a_memory_that_is_at_its_beginning_says_its_question_and_status(opened: Open) -> None:
    past = history()
    begun = replace(past.memory, status="running", steps=(), points=(), answers=(), step=0)
    tab = opened(replace(past, points=(), memory=begun))
    expect(tab.locator("h1")).to_have_text("Who did it?")
    expect(tab.locator("#about")).to_contain_text("running")


def test_a_memory_that_was_left_unanswered_says_that_no_answer_was_wanted(opened: Open) -> None:
    past = history()
    tab = opened(replace(past, memory=replace(past.memory, status="unanswered", answers=())))
    expect(tab.locator("#about")).to_contain_text("no answer was wanted · ")
    expect(tab.locator("#answer")).to_be_hidden()


def test_the_newest_answer_comes_first(opened: Open) -> None:
    past = history()
    first = past.memory.answers[0]
    later = replace(first, uid="later", question="And then?", text="He fled.", citations=())
    tab = opened(replace(past, memory=replace(past.memory, answers=(first, later))))
    expect(tab.locator("#answer .text").first).to_have_text("He fled.")


def test_the_keyboard_stays_where_it_went(opened: Open) -> None:
    tab = opened(history(points=8, steps=2))
    press(tab, "p")
    tab.locator("#chosen .names a").first.focus()
    press(tab, "Enter")
    expect(tab.locator("#chosen")).to_be_focused()
    tab.locator("#back").focus()
    press(tab, "Enter")
    expect(tab.locator("#slider")).to_be_focused()


def test_a_memory_without_points_shows_what_its_sub_queries_found(opened: Open) -> None:
    past = history(points=0, steps=1, text=HOSTILE)
    (step,) = past.memory.steps
    (one,) = step.retrieved
    built = tuple(BuiltHit(uid=f"t{at}", kind="Topic", rank=at, text=f"Boats {at} {HOSTILE}") for at in range(1, 11))
    steps = (replace(step, strategy="topics", judgement=None, retrieved=(replace(one, entities=(), built=built),)),)
    tab = opened(replace(past, memory=replace(past.memory, steps=steps)))
    told = tab.locator("#step")
    expect(told).to_contain_text("topics")
    expect(told).to_contain_text("1 chunk, 10 built rows")
    expect(told.locator("li").filter(has_text="Topic: Boats")).to_have_count(9)  # eight, within one of the sub-query
    expect(told).to_contain_text("and 2 more")
    told.get_by_text("Document 1").click()
    expect(told.get_by_text("Passage 1.")).to_be_visible()
    expect(tab.locator("#at")).to_have_text("Step 1 of 1")
    expect(tab.locator("#stage")).to_be_hidden()
    for place in ("#about", "#step"):
        expect(tab.locator(place)).not_to_contain_text("point")
    assert tab.evaluate("window.hacked") is None


def test_the_browser_draws_frames_while_places_are_found_for_many_points(opened: Open) -> None:
    tab = opened(history(points=400, steps=4))
    frames = tab.evaluate("""() => new Promise((over) => {
      let frames = 0;
      const count = () => {
        frames += 1;
        if (hgmem.elements(".coming").empty()) over(frames);
        else requestAnimationFrame(count);
      };
      document.querySelector("#back").click();
      requestAnimationFrame(count);
    })""")
    assert frames > 6
    draws(tab, 90)


def test_points_of_a_large_memory_are_seen_however_fast_one_steps(opened: Open) -> None:
    past = history(points=300, steps=6)  # few enough a step that versions are drawn beside what they revise
    tab = opened(past)
    for key in ("ArrowLeft", "ArrowRight", "ArrowLeft", "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowLeft"):
        press(tab, key)
    expect(tab.locator("#at")).to_contain_text("Step 5 of 6")
    tab.wait_for_function("() => hgmem.elements('.coming').empty()", timeout=10_000)
    draws(tab, 90)

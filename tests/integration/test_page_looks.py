"""How the page looks on a desk and a phone, in light and dark: accessible (axe-core), readable, nowhere too wide."""

import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desk import DESK, PHONE, Desk, desk, skip_without_library
from letters import QUESTION
from playwright.sync_api import Browser, Page, expect

from hgmem import HGMem, Settings

pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")

pytestmark = pytest.mark.slow  # a minute or two

CORPUS = "page-looks"
GOES_ON = threading.Event()
SERIOUS = ("serious", "critical")
SMALLEST = 24  # minimum target size in pixels (WCAG 2.2, 2.5.8)
CONTRAST = Path(__file__).parents[1] / "browser" / "contrast.js"  # texts with too little contrast
PICTURES = Path(__file__).parents[2] / ".hgmem" / "pictures"
SCREENS = {
    "home": "",
    "ask": f"/c/{CORPUS}",
    "memories": f"/c/{CORPUS}/memories",
    "memory": "/m/{memory}",
    "lists": "/m/{plain}",
    "compare": "/compare/{memory}/{other}",
    "documents": f"/c/{CORPUS}/documents",
    "document": f"/c/{CORPUS}/documents/{{document}}/{{chunk}}/0-20",
    "entities": f"/c/{CORPUS}/entities",
    "entity": f"/c/{CORPUS}/entities/{{entity}}",
    "builds": f"/c/{CORPUS}/builds",
    "build": f"/c/{CORPUS}/builds/gists",
    "missing": "/m/m0123456789abcdef",
    "new": "/c/page-none/documents",
}


@pytest.fixture(scope="module")
def shown(settings: Settings, chromium: Browser) -> Iterator[tuple[Desk, dict[str, str]]]:
    skip_without_library()
    with HGMem.open(CORPUS, **settings.model_dump(exclude_none=True)) as client:
        with desk(client, chromium, keys=True, replies={"answer": lambda *_: GOES_ON.wait(90) and None}) as opened:
            client.build("gists")
            client.same("Dag", "Eve")
            memory = client.ask(QUESTION, system="hgmem", steps=2)
            places = {
                "memory": memory.memory,
                "other": client.ask("Who left the harbour?", system="hgmem", steps=1).memory,
                "plain": client.ask(QUESTION, system="naive").memory,
                "document": str(client.documents()[0]["uid"]),
                "chunk": client.chunks()[0].uid,
                "entity": client.things("anna")[0].uid,
            }
            yield opened, places
        client.delete()


def faults(tab: Page) -> list[str]:
    """Return what axe-core finds serious, each with the elements."""
    from axe_playwright_python.sync_playwright import Axe

    found: list[Any] = [one for one in Axe().run(tab).response["violations"] if one["impact"] in SERIOUS]
    return [f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}" for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
def test_every_screen_is_accessible_readable_and_fits(
    shown: tuple[Desk, dict[str, str]], request: pytest.FixtureRequest, size: tuple[int, int], scheme: str
) -> None:
    desk, places = shown
    tab = desk.logged_in("root", size=size, color_scheme=scheme)
    wrong: dict[str, object] = {}

    def look(name: str) -> None:
        if found := faults(tab):
            wrong[name] = found
        if pale := tab.evaluate(CONTRAST.read_text(encoding="utf-8")):
            wrong[f"{name}, contrast"] = pale
        if tab.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong[f"{name}, width"] = tab.evaluate("document.documentElement.scrollWidth")
        if request.config.getoption("--pictures"):
            PICTURES.mkdir(parents=True, exist_ok=True)
            tab.screenshot(path=PICTURES / f"page-{name}-{size[0]}-{scheme}.png")

    for name, place in SCREENS.items():
        tab.goto("about:blank")
        tab.goto(f"{desk.service.address}/#{place.format(**places)}")
        shows(tab)
        look(name)
    tab.goto("about:blank")
    tab.goto(f"{desk.service.address}/#/m/{places['memory']}")
    shows(tab)
    tab.keyboard.press("p")
    expect(tab.locator("#chosen")).to_be_visible()
    look("point")
    tab.locator("#answer").get_by_role("link", name="[1]", exact=True).click()
    expect(tab.get_by_role("dialog")).to_be_visible()
    look("passage")
    tab.keyboard.press("Escape")
    expect(tab).not_to_have_url(re.compile("quote="))  # the browser has gone back from the passage
    GOES_ON.clear()
    tab.goto(f"{desk.service.address}/#/c/{CORPUS}")
    desk.ask(tab, QUESTION, steps=2, recipe="paper")
    expect(tab.locator("#line")).to_contain_text("Step 2 is stored")
    look("watching")
    GOES_ON.set()
    expect(tab.locator("#about")).to_contain_text("Answered")
    tab.get_by_role("button", name="Log out").click()
    expect(tab.get_by_role("heading", name="Log in")).to_be_visible()
    look("login")
    desk.close()
    assert wrong == {}


def shows(tab: Page) -> None:
    """Wait until a screen has been read."""
    expect(tab.locator("#page")).not_to_contain_text(re.compile("Opening…|Reading…"))
    expect(tab.locator("#page :is(h1, .empty)").first).to_be_visible()
    tab.wait_for_timeout(400)


def test_targets_of_a_phone_are_large_enough(shown: tuple[Desk, dict[str, str]]) -> None:
    desk, places = shown
    tab = desk.logged_in("root", f"/m/{places['memory']}", size=PHONE, has_touch=True)
    shows(tab)
    boxes: list[Any] = [
        one.bounding_box() for one in tab.locator("button:visible, nav a:visible, select:visible").all()
    ]
    assert len(boxes) > 10
    assert [box for box in boxes if min(box["width"], box["height"]) < SMALLEST] == []
    desk.close()

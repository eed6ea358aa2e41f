"""The page of a real process of the service in Chromium. Errors, warnings and requests elsewhere fail a test."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from letters import LETTERS
from playing import Play, playing
from playwright.sync_api import Browser, BrowserContext, Page, expect
from serving import Service, serving
from wire import WireServer

from hgmem import HGMem
from hgmem.client.serving import ServiceStore
from hgmem.values.access import Key

DESK, PHONE = (1280, 800), (390, 844)
SLOW = 60_000  # milliseconds that a page may take on a machine that does other work too
expect.set_options(timeout=SLOW)
EXPECTED = ("Failed to load resource", "the server responded with a status of")  # said of each refusal, by Chromium


@dataclass
class Desk:
    """A process of the service with its client, a model's server, and pages of it."""

    client: HGMem
    service: Service
    model: WireServer
    chromium: Browser
    keys: dict[str, tuple[str, Key]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    contexts: list[BrowserContext] = field(default_factory=list)

    @property
    def corpus(self) -> str:
        return self.client.corpus

    def page(self, place: str = "", *, size: tuple[int, int] = DESK, before: str = "", **context: Any) -> Page:
        """Open the page at an address within it, in a browser profile of its own."""
        shown = self.chromium.new_context(viewport={"width": size[0], "height": size[1]}, **context)
        self.contexts.append(shown)
        if before:
            shown.add_init_script(before)
        return self.tab(shown, place)

    def tab(self, context: BrowserContext, place: str = "") -> Page:
        tab = context.new_page()
        tab.set_default_timeout(SLOW)
        tab.on("pageerror", lambda error: self.wrong.append(str(error)))
        tab.on("console", lambda said: self._said(said.type, said.text))
        tab.on("request", lambda asked: self._asked(asked.url))
        tab.goto(f"{self.service.address}/#{place}")
        return tab

    def _said(self, kind: str, text: str) -> None:
        if kind in ("error", "warning") and not any(part in text for part in EXPECTED):
            self.wrong.append(text)

    def _asked(self, url: str) -> None:
        if not url.startswith((self.service.address, "data:", "blob:")):
            self.wrong.append(url)

    def ask(self, tab: Page, question: str, *, steps: int = 1, recipe: str = "") -> None:
        """Ask on the page's screen for questions."""
        tab.get_by_text("How it is answered").click()
        tab.get_by_label("Recipe").select_option(recipe)
        tab.get_by_label("Most steps").fill(str(steps))
        tab.get_by_label("Question", exact=True).fill(question)
        tab.get_by_role("button", name="Ask", exact=True).click()

    def logged_in(self, owner: str, place: str = "", **more: Any) -> Page:
        tab = self.page(place, **more)
        tab.get_by_label("Key", exact=True).fill(self.keys[owner][0])
        tab.get_by_role("button", name="Log in").click()
        expect(tab.get_by_role("button", name="Log out")).to_be_visible()
        return tab

    def close(self) -> None:
        for context in self.contexts:
            context.close()
        self.contexts.clear()


@contextmanager
def desk(
    client: HGMem, chromium: Browser, *, keys: bool = False, replies: Play | None = None, **settings: str
) -> Iterator[Desk]:
    """Yield the page of a process on the letters. With `keys`, `anna` and `ben` ask, `root` may do all."""
    client.add_graph(LETTERS)
    store = ServiceStore(client)
    made = {owner: store.make_key(owner, corpora=[client.corpus]) for owner in ("anna", "ben")} if keys else {}
    if keys:
        made["root"] = store.make_key("root", scopes=["admin"])
    with WireServer(playing(replies)) as model:
        given = {"HGMEM_MODEL": "wire", "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "any", **settings}
        with serving(client, **given) as service:
            opened = Desk(client, service, model, chromium, made)
            yield opened
            opened.close()
    for _, key in made.values():
        store.revoke_key(key.uid)
    assert opened.wrong == []


def skip_without_library() -> None:
    """Skip where the graph library is missing and cannot be fetched."""
    from histories import fetching

    if missing := fetching.fetch():
        pytest.skip(missing)

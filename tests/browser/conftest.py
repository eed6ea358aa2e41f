"""A real browser: Chromium or Chrome, as the machine has it, driven by Playwright."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-quic")  # fmt: skip


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """The browser that is installed, by the system or by Playwright."""
    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        command = next(filter(None, map(shutil.which, (*BROWSERS, own))), None)
        if command is None:
            pytest.skip(f"no browser: install {', '.join(BROWSERS)}, or run `playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=command, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where screenshots are left to be looked at."""
    folder = Path(__file__).parents[2] / ".hgmem" / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    return folder

"""Starts Chromium for tests, benchmarks and notebooks: the system's, else the one that Playwright installed."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--no-first-run", "--disable-quic")  # fmt: skip


class NoBrowserError(SystemExit):
    """No browser is installed. A script ends with the packages to install; a test is skipped."""


@contextmanager
def launched() -> "Iterator[Browser]":
    """Yield a browser and close it at the end. Raises `NoBrowserError` with the packages to install."""
    from playwright.sync_api import sync_playwright  # imported late: tests without a browser do not need it

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
        command = next(filter(None, map(shutil.which, (*BROWSERS, own))), None)
        if command is None:
            raise NoBrowserError(f"no browser: install {', '.join(BROWSERS)}, or run `playwright install chromium`")
        browser = playwright.chromium.launch(executable_path=command, args=list(FLAGS))
        yield browser
        browser.close()

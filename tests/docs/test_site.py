"""Tests of the documentation site: built without warnings, complete, and without resources of other hosts."""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import Browser

from hgmem.graph.record_types import RECORD_TYPES
from hgmem.settings import Settings

ROOT = Path(__file__).parents[2]
LOADED = {
    "script": "src",
    "img": "src",
    "source": "src",
    "iframe": "src",
    "video": "src",
    "audio": "src",
    "use": "href",
}
NOT_LOADED = {"canonical", "prev", "next", "alternate"}  # links in the head that a browser does not load

pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="the documents are not in the wheel")
for needed in ("mkdocs", "material", "mkdocstrings", "latex2mathml"):
    pytest.importorskip(needed, reason=f"{needed} is not installed: pip install 'hgmem[docs]'")


@dataclass
class Page(HTMLParser):
    """A page's links, resources and anchors."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    headings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in NOT_LOADED:
            self.loads.append(given["href"])
        elif given.get(LOADED.get(tag, "")):
            self.loads.append(given[LOADED[tag]])
        self.loads += _urls(given.get("style", ""))
        if tag == "h2":
            self.headings.append(given.get("id", ""))


def _urls(css: str) -> list[str]:
    """Return the URLs of a style sheet."""
    imported = re.findall(r"""@import\s+["']([^"']+)""", css)
    return [*imported, *re.findall(r"""url\(\s*["']?([^"')]+)""", css)]


def built(target: Path, *, root: Path = ROOT, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Return the result of a strict build."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(target)]
    given = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        command, cwd=root, env=given, capture_output=True, text=True, encoding="utf-8", timeout=300, check=False
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site") / "site"
    dead = "http://127.0.0.1:9"  # unreachable: any request to another host fails
    done = built(target, http_proxy=dead, https_proxy=dead, HTTP_PROXY=dead, HTTPS_PROXY=dead)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr + done.stdout
    return target


@pytest.fixture(scope="module")
def pages(site: Path) -> Mapping[str, Page]:
    """All pages, by their path in the site."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path.relative_to(site).as_posix()] = page = Page()
        page.feed(path.read_text(encoding="utf-8"))
    assert len(found) > 40
    return found


def missing(site: Path, pages: Mapping[str, Page]) -> Iterator[str]:
    """Yield the site's internal links to missing files or anchors."""
    for name, page in pages.items():
        for link in (*page.links, *page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name == "404.html" or not (parts.path or parts.fragment):
                continue
            target = ((site / name).parent / unquote(parts.path)).resolve() if parts.path else site / name
            target = target / "index.html" if target.is_dir() else target
            known = pages.get(target.relative_to(site).as_posix()) if target.is_relative_to(site) else None
            if not target.is_file():
                yield f"{name}: {link} is not there"
            elif parts.fragment and known is not None and unquote(parts.fragment) not in known.anchors:
                yield f"{name}: {link} names no place"


def elsewhere(site: Path, pages: Mapping[str, Page]) -> Iterator[str]:
    """Yield the resources that pages and styles load from other hosts."""
    texts = {path.relative_to(site).as_posix(): path.read_text(encoding="utf-8") for path in site.rglob("*.css")}
    loads = {name: page.loads for name, page in pages.items()} | {name: _urls(css) for name, css in texts.items()}
    for name, urls in loads.items():
        yield from (f"{name}: {url}" for url in urls if urlsplit(url).netloc)


def test_every_link_leads_to_a_place_on_the_site(site: Path, pages: Mapping[str, Page]) -> None:
    assert sum(len(page.links) for page in pages.values()) > 1_000
    assert list(missing(site, pages)) == []


def test_nothing_is_loaded_from_another_host(site: Path, pages: Mapping[str, Page]) -> None:
    assert sum(len(page.loads) for page in pages.values()) > 100
    assert list(elsewhere(site, pages)) == []


def test_a_dead_link_and_a_foreign_script_are_noticed(site: Path) -> None:
    page = Page()
    page.feed(
        '<a href="gone.html">x</a><a href="index.html#gone">x</a><a href="index.html">x</a><a href="https://x.org">x</a>'
        '<script src="https://x.org/a.js"></script><link rel="stylesheet" href="//x.org/a.css">'
        '<p style="background: url(https://x.org/a.png)">x</p><img src="pictures/replay.png">'
    )
    index = Page()
    index.feed((site / "index.html").read_text(encoding="utf-8"))
    one = {"x.html": page, "index.html": index}
    assert [line for line in missing(site, one) if line.startswith("x.html")] == [
        "x.html: gone.html is not there",
        "x.html: index.html#gone names no place",
    ]
    assert len(list(elsewhere(site, one))) == 3


@pytest.fixture(scope="module")
def served(site: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_browser_asks_no_other_host_finds_words_and_scrolls_no_page_sideways(served: str, chromium: Browser) -> None:
    asked: list[str] = []
    page = chromium.new_page(viewport={"width": 390, "height": 900})
    page.on("request", lambda request: asked.append(request.url))
    for name in ("index", "concepts", "algorithm", "browser", "reference/cli", "reference/settings"):
        page.goto(f"{served}/{name}.html")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{served}/index.html")
    page.click(".md-search__input")
    page.keyboard.type("lineage")
    page.wait_for_selector(".md-search-result__item", timeout=20_000)
    page.close()
    assert len(asked) > 10
    assert [url for url in asked if not url.startswith((f"{served}/", "data:", "blob:"))] == []


def commands(command: Any, name: str) -> Iterator[str]:
    for part in command.list_commands(None):
        inner = command.get_command(None, part)
        if hasattr(inner, "list_commands"):
            yield from commands(inner, f"{name} {part}")
        else:
            yield f"{name} {part}"


def test_the_reference_of_commands_has_every_command_and_option(site: Path, pages: Mapping[str, Page]) -> None:
    from typer.main import get_command

    from hgmem.cli import app

    names = list(commands(get_command(app), "hgmem"))
    assert {"hgmem ask", "hgmem memory export", "hgmem import lightrag", "hgmem browser"} <= set(names)
    assert [name.replace(" ", "-") for name in names] == pages["reference/cli.html"].headings[1:]
    text = (site / "reference" / "cli.html").read_text(encoding="utf-8")
    for option in ("--show-memory", "--max-calls", "--from-uri", "--keep-answers", "--html"):
        assert f"<code>{option}</code>" in text or f"<code>{option} " in text, option


def test_the_references_have_every_setting_property_and_name(site: Path) -> None:
    def text(name: str) -> str:
        return (site / name).read_text(encoding="utf-8")

    settings, graph, algorithm = (
        text(name) for name in ("reference/settings.html", "reference/graph.html", "algorithm.html")
    )
    assert [name for name in Settings.model_fields if f"{name.upper()}</code>" not in settings] == []
    assert "<code>NEO4J_URI</code>" in settings
    assert "<code>HGMEM_CHUNK_TOKENS</code>" in settings
    assert [name for name in RECORD_TYPES if f"<code>{name}</code>" not in graph] == []
    assert "retrieval.exclude" in algorithm
    assert all(f"<code>{name}</code>" in text("recipes.html") for name in ("default", "paper", "code"))
    client = text("reference/client.html")
    for method in ("open", "add", "ask", "stream", "memory", "replay", "browse", "export", "prune", "check"):
        assert f'id="hgmem.client.HGMem.{method}"' in client, method
    assert 'id="hgmem.langchain.HGMemRetriever"' in text("reference/langchain.html")
    assert 'id="hgmem.values.records.MemoryPoint"' in text("reference/values.html")
    assert 'id="hgmem.values.events.Answered"' in text("reference/events.html")


def test_equations_and_drawings_are_in_the_pages_themselves(site: Path) -> None:
    assert (site / "algorithm.html").read_text(encoding="utf-8").count("<math") == 5
    concepts = (site / "concepts.html").read_text(encoding="utf-8")
    drawings = re.findall(r'<svg class="drawing" role="img" aria-label="([^"]+)"', concepts)
    assert len(drawings) == len(list((ROOT / "docs" / "pictures").glob("*.svg"))) == 6
    assert "<!-- generated" not in concepts + (site / "reference" / "cli.html").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("link", ["gone.md", "recipes.md#gone", "../hgmem/gone.py"])
def test_a_link_that_leads_nowhere_stops_the_build(link: str, tmp_path: Path) -> None:
    for path in [path for path in ROOT.iterdir() if not path.name.startswith(".") and path.name != "docs"]:
        (tmp_path / path.name).symlink_to(path)
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    page = tmp_path / "docs" / "models.md"
    page.write_text(page.read_text(encoding="utf-8") + f"\n[gone]({link})\n", encoding="utf-8")
    done = built(tmp_path / "built", root=tmp_path)
    assert done.returncode != 0
    assert link.rpartition("/")[2].partition("#")[0] in done.stderr

"""Measure the time from `make demo` to the first picture of its memory in Neo4j Browser, in seconds by stage."""

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "browser"))
from chromium import launched
from neo4j_browser import Neo4jBrowser

from hgmem.local import find
from hgmem.settings import load

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print the figures as JSON; the demo's server keeps running, as after the demo."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    began = time.perf_counter()
    subprocess.run([shutil.which("make") or "make", "demo"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    figures = {"make demo": time.perf_counter() - began}
    data = ROOT / ".hgmem" / "demo"
    server = find(load(data=data, neo4j_uri=""))
    if server is None:
        raise SystemExit("the demo's server does not run")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("NEO4J_", "HGMEM_"))}
    command = [str(ROOT / ".venv" / "bin" / "hgmem"), "browser", "--corpus", "affair", "--print"]
    started = time.perf_counter()
    with subprocess.Popen(command, env={**kept, "HGMEM_DATA": str(data)}, stdout=subprocess.PIPE, text=True) as serving:
        assert serving.stdout
        link = serving.stdout.readline().split(None, 1)[1].strip()
        figures["hgmem browser, to its link"] = time.perf_counter() - started
        figures["Browser, to the picture"] = _drawn(link, server.password.get_secret_value())
        serving.terminate()
    figures["from make demo to the picture"] = sum(figures.values())
    print(json.dumps({name: round(seconds, 1) for name, seconds in figures.items()}, indent=2))


def _drawn(link: str, password: str) -> float:
    """Return the seconds from the link until step 1's memory is drawn in our style, without a person's pauses."""
    with launched() as browser:
        began = time.perf_counter()
        tab = browser.new_context(viewport={"width": 1400, "height": 1000}).new_page()
        tab.goto(link)
        opened = Neo4jBrowser(tab)
        opened.connect(password)
        guide = tab.get_by_test_id("frame").filter(has_text=":play")
        opened.click(guide.locator(".runnable:visible", has_text=":style"))
        for _ in range(2):
            guide.get_by_test_id("nextSlide").click()
        opened.click(guide.locator(".runnable:visible").first)
        opened.nodes(10)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()

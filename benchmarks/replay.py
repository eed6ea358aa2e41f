"""Measure the replay page of a memory with many points in a real browser: size, frame rates, time per step."""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from chromium import launched
from histories import history

from hgmem.memory.replay.page import library, page, scene

STEPS = 6
SECONDS = 3
# The milliseconds between frames while the picture is moved, zoomed, or at rest.
MOVING = """
([how, seconds]) => new Promise((done) => {
  const gaps = [];
  const began = performance.now();
  let last = began;
  const frame = (now) => {
    gaps.push(now - last);
    last = now;
    const part = (now - began) / 1000;
    if (part > seconds) return done(gaps.slice(1));
    if (how === "pan") hgmem.panBy({ x: 6 * Math.sin(4 * part), y: 6 * Math.cos(4 * part) });
    if (how === "zoom") hgmem.zoom({ level: 0.6 + 0.4 * Math.sin(2 * part), renderedPosition: { x: 400, y: 300 } });
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})
"""
# Milliseconds from a step of the slider to the frame after it.
STEPPING = """
(steps) => new Promise((done) => {
  const slider = document.getElementById("slider");
  const taken = [];
  const next = (left) => {
    if (!left.length) return done(taken);
    const began = performance.now();
    slider.value = left[0];
    slider.dispatchEvent(new Event("input"));
    requestAnimationFrame(() => requestAnimationFrame(() => {
      taken.push(performance.now() - began);
      next(left.slice(1));
    }));
  };
  next(steps);
})
"""


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200)
    points = parser.parse_args().points
    text = page(scene(history(points=points, steps=STEPS)))
    with tempfile.TemporaryDirectory() as folder, launched() as browser:
        path = Path(folder) / "memory.html"
        path.write_text(text, encoding="utf-8")
        tab = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready]", timeout=60_000)
        figures = measured(tab) | {"bytes": path.stat().st_size, "of them library": len(library()[0].encode())}
    print(json.dumps({"points": points} | figures, indent=2))


def measured(tab: Page) -> dict[str, Any]:
    """Return frames per second at rest and while the picture moves, and milliseconds per step."""
    ready = tab.evaluate("performance.now()")
    rates = {how: _rate(tab.evaluate(MOVING, [how, SECONDS])) for how in ("rest", "pan", "zoom")}
    steps = tab.evaluate(STEPPING, [*range(1, STEPS + 1)] * 3)
    return {
        "milliseconds to the picture": round(ready),
        "frames a second": rates,
        "milliseconds a step, median": round(statistics.median(steps)),
        "nodes drawn": tab.evaluate("hgmem.nodes(':visible').length"),
    }


def _rate(gaps: list[float]) -> dict[str, float]:
    return {"median": round(1000 / statistics.median(gaps), 1), "worst of 20": round(1000 / _worst(gaps), 1)}


def _worst(gaps: list[float]) -> float:
    return sorted(gaps)[int(len(gaps) * 0.95)]


if __name__ == "__main__":
    main()

"""Measure the service's page on a large memory in a real browser: first paint, frames a second, the longest freeze."""

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page
from replay import MOVING, SECONDS, STEPPING, _rate
from running import access, running

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from chromium import launched
from serving import serving

from hgmem import Document, HGMem

STEPS = 10
MEMORY = "m00000000000000ff"
ENTITIES = """
UNWIND range($first, $last) AS n
CREATE (:Entity {uid: 'e' + n, corpus: $corpus, memory: '', name: 'Name ' + n, type: ['person', 'place', 'ship'][n % 3],
                 description: 'Name ' + n + ' is told of in the papers of the harbour.'})
"""
STEP = """
MERGE (m:Memory {uid: $memory, corpus: $corpus})
ON CREATE SET m += {memory: $memory, system: 'hgmem', model: 'stored', question: 'Who did it?', settings: '{}',
                    status: 'unanswered', owner: '', created_at: datetime()}
CREATE (m)-[:HAS_STEP]->(:Step {corpus: $corpus, memory: $memory, number: $step, question: 'Who did it?',
        strategy: 'global', judgement: 'local', operations: $operations, planned: '[]', created_at: datetime()})
WITH m
MATCH (c:Chunk {corpus: $corpus}) WITH m, collect(c) AS chunks
UNWIND $points AS point
CREATE (m)-[:HAS_POINT]->(p:MemoryPoint {uid: point.uid, corpus: $corpus, memory: $memory, born: $step,
                                         description: point.description})
WITH p, point, chunks[point.at % size(chunks)] AS c
CREATE (p)-[:SUPPORTED_BY]->(c)
WITH p, point
UNWIND point.entities AS uid
MATCH (e:Entity {uid: uid, corpus: $corpus})
CREATE (p)-[:INVOLVES]->(e)
"""
# Milliseconds to the first paint, and the longest time in which nothing else could be done.
WATCH = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) window.longest = Math.max(window.longest, one.duration);
}).observe({ type: "longtask", buffered: true });
"""


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=5_000)
    parser.add_argument("--entities", type=int, default=20_000)
    options = parser.parse_args()
    with running() as (server, _), HGMem.open("large", embedder="deterministic", **access(server)) as client:
        fill(client, options.points, options.entities)
        with serving(client) as service, launched() as browser:
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.add_init_script(WATCH)
            tab = context.new_page()
            found = {"first": opened(tab, service.address), "again": opened(tab, service.address)}
            figures = found | measured(tab)
    print(json.dumps({"points": options.points, "entities": options.entities} | figures, indent=2))


def fill(client: HGMem, points: int, entities: int) -> None:
    """Write a corpus and a memory of so many points over so many entities."""
    text = "\n\n".join(f"Paper {n} of the harbour tells who did it, and when. " * 12 for n in range(400))
    client.add([Document(id="papers", title="Papers", text=text)], graph=False)
    driver = client._database._driver
    for first in range(0, entities, 5_000):
        driver.execute_query(ENTITIES, corpus=client.corpus, first=first, last=min(first + 5_000, entities) - 1)
    for step in range(1, STEPS + 1):
        rows = [row(step, at, entities) for at in range(points // STEPS)]
        made = [{"kind": "insert", "point": one["uid"], "parts": [], "reason": ""} for one in rows]
        given = {"memory": MEMORY, "step": step, "points": rows, "operations": json.dumps(made)}
        driver.execute_query(STEP, corpus=client.corpus, **given)


def row(step: int, at: int, entities: int) -> dict[str, Any]:
    """Return a point of a step that ties four entities of its own and one that many points tie."""
    own = [f"e{(4 * (step * 500 + at) + n) % entities}" for n in range(4)]
    return {
        "uid": f"{MEMORY}-{step}-{at}",
        "description": f"Point {at} of step {step}: what was told of the boats by the harbour master in the morning.",
        "at": step * 500 + at,
        "entities": [*own, f"e{at % 40}"] if f"e{at % 40}" not in own else own,
    }


def opened(tab: Page, address: str) -> dict[str, int]:
    """Open the memory, and return the milliseconds to its frame, to the picture, and the longest freeze."""
    tab.goto("about:blank")
    tab.goto(f"{address}/#/m/{MEMORY}")
    tab.locator("#at", has_text="points").wait_for(timeout=120_000)
    now = round(tab.evaluate("performance.now()"))
    paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    tab.wait_for_timeout(1_000)
    return {"first paint": round(paint), "picture and lists": now, "longest freeze": round(tab.evaluate("longest"))}


def measured(tab: Page) -> dict[str, Any]:
    """Return frames a second, milliseconds a step, and the longest freeze while one steps and chooses."""
    tab.evaluate("window.longest = 0")
    rates = {how: _rate(tab.evaluate(MOVING, [how, SECONDS])) for how in ("rest", "pan", "zoom")}
    panned = tab.evaluate("longest")
    steps = tab.evaluate(STEPPING, [*range(1, STEPS + 1)])
    for _ in range(5):
        tab.keyboard.press("p")
        tab.wait_for_timeout(300)
    return {
        "frames a second": rates,
        "longest freeze while it moves": round(panned),
        "milliseconds a step, median": round(statistics.median(steps)),
        "longest freeze of steps and choices": round(tab.evaluate("longest")),
        "nodes drawn": tab.evaluate("hgmem.nodes(':visible').length"),
    }


if __name__ == "__main__":
    main()

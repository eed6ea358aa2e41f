"""Measure the cost of a question beside stored memories over the same entities, as ratios against none."""

import argparse
import json
import secrets
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipes import Script
from running import QUESTIONS, access, read_questions, running

from hgmem import Answer, HGMem
from hgmem.local import Server
from hgmem.text.resources import resource

STORED = (0, 1_000, 10_000)
RECIPES = ("default", "code")  # by vectors alone, and over two hops from entities
STEPS = 3
BATCH = 200  # memories per transaction
POINTS, ENTITIES = 8, 4  # per memory, per point
MOST = 1.2  # maximum ratio of the cost to that beside none

POPULAR = """
MATCH (e:Entity {corpus: $corpus, memory: ''}) WITH e, COUNT { (e)-[:RELATES]-() } AS ties ORDER BY ties DESC, e.uid
RETURN collect(e.uid)[..$most] AS entities, head(collect(e.embedding)) AS vector
"""
CREATE = """
UNWIND $memories AS uid
CREATE (m:Memory {uid: uid, corpus: $corpus, memory: uid, system: 'hgmem', model: 'stored', question: 'What?',
                  settings: '{}', status: 'answered', created_at: datetime()})
CREATE (m)-[:HAS_STEP]->(s:Step {corpus: $corpus, memory: uid, number: 1, question: 'What?', strategy: 'global',
                                 operations: '[]', planned: '[]', created_at: datetime()})
CREATE (s)-[:ASKED]->(q:SubQuery {corpus: $corpus, memory: uid, number: 1, text: 'What?'})
WITH m, q
UNWIND range(1, $points) AS at
CREATE (m)-[:HAS_POINT]->(p:MemoryPoint {uid: m.uid + '-1-' + at, corpus: $corpus, memory: m.uid, born: 1,
                                         description: 'Stored.', embedding: $vector})
WITH m, q, p, at
UNWIND range(1, $of) AS each
WITH m, q, p, $entities[toInteger(size($entities) * rand() ^ 3)] AS uid // the first ones most
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
MERGE (p)-[:INVOLVES]->(e)
CREATE (q)-[:RETRIEVED {rank: 1, score: 0.5}]->(e)
"""


def main() -> None:
    """Print the figures as JSON; exit with 1 if stored memories make a question more expensive than allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightrag", type=Path, help="import this LightRAG directory. Default: the demo corpus")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="questions, one per line")
    parser.add_argument("--most", type=int, default=6, help="ask the first N questions")
    parser.add_argument("--rounds", type=int, default=3, help="let the corpora take turns N times")
    options = parser.parse_args()
    with running() as (server, _):
        found = figures(server, options, read_questions(options.questions)[: options.most])
    print(json.dumps(found, indent=2))
    dear = [f"{recipe} beside {beside}" for recipe, beside, ratio in ratios(found) if ratio > MOST]
    if dear:
        raise SystemExit(f"more than {MOST} times what it costs beside no memories: {', '.join(dear)}")


def figures(server: Server, options: argparse.Namespace, questions: list[str]) -> dict[str, Any]:
    """Return medians of Neo4j's time per question, on corpora that take turns at every question."""
    clients = {  # on one server: its cache is shared
        stored: HGMem.open(f"beside{stored}", embedder="deterministic", **access(server)) for stored in STORED
    }
    loaded = {stored: fill(client, options.lightrag, stored) for stored, client in clients.items()}
    runs: dict[tuple[str, int], list[Answer]] = {(recipe, stored): [] for recipe in RECIPES for stored in STORED}
    for turn in range(options.rounds + 1):  # the first one warms up
        for question in questions:
            for recipe, stored in runs:
                client = clients[stored]
                client.model = Script()
                answer = client.ask(question, recipe=recipe, steps=STEPS)
                if turn:
                    runs[recipe, stored].append(answer)
    for client in clients.values():
        client.close()
    found: dict[str, Any] = {recipe: {} for recipe in RECIPES}
    for (recipe, stored), answers in runs.items():
        found[recipe][str(stored)] = costs(answers)
    return {"seconds_to_store": loaded, **found}


def fill(client: HGMem, lightrag: Path | None, stored: int) -> float:
    """Create a corpus and store memories in it; return the seconds for the memories."""
    if lightrag:
        client.import_lightrag(lightrag)
    else:
        client.add(resource("examples", "affair"))
    began = time.perf_counter()
    store(client, stored)
    return round(time.perf_counter() - began, 1)


def store(client: HGMem, memories: int) -> None:
    """Add memories to the client's corpus, over entities with many relations."""
    driver = client._database._driver
    popular = driver.execute_query(POPULAR, corpus=client.corpus, most=200).records[0].data()
    for batch in batches(memories):
        driver.execute_query(CREATE, memories=batch, corpus=client.corpus, points=POINTS, of=ENTITIES, **popular)


def batches(stored: int) -> Iterator[list[str]]:
    """Yield uids of new memories in batches."""
    for begin in range(0, stored, BATCH):
        yield [f"m{secrets.token_hex(8)}" for _ in range(min(BATCH, stored - begin))]


def costs(answers: list[Answer]) -> dict[str, float]:
    """Return medians in milliseconds: Neo4j in total, and each of its statements."""
    names = sorted({name for answer in answers for name in answer.usage.seconds.get("neo4j", {})})
    by_name = {
        name: round(1e3 * statistics.median(one.usage.seconds["neo4j"].get(name, 0.0) for one in answers), 2)
        for name in names
    }
    whole = statistics.median(sum(one.usage.seconds["neo4j"].values()) for one in answers)
    return {"neo4j": round(1e3 * whole, 2), **by_name}


def ratios(found: dict[str, Any]) -> Iterator[tuple[str, str, float]]:
    """Yield the recipe, the number of stored memories, and the ratio of the cost to that beside none."""
    for recipe in RECIPES:
        for stored, cost in found[recipe].items():
            yield recipe, stored, cost["neo4j"] / found[recipe]["0"]["neo4j"]


if __name__ == "__main__":
    main()

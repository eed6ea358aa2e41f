"""The workloads of the product alone, W3 and W8: whole questions whose model and embedder answer at once."""

import hashlib
import random
import statistics
import time
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from measures import ratios, told
from memories import ENTITIES, POPULAR, store
from recipes import Script

from hgmem import Answer, HGMem
from hgmem.embed import Kind, Vectors

STEPS = 3
RECIPES = ("paper", "default", "compact", "single", "code")
# A question of three steps by the official code, in one process and with an instant model, on the same graph: measured
# once, on two cores like these, not in this run. So the ratio to it says no more than the order.
OFFICIAL_MS = 170.0
POINTS = """
MATCH (m:Memory {uid: $memory, corpus: $corpus}) UNWIND range(1, $points) AS at
CREATE (m)-[:HAS_POINT]->(p:MemoryPoint {uid: $memory + '-more-' + at, corpus: $corpus, memory: $memory, born: 1,
                                         description: 'What was found out before, number ' + at + '.'})
WITH p CALL db.create.setNodeVectorProperty(p, 'embedding', $vector)
UNWIND range(1, $of) AS each
WITH p, $entities[toInteger(size($entities) * rand() ^ 3)] AS uid // the first ones most
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
MERGE (p)-[:INVOLVES]->(e)
"""


SETTLED = 300  # memories, beside which those of some questions change no plan


class Instant:
    """An embedder that draws a vector from a text's hash, and remembers it: no time of a model is in any figure."""

    name = "precomputed"
    dimensions = 384

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def embed(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), 384)."""
        for text in texts:
            if text not in self._known:
                seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
                drawn = np.random.default_rng(seed).standard_normal(self.dimensions, dtype=np.float32)
                self._known[text] = drawn / np.linalg.norm(drawn)
        return cast("Vectors", np.stack([self._known[text] for text in texts]))


def questions(
    client: HGMem, asked: Sequence[str], *, rounds: int, warm: float, recipes: Sequence[str] = RECIPES
) -> dict[str, Any]:
    """W3: a whole question of three steps, each recipe in turn; the product's own milliseconds."""
    runs: dict[str, list[Answer]] = {recipe: [] for recipe in recipes}
    seconds: dict[str, list[float]] = {recipe: [] for recipe in recipes}
    warmed(client, asked, recipes, seconds=warm)
    for _ in range(rounds):
        for question, recipe in _shuffled(asked, recipes):
            took, answer = _asked(client, question, recipe)
            seconds[recipe].append(took)
            runs[recipe].append(answer)
    return {
        recipe: {
            **told(seconds[recipe]),
            "of_them_neo4j_ms": _median(1000 * sum(one.usage.seconds["neo4j"].values()) for one in runs[recipe]),
            "round_trips_reading_a_step": _median(
                sum(step.usage.calls["neo4j"].values()) for one in runs[recipe] for step in one.steps
            ),
            "against_official": round(told(seconds[recipe])["median_ms"] / OFFICIAL_MS, 3),
        }
        for recipe in recipes
    }


def warmed(client: HGMem, asked: Sequence[str], recipes: Sequence[str], *, seconds: float) -> None:
    """Ask every question by every recipe, and go on for so many seconds.

    Neo4j plans a statement anew, for a second where it is large, when the numbers that it planned with have changed by
    three quarters, and at most every ten seconds. In a database of few memories the first questions alone do that.
    """
    end = time.perf_counter() + seconds
    for question, recipe in _shuffled(asked, recipes):
        _asked(client, question, recipe)
    while time.perf_counter() < end:
        _asked(client, random.choice(asked), random.choice(recipes))  # noqa: S311


def settled(client: HGMem) -> None:
    """Store so many memories in the client's corpus that the next ones don't change what the database plans with."""
    store(client, SETTLED)


def growing(client: HGMem, asked: Sequence[str], points: Sequence[int]) -> dict[str, Any]:
    """W8: one more step of memories that hold so many points already, milliseconds; against the smallest."""
    memories = {size: [_held(client, size) for _ in range(len(asked) + 1)] for size in points}
    whole: dict[str, list[float]] = {str(size): [] for size in points}
    alone: dict[str, list[float]] = {str(size): [] for size in points}
    for turn, question in enumerate((asked[0], *asked)):
        for size in points:
            client.model = Script()
            began = time.perf_counter()
            answer = client.ask(question, memory=memories[size][turn], steps=1)
            if turn:
                whole[str(size)].append(time.perf_counter() - began)
                alone[str(size)].append(answer.steps[-1].seconds)
    return {"points: the whole follow-up": _against(whole), "points: the step alone": _against(alone)}


def beside(client: HGMem, asked: Sequence[str], stored: Sequence[int], *, rounds: int) -> dict[str, Any]:
    """W8: a question beside so many stored memories over the same entities, milliseconds; against none."""
    found: dict[str, list[float]] = {str(many): [] for many in stored}
    there = 0
    for many in stored:
        store(client, many - there)
        there = many
        for turn in range(rounds + 1):
            for question in asked:
                took, _ = _asked(client, question, "default")
                if turn:
                    found[str(many)].append(took)
    return {"stored memories": _against(found)}


def _asked(client: HGMem, question: str, recipe: str) -> tuple[float, Answer]:
    client.model = Script()
    began = time.perf_counter()
    answer = client.ask(question, recipe=recipe, steps=STEPS)
    return time.perf_counter() - began, answer


def _shuffled(asked: Sequence[str], recipes: Sequence[str]) -> list[tuple[str, str]]:
    every = [(question, recipe) for question in asked for recipe in recipes]
    return random.sample(every, len(every))


def _held(client: HGMem, points: int) -> str:
    """Return the uid of a new memory of so many points, over entities that many relations join."""
    client.model = Script()
    memory = client.ask("What happened?", steps=1).memory
    driver = client._database._driver
    popular = driver.execute_query(POPULAR, corpus=client.corpus, most=200).records[0].data()
    driver.execute_query(POINTS, memory=memory, corpus=client.corpus, points=points, of=ENTITIES, **popular)
    return memory


def _against(found: dict[str, list[float]]) -> dict[str, Any]:
    """Return what was measured, and its medians against those of the first."""
    times = {name: told(seconds) for name, seconds in found.items()}
    medians = {name: one["median_ms"] for name, one in times.items()}
    return {"times": times, "against_the_first": ratios(medians, to=next(iter(medians)))}


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 2)

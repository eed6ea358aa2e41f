"""Workloads W3 and W8, of hgmem alone: whole questions with a model and an embedder that answer at once."""

import hashlib
import random
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from measures import ratios, told
from memories import ENTITIES, POPULAR, store
from recipes import Script

from hgmem import Answer, HGMem
from hgmem.models.embedding import TextKind, Vectors

STEPS = 3
RECIPES = ("paper", "default", "code")
# A question of three steps by the official code, in one process and with an instant model, on the novel's graph.
# Measured once, on two cores, not in this run: the ratio shows only the order of magnitude, on that graph.
OFFICIAL_MS = 170.0
OFFICIAL = f"against {OFFICIAL_MS:.0f} ms of the official code, measured once, another day"
POINTS = """
MATCH (m:Memory {uid: $memory, corpus: $corpus}) UNWIND range(1, $points) AS at
CREATE (m)-[:HAS_POINT]->(p:MemoryPoint {uid: $memory + '-more-' + at, corpus: $corpus, memory: $memory, born: 1,
                                         description: $descriptions[at - 1]})
WITH p CALL db.create.setNodeVectorProperty(p, 'embedding', $vector)
UNWIND range(1, $of) AS each
WITH p, $entities[toInteger(size($entities) * rand() ^ 3)] AS uid // the first ones most
MATCH (e:Entity {uid: uid, corpus: $corpus}) USING INDEX e:Entity(uid)
MERGE (p)-[:INVOLVES]->(e)
"""


LENGTH = 200  # characters of a point
MANY = 3  # steps of the longer follow-up
SETTLED = 300  # stored memories: beside them, those of some questions change no query plan


class Instant:
    """An embedder that derives a vector from a text's hash and caches it, so that figures include no model's time."""

    name = "precomputed"
    dimensions = 384

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), 384)."""
        for text in texts:
            if text not in self._known:
                seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest())
                drawn = np.random.default_rng(seed).standard_normal(self.dimensions, dtype=np.float32)
                self._known[text] = drawn / np.linalg.norm(drawn)
        return cast("Vectors", np.stack([self._known[text] for text in texts]))


def questions(
    client: HGMem,
    asked: Sequence[str],
    *,
    rounds: int,
    warm: float,
    recipes: Sequence[str] = RECIPES,
    novel: bool = False,
) -> dict[str, Any]:
    """W3: a whole question of three steps, each recipe in turn, in hgmem's own milliseconds.

    `novel`: the corpus contains the graph that the official code was measured on.
    """
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
            **({OFFICIAL: round(told(seconds[recipe])["median_ms"] / OFFICIAL_MS, 3)} if novel else {}),
        }
        for recipe in recipes
    }


def warmed(client: HGMem, asked: Sequence[str], recipes: Sequence[str], *, seconds: float) -> None:
    """Ask every question by every recipe, and continue until `seconds` have passed.

    Neo4j plans a statement again when the numbers that it planned with have changed by three quarters, at most every
    ten seconds. This takes a second for a large statement. In a database of few memories, the first questions cause it.
    """
    end = time.perf_counter() + seconds
    for question, recipe in _shuffled(asked, recipes):
        _asked(client, question, recipe)
    while time.perf_counter() < end:
        _asked(client, random.choice(asked), random.choice(recipes))  # noqa: S311


def settled(client: HGMem) -> None:
    """Store enough memories in the client's corpus that further ones change no query plan."""
    store(client, SETTLED)


def growing(client: HGMem, asked: Sequence[str], points: Sequence[int]) -> dict[str, Any]:
    """W8: follow-ups of one step and of more, on memories that already have `points` points, in milliseconds.

    Each follow-up has its own memory with unique texts: a process that knows a text does not count its tokens again.
    A further step is the difference between both follow-ups, divided by the number of additional steps.
    """
    lengths = (1, MANY)
    memories = {
        (size, steps): [_held(client, size, asked) for _ in range(len(asked) + 1)]
        for size in points
        for steps in lengths
    }
    whole: dict[str, list[float]] = {str(size): [] for size in points}
    further: dict[str, list[float]] = {str(size): [] for size in points}
    for turn, question in enumerate((asked[0], *asked)):
        for size in points:
            took = {steps: _followed(client, question, memories[size, steps][turn], steps) for steps in lengths}
            if turn:
                whole[str(size)].append(took[1])
                further[str(size)].append((took[MANY] - took[1]) / (MANY - 1))
    return {"points: the whole follow-up, of one step": _against(whole), "points: a further step": _against(further)}


def beside(clients: Mapping[int, HGMem], asked: Sequence[str], *, rounds: int) -> dict[str, Any]:
    """W8: a question beside each number of stored memories over the same entities, in milliseconds, against none.

    Each client has its own corpus with the same graph. The clients take turns at every question.
    """
    found: dict[str, list[float]] = {str(many): [] for many in clients}
    for many, client in clients.items():
        store(client, many)
    for turn in range(rounds + 1):
        for question in asked:
            for many, client in random.sample([*clients.items()], len(clients)):
                took, _ = _asked(client, question, "default")
                if turn:
                    found[str(many)].append(took)
    return {"stored memories": _against(found)}


def _asked(client: HGMem, question: str, recipe: str) -> tuple[float, Answer]:
    client.model = Script()
    began = time.perf_counter()
    answer = client.ask(question, recipe=recipe, steps=STEPS)
    return time.perf_counter() - began, answer


def _followed(client: HGMem, question: str, memory: str, steps: int) -> float:
    """Return the seconds of a follow-up. Raises `AssertionError` unless it took all its steps."""
    client.model = Script()
    began = time.perf_counter()
    there = len(client.ask(question, memory=memory, steps=steps).steps)
    took = time.perf_counter() - began
    if there != steps + 1:  # including the step of `_held`
        raise AssertionError(f"a follow-up of {steps} steps leaves a memory of {there}")
    return took


def _shuffled(asked: Sequence[str], recipes: Sequence[str]) -> list[tuple[str, str]]:
    every = [(question, recipe) for question in asked for recipe in recipes]
    return random.sample(every, len(every))


def _held(client: HGMem, points: int, asked: Sequence[str]) -> str:
    """Return the uid of a new memory with `points` more points, over entities with many relations."""
    client.model = Script()
    memory = client.ask("What happened?", steps=1).memory
    driver = client._database._driver
    popular = driver.execute_query(POPULAR, corpus=client.corpus, most=200).records[0].data()
    told_of = {"memory": memory, "descriptions": descriptions(memory, points, asked)}
    driver.execute_query(POINTS, **told_of, corpus=client.corpus, points=points, of=ENTITIES, **popular)
    return memory


def descriptions(memory: str, points: int, asked: Sequence[str]) -> list[str]:
    """Return a text for each point, as long as a model's: words of the questions and a unique prefix."""
    words = [word for question in asked for word in question.split()]
    some = (" ".join(random.choices(words, k=LENGTH)) for _ in range(points))  # noqa: S311
    return [f"{memory}, {at}: {text}"[:LENGTH] for at, text in enumerate(some, start=1)]


def _against(found: dict[str, list[float]]) -> dict[str, Any]:
    """Return the times, and the ratio of each median to the first one."""
    times = {name: told(seconds) for name, seconds in found.items()}
    medians = {name: one["median_ms"] for name, one in times.items()}
    return {"times": times, "against_the_first": ratios(medians, to=next(iter(medians)))}


def _median(values: Iterable[float]) -> float:
    return round(statistics.median(values), 2)

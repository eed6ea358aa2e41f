"""Measure what trails remember when useful and useless questions take turns, by touches and by vectors.

The pairs are real: a question on *The Gods of Mars*, and another one over the same passages, embedded. Beside them are
pairs of a given cosine. No server is needed.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hgmem.client.connecting import find_embedder
from hgmem.settings import load
from hgmem.systems.remindrag.recipes import DEFAULT
from hgmem.systems.remindrag.touches import NEAR, Touch, nearest_use, relevance
from hgmem.systems.remindrag.trails import replayed

HERE = Path(__file__).parent
ALIKE = 0.4  # product of the ends of a trail
MEMORIES = ("touches", "fade", "forget", "shrink")  # exact, or the vector with a penalty
TURNS = 20


def main() -> int:
    """Print the figures as JSON, a line for each memory and kind of pairs."""
    embedder = find_embedder(load())
    same, other = ([one[name] for one in _rows()] for name in ("question", "different"))
    real = list(zip(embedder.embed(same, kind="query"), embedder.embed(other, kind="query"), strict=True))
    for memory in MEMORIES:
        print(json.dumps({"memory": memory, "pairs": "novel", **turns(real, memory)}))
        for cosine in (0.95, 0.9, 0.8, 0.6):
            print(json.dumps({"memory": memory, "cosine": cosine, **turns([pair(cosine)], memory)}))
        for number in (2, 4, 8, 100):
            print(json.dumps({"memory": memory, "questions of one trail": number, **many(number, memory)}))
    return 0


def _rows() -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for name in ("gods_of_mars.jsonl", "gods_of_mars_variants.jsonl"):
        for line in (HERE / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            found.setdefault(row["id"], {}).update(row)
    return list(found.values())


def pair(cosine: float) -> tuple[Any, Any]:
    """Return two unit vectors of this cosine."""
    one, other = np.zeros(8), np.zeros(8)
    one[0], other[0], other[1] = 1, cosine, np.sqrt(1 - cosine**2)
    return one.astype(np.float32), other.astype(np.float32)


def turns(pairs: list[tuple[Any, Any]], memory: str) -> dict[str, Any]:
    """Return the least relevance R of a mature trail in turns with another question, and R once it misled twice."""
    once, lowest, misled = [], [], []
    for one, other in pairs:
        touches = [(one, True)] * 3
        misled.append(relevance_after([*touches, (one, False), (one, False)], one, memory, alike=1.0))
        scores = []
        for _ in range(TURNS):
            touches.append((other, False))
            scores.append(relevance_after(touches, one, memory, alike=ALIKE))
            touches.append((one, True))
        once.append(scores[0])
        lowest.append(min(scores))
    return {
        "after one": round(min(once), 2),
        f"lowest in {TURNS} turns": round(min(lowest), 2),
        "strong in all": f"{sum(score > DEFAULT.strong for score in lowest)} of {len(pairs)}",
        "after two of the same": round(max(misled), 2),
    }


def many(number: int, memory: str) -> dict[str, Any]:
    """Return of how many questions, in random directions and each learnt three times in turn, a trail is strong."""
    rng = np.random.default_rng(27)
    questions = rng.normal(size=(number, 384)).astype(np.float32)
    questions /= np.linalg.norm(questions, axis=1, keepdims=True)
    touches = [(question, True) for _ in range(3) for question in questions]
    scores = [relevance_after(touches, question, memory, alike=ALIKE) for question in questions]
    return {"strong": f"{sum(score > DEFAULT.strong for score in scores)} of {number}"}


def relevance_after(touches: list[tuple[Any, bool]], question: Any, memory: str, *, alike: float) -> float:
    """Return R of a trail for a question after learnings that found it useful or not."""
    if memory == "touches":
        found = [
            Touch(near=float(asked @ question), effective=effective, own=False, number=number)
            for number, (asked, effective) in enumerate(touches)
        ]
        along = nearest_use(touch for touch in found if touch.near >= NEAR)
    else:
        rows = [{"question": asked, "effective": effective, "penalty": memory} for asked, effective in touches]
        along = float(replayed(rows, dimensions=len(question)) @ question)
    return relevance(alike, along, alpha=DEFAULT.alpha)


if __name__ == "__main__":
    sys.exit(main())

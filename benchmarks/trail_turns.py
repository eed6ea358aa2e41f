"""Measure what trails remember when useful and useless questions take turns, by each penalty.

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
from hgmem.systems.remindrag.recipes import DEFAULT, Penalty
from hgmem.systems.remindrag.trails import relevance, replayed, touched

HERE = Path(__file__).parent
ALIKE = 0.4  # product of the ends of a trail
PENALTIES: tuple[Penalty, ...] = ("fade", "forget", "shrink")
TURNS = 20


def main() -> int:
    """Print the figures as JSON, a line for each penalty and kind of pairs."""
    embedder = find_embedder(load())
    same, other = ([one[name] for one in _rows()] for name in ("question", "different"))
    real = list(zip(embedder.embed(same, kind="query"), embedder.embed(other, kind="query"), strict=True))
    for penalty in PENALTIES:
        print(json.dumps({"penalty": penalty, "pairs": "novel", **turns(real, penalty)}))
        for cosine in (0.95, 0.9, 0.8, 0.6):
            print(json.dumps({"penalty": penalty, "cosine": cosine, **turns([pair(cosine)], penalty)}))
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


def turns(pairs: list[tuple[Any, Any]], penalty: Penalty) -> dict[str, Any]:
    """Return the least relevance R of a mature trail in turns with another question, and R once it misled twice."""
    once, lowest, misled = [], [], []
    for one, other in pairs:
        useful = {"question": one, "effective": True, "penalty": penalty}
        mature = trail = replayed([useful] * 3, dimensions=len(one))
        scores = []
        for _ in range(TURNS):
            trail = touched(trail, question=other, effective=False, penalty=penalty)
            scores.append(relevance(ALIKE, float(trail @ one), alpha=DEFAULT.alpha))
            trail = touched(trail, question=one, effective=True, penalty=penalty)
        for _ in range(2):
            mature = touched(mature, question=one, effective=False, penalty=penalty)
        once.append(scores[0])
        lowest.append(min(scores))
        misled.append(relevance(1.0, float(mature @ one), alpha=DEFAULT.alpha))
    return {
        "after one": round(min(once), 2),
        f"lowest in {TURNS} turns": round(min(lowest), 2),
        "strong in all": f"{sum(score > DEFAULT.strong for score in lowest)} of {len(pairs)}",
        "after two of the same": round(max(misled), 2),
    }


if __name__ == "__main__":
    sys.exit(main())

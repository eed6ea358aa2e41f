"""Measure what weights of 8 bits cost: recall of supporting passages by cosine to the question, on HotpotQA.

Passages are embedded whole, with their titles. Intervals are from a bootstrap over questions, those of the difference
over the same questions. Prints one JSON object.
"""

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from quality import Asked, read

from hgmem.evaluation.report import mean_of
from hgmem.models.embedders import MINILM, SentenceTransformerEmbedder
from hgmem.models.embedding import Vectors

DEPTHS = (2, 5, 10)
NAMES = (MINILM, f"{MINILM}:int8")
Shares = NDArray[np.float64]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.json and NAME_corpus.json")
    parser.add_argument("--name", default="hotpotqa_train", help="name of the two files (HippoRAG's format)")
    options = parser.parse_args()
    passages, questions = read(options.data / f"{options.name}.json")
    texts, asked = [f"{title}\n{text}" for title, text in passages.items()], [one.text for one in questions]
    vectors: dict[str, Vectors] = {}
    ranked: dict[str, NDArray[np.intp]] = {}
    seconds = {}
    for name in NAMES:
        embedder = SentenceTransformerEmbedder(name)
        embedder.embed(["loads the model"], kind="query")
        began = time.process_time()
        vectors[name] = embedder.embed(texts, kind="document")
        seconds[name] = round(time.process_time() - began, 1)
        queries = embedder.embed(asked, kind="query")
        ranked[name] = np.argsort(-(queries @ vectors[name].T), axis=1)
    whole, small = ranked.values()
    figures = {
        "passages": len(texts),
        "questions": len(questions),
        "cosine of the two vectors of a passage": spread((vectors[NAMES[0]] * vectors[NAMES[1]]).sum(axis=1)),
        "processor seconds of the passages": seconds,
        "share of the first ten in common": interval(
            np.array([len(set(a[:10]) & set(b[:10])) / 10 for a, b in zip(whole, small, strict=True)])
        ),
    }
    for depth in DEPTHS:
        found = {name: recalls(questions, list(passages), ranked[name], depth) for name in NAMES}
        figures[f"recall@{depth}"] = {name: interval(each) for name, each in found.items()} | {
            "difference": interval(found[NAMES[1]] - found[NAMES[0]])
        }
    print(json.dumps(figures, indent=2))


def recalls(questions: Sequence[Asked], titles: Sequence[str], ranked: NDArray[np.intp], depth: int) -> Shares:
    """Return the recall of each question at a depth."""
    return np.array(
        [asked.recall([titles[at] for at in row], depth) for asked, row in zip(questions, ranked, strict=True)]
    )


def interval(values: Shares) -> list[float]:
    """Return the mean, and the bounds of its 95 % interval."""
    found = mean_of(values.tolist())
    return [round(one, 4) for one in (found.mean, found.low, found.high)] if found else []


def spread(values: Vectors) -> dict[str, float]:
    """Return the mean and the least value."""
    return {"mean": round(float(values.mean()), 4), "least": round(float(values.min()), 4)}


if __name__ == "__main__":
    main()

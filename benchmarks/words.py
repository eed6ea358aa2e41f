"""Compare the ranks of the system bm25, in Neo4j, with those of the library bm25s on the chunks of one novel.

Both get the same words of every chunk and question. Prints JSON: overlap of the best 10 and 40 chunks, and Spearman's
correlation of the ranks of chunks that both have among the best 40, averaged over the questions.
"""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import bm25s
from running import QUESTIONS, access, read_questions, running

from hgmem import HGMem
from hgmem.graph.full_text import MOST_TERMS
from hgmem.sources.lightrag import read_lightrag
from hgmem.testing import DeterministicEmbedder
from hgmem.text.stems import searched_stems, stems

DEPTHS = (10, 40)


def main() -> None:
    """Print the comparison as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightrag", type=Path, required=True, help="LightRAG working directory of the novel")
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="questions, one per line or JSON Lines")
    parser.add_argument("--most", type=int, default=20, help="ask the first N questions")
    options = parser.parse_args()
    questions = read_questions(options.questions)[: options.most]
    chunks = {chunk.id: chunk.text for chunk in read_lightrag(options.lightrag).chunks}
    theirs = library(chunks, questions)
    ours, seconds = system(options.lightrag, questions)
    print(json.dumps({"chunks": len(chunks), "seconds": seconds, **compared(questions, ours, theirs)}, indent=2))


def library(chunks: dict[str, str], questions: Sequence[str]) -> list[list[str]]:
    """Return the ids of the chunks that bm25s ranks best for each question."""
    names = list(chunks)
    index = bm25s.BM25(k1=1.5, b=0.75)
    index.index([stems(text, "en") for text in chunks.values()], show_progress=False)
    asked = [searched_stems(question, "en", most=MOST_TERMS) for question in questions]
    known = [[word for word in words if word in index.vocab_dict] for words in asked]
    found = [index.retrieve([words], k=max(DEPTHS), show_progress=False) for words in known]
    return [
        [names[at] for at, score in zip(one.documents[0], one.scores[0], strict=True) if score > 0] for one in found
    ]


def system(lightrag: Path, questions: Sequence[str]) -> tuple[list[list[str]], float]:
    """Return the same of the system bm25, and the median seconds of a search."""
    with running() as (server, _):
        opened = HGMem.open("novel", embedder=DeterministicEmbedder(), model="extractive", **access(server))
        with opened as client:
            client.import_lightrag(lightrag)
            settings = {"chunks": max(DEPTHS), "titles": False}
            asking: dict[str, Any] = {"system": "bm25", "settings": settings, "answer": False}
            steps = [client.ask(question, **asking).steps[0] for question in questions]
    ranked = [[hit.source_id for hit in step.retrieved[0].chunks] for step in steps]
    return ranked, statistics.median(step.seconds for step in steps)


def compared(
    questions: Sequence[str], ours: Sequence[Sequence[str]], theirs: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Return the mean agreement, and the questions with the least."""
    pairs = list(zip(ours, theirs, strict=True))
    overlaps = {f"overlap@{depth}": [overlap(one, other, depth) for one, other in pairs] for depth in DEPTHS}
    correlations = [spearman(one, other) for one, other in pairs]
    least = sorted(zip(overlaps[f"overlap@{DEPTHS[-1]}"], questions, strict=True))[:3]
    return {
        "questions": len(questions),
        **{name: round(statistics.mean(each), 4) for name, each in overlaps.items()},
        "first": round(statistics.mean(one[:1] == other[:1] for one, other in pairs), 4),
        "spearman": round(statistics.mean(correlations), 4),
        "least spearman": round(min(correlations), 4),
        "least": [f"{share:.2f} {question}" for share, question in least],
    }


def overlap(ours: Sequence[str], theirs: Sequence[str], depth: int) -> float:
    """Return the share of their best chunks that are among ours."""
    wanted = set(theirs[:depth])
    return len(wanted.intersection(ours[:depth])) / len(wanted) if wanted else 1.0


def spearman(ours: Sequence[str], theirs: Sequence[str]) -> float:
    """Return Spearman's rank correlation over the chunks that both rank."""
    both = [name for name in ours if name in set(theirs)]
    if len(both) < 2:
        return 1.0
    order = [name for name in theirs if name in set(both)]
    squares = sum((at - order.index(name)) ** 2 for at, name in enumerate(both))
    return 1 - 6 * squares / (len(both) * (len(both) ** 2 - 1))


if __name__ == "__main__":
    main()

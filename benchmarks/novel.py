"""Measure the main job on a novel: import, questions, indexing, RAM."""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from measures import resident

from hgmem import Answer, HGMem
from hgmem.local import Server, down, up
from hgmem.models.metering import measuring
from hgmem.settings import load
from hgmem.values.usage import Usage

T = TypeVar("T")
QUESTIONS = Path(__file__).with_name("questions.txt")


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightrag", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="questions, one per line")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        settings = load(data=Path(folder) / "neo4j")
        server = up(settings)
        try:
            print(json.dumps(figures(options, server), indent=2))
        finally:
            down(settings)


def figures(options: argparse.Namespace, server: Server) -> dict[str, Any]:
    """Return all figures; the text has its own corpus."""
    access: dict[str, Any] = {"uri": server.uri, "username": server.username, "password": server.password}
    with HGMem.open("novel", **access) as client:
        client.embedder.embed(["warm"], kind="query")
        (_, used, seconds) = measured(lambda: client.import_lightrag(options.lightrag))
        imported = split(used, seconds)
        questions = options.questions.read_text(encoding="utf-8").splitlines()
        answers = [client.ask(question, steps=3) for question in questions if question.strip()]
        (_, used, seconds) = measured(lambda: client.add(options.text, corpus="text"))
        chunks = client.status(corpus="text").chunks
        return {
            "import": imported,
            "question": asked(answers),
            "quality": quality(answers),
            "index": {**split(used, seconds), "chunks": chunks, "chunks_per_second": round(chunks / seconds, 1)},
            "resident_megabytes": {"python": resident(os.getpid()), "server": resident(server.pid or 0)},
        }


def measured(work: Callable[[], T]) -> tuple[T, Usage, float]:
    """Run the work; return its result, its usage, and its seconds."""
    with measuring() as meter:
        began = time.perf_counter()
        done = work()
        return done, meter.usage(), time.perf_counter() - began


def split(used: Usage, seconds: float) -> dict[str, float]:
    """Return the seconds in total and by kind."""
    kinds = {kind: round(sum(names.values()), 3) for kind, names in used.seconds.items()}
    return {"seconds": round(seconds, 3), **kinds}


def asked(answers: list[Answer]) -> dict[str, Any]:
    """Return medians over questions, and the statements and commits per step."""
    seconds = [answer.seconds for answer in answers]
    kinds = {
        kind: round(statistics.median(sum(answer.usage.seconds.get(kind, {}).values()) for answer in answers), 3)
        for kind in ("neo4j", "model", "embedding")
    }
    reads = [sum(step.usage.calls["neo4j"].values()) for answer in answers for step in answer.steps]
    return {
        "questions": len(answers),
        "first_seconds": seconds[0],
        "median_seconds": round(statistics.median(seconds), 3),
        **kinds,
        "median_steps": statistics.median(len(answer.steps) for answer in answers),
        "round_trips_reading_a_step": {"median": statistics.median(reads), "most": max(reads)},
        "round_trips_writing_a_step": 2,
    }


def quality(answers: list[Answer]) -> dict[str, float]:
    """Return the shares of questions that use the features of a hypergraph memory."""
    tied = [
        max((len(point.entities) for point in answer.points if point.died is None), default=0) for answer in answers
    ]
    kinds = [{operation.kind for step in answer.steps for operation in step.operations} for answer in answers]
    return {
        "a_living_point_ties_three_or_more": share(most >= 3 for most in tied),
        "merged_or_revised": share(bool(kind & {"merge", "revise"}) for kind in kinds),
        "several_steps": share(len(answer.steps) > 1 for answer in answers),
        "local_step": share(any(step.strategy == "local" for step in answer.steps) for answer in answers),
        "answers_with_citations": share(bool(answer.citations) for answer in answers),
    }


def share(values: Iterable[bool]) -> float:
    """Return the share of true values."""
    several = list(values)
    return round(sum(several) / len(several), 3)


if __name__ == "__main__":
    main()

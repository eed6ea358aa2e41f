"""Measure how indexing spends its time: chunks per second, and the share spent waiting for embedder or model.

This is the share of the wall time with at least one active call of the embedder or the model; in the rest only Neo4j
and Python work. Runs with a slow scripted model, with one that answers at once, and with the extractive model. The
extractive model is our own Python code: its calls are also active while their thread waits for the interpreter, so
only the embedder's share is reported for it.
"""

import argparse
import json
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from running import access, running

from hgmem import Document, HGMem
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.local import Server
from hgmem.models.embedders import SentenceTransformerEmbedder
from hgmem.models.embedding import Embedder, TextKind, Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.metering import measuring
from hgmem.testing import DeterministicEmbedder
from hgmem.text.segmentation import words

MUST = 0.85  # required share of the time
Span = tuple[float, float]  # seconds of `time.perf_counter`


class Noted:
    """Records when calls began and ended, any number of them at once."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._lock = threading.Lock()

    @contextmanager
    def call(self) -> Iterator[None]:
        """Record the block as one call."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self.spans.append((began, time.perf_counter()))


class NotedEmbedder(Noted):
    """An embedder whose calls are recorded."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__()
        self._embedder = embedder
        self.name, self.dimensions = embedder.name, embedder.dimensions

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return the embedder's vectors."""
        with self.call():
            return self._embedder.embed(texts, kind=kind)


class NotedModel(Noted):
    """A model whose calls are recorded."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self._model = model
        self.name = model.name

    def reply(self, task: Any) -> Any:
        """Return the model's reply."""
        with self.call():
            return self._model.reply(task)


def covered(spans: Iterable[Span], within: Span) -> float:
    """Return the seconds of `within` in which at least one of the spans is active."""
    first, last = within
    seconds, until = 0.0, first
    for began, ended in sorted(spans):
        begin, end = max(began, until), min(ended, last)
        if end > begin:
            seconds += end - begin
            until = end
    return seconds


class Slow:
    """A model with a fixed delay per chunk: it extracts the first capitalised words and relates each to the next."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.calls = 0
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    def reply(self, task: Any) -> Any:
        """Return the chunk's extraction after the delay."""
        with self._lock:
            self.calls += 1
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        time.sleep(self.seconds)
        with self._lock:
            self._at_once -= 1
        seen = [word for word in dict.fromkeys(task.text.split()) if word[:1].isupper() and word.isalpha()][:8]
        seen = seen or words(task.text)[:2]
        return Extraction(
            entities=tuple(ExtractedEntity(name=name, description=f"{name} in the text.") for name in seen),
            relations=tuple(
                ExtractedRelation(source=one, target=other, description=f"{one} and {other}.")
                for one, other in pairwise(seen)
            ),
        )


def main() -> None:
    """Print the figures as JSON; exit with 1 if too little of the time is spent waiting for embedder and model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument(
        "--characters", type=int, default=0, help="index the first N characters of the text. Default: all"
    )
    parser.add_argument("--seconds", type=float, default=2.0, help="delay of one model call")
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--embedder", choices=("deterministic", "real"), default="real")
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8")
    text = text[: options.characters or len(text)]
    with running() as (server, _):
        found = all_figures(server, text, options)
    print(json.dumps({"characters": len(text), **found}, indent=2))
    idle = [
        f"{name}: {one['waited_for']:.0%}" for name, one in found.items() if one["must"] and one["waited_for"] < MUST
    ]
    if idle:
        raise SystemExit(f"embedder and model are waited for in less than {MUST:.0%} of the time: {', '.join(idle)}")


def all_figures(server: Server, text: str, options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of each model: the extractive one, one that answers at once, a slow one."""
    embedder = SentenceTransformerEmbedder() if options.embedder == "real" else DeterministicEmbedder(384)
    scripted = {"a call of 0 s": Slow(0.0), f"a call of {options.seconds:g} s": Slow(options.seconds)}
    with HGMem.open("warm", model=Slow(0.0), embedder=embedder, **access(server)) as client:
        client.add(Document(id="warm", text=text[:20_000]))
    seen = NotedEmbedder(embedder)
    extractive: dict[str, Any] = {"model": ExtractiveModel(seen), "embedder": seen}
    with HGMem.open("c", workers=options.workers, **extractive, **access(server)) as client:
        found = {"extractive": figures(client, text, {"embedder": seen}) | {"must": False}}
    for at, (name, model) in enumerate(scripted.items()):
        noted = {"embedder": NotedEmbedder(embedder), "model": NotedModel(model)}
        with HGMem.open(f"c{at}", workers=options.workers, **noted, **access(server)) as client:
            found[name] = figures(client, text, noted) | slow(model, options.workers)
        found[name]["must"] = model.seconds > 0  # nothing waits for a model without delay
    return found


def figures(client: HGMem, text: str, noted: Mapping[str, Noted]) -> dict[str, Any]:
    """Return the time that indexing the text took, and the share of it with active calls of the recorded objects."""
    with measuring() as meter:
        began = time.perf_counter()
        client.add(Document(id="text", text=text))
        ended = time.perf_counter()
    chunks, seconds = client.status().chunks, ended - began
    spent = {kind: sum(names.values()) for kind, names in meter.usage().seconds.items()}
    spans = {name: one.spans for name, one in noted.items()}
    every = [span for each in spans.values() for span in each]
    return {
        "chunks": chunks,
        "seconds": round(seconds, 2),
        "chunks_a_second": round(chunks / seconds, 2),
        **({"waited_for": round(covered(every, (began, ended)) / seconds, 4)} if len(spans) > 1 else {}),
        **{f"waited_for_{name}": round(covered(each, (began, ended)) / seconds, 4) for name, each in spans.items()},
        "neo4j_a_chunk": round(spent.get("neo4j", 0.0) / chunks, 4),
        "embedding_a_chunk": round(spent.get("embedding", 0.0) / chunks, 4),
    }


def slow(model: Slow, workers: int) -> dict[str, Any]:
    """Return the total time of the calls, and their time if they ran concurrently without any other work."""
    return {
        "calls": model.calls,
        "calls_at_once": model.most_at_once,
        "sum_of_the_calls": round(model.calls * model.seconds, 2),
        "sum_of_the_calls_over_workers": round(model.calls * model.seconds / workers, 2),
    }


if __name__ == "__main__":
    main()

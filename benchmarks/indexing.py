"""Measure how indexing spends its time while a language model is slow: calls a chunk, and how busy the writers are."""

import argparse
import json
import tempfile
import threading
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from hgmem import Document, HGMem
from hgmem.extract import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.local import down, up
from hgmem.meter import measuring
from hgmem.settings import load
from hgmem.text import words


class Slow:
    """A model that takes its time over every chunk: it sees the first capitalised words, each tied to the next."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.calls = 0
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()

    def reply(self, task: Any) -> Any:
        """Return the chunk's extraction, after a while."""
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
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one call")
    parser.add_argument("--workers", type=int, default=16)
    options = parser.parse_args()
    text = options.text.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        settings = load(data=Path(folder) / "neo4j")
        server = up(settings)
        try:
            access: dict[str, Any] = {"uri": server.uri, "username": server.username, "password": server.password}
            with HGMem.open("warm", model=Slow(0.0), **access) as client:
                client.add(Document(id="warm", text=text[:20_000]))
            found = {
                f"a call of {seconds:g} s": figures(access, text, Slow(seconds), options.workers)
                for seconds in (0.0, options.seconds)
            }
        finally:
            down(settings)
    print(json.dumps(found, indent=2))


def figures(access: dict[str, Any], text: str, model: Slow, workers: int) -> dict[str, Any]:
    """Return what indexing the text took with so many calls side by side."""
    name = f"c{model.seconds:g}".replace(".", "-")
    with HGMem.open(name, model=model, workers=workers, **access) as client, measuring() as meter:
        began = time.perf_counter()
        client.add(Document(id="text", text=text))
        seconds = time.perf_counter() - began
        chunks = client.status().chunks
    spent = {kind: sum(names.values()) for kind, names in meter.usage().seconds.items()}
    ideal = model.calls * model.seconds / workers
    return {
        "chunks": chunks,
        "calls_a_chunk": model.calls / chunks,
        "calls_at_once": model.most_at_once,
        "seconds": round(seconds, 2),
        "sum_of_the_calls": round(model.calls * model.seconds, 2),
        "sum_of_the_calls_over_workers": round(ideal, 2),
        "seconds_against_it": round(seconds / ideal, 2) if ideal else None,
        "outside_the_model_a_chunk": round((spent["embedding"] + spent["neo4j"]) / chunks, 4),
        "neo4j_a_chunk": round(spent["neo4j"] / chunks, 4),
        "embedding_a_chunk": round(spent["embedding"] / chunks, 4),
    }


if __name__ == "__main__":
    main()

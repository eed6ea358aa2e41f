"""Measure the runner of builds alone: seconds, memory and round trips a unit, without a model or a network's vectors.

The build has one unit for each chunk, which makes a row of its first words, and one unit for each ten rows above. A
second run has to make nothing; a third follows one changed document.
"""

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hgmem import HGMem
from hgmem.builds.reading import Reading
from hgmem.builds.runner import run_build
from hgmem.builds.stage_run import Building
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, Row, Unit
from hgmem.local import down, up
from hgmem.models.metering import measuring
from hgmem.services import Services
from hgmem.settings import load
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Document, Given, GivenChunk

GROUP = 10  # rows below one above
CHUNKS = 100  # of a document


@dataclass(frozen=True, kw_only=True)
class Config:
    """No options."""


def lower(reading: Reading, config: Config) -> Iterable[Unit]:
    """List a unit for each chunk."""
    return [Unit(key=chunk.uid, chunks=(chunk,)) for chunk in reading.chunks()]


def first_words(services: Services, config: Config, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make a row of the chunk's first words."""
    return Made(rows=[Row(kind="BenchNote", key=unit.key, text=" ".join(unit.chunks[0].text.split()[:12]))])


def upper(reading: Reading, config: Config) -> Iterable[Unit]:
    """List a unit for each ten rows."""
    rows = sorted(reading.rows("BenchNote"), key=lambda row: row.key)
    return [Unit(key=rows[at].key, rows=tuple(rows[at : at + GROUP])) for at in range(0, len(rows), GROUP)]


def join(services: Services, config: Config, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make a row of the rows below."""
    return Made(rows=[Row(kind="BenchTopic", key=unit.key, text=" / ".join(row.text[:40] for row in unit.rows))])


BUILD: Build[Config] = Build(
    kinds=[BuiltKind(name="BenchNote"), BuiltKind(name="BenchTopic")],
    stages=[Stage(name="notes", units=lower, make=first_words), Stage(name="topics", units=upper, make=join)],
)


def given(chunks: int, *, changed: int | None = None) -> Given:
    """Return documents of chunks; `changed` is the number of one whose text differs."""
    texts = [
        f"Note {at} of a long list says that {at * 7919 % 10007} came before {at * 104729 % 10009}."
        + " It was changed." * (at // CHUNKS == changed)
        for at in range(chunks)
    ]
    documents = range((chunks + CHUNKS - 1) // CHUNKS)
    return Given(
        documents=tuple(
            Document(id=f"d{at}", text="\n".join(texts[at * CHUNKS : (at + 1) * CHUNKS])) for at in documents
        ),
        chunks=tuple(GivenChunk(id=f"c{at}", document=f"d{at // CHUNKS}", text=text) for at, text in enumerate(texts)),
    )


def run(client: HGMem) -> dict[str, Any]:
    """Return the figures of one run of the build."""
    services = client._services(None)
    with measuring() as meter:
        began = time.perf_counter()
        done = run_build(services, Building(system="bench", build=BUILD, config=Config()))
        seconds = time.perf_counter() - began
    calls = sum(meter.usage().calls.get("neo4j", {}).values())
    units = done.made + done.unchanged
    return {
        "made": done.made,
        "unchanged": done.unchanged,
        "seconds": round(seconds, 2),
        "units_a_second": round(units / seconds),
        "round_trips": calls,
        "round_trips_a_unit": round(calls / max(units, 1), 3),
        "of_neo4j": {
            name: round(value, 2)
            for name, value in sorted(meter.usage().seconds.get("neo4j", {}).items(), key=lambda one: -one[1])[:8]
        },
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=10_000)
    options = parser.parse_args()
    chunks = options.units * GROUP // (GROUP + 1)
    with tempfile.TemporaryDirectory() as folder:
        settings = load(data=Path(folder) / "neo4j")
        server = up(settings)
        try:
            access: dict[str, Any] = {"uri": server.uri, "username": server.username, "password": server.password}
            with HGMem.open("bench", embedder=DeterministicEmbedder(384), **access) as client:
                began = time.perf_counter()
                client.add_graph(given(chunks))
                found: dict[str, Any] = {"chunks": chunks, "writing_chunks": round(time.perf_counter() - began, 1)}
                found["memory_before_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
                found["first"] = run(client)
                print(json.dumps(found), flush=True)
                found["second"] = run(client)
                began = time.perf_counter()
                client.delete(document="d7")
                found["deleting_a_document"] = round(time.perf_counter() - began, 2)
                found["after_deleting"] = run(client)
        finally:
            down(settings)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()

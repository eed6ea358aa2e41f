"""Compare graphs of ordinary indexing and of indexing in stages property by property, and time writers.

`equal FILE…` indexes files both ways on a server of its own, and tells the differences, seconds, calls of a second run
and peak memory. `writers FILE…` fills an empty corpus by 1, 2 and 4 writers. `dump CORPUS OUT` keeps the graph of a
corpus (of --data), and `compare ONE OTHER` tells how two such files differ, as of a cluster's and a load's. `mixed OUT`
makes short files of the texts of a folder.
"""

import argparse
import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from measures import peak_megabytes, timed
from neo4j import GraphDatabase
from running import access, running

from hgmem import HGMem
from hgmem.local import find
from hgmem.settings import load
from hgmem.stages.parallel_writes import Writers
from hgmem.testing import DeterministicEmbedder

TIMES = {"indexed_at", "created_at", "heartbeat"}
NODES = (
    "MATCH (n) WHERE n.corpus = $corpus OR (n:Corpus AND n.name = $corpus) RETURN labels(n) AS is, properties(n) AS has"
)
TIES = (
    "MATCH (a)-[r]->(b) WHERE a.corpus = $corpus "
    "RETURN type(r) AS is, a.uid AS source, b.uid AS target, properties(r) AS has"
)
CORPUS = "stages"


class Counting(DeterministicEmbedder):
    """The deterministic embedder with vectors as long as those of a real one, which counts the texts."""

    def __init__(self) -> None:
        super().__init__(384)
        self.texts = 0

    def embed(self, texts: Any, *, kind: Any) -> Any:
        """Return the vectors."""
        self.texts += len(texts)
        return super().embed(texts, kind=kind)


def graph(server: Any, corpus: str) -> Iterator[str]:
    """Yield the nodes and relationships of a corpus as lines of JSON, without times."""
    given = access(server)
    auth = (given["username"], given["password"].get_secret_value())
    with GraphDatabase.driver(given["uri"], auth=auth, notifications_min_severity="OFF") as driver:
        for query in (NODES, TIES):
            with driver.session() as session:
                for row in session.run(query, corpus=corpus):
                    kept = {name: value for name, value in row["has"].items() if name not in TIMES}
                    yield json.dumps({**row.data(), "has": kept}, sort_keys=True, default=str)


def differences(one: list[str], other: list[str]) -> dict[str, Any]:
    """Return how two graphs differ: how many lines each has alone, and the first few."""
    left, right = Counter(one), Counter(other)
    only, extra = list((left - right).elements()), list((right - left).elements())
    return {
        "lines": [len(one), len(other)],
        "only_in_one": len(only),
        "only_in_other": len(extra),
        "examples": sorted(only)[:3] + sorted(extra)[:3],
    }


def kinds(lines: list[str]) -> dict[str, int]:
    """Return how many nodes and relationships of each kind there are."""
    return dict(Counter("/".join(is_) if isinstance(is_ := json.loads(line)["is"], list) else is_ for line in lines))


def equal(files: list[str]) -> dict[str, Any]:
    """Index files in both ways, and return what was measured."""
    found: dict[str, Any] = {}
    with running() as (server, _), TemporaryDirectory() as folder:
        embedder = Counting()
        with HGMem.open(CORPUS, embedder=embedder, **access(server)) as client:
            found["ordinary_seconds"] = timed(lambda: client.add(files))
            found["ordinary_peak_mb"] = peak_megabytes()
            ordinary = list(graph(server, CORPUS))
            client.delete()
            found["stages_seconds"] = timed(lambda: client.add(files, stages=folder))
            found["stages_peak_mb"] = peak_megabytes()
            staged = list(graph(server, CORPUS))
            found["kinds"] = kinds(staged)
            found["differences"] = differences(ordinary, staged)
            found["findings"] = len(client.check().findings)
            embedder.texts = 0
            again = {}
            again["stages_seconds"] = timed(lambda: client.add(files, stages=folder))
            again["ordinary_seconds"] = timed(lambda: client.add(files))
            again["embedded"] = embedder.texts
            again["differences"] = differences(staged, list(graph(server, CORPUS)))
            found["second_run"] = again
            found["folder_mb"] = round(sum(path.stat().st_size for path in Path(folder).rglob("*.*")) / 1e6, 2)
    return found


def writers(files: list[str], *, times: int) -> dict[str, Any]:
    """Fill an empty corpus by several numbers of writers, and return rows a second: nodes and relationships."""
    found: dict[str, Any] = {}
    with (
        running() as (server, _),
        TemporaryDirectory() as folder,
        HGMem.open(CORPUS, embedder=Counting(), resolve=False, **access(server)) as client,
    ):
        client.add(files, stages=folder)
        rows = sum(1 for _ in graph(server, CORPUS))
        repeated: list[Writers] = []
        closing = Writers.__exit__

        def exit_(self: Writers, *given: object) -> None:
            repeated.append(self)
            closing(self, *given)

        Writers.__exit__ = exit_  # type: ignore[method-assign]
        for number in (1, 2, 4) * times:
            client.delete()
            began = time.perf_counter()
            client.add(files, stages=folder, writers=number)
            took = time.perf_counter() - began
            run = {"seconds": round(took, 2), "rows_a_second": round(rows / took)}
            found.setdefault(f"writers_{number}", []).append({**run, "repeated": repeated[-1].repeated})
        client.delete()
        took = timed(lambda: client.add(files))
        found["ordinary"] = {"seconds": took, "rows_a_second": round(rows / took)}
        found["rows"] = rows
    return found


def mixed(source: Path, out: Path, *, number: int) -> None:
    """Write short files of several formats, made of the paragraphs of a folder's texts."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    texts = [path.read_text(encoding="utf-8", errors="ignore") for path in sorted(source.rglob("*.txt"))]
    paragraphs = [each for text in texts for each in text.split("\n\n") if len(each) > 80]
    for at in range(number):
        said = f"{paragraphs[at % len(paragraphs)]}\n\nNote {at}."
        title, kind = f"Note {at}", ("txt", "md", "json")[at % 3]
        body = {
            "txt": said,
            "md": f"# {title}\n\n{said}",
            "json": json.dumps({"title": title, "text": said, "number": at}),
        }
        (out / f"note{at:05}.{kind}").write_text(body[kind], encoding="utf-8")


def main() -> None:
    """Run one of the parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["equal", "writers", "dump", "compare", "mixed"])
    parser.add_argument("given", nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--number", type=int, default=2_000)
    parser.add_argument("--times", type=int, default=2)
    options = parser.parse_args()
    if options.part == "equal":
        print(json.dumps(equal(options.given), indent=1))
    elif options.part == "writers":
        print(json.dumps(writers(options.given, times=options.times), indent=1))
    elif options.part == "dump":
        corpus, out = options.given
        Path(out).write_text("\n".join(sorted(graph(find(load(data=options.data)), corpus))), encoding="utf-8")
    elif options.part == "compare":
        one, other = (Path(each).read_text(encoding="utf-8").splitlines() for each in options.given)
        found = differences(one, other)
        print(json.dumps(found, indent=1))
        sys.exit(bool(found["only_in_one"] or found["only_in_other"]))
    else:
        mixed(Path(options.given[0]), Path(options.given[1]), number=options.number)


if __name__ == "__main__":
    main()

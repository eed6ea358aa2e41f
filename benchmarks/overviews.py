"""Measure the overview of a first look by the number of documents: milliseconds, tokens, and documents named.

The documents are short and invented, each with an entity of its own; their titles are all different, all equal, or
missing. Prints JSON.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from running import access, running

from hgmem import HGMem
from hgmem.graph.retrieval import Scope
from hgmem.systems.gists.first_look import overview
from hgmem.testing import DeterministicEmbedder
from hgmem.text.tokens import count
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity

SIZES = (30, 3_000, 30_000)
TOKENS = 4_000  # of an overview in HGMem's default recipe
ASKED = 20
PARTS = ("Bel", "Cor", "Dan", "Eri", "Fal", "Gor", "Hes", "Ila", "Jor", "Kel", "Lum", "Mar", "Nor", "Ost", "Per", "Qui")
GOODS = ("rope", "salt", "iron", "cloth", "grain", "timber", "glass", "paper", "wax", "copper")
TITLES: dict[str, Callable[[int], str]] = {
    "different": lambda number: f"Letter {number} of {name(number)}",
    "equal": lambda _: "Letter",
    "none": lambda _: "",
}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--titles", choices=TITLES, nargs="+", default=("different", "equal"))
    options = parser.parse_args()
    found = []
    with running() as (server, _):
        for titles in options.titles:
            for size in options.sizes:
                corpus = f"{titles}-{size}"
                opened = HGMem.open(corpus, model="extractive", embedder=DeterministicEmbedder(), **access(server))
                with opened as client:
                    client.add_graph(graph(size, TITLES[titles]))
                    found.append({"titles": titles, "documents": size, **figures(client, size)})
    print(json.dumps(found, indent=2))


def name(number: int) -> str:
    """Return a name of two words, another one for each of the first 65,536 numbers."""
    parts = [PARTS[number >> shift & 15] for shift in (0, 4, 8, 12)]
    return f"{parts[0]}{parts[1].lower()} {parts[2]}{parts[3].lower()}"


def graph(size: int, titled: Callable[[int], str]) -> Given:
    """Return documents of one chunk of three sentences about two names, each with the entity of its first name."""
    documents, chunks, entities = [], [], []
    for number in range(size):
        one, other = name(number), name(number * 40_503 % 65_536)  # an odd factor: it pairs all names in another order
        text = f"{one} sold {GOODS[number % 10]} to {other}. {other} paid in {GOODS[number % 7]}. They met in {one}."
        uid = f"d{number}"
        documents.append(Document(id=uid, title=titled(number), text=text))
        chunks.append(GivenChunk(id=uid, document=uid, text=text, start=0))
        entities.append(GivenEntity(name=one, type="person", description=f"{one} met {other}.", chunks=(uid,)))
    return Given(documents=tuple(documents), chunks=tuple(chunks), entities=tuple(entities))


def figures(client: HGMem, size: int) -> dict[str, Any]:
    """Return the medians of overviews near some of the documents' questions, after a first one."""
    services = client._services(None)
    scope, seconds, shown = Scope(corpus=client.corpus), [], []
    for number in range(ASKED + 1):
        query = services.embed([f"What did {name(number * size // (ASKED + 1))} sell, and to whom?"], kind="query")[0]
        started = time.perf_counter()
        shown.append(overview(services.database, scope=scope, query=query, tokens=TOKENS))
        seconds.append(time.perf_counter() - started)
    lines = [text.partition("\n\n")[0].count("\n") if text.startswith("Documents") else 0 for text in shown]
    return {
        "milliseconds": round(1_000 * statistics.median(seconds[1:]), 1),
        "slowest": round(1_000 * max(seconds[1:]), 1),
        "tokens": round(statistics.median(map(count, shown))),
        "documents named": statistics.median(lines),
    }


if __name__ == "__main__":
    main()

"""Indexes many mixed files the ordinary way, by stages, on Ray and in bulk: the graphs must be the same.

    python tests/long/ways.py [--files 2000] [--text FILE]

A second run of each way must call no model and write nothing. With `--text`, a book is added to the files. A scripted
model's server answers, and counts.
"""

import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from differing import differences, shown

from hgmem import HGMem, local
from hgmem.client.loading import load_stages
from hgmem.local.machine import Sizes
from hgmem.settings import load

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "integration")]
from documents import docx, pdf
from dumping import Dump, dump
from playing import extraction, fenced
from servers import OwnServer, alone, any_ports
from wire import Asked, Said, WireServer

CORPUS = "ways"
NAMES = ["Anna", "Bruno", "Clara", "Doris", "Emil", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Karla"]
PLACES = ["Harbour", "Mill", "Chapel", "Quarry", "Ferry", "Lighthouse", "Tannery", "Orchard", "Weir"]
NAME = re.compile(r"\b[A-Z][a-z]+\b")  # as the model finds them
KINDS = ("txt", "md", "html", "csv", "json", "docx", "pdf")
WAYS = {"stages": 0, "ray-1": 1, "ray-2": 2}  # workers on a cluster, if there are any


class FailedError(Exception):
    """The test failed."""


def told(at: int) -> str:
    """Return three sentences of file `at`, which name some of the people and places."""
    one, other = NAMES[at % 11], NAMES[(at * 7 + 3) % 11]
    place, next_place = PLACES[at % 9], PLACES[(at * 5 + 1) % 9]
    return (
        f"{one} met {other} at the {place} on day {at}. They spoke of the {next_place}, which cost {at * 3} pounds. "
        f"“{one} never paid”, wrote {other} in the ledger of house {at % 97}."
    )


def content(kind: str, at: int) -> bytes:
    """Return the bytes of a file of a kind."""
    text, title = told(at), f"Paper {at}"
    if kind == "docx":
        return docx(*(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in (title, text)))
    if kind == "pdf":
        return pdf([title, *text.replace("“", '"').replace("”", '"').split(". ")])
    if kind == "csv":
        rows = io.StringIO()
        csv.writer(rows).writerows([("id", "text"), *((f"{at}-{row}", told(at + row)) for row in range(3))])
        return rows.getvalue().encode()
    if kind == "json":
        return json.dumps([{"id": f"{at}-j", "title": title, "text": text}]).encode()
    shapes = {"html": f"<html><title>{title}</title><body><p>{text}</p></body></html>", "md": f"# {title}\n\n{text}\n"}
    return shapes.get(kind, f"{title}\n\n{text}\n").encode()


def written(folder: Path, *, files: int, text: Path | None) -> Path:
    """Return a folder with so many files of all kinds, some below folders of their own."""
    for at in range(files):
        kind = KINDS[at % len(KINDS)]
        path = folder / f"part{at % 5}" / f"paper{at}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content(kind, at))
    if text:
        (folder / "book.txt").write_bytes(text.read_bytes())
    return folder


def indexed(own: OwnServer, model: WireServer, papers: Path, *more: str, workers: int = 0) -> str:
    """Run the command, and return what it printed."""
    env = {
        **os.environ,
        "HGMEM_DATA": str(own.server.data),
        "HGMEM_EMBEDDING_MODEL": own.embedder,
        "HGMEM_MODEL": "wire",
        "OPENAI_BASE_URL": model.base_url,
        "HGMEM_CACHED_TASKS": "[]",
        "HGMEM_WORKERS": "8",
        "HGMEM_RAY_WORKERS": str(workers),
    }
    command = [sys.executable, "-m", "hgmem", "index", str(papers), "--corpus", CORPUS, "--yes", *more]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FailedError(
            f"{' '.join(command[2:])} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}"
        )
    return done.stdout.strip()


def twice(way: str, own: OwnServer, model: WireServer, index: Callable[[], str]) -> Dump:
    """Index two times, and return the graph, which the second time must neither change nor cost a call."""
    began, before = time.monotonic(), len(model.requests)
    said = index()
    seconds, asked, found = time.monotonic() - began, len(model.requests) - before, dump(own.settings, CORPUS)
    began, again = time.monotonic(), index()
    print(f"{way}: {seconds:.0f} s, {asked} calls: {said.splitlines()[-1]}", flush=True)
    print(f"  again {time.monotonic() - began:.0f} s: {again.splitlines()[-1]}", flush=True)
    if len(model.requests) - before != asked:
        raise FailedError(f"{way}: the second run called the model {len(model.requests) - before - asked} times")
    must_equal(f"{way}, a second time", found, dump(own.settings, CORPUS))
    return found


def must_equal(way: str, wanted: Dump, found: Dump) -> None:
    """Raise with the differences, if there are any."""
    if lines := differences(wanted, found):
        raise FailedError("\n".join([f"{way}: the graph is another:", *shown(lines)]))
    nodes, relationships = len(found.nodes), sum(found.relationships.values())
    print(f"  {way}: the same {nodes} nodes and {relationships} relationships", flush=True)


def loaded(folder: Path, own: OwnServer) -> Iterator[Dump]:
    """Yield the graph that a stage folder gives in bulk, in a home of its own."""
    data = Path("loaded").absolute()
    settings = load(data=data, embedding_model=own.embedder)
    sizes = {"heap": "1500m", "pagecache": "256m"}
    load_stages(settings, [str(folder)], memory=Sizes(**sizes))
    server = local.up(settings, **sizes)
    try:
        given = {"data": data, "neo4j_uri": server.uri, "neo4j_password": server.password}
        yield dump(load(**given, embedding_model=own.embedder), CORPUS)
    finally:
        local.down(settings)


def compare(own: OwnServer, papers: Path) -> None:
    """Raise at the first way whose graph is not the ordinary one."""
    settings = own.settings.model_dump(exclude_none=True)
    with WireServer(said) as model:
        wanted = twice("ordinary", own, model, partial(indexed, own, model, papers))
        for way, workers in WAYS.items():
            with HGMem.open(CORPUS, **settings) as client:
                client.delete()
            given = ["--stages", str(Path(way).absolute()), *(["--ray", "local"] if workers else [])]
            found = twice(way, own, model, partial(indexed, own, model, papers, *given, workers=workers))
            must_equal(way, wanted, found)
    began = time.monotonic()
    for found in loaded(Path("stages").absolute(), own):
        print(f"load: {time.monotonic() - began:.0f} s", flush=True)
        must_equal("load", wanted, found)


def said(asked: Asked) -> Said:
    """Return the reply to a request."""
    text = fenced(asked, "text")
    return Said((extraction(text) if NAME.search(text) else extraction("Nobody")).model_dump_json())


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="Index files in four ways; the graphs must be the same.")
    parser.add_argument("--files", type=int, default=2_000)
    parser.add_argument("--text", type=Path, help="a book beside them")
    given = parser.parse_args()
    text = given.text.absolute() if given.text else None
    try:
        with alone() as own, any_ports():
            compare(own, written(Path("papers").absolute(), files=given.files, text=text))
    except FailedError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

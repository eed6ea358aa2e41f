"""Run the notebooks and write their outputs to docs/notebooks. `--clean` strips the outputs of a run instead.

Runs need a Neo4j, found as hgmem finds it. Pictures of neo4j-viz are megabytes of JavaScript each, so the copies
contain Chromium screenshots of them.
"""

import argparse
import base64
import html
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import MarkdownExporter
from nbformat import NotebookNode
from PIL import Image
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from chromium import launched

from hgmem import HGMem

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs" / "notebooks"
CORPORA = ("notebook-affair", "notebook-rules", "notebook-langchain", "notebook-talk")
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
FRAME = re.compile(r'<iframe [^>]*?height="(\d+)"[^>]*? srcdoc="([^"]*)"')
IMAGE = re.compile(r"!\[(?:png|jpeg)\]\((.+?)\)")
WIDTH = 960  # of a picture, in pixels of a page
SETTLING = 6_000  # milliseconds for the layout of a graph
COLOURS = 128  # of a picture's palette
SECONDS = 300  # limit for one cell


def main() -> int:
    """Return the exit code: 1 if a notebook fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", nargs="*", type=Path, help="notebooks to run. Default: all of this folder")
    parser.add_argument("--clean", action="store_true", help="strip outputs and metadata; run nothing")
    options = parser.parse_args()
    paths = options.notebooks or sorted(HERE.glob("*.ipynb"))
    if options.clean:
        for path in paths:
            path.write_text(clean(path), encoding="utf-8")
        return 0
    forget()
    try:
        with pictures() as picture:
            for path in paths:
                print(f"running {path.name}", flush=True)
                write(path, picture)
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        forget()
    return 0


def clean(path: Path) -> str:
    """Return a notebook's text as committed: no outputs or counts, cells named by position, keys sorted."""
    notebook = nbformat.read(path, as_version=4)
    cells = []
    for number, cell in enumerate(notebook.cells, start=1):
        kept = {"cell_type": cell.cell_type, "id": f"cell-{number:02d}", "metadata": {}}
        kept["source"] = cell.source.splitlines(keepends=True)
        cells.append(kept | ({"execution_count": None, "outputs": []} if cell.cell_type == "code" else {}))
    whole = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def executed(path: Path, folder: Path) -> NotebookNode:
    """Run the notebook in a folder and return it with its outputs. Raises `CellExecutionError` if a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()
    return notebook


def forget() -> None:
    """Delete the corpora of the notebooks, so that each starts as its text says."""
    with HGMem.open("notebook-affair", embedder="deterministic") as hg:
        there = {row["corpus"] for row in hg.corpora()}
        for corpus in there.intersection(CORPORA):
            hg.delete(corpus=corpus)


def write(path: Path, picture: Callable[[str, int], bytes]) -> None:
    """Run a notebook; write its copy and its pictures."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(path, Path(folder))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [drawn(output, picture) for output in cell.outputs if output.get("name") != "stderr"]
    exporter = MarkdownExporter()
    text, resources = exporter.from_notebook_node(notebook)
    DOCS.mkdir(parents=True, exist_ok=True)
    for old in DOCS.glob(f"{path.stem}-*.png"):
        old.unlink()
    names = {}
    for number, (name, data) in enumerate(resources["outputs"].items(), start=1):
        names[name] = f"{path.stem}-{number}.png"
        (DOCS / names[name]).write_bytes(smaller(data))
    intro = f"<!-- Written by: make notebooks. What is shown is of one run of notebooks/{path.name}. -->\n\n"
    lines = intro + captioned(text, names)
    (DOCS / f"{path.stem}.md").write_text(lines, encoding="utf-8")


def drawn(output: NotebookNode, picture: Callable[[str, int], bytes]) -> NotebookNode:
    """Return an output with its framed page replaced by a picture; return other outputs unchanged."""
    frame = FRAME.search(output.get("data", {}).get("text/html", ""))
    if not frame:
        return output
    data = base64.b64encode(picture(html.unescape(frame[2]), int(frame[1]))).decode()
    return nbformat.v4.new_output("display_data", {"image/png": data})


@contextmanager
def pictures() -> Iterator[Callable[[str, int], bytes]]:
    """Yield a function that takes a screenshot (PNG) of a page at a height in pixels."""
    with launched() as browser:
        yield lambda page, height: screenshot(browser, page, height)


def screenshot(browser: Browser, page: str, height: int) -> bytes:
    """Return a screenshot of a page after its layout has settled."""
    opened = browser.new_page(viewport={"width": WIDTH, "height": height})
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(page, encoding="utf-8")
        opened.goto(file.as_uri())
        opened.wait_for_timeout(SETTLING)
        data = opened.screenshot()
    opened.close()
    return data


def smaller(data: bytes) -> bytes:
    """Return the PNG with few colours, for a fraction of its size."""
    image = Image.open(io.BytesIO(data)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def captioned(text: str, names: dict[str, str]) -> str:
    """Return Markdown whose pictures link to their files, with the heading above each as its text."""
    heading, code, lines = "", False, [""]
    for line in text.strip().splitlines():
        code ^= line.startswith("```")
        heading = line.lstrip("# ") if line.startswith("#") and not code else heading
        if line.strip() or lines[-1] or code:  # keep consecutive blank lines only in code
            lines.append(IMAGE.sub(lambda found, said=heading: f"![{said}]({names[found[1]]})", line).rstrip())
    return "\n".join(lines[1:]) + "\n"


if __name__ == "__main__":
    sys.exit(main())

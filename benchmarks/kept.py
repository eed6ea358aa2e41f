"""Data that benchmarks make once and keep under `.hgmem/bench`, reused until one of its dependencies changes."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from hgmem.local import down
from hgmem.settings import load
from hgmem.text.segmentation import word_set

ROOT = Path(__file__).resolve().parents[1]
BENCH = ROOT / ".hgmem" / "bench"
# The code that an index depends on: these files, except those that only answer questions.
INDEXING = (
    "hgmem/*.py",
    "hgmem/corpus/*.py",
    "hgmem/extraction/*.py",
    "hgmem/graph/*.py",
    "hgmem/models/*.py",
    "hgmem/models/extractive/*.py",
    "hgmem/sources/lightrag.py",
    "hgmem/text/*.py",
    "hgmem/values/*.py",
    "cypher/*.cypher",
)
ANSWERING = word_set("as_json events evidence memory records retrieval")


def home(kind: str, content: Any, *, again: bool = False, held: Path = BENCH) -> Path:
    """Return the folder of a kind for this content and the current code; delete folders of older code.

    `again`: return the newest folder with the same content instead, whichever code wrote it.
    """
    told = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
    wanted = held / f"{kind}-{told}-{code()}"
    older = sorted(held.glob(f"{kind}-{told}-*"), key=lambda path: path.stat().st_mtime)
    if again and older:
        return older[-1]
    for path in older:
        if path != wanted:
            for data in (path, path / "neo4j"):  # data folders of servers, which a killed run left running
                down(load(data=data))
            shutil.rmtree(path)
    return wanted


def code() -> str:
    """Return a digest of the code that writes."""
    said = hashlib.sha256()
    for path in sorted(path for pattern in INDEXING for path in ROOT.glob(pattern) if path.stem not in ANSWERING):
        said.update(path.read_bytes())
    return said.hexdigest()[:8]

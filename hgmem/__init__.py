"""hgmem: graph RAG with a hypergraph working memory, all of it in one Neo4j.

>>> from hgmem import HGMem
>>> with HGMem.open("affair") as memory:        # doctest: +SKIP
...     memory.add("examples/affair")
...     print(memory.ask("Who took the Ravensund Orrery?").text)

Importing this loads nothing heavy: what is named below is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hgmem.checking.promises import Checkup, Finding
    from hgmem.client import HGMem
    from hgmem.corpus.adopting import AdoptReport
    from hgmem.corpus.index import IndexReport
    from hgmem.corpus.planning import IndexPlan
    from hgmem.errors import ConflictError, DocumentError, GraphError, HGMemError, ModelError, UsageError
    from hgmem.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation, Skipped
    from hgmem.model import (
        Answer,
        ArchiveReport,
        Citation,
        CorpusStatus,
        Entity,
        Lineage,
        Memory,
        MemoryPoint,
        MemorySummary,
        Operation,
        Pruned,
        Retrieved,
        Step,
    )
    from hgmem.passages import Passage
    from hgmem.settings import Settings
    from hgmem.usage import Usage

__version__ = "0.1.0"

__all__ = [
    "AdoptReport",
    "Answer",
    "ArchiveReport",
    "Checkup",
    "Citation",
    "ConflictError",
    "CorpusStatus",
    "Document",
    "DocumentError",
    "Entity",
    "Finding",
    "Given",
    "GivenChunk",
    "GivenEntity",
    "GivenRelation",
    "GraphError",
    "HGMem",
    "HGMemError",
    "IndexPlan",
    "IndexReport",
    "Lineage",
    "Memory",
    "MemoryPoint",
    "MemorySummary",
    "ModelError",
    "Operation",
    "Passage",
    "Pruned",
    "Retrieved",
    "Settings",
    "Skipped",
    "Step",
    "Usage",
    "UsageError",
]

_HOMES = {
    "AdoptReport": "corpus.adopting",
    "Checkup": "checking.promises",
    "Finding": "checking.promises",
    "HGMem": "client",
    "IndexPlan": "corpus.planning",
    "IndexReport": "corpus.index",
    "Passage": "passages",
    "Settings": "settings",
    "Usage": "usage",
}
_INPUTS = ("Document", "Given", "GivenChunk", "GivenEntity", "GivenRelation", "Skipped")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hgmem' has no attribute {name!r}")
    usual = "errors" if name.endswith("Error") else "inputs" if name in _INPUTS else "model"
    return getattr(import_module(f"hgmem.{_HOMES.get(name, usual)}"), name)

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
    from hgmem.client import HGMem
    from hgmem.errors import ConflictError, DocumentError, GraphError, HGMemError, ModelError, UsageError
    from hgmem.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation
    from hgmem.model import (
        Answer,
        Citation,
        CorpusStatus,
        Lineage,
        Memory,
        MemoryPoint,
        Step,
        Usage,
    )
    from hgmem.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "Citation",
    "ConflictError",
    "CorpusStatus",
    "Document",
    "DocumentError",
    "Given",
    "GivenChunk",
    "GivenEntity",
    "GivenRelation",
    "GraphError",
    "HGMem",
    "HGMemError",
    "Lineage",
    "Memory",
    "MemoryPoint",
    "ModelError",
    "Settings",
    "Step",
    "Usage",
    "UsageError",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'hgmem' has no attribute {name!r}")
    home = "client" if name == "HGMem" else "settings" if name == "Settings" else "model"
    home = "errors" if name.endswith("Error") else home
    home = "inputs" if name == "Document" or name.startswith("Given") else home
    return getattr(import_module(f"hgmem.{home}"), name)

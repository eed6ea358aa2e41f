"""hgmem: graph RAG with a hypergraph working memory, all of it in one Neo4j.

>>> from hgmem import HGMem
>>> with HGMem.open("affair") as hg:            # doctest: +SKIP
...     hg.add("examples/affair")
...     print(hg.ask("Who took the Ravensund Orrery?").text)

Importing the package is fast: the names below are loaded at first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hgmem.client import HGMem
    from hgmem.errors import ConflictError, DocumentError, GraphError, HGMemError, ModelError, UsageError
    from hgmem.settings import Settings
    from hgmem.sources.conversations.reading import read_conversations
    from hgmem.values.ask_options import AskOptions
    from hgmem.values.conversations import Conversation, Message
    from hgmem.values.events import (
        Answered,
        AnswerToken,
        EvidenceFound,
        OperationApplied,
        Planned,
        QuestionAccepted,
        StepStarted,
        Watcher,
    )
    from hgmem.values.evidence import Retrieved
    from hgmem.values.graph_elements import Entity
    from hgmem.values.inputs import (
        Document,
        Given,
        GivenChunk,
        GivenEntity,
        GivenRelation,
        Skipped,
    )
    from hgmem.values.records import (
        Answer,
        Citation,
        Lineage,
        Memory,
        MemoryPoint,
        MemorySummary,
        Operation,
        Passage,
        Step,
    )
    from hgmem.values.reports import (
        AdoptReport,
        ArchiveReport,
        Checkup,
        CorpusStatus,
        Finding,
        IndexPlan,
        IndexReport,
        Pruned,
    )
    from hgmem.values.usage import Usage

__version__ = "0.1.0"

__all__ = [
    "AdoptReport",
    "Answer",
    "AnswerToken",
    "Answered",
    "ArchiveReport",
    "AskOptions",
    "Checkup",
    "Citation",
    "ConflictError",
    "Conversation",
    "CorpusStatus",
    "Document",
    "DocumentError",
    "Entity",
    "EvidenceFound",
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
    "Message",
    "ModelError",
    "Operation",
    "OperationApplied",
    "Passage",
    "Planned",
    "Pruned",
    "QuestionAccepted",
    "Retrieved",
    "Settings",
    "Skipped",
    "Step",
    "StepStarted",
    "Usage",
    "UsageError",
    "Watcher",
    "read_conversations",
]

_HOMES = {
    "client": ("HGMem",),
    "errors": ("ConflictError", "DocumentError", "GraphError", "HGMemError", "ModelError", "UsageError"),
    "settings": ("Settings",),
    "sources.conversations.reading": ("read_conversations",),
    "values.ask_options": ("AskOptions",),
    "values.conversations": ("Conversation", "Message"),
    "values.events": (
        "Answered",
        "AnswerToken",
        "EvidenceFound",
        "OperationApplied",
        "Planned",
        "QuestionAccepted",
        "StepStarted",
        "Watcher",
    ),
    "values.evidence": ("Retrieved",),
    "values.graph_elements": ("Entity",),
    "values.inputs": (
        "Document",
        "Given",
        "GivenChunk",
        "GivenEntity",
        "GivenRelation",
        "Skipped",
    ),
    "values.records": (
        "Answer",
        "Citation",
        "Lineage",
        "Memory",
        "MemoryPoint",
        "MemorySummary",
        "Operation",
        "Passage",
        "Step",
    ),
    "values.reports": (
        "AdoptReport",
        "ArchiveReport",
        "Checkup",
        "CorpusStatus",
        "Finding",
        "IndexPlan",
        "IndexReport",
        "Pruned",
    ),
    "values.usage": ("Usage",),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hgmem' has no attribute {name!r}")
    return getattr(import_module(f"hgmem.{_HOME[name]}"), name)

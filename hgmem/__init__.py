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
    from hgmem.client import HGMem as HGMem
    from hgmem.errors import ConflictError as ConflictError
    from hgmem.errors import DocumentError as DocumentError
    from hgmem.errors import GraphError as GraphError
    from hgmem.errors import HGMemError as HGMemError
    from hgmem.errors import ModelError as ModelError
    from hgmem.errors import UsageError as UsageError
    from hgmem.settings import Settings as Settings
    from hgmem.sources.conversations.reading import read_conversations as read_conversations
    from hgmem.values.arguments import AskOptions as AskOptions
    from hgmem.values.conversations import Conversation as Conversation
    from hgmem.values.conversations import Message as Message
    from hgmem.values.differences import MemoryDiff as MemoryDiff
    from hgmem.values.events import Answered as Answered
    from hgmem.values.events import AnswerToken as AnswerToken
    from hgmem.values.events import EvidenceFound as EvidenceFound
    from hgmem.values.events import OperationApplied as OperationApplied
    from hgmem.values.events import Planned as Planned
    from hgmem.values.events import QuestionAccepted as QuestionAccepted
    from hgmem.values.events import StepStarted as StepStarted
    from hgmem.values.events import Watcher as Watcher
    from hgmem.values.evidence import Retrieved as Retrieved
    from hgmem.values.graph_elements import Entity as Entity
    from hgmem.values.inputs import Document as Document
    from hgmem.values.inputs import Given as Given
    from hgmem.values.inputs import GivenChunk as GivenChunk
    from hgmem.values.inputs import GivenEntity as GivenEntity
    from hgmem.values.inputs import GivenRelation as GivenRelation
    from hgmem.values.inputs import Skipped as Skipped
    from hgmem.values.records import Answer as Answer
    from hgmem.values.records import Citation as Citation
    from hgmem.values.records import Lineage as Lineage
    from hgmem.values.records import Memory as Memory
    from hgmem.values.records import MemoryPoint as MemoryPoint
    from hgmem.values.records import MemorySummary as MemorySummary
    from hgmem.values.records import Operation as Operation
    from hgmem.values.records import Passage as Passage
    from hgmem.values.records import Step as Step
    from hgmem.values.reports import AdoptReport as AdoptReport
    from hgmem.values.reports import AppendReport as AppendReport
    from hgmem.values.reports import ArchiveReport as ArchiveReport
    from hgmem.values.reports import Checkup as Checkup
    from hgmem.values.reports import CorpusStatus as CorpusStatus
    from hgmem.values.reports import Finding as Finding
    from hgmem.values.reports import IndexPlan as IndexPlan
    from hgmem.values.reports import IndexReport as IndexReport
    from hgmem.values.reports import Pruned as Pruned
    from hgmem.values.usage import Usage as Usage

__version__ = "0.1.0"

_NAMES = {
    "client": "HGMem",
    "errors": "ConflictError DocumentError GraphError HGMemError ModelError UsageError",
    "settings": "Settings",
    "sources.conversations.reading": "read_conversations",
    "values.arguments": "AskOptions",
    "values.conversations": "Conversation Message",
    "values.differences": "MemoryDiff",
    "values.events": "Answered AnswerToken EvidenceFound OperationApplied Planned QuestionAccepted StepStarted Watcher",
    "values.evidence": "Retrieved",
    "values.graph_elements": "Entity",
    "values.inputs": "Document Given GivenChunk GivenEntity GivenRelation Skipped",
    "values.records": "Answer Citation Lineage Memory MemoryPoint MemorySummary Operation Passage Step",
    "values.reports": "AdoptReport AppendReport ArchiveReport Checkup CorpusStatus Finding IndexPlan IndexReport "
    "Pruned",
    "values.usage": "Usage",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a type checker reads the imports above
    __all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hgmem' has no attribute {name!r}")
    return getattr(import_module(f"hgmem.{_HOMES[name]}"), name)

"""Everything that hgmem raises.

HGMemError
├── UsageError           the caller must change something: an unknown corpus, a bad setting, a wrong dimension
│   └── ConflictError    somebody else holds what is asked for, or took it over: a memory, a corpus, a lock
├── GraphError           Neo4j: refuses, too old, a statement failed
│   ├── ForbiddenError   Neo4j does not let this user do that, or nobody: the database is read-only
│   └── UnreachableError Neo4j does not answer (retryable)
├── ModelError           the language model or the embedder: unavailable (retryable), not installed, refuses
│   ├── BadReplyError    the language model answered, but not what was asked for, and not when asked again either
│   ├── AccessError      the model can't be used as it is set: its name, its address, its key, its quota
│   └── BudgetError      what may be spent on the model is spent; what was paid for is kept
└── DocumentError        input that can't be read; names the file and the place

Messages name the thing with `!r` and say what to do next, in one line; the middle of a very long one is left out.
"""

LONGEST = 1_000  # characters of a message


class HGMemError(Exception):
    """The root of the tree; `retryable` says whether the same call may succeed later, unchanged.

    `memory` is the uid of the memory that was being worked on, if it holds whole steps to go on from, or may.
    """

    memory: str | None = None

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        half = LONGEST // 2
        super().__init__(message if len(message) <= LONGEST else f"{message[:half]} … {message[-half:]}")
        self.retryable = retryable


class UsageError(HGMemError):
    """The caller must change something."""


class ConflictError(UsageError):
    """Somebody else holds, or took over, what was asked for."""


class GraphError(HGMemError):
    """Neo4j is unreachable, refuses, is too old, or a statement failed."""


class ForbiddenError(GraphError):
    """The user lacks a right, or the database takes no writes."""


class UnreachableError(GraphError):
    """Neo4j does not answer."""


class ModelError(HGMemError):
    """A language model or an embedder is unavailable, not installed, or gave a bad reply."""


class BadReplyError(ModelError):
    """The model's reply to `task` could not be used; `text` is what it said last."""

    def __init__(self, message: str, *, task: str, text: str = "") -> None:
        super().__init__(message)
        self.task = task
        self.text = text


class AccessError(ModelError):
    """The model can't be used as it is set; no other request will fare better."""


class BudgetError(ModelError):
    """The calls or tokens that a run may spend are spent."""


class DocumentError(HGMemError):
    """Input that can't be read; the message names the file and the place."""

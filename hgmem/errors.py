"""The errors that hgmem raises.

Messages are one line: they name the value with `!r` and the next step. Very long ones are shortened in the middle.
"""

LONGEST = 1_000  # characters of a message


class HGMemError(Exception):
    """The base class of all errors of hgmem.

    `retryable` tells whether the same call may succeed later. `memory` is the uid of the memory in use, if it can be
    continued.
    """

    memory: str | None = None

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        half = LONGEST // 2
        super().__init__(message if len(message) <= LONGEST else f"{message[:half]} … {message[-half:]}")
        self.retryable = retryable


class UsageError(HGMemError):
    """The caller must change something: an unknown corpus, a bad setting, a wrong dimension."""


class NotFoundError(UsageError):
    """There is no such corpus, document, memory, key or job."""


class KeyRefusedError(UsageError):
    """A key of the service is missing, not known, revoked or expired."""


class ScopeError(UsageError):
    """A key of the service may not do this, or does not reach this corpus."""


class LimitError(UsageError):
    """A key of the service is over one of its limits for `wait` more seconds."""

    def __init__(self, message: str, *, wait: int) -> None:
        super().__init__(message, retryable=True)
        self.wait = wait


class ConflictError(UsageError):
    """Another run holds, or took over, a memory, a corpus or a lock."""


class GraphError(HGMemError):
    """Neo4j rejects a request or is too old, or a statement failed."""


class ForbiddenError(GraphError):
    """The user lacks a privilege, or the database is read-only."""


class UnreachableError(GraphError):
    """Neo4j does not answer (retryable)."""


class ModelError(HGMemError):
    """A language model or an embedder is unavailable (retryable), not installed, or refuses."""


class BadReplyError(ModelError):
    """The model's reply to `task` was unusable, also when requested again. `text` is its last reply."""

    def __init__(self, message: str, *, task: str, text: str = "") -> None:
        super().__init__(message)
        self.task = task
        self.text = text


class AccessError(ModelError):
    """The configured model can't be used (name, address, key, quota), so every other request would fail as well."""


class BudgetError(ModelError):
    """The run's limit of model calls or tokens is reached. Finished work is saved."""


class DocumentError(HGMemError):
    """An input can't be read. The message names the file and the place."""


class CacheWarning(UserWarning):
    """A cache on disk can't be used. Results are the same, and take longer."""


class DocumentWarning(UserWarning):
    """A part of an input is left out."""

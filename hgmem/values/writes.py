"""Writes of a system's own: statements that run in the transaction of a step."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A named statement of mode `write`, with its parameters.

    Its `corpus` and, if it takes one, its `memory` are those of the question: a system does not give them.
    """

    statement: str
    parameters: Mapping[str, object] = field(default_factory=dict)

"""Where a walk is and where it can go: nodes, and ways between them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

NodeKind: TypeAlias = Literal["Entity", "Anchor"]
Tie: TypeAlias = Literal["RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF", "PASSAGE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An entity, with its name and description, or an anchor, with its title."""

    uid: str
    kind: NodeKind
    text: str
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way from a visited node (uid) to another, or into the passage of an anchor (`PASSAGE`, to the anchor itself).

    `told` is the sentence of a relation, `chunks` are those (uids) that state it. `score` says how near the way is to
    the question, or how strong its trail.
    """

    source: str
    node: Node
    tie: Tie
    told: str = ""
    relation: str = ""
    chunks: tuple[str, ...] = ()
    score: float = 0.0

    @property
    def is_passage(self) -> bool:
        """Whether the way leads into a passage."""
        return self.tie == "PASSAGE"

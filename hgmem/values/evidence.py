"""Sub-queries of a step, their hits, the resulting evidence, and writes of a system's own rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from hgmem.values.graph_elements import Chunk, Entity, Relation


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A named statement of mode `write`, with its parameters.

    Its `corpus` and, if it takes one, its `memory` are those of the question: a system does not give them.
    """

    statement: str
    parameters: Mapping[str, object] = field(default_factory=dict)


GLOBAL = "global"
CONTINUED = "… "  # begins a passage that leaves out the words that it shares with the one before

# How a step or sub-query searched, in a word or a few: "global", "local", or what another system calls its own way.
Strategy: TypeAlias = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subquery:
    """A sub-query on one concern. `targets` are the uids of the points that a local one investigates."""

    text: str
    concern: str = ""
    strategy: Strategy = GLOBAL
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A retrieved entity, relation or chunk: uid, rank from 1 and score.

    The score is a cosine in [-1, 1], or what ranked it otherwise: words, several rankings, or a reranker. `name` is set
    for entities, `source_id` for chunks: their id in the imported data.
    """

    uid: str
    rank: int
    score: float = 0.0
    name: str = ""
    source_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltHit:
    """A retrieved row of a system's build, such as a topic: uid, kind, rank from 1, score, and its text at that time.

    The text is kept with the sub-query, because a later build may replace or delete the row. Where a system walks from
    node to node, the hits are the nodes, entities too, and `source` is the uid of the one that led there.
    """

    uid: str
    kind: str
    rank: int
    text: str
    score: float = 0.0
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPassage:
    """A row of a system's build that an answer may cite, such as a summary.

    `title` is shown beside its number, and then `origin`, the heading of the document that the row rests on, where the
    title does not tell it. `document` is empty where the row rests on several. `chunks` are the uids of the chunks
    behind it that are nearest to the question, the nearest first.
    """

    uid: str
    kind: str
    text: str
    title: str = ""
    origin: str = ""
    document: str = ""
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What passages tell in a `text` that no longer holds: `until` when, and `by` which text it was replaced.

    Both texts are in the third person. A `guess` is of rules.
    """

    text: str
    until: str
    by: str
    guess: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieved:
    """The hits of one sub-query, nearest first. `built` are rows of a system's build."""

    subquery: Subquery
    entities: tuple[Hit, ...] = ()
    relations: tuple[Hit, ...] = ()
    chunks: tuple[Hit, ...] = ()
    built: tuple[BuiltHit, ...] = ()


Citable: TypeAlias = Chunk | BuiltPassage  # what an answer may cite


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of a step's sub-queries without duplicates. Chunks are in the order of dates and documents.

    `built` are rows of a system's build that the answer may cite beside chunks, and `statements` what else the system
    knows: the answer may use them, but not cite them. `ended` is what of it no longer holds, for answers without a
    language model. `writes` are statements of the system's own, which run in the step's transaction, and `notes` are
    kept with it. `remarks` are notes on the answer. `nearest` names the source chunks (uids) of an entity that are
    nearest to the sub-queries which found it. `shown` are the chunks that earlier prompts of the question showed, in
    the order of their numbers.
    """

    retrieved: tuple[Retrieved, ...] = ()
    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    chunks: tuple[Chunk, ...] = ()
    built: tuple[BuiltPassage, ...] = ()
    statements: tuple[str, ...] = ()
    ended: tuple[Ended, ...] = ()
    writes: tuple[Write, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    nearest: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    shown: tuple[Chunk, ...] = ()

    @property
    def numbered(self) -> tuple[Chunk, ...]:
        """The chunks by their numbers, from 0: those shown before keep theirs, and those of this prompt follow."""
        return (*self.shown, *self.chunks)

    @property
    def again(self) -> tuple[Chunk, ...]:
        """The chunks found now that were shown before."""
        found = {hit.uid for each in self.retrieved for hit in each.chunks}
        return tuple(chunk for chunk in self.shown if chunk.uid in found)

    @property
    def empty(self) -> bool:
        """Whether the step found neither entities, nor chunks, nor rows of a build."""
        return not (self.entities or self.chunks or self.built)

    @property
    def passages(self) -> tuple[Citable, ...]:
        """What an answer may cite: the chunks, then the rows of a build."""
        return (*self.chunks, *self.built)

    @property
    def strategy(self) -> Strategy:
        """How the step retrieved: the strategy of the first sub-query that did not search globally."""
        return next((one.subquery.strategy for one in self.retrieved if one.subquery.strategy != GLOBAL), GLOBAL)

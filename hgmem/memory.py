"""What a step asks of a model about memory, and how it answers: insertions, revisions, merges (paper, section 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from hgmem import rendering
from hgmem.extract import Extraction
from hgmem.model import Evidence
from hgmem.rendering import Shown
from hgmem.reply import Reply

UpdateRule: TypeAlias = Literal["unite", "keep", "replace", "off"]
MergeRule: TypeAlias = Literal["replace", "add", "off"]

_UPDATING: Mapping[UpdateRule, str] = {
    "unite": "`entities` names those that it involves besides the ones it has.",
    "keep": "Its entities stay as they are: leave its `entities` empty, other than in the example.",
    "replace": "`entities` names all that it involves now; the ones it had and that you don't name are no longer tied.",
    "off": "Points are not updated in this investigation: leave `update` empty, other than in the example.",
}


class Insertion(BaseModel):
    """A new point: the names that it ties, and the evidence chunks (indices, from 0) that support it."""

    model_config = ConfigDict(frozen=True)
    entities: tuple[str, ...]
    description: str
    chunks: tuple[int, ...] = ()


class Revision(BaseModel):
    """A point said better, its number that of the memory shown; `chunks` are added to those it has."""

    model_config = ConfigDict(frozen=True)
    point: int
    description: str
    entities: tuple[str, ...] = ()
    chunks: tuple[int, ...] = ()


class EvolveReply(Reply):
    """What the evidence adds to memory."""

    update: tuple[Revision, ...] = ()
    insert: tuple[Insertion, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolve:
    """Ask what the evidence of a step adds to memory; indices refer to `memory.points` and `evidence.chunks`."""

    question: str
    subqueries: tuple[str, ...]
    memory: Shown
    evidence: Evidence
    update: UpdateRule = "unite"
    language: str = ""
    name: ClassVar[str] = "evolve"
    reply_type: ClassVar[type[EvolveReply]] = EvolveReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "subqueries": rendering.asked(self.subqueries),
            "memory": rendering.memory(self.memory),
            "evidence": rendering.evidence(self.evidence),
            "updating": updating(self.update),
            "language": rendering.language(self.language),
        }


class Joining(BaseModel):
    """Two or more points said as one."""

    model_config = ConfigDict(frozen=True)
    points: tuple[int, ...]
    description: str


class MergeReply(Reply):
    """Which points belong together."""

    merge: tuple[Joining, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Ask which points to merge; indices refer to `memory.points`."""

    question: str
    memory: Shown
    language: str = ""
    name: ClassVar[str] = "merge"
    reply_type: ClassVar[type[MergeReply]] = MergeReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "language": rendering.language(self.language),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """Ask what the evidence says of names that the corpus lacks, and of pairs of a new name and another one.

    Only the official implementation asks this (`collect_absent_entities_relationships`).
    """

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    evidence: Evidence
    name: ClassVar[str] = "describe"
    reply_type: ClassVar[type[Extraction]] = Extraction

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "names": rendering.listed(self.names),
            "pairs": rendering.listed(f"{one} — {other}" for one, other in self.pairs),
            "evidence": rendering.evidence(self.evidence),
        }


def updating(rule: UpdateRule) -> str:
    """Return the sentence of a prompt that says what an update does to a point's entities."""
    return _UPDATING[rule]

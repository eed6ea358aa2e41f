"""What a step asks of a model about memory, and how it answers: insertions, revisions, merges (paper, section 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from hgmem.extraction.replies import Extraction
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Shown
from hgmem.systems.hgmem.extractive.evolve import after, evolve, merge
from hgmem.systems.hgmem.prompts import PROMPTS
from hgmem.systems.hgmem.replies import Additions, EvolveReply, MergeReply
from hgmem.values.evidence import Evidence

UpdateRule: TypeAlias = Literal["unite", "keep", "replace", "off"]
MergeRule: TypeAlias = Literal["replace", "add", "off"]

_UPDATING: Mapping[UpdateRule, str] = {
    "unite": "`entities` names those that it involves besides the ones it has.",
    "keep": "Its entities stay as they are: leave its `entities` empty, other than in the example.",
    "replace": "`entities` names all that it involves now; the ones it had and that you don't name are no longer tied.",
    "off": "Points are not updated in this investigation: leave `update` empty, other than in the example.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Evolve:
    """Ask what the evidence adds to memory. Indices refer to `memory.numbered` and `evidence.numbered`.

    `merging` asks for merges as well, of points that the reply inserts too: they are counted on from those shown.
    """

    question: str
    subqueries: tuple[str, ...]
    memory: Shown
    evidence: Evidence
    update: UpdateRule = "unite"
    merging: bool = False
    language: str = ""
    name: ClassVar[str] = "evolve"
    prompt_file: ClassVar[Path] = PROMPTS / "evolve.md"

    @property
    def reply_type(self) -> type[Additions]:
        """What the reply may hold."""
        return EvolveReply if self.merging else Additions

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "subqueries": rendering.asked(self.subqueries),
            "memory": rendering.memory(self.memory),
            "evidence": rendering.evidence(self.evidence),
            "updating": updating(self.update),
            "merging": "yes" if self.merging else "",
            "language": rendering.language(self.language),
        }

    def extractive(self, vectors: VectorCache) -> EvolveReply:
        """Return what the sentences nearest to the question add to memory, without a language model."""
        queries = (self.question, *self.subqueries)
        added = evolve(queries, points=self.memory.points, evidence=self.evidence, vectors=vectors)
        if not self.merging:
            return added
        merged = Merge(question=self.question, memory=Shown(points=after(self.memory.points, added)))
        return added.model_copy(update={"merge": merged.extractive(vectors).merge})


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """Ask which points to merge. Indices refer to `memory.numbered`."""

    question: str
    memory: Shown
    language: str = ""
    name: ClassVar[str] = "merge"
    prompt_file: ClassVar[Path] = PROMPTS / "merge.md"
    reply_type: ClassVar[type[MergeReply]] = MergeReply

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "language": rendering.language(self.language),
        }

    def extractive(self, vectors: VectorCache) -> MergeReply:
        """Return merges of points that share entities, without a language model."""
        reply = merge(self.question, self.memory.points, vectors=vectors)
        numbered = [one.model_copy(update={"points": self.memory.numbers_of(one.points)}) for one in reply.merge]
        return MergeReply(merge=tuple(numbered))


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """Ask what the evidence says of names that the corpus lacks, and of pairs of a new name and another one.

    Only the official implementation asks this (`collect_absent_entities_relationships`).
    """

    names: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]
    evidence: Evidence
    name: ClassVar[str] = "describe"
    prompt_file: ClassVar[Path] = PROMPTS / "describe.md"
    reply_type: ClassVar[type[Extraction]] = Extraction

    def fields(self) -> Mapping[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "names": rendering.listed(self.names),
            "pairs": rendering.listed(f"{one} — {other}" for one, other in self.pairs),
            "evidence": rendering.evidence(replace(self.evidence, behind={}, sources=())),  # nothing is to be cited
        }

    def extractive(self, _: VectorCache) -> Extraction:
        """Return nothing: without a language model, the text of the point that names an entity describes it."""
        return Extraction()


def updating(rule: UpdateRule) -> str:
    """Return the sentence of a prompt that says what an update does to a point's entities."""
    return _UPDATING[rule]

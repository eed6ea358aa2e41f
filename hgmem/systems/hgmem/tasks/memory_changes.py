"""What a step asks of a model about memory, and how it answers: insertions, revisions, merges (paper, section 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias

from hgmem.extraction.replies import Extraction
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.extractive.evolve import after, evolve, merge
from hgmem.systems.hgmem.replies import Additions, EvolveReply, MergeReply
from hgmem.systems.hgmem.tasks import PROMPTS
from hgmem.values.evidence import Evidence

UpdateRule: TypeAlias = Literal["unite", "keep", "replace", "off"]
MergeRule: TypeAlias = Literal["replace", "add", "off"]

_UPDATING: Mapping[UpdateRule, str] = {
    "unite": "`entities` names those that it involves besides the ones it has.",
    "keep": "Its entities stay as they are: leave its `entities` empty, other than in the example.",
    "replace": "`entities` names all that it involves now; the ones it had and that you don't name are no longer tied.",
    "off": "Points are not updated in this investigation: leave `update` empty, other than in the example.",
}


@dataclass(frozen=True, kw_only=True)
class OfMemory:
    """What a prompt says of a question and its memory. A reply's numbers of points refer to `memory.numbered`."""

    question: str
    memory: PromptMemory
    language: str = ""

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            "question": rendering.text(self.question),
            "memory": rendering.memory(self.memory),
            "language": rendering.language(self.language),
        }


@dataclass(frozen=True, kw_only=True)
class OfEvidence(OfMemory):
    """What a prompt says of a step's evidence and of how it may change memory.

    Numbers of chunks refer to `evidence.numbered`. `merging` asks for merges too, of points that the reply inserts as
    well: they are counted on from those shown. Without it the prompt has no word of merges.
    """

    subqueries: tuple[str, ...]
    evidence: Evidence
    update: UpdateRule = "unite"
    merging: bool = False

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            **super().fields(),
            "subqueries": rendering.asked(self.subqueries),
            "evidence": rendering.evidence(self.evidence),
            "updating": _UPDATING[self.update],
            "merging": "yes" if self.merging else "",
        }

    def evolved(self, vectors: VectorCache) -> tuple[EvolveReply, PromptMemory]:
        """Return what the sentences nearest to the question add to memory, merges included, and memory with that."""
        queries = (self.question, *self.subqueries)
        added = evolve(queries, points=self.memory.points, evidence=self.evidence, vectors=vectors)
        memory = PromptMemory(points=after(self.memory.points, added))
        merged = merge(self.question, memory.points, vectors=vectors).merge if self.merging else ()
        return added.model_copy(update={"merge": merged}), memory


@dataclass(frozen=True, kw_only=True)
class Evolve(OfEvidence):
    """Ask what the evidence adds to memory."""

    name: ClassVar[str] = "evolve"
    prompt_file: ClassVar[Path] = PROMPTS / "evolve.md"

    @property
    def reply_type(self) -> type[Additions]:
        """What the reply may hold."""
        return EvolveReply if self.merging else Additions

    def extractive(self, vectors: VectorCache) -> EvolveReply:
        """Return what the sentences nearest to the question add to memory, without a language model."""
        return self.evolved(vectors)[0]


@dataclass(frozen=True, kw_only=True)
class Merge(OfMemory):
    """Ask which points to merge."""

    name: ClassVar[str] = "merge"
    prompt_file: ClassVar[Path] = PROMPTS / "merge.md"
    reply_type: ClassVar[type[MergeReply]] = MergeReply

    def extractive(self, vectors: VectorCache) -> MergeReply:
        """Return merges of points that share entities, without a language model."""
        reply = merge(self.question, self.memory.points, vectors=vectors)
        numbered = [each.model_copy(update={"points": self.memory.numbers_of(each.points)}) for each in reply.merge]
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
            "pairs": rendering.listed(f"{name} — {other}" for name, other in self.pairs),
            "evidence": rendering.evidence(replace(self.evidence, behind={}, sources=())),  # nothing is to be cited
        }

    def extractive(self, _: VectorCache) -> Extraction:
        """Return nothing: without a language model, the text of the point that names an entity describes it."""
        return Extraction()

"""What HGMem asks of a language model, each task with its prompt, its reply type and its extractive function.

Tasks change memory by insertions, revisions and merges (paper, section 3.5) and plan (section 3.4). A plan judges
memory once for a step, as the paper's prompt does (version A, figure 6), or for each concern by itself. A whole step
may come in one call, so that what reads the passages also plans.
"""

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_args

from hgmem.extraction.replies import Extraction
from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.prompts import PromptTask, flag, read_prompt
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Language, PromptMemory, Text
from hgmem.systems.hgmem.extractive.evolve import after, evolve, merge
from hgmem.systems.hgmem.extractive.plan import Planning, plan, subqueries
from hgmem.systems.hgmem.replies import (
    Additions,
    Concern,
    EvolveReply,
    MergeReply,
    PlanAndAskReply,
    PlanReply,
    StepReply,
    StepWithoutMergesReply,
    SubqueriesReply,
    Where,
)
from hgmem.text.segmentation import clipped, collapse
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Entity

UpdateRule: TypeAlias = Literal["unite", "keep", "replace", "off"]
MergeRule: TypeAlias = Literal["replace", "add", "off"]
Strategies: TypeAlias = Literal["adaptive", "local", "global"]
Judging: TypeAlias = Literal["step", "concern"]
Addition: TypeAlias = Literal["rounds", "numbers", "premises", "brief", "statements", "one_merge", "single"]
ADDITIONS: tuple[Addition, ...] = get_args(Addition)
"""Rules beside the paper's. A plan is told which round it is; chunks have numbers, which points name; a question's
premises are tested; statements are short; an update adds to a statement and a merge keeps those of its parts, so that
none is written twice; a point takes part in one merge of a reply at most; a point may have a single entity
(docs/papers.md)."""
_Judged: TypeAlias = Literal["step", "concern", "local", "global"]

MOST_READ = 20  # documents that a plan is told to be read, those with most passages read first
_LONGEST_TITLE = rendering.LONGEST_TITLE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wording:
    """What a prompt says of the judgement and of where a concern is looked for (`wordings.toml`)."""

    judging: str
    where: str
    verdicts: Sequence[str]
    examples: Sequence[Where]
    each: bool = False


_WORDS = tomllib.loads((Path(__file__).parent / "prompts" / "wordings.toml").read_text(encoding="utf-8"))
_WORDED: Mapping[str, Addition] = {
    "tied": "single",
    "revised": "statements",
    "ferry": "statements",
    "joining": "statements",
    "bakery": "statements",
    "joined": "statements",
    "parts": "one_merge",
}
_RULED: Mapping[str, Addition] = {
    "chunks": "numbers",
    "replaces": "statements",
    "kind": "statements",
}  # fields of replies
_WORDINGS: Mapping[_Judged, _Wording] = {name: _Wording(**words) for name, words in _WORDS["plans"].items()}


@dataclass(frozen=True, kw_only=True)
class OfMemory(PromptTask):
    """What a prompt says of a question and its memory. A reply's numbers of points refer to `memory.numbered`.

    `additions` are the rules beside the paper's that it has.
    """

    question: Text
    memory: Annotated[PromptMemory, rendering.memory]
    language: Language = ""
    additions: Sequence[Addition] = ADDITIONS

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        ruled: dict[str, str] = {rule: flag(rule in self.additions) for rule in ADDITIONS}
        ruled |= {name: _WORDS[name]["with" if ruled[rule] else "without"] for name, rule in _WORDED.items()}
        placed = read_prompt(self.prompt_file).fields
        return {**{name: text for name, text in ruled.items() if name in placed}, **super().fields()}

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema with what the prompt names, and nothing else: of changes, the fields of its rules."""
        left_out = {field for field, rule in _RULED.items() if rule not in self.additions}
        parts = dict(schema["properties"])
        for name in parts.keys() & {"update", "insert", "merge"}:
            items = parts[name]["items"]
            fields = {field: part for field, part in items["properties"].items() if field not in left_out}
            parts[name] = {**parts[name], "items": {**items, "properties": fields, "required": list(fields)}}
        return {**schema, "properties": parts}


@dataclass(frozen=True, kw_only=True)
class OfEvidence(OfMemory):
    """What a prompt says of a step's evidence and of how it may change memory.

    Numbers of chunks refer to `evidence.numbered`. `merging` asks for merges too, of points that the reply inserts as
    well: they are counted on from those shown. Without it the prompt has no word of merges.
    """

    subqueries: Annotated[tuple[str, ...], rendering.asked]
    evidence: Evidence
    update: Annotated[UpdateRule, _WORDS["updating"].__getitem__, "updating"] = "unite"
    merging: Annotated[bool, flag] = False

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        numbered = "numbers" in self.additions
        return {
            **super().fields(),
            "evidence": rendering.evidence(self.evidence, numbered=numbered),
            "memory": rendering.memory(self.memory, self.evidence.numbered if numbered else ()),
        }

    def evolved(self, vectors: CheckedEmbedder) -> tuple[EvolveReply, PromptMemory]:
        """Return what the sentences nearest to the question add to memory, merges included, and memory with that."""
        queries = (self.question, *self.subqueries)
        added = evolve(queries, memory=self.memory, evidence=self.evidence, vectors=vectors)
        memory = after(self.memory, added)
        merged = merge(self.question, memory, vectors=vectors).merge if self.merging else ()
        return added.model_copy(update={"merge": merged}), memory


@dataclass(frozen=True, kw_only=True)
class Evolve(OfEvidence):
    """Ask what the evidence adds to memory."""

    name = "evolve"

    @property
    def reply_type(self) -> type[Additions]:
        """What the reply may hold."""
        return EvolveReply if self.merging else Additions

    def extractive(self, vectors: CheckedEmbedder) -> EvolveReply:
        """Return what the sentences nearest to the question add to memory, without a language model."""
        return self.evolved(vectors)[0]


@dataclass(frozen=True, kw_only=True)
class Merge(OfMemory):
    """Ask which points to merge."""

    name = "merge"
    reply_type = MergeReply

    def extractive(self, vectors: CheckedEmbedder) -> MergeReply:
        """Return merges of points that share entities, without a language model."""
        return merge(self.question, self.memory, vectors=vectors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """Where a question stands when a plan is made.

    `done` of `rounds` rounds are done. `read` are titles of documents with the number of their passages that were read,
    `unread` those of others, the nearest to the question first. `describe_hints` shows hints with their descriptions.
    """

    done: int = 1
    rounds: int = 3
    read: tuple[tuple[str, int], ...] = ()
    unread: tuple[str, ...] = ()
    describe_hints: bool = False

    def hinted(self, hints: Sequence[Entity]) -> str:
        """Return the hints, one a line, or nothing."""
        named = hints if self.describe_hints else [replace(hint, description="") for hint in hints]
        return rendering.entities(named) if hints else ""


@dataclass(frozen=True, kw_only=True)
class OfPlan(OfMemory, Planning):
    """What a prompt says of the plan that it asks for."""

    round: Round = field(default_factory=Round)
    concerns: Annotated[int, str] = 3
    strategies: Strategies = "adaptive"
    judging: Judging = "concern"
    subqueries_too: ClassVar[bool] = True  # whether a concern of the reply brings its sub-query

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        wording, verdict = self._wording, self._wording.verdicts[0]
        example = [self._concern(where, _WORDS["examples"][where]) for where in wording.examples]
        return {
            **super().fields(),
            "rounds": rounds(self.round.done, self.round.rounds) if "rounds" in self.additions else "",
            "documents": _documents(self.round.read, self.round.unread),
            "hints": self.round.hinted(self.hints),
            "judging": _WORDS["enough" if "premises" in self.additions else "complete"] + wording.judging,
            "where": wording.where,
            "form": _written(verdict, [self._concern(wording.examples[0], {"text": "…", "subquery": "…"})]),
            "example": _written(verdict, example),
        }

    @property
    def _wording(self) -> _Wording:
        return _WORDINGS[self.judging if self.strategies == "adaptive" else self.strategies]

    def _concern(self, strategy: Where, words: Mapping[str, str]) -> dict[str, str | list[int]]:
        return {
            "text": words["text"],
            **({"strategy": strategy} if self._wording.each else {}),
            "points": [0] if strategy == "local" else [],
            **({"subquery": words["subquery"]} if self.subqueries_too else {}),
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema with the judgements and strategies that the prompt names, and no others."""
        schema = super().narrowed(schema)
        wording, concerns = self._wording, schema["properties"]["concerns"]
        concern = concerns["items"]
        fields = {name: part for name, part in concern["properties"].items() if wording.each or name != "strategy"}
        if wording.each:
            fields["strategy"] = {"type": "string", "enum": list(wording.examples)}
        concern = {**concern, "properties": fields, "required": list(fields)}
        judgement = {"type": "string", "enum": ["sufficient", *wording.verdicts]}
        parts = {**schema["properties"], "judgement": judgement, "concerns": {**concerns, "items": concern}}
        return {**schema, "properties": parts}

    def planned(self, vectors: CheckedEmbedder) -> PlanReply:
        """Return what memory does not cover of the question, without a language model."""
        return plan(self, concerns=self.concerns, by_concern=self.judging == "concern", vectors=vectors)

    def asked(self, vectors: CheckedEmbedder) -> PlanAndAskReply:
        """Return the plan, its concerns with their sub-queries, without a language model."""
        planned = self.planned(vectors)
        inquiries = map(Concern.asked, planned.concerns, subqueries(self, planned.concerns))
        return PlanAndAskReply(judgement=planned.judgement, concerns=tuple(inquiries))


@dataclass(frozen=True, kw_only=True)
class Plan(OfPlan):
    """Ask whether memory answers the question."""

    name = "plan"
    reply_type = PlanReply
    subqueries_too: ClassVar[bool] = False

    def extractive(self, vectors: CheckedEmbedder) -> PlanReply:
        """Return what memory does not cover of the question, without a language model."""
        return self.planned(vectors)


@dataclass(frozen=True, kw_only=True)
class Subqueries(Planning):
    """Ask for one sub-query a concern, each unlike the `previous` ones."""

    concerns: tuple[Concern, ...]
    round: Round = field(default_factory=Round)
    name = "subqueries"
    reply_type = SubqueriesReply

    def fields(self) -> dict[str, str]:
        """Return what the prompt's placeholders stand for."""
        return {
            **super().fields(),
            "concerns": rendering.listed(_about(concern, self.memory) for concern in self.concerns),
            "hints": self.round.hinted(self.hints),
        }

    def extractive(self, _: CheckedEmbedder) -> SubqueriesReply:
        """Return the concerns as sub-queries, none asked before, without a language model."""
        return SubqueriesReply(subqueries=subqueries(self, self.concerns))


@dataclass(frozen=True, kw_only=True)
class WholeStep(OfPlan, OfEvidence):
    """Ask for a whole step in one call: `Evolve`, `Merge`, `Plan` and `Subqueries` together.

    Numbers of points that the reply inserts are counted on from those shown, in what it plans too.
    """

    name = "step"

    @property
    def reply_type(self) -> type[StepWithoutMergesReply]:
        """What the reply may hold."""
        return StepReply if self.merging else StepWithoutMergesReply

    def extractive(self, vectors: CheckedEmbedder) -> StepReply:
        """Return what the evidence adds, then merges, judgement and what to ask of memory as it is with that."""
        evolved, memory = self.evolved(vectors)
        reply = replace(self, memory=memory, previous=(*self.previous, *self.subqueries)).asked(vectors)
        return StepReply(
            update=evolved.update,
            insert=evolved.insert,
            merge=evolved.merge,
            judgement=reply.judgement,
            concerns=reply.concerns,
        )


def _written(verdict: str, concerns: list[dict[str, str | list[int]]]) -> str:
    """Return the fields of a reply as JSON, without the braces around them: others may stand before them."""
    return json.dumps({"judgement": verdict, "concerns": concerns}, ensure_ascii=False)[1:-1]


def rounds(done: int, of: int) -> str:
    """Return which round of a question this is, and whether the next is the last."""
    left = of - done
    if left == 1:
        return f"Round {done} of {of}: one round is left, the last. Ask for what the answer needs most."
    return f"Round {done} of {of}: {left} rounds are left."


def _documents(read: Sequence[tuple[str, int]], unread: Sequence[str]) -> str:
    """Return the titles of documents, one a line, or nothing where there is only one."""
    read = [row for row in read if row[0]]  # one without a title can't be told from another
    if len(read) + len(unread) < 2:
        return ""
    most = sorted(read, key=lambda row: (-row[1], row[0]))
    lines = [f"read: {clipped(collapse(title), _LONGEST_TITLE)} ({passages})" for title, passages in most[:MOST_READ]]
    if len(most) > MOST_READ:
        lines.append(f"read: {len(most) - MOST_READ} more")
    return rendering.listed([*lines, *(f"unread: {clipped(collapse(title), _LONGEST_TITLE)}" for title in unread)])


def _about(concern: Concern, memory: PromptMemory) -> str:
    """Return a concern with the numbers of its points, as far as memory shows them."""
    known = memory.numbered
    points = [at for at in dict.fromkeys(concern.points) if 0 <= at < len(known) and known[at] is not None]
    return f"{concern.text} (points: {', '.join(map(str, points))})" if points else concern.text


@dataclass(frozen=True, kw_only=True)
class Describe(PromptTask):
    """Ask what the evidence says of names that the corpus lacks, and of pairs of a new name and another one.

    Only the official implementation asks this (`collect_absent_entities_relationships`).
    """

    names: Annotated[tuple[str, ...], rendering.listed]
    pairs: Annotated[tuple[tuple[str, str], ...], lambda pairs: rendering.listed(map(" — ".join, pairs))]
    evidence: Annotated[Evidence, lambda found: rendering.evidence(found, numbered=False)]  # nothing is cited
    name = "describe"
    reply_type = Extraction

    def extractive(self, _: CheckedEmbedder) -> Extraction:
        """Return nothing: without a language model, the text of the point that names an entity describes it."""
        return Extraction()

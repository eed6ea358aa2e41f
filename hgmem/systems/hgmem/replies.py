"""Reply types of HGMem's tasks. Numbers of points and chunks are those of the prompt, from 0."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from hgmem.extraction.replies import DESCRIPTION, ENTITIES
from hgmem.models.reply import Leniently, Reply, named

# Other names that models use for these fields.
_CHUNKS = named("chunks", "sources", "evidence", "chunk", "chunk_ids", "evidence_chunks", "citations")
_POINT = named("point", "index", "id", "point_index", "point_id", "number")
_POINTS = named("points", "indices", "indexes", "ids", "targets", "point", "index", "id", "point_ids", "point_indices")
_TEXT = named("text", "concern", "statement", "description", "content", "desc")
_UPDATE = named("update", "updates", "updated", "revise", "revised", "revision", "revisions", "modified", "modify")
_INSERT = named("insert", "inserted", "inserts", "insertion", "insertions", "new", "new_points", "add", "added")
_MERGE = named("merge", "merges", "merged", "merging")
_RETIRE = named("retire", "retired", "remove", "removed", "delete", "deleted", "dropped")
_JUDGEMENT = named("judgement", "judgment", "decision", "verdict")
_CONCERNS = named("concerns", "concern", "gaps", "open_questions")
_STRATEGY = named("strategy", "where", "look", "kind", "judgement", "judgment")
_SUBQUERY = named("subquery", "sub_query", "query", "question")
_SUBQUERIES = named("subqueries", "sub_queries", "queries", "questions", "subquery", "sub_query", "query")
# The numbers are those of the paper's prompt for the plan (version A, figure 6).
_CHOICES = Leniently(
    words={
        "global": ("2.2", "global exploration", "global investigation", "explore"),
        "local": ("2.1", "local investigation", "local exploration", "investigate"),
        "open": ("insufficient", "not sufficient", "not enough", "no", "false", "incomplete"),
        "sufficient": ("1", "enough", "yes", "true", "complete", "sufficient information"),
    }
)
_KINDS = Leniently(words={"inference": ("inferred", "conclusion")}, minor=True)

# What a plan says of memory: of a step as a whole, or "open", where each concern has a strategy of its own.
Verdict: TypeAlias = Literal["sufficient", "local", "global", "open"]
Where: TypeAlias = Literal["local", "global"]
Kind: TypeAlias = Literal["fact", "inference"]
Description: TypeAlias = Annotated[str, DESCRIPTION]
Names: TypeAlias = Annotated[tuple[str, ...], ENTITIES]
Chunks: TypeAlias = Annotated[tuple[int, ...], _CHUNKS]
Points: TypeAlias = Annotated[tuple[int, ...], _POINTS]


class Part(BaseModel):
    """A part of a reply."""

    model_config = ConfigDict(frozen=True)


class Insertion(Part):
    """A new point: the names that it ties, and the evidence chunks (indices, from 0) that support it.

    An `inference` follows from what several chunks say, and none says it.
    """

    entities: Names
    description: Description
    kind: Annotated[Kind, _KINDS] = "fact"
    chunks: Chunks = ()


class Revision(Part):
    """A revised point, numbered as in the memory shown. `chunks` are added to those it has.

    `description` is what the point says more or, if it `replaces`, the whole statement as it reads now. `kind` is that
    of the description; without one it is that of the point.
    """

    point: Annotated[int, _POINT]
    description: Description
    replaces: bool = False
    kind: Annotated[Kind | None, _KINDS] = None
    entities: Names = ()
    chunks: Chunks = ()


class Additions(Reply):
    """What the evidence adds to memory."""

    update: Annotated[tuple[Revision, ...], _UPDATE] = ()
    insert: Annotated[tuple[Insertion, ...], _INSERT] = ()


class Joining(Part):
    """Two or more points said as one: how they belong together or, if it `replaces`, the whole statement."""

    points: Points
    description: Description
    replaces: bool = False


class MergeReply(Reply):
    """Which points belong together."""

    merge: Annotated[tuple[Joining, ...], _MERGE] = ()


# A reply with several parts has the fields of its bases, those of the last one first: the order in which a server that
# is held to the schema lets a model write them.


class Retirement(Part):
    """A point, numbered as in the memory shown, that memory drops."""

    point: Annotated[int, _POINT]
    reason: Annotated[str, named("reason", "why", "text")] = ""


class Standing(Reply):
    """What the documents contradict of what the question takes for granted, and what memory still lacks."""

    premise: Annotated[str, named("premise", "contradicted")] = ""
    open: Annotated[tuple[str, ...], named("open", "missing"), Leniently(sentences=True)] = ()


class Retiring(Reply):
    """Which points memory drops."""

    retire: Annotated[tuple[Retirement, ...], _RETIRE] = ()


class EvolveReply(Standing, Retiring, MergeReply, Additions):
    """What the evidence adds to memory and, where it is asked for, which points to merge and to drop.

    Points that this reply inserts are counted on from those shown, in the order of `insert`.
    """


class Concern(Part):
    """A gap in memory. `points` are indices, from 0, of the points to investigate.

    `strategy` is where to look, if the plan says so for each concern.
    """

    text: Annotated[str, _TEXT]
    strategy: Annotated[Where | None, _STRATEGY, _CHOICES] = None
    points: Points = ()

    def asked(self, subquery: str) -> "Inquiry":
        """Return the concern with a sub-query that asks for it."""
        return Inquiry(text=self.text, subquery=subquery, points=self.points, strategy=self.strategy)


class PlanReply(Reply):
    """The judgement, and the concerns that it leaves."""

    judgement: Annotated[Verdict, _JUDGEMENT, _CHOICES]
    concerns: Annotated[tuple[Concern, ...], _CONCERNS] = ()


class Inquiry(Concern):
    """A concern with the sub-query that asks for it."""

    subquery: Annotated[str, _SUBQUERY]


class SubqueriesReply(Reply):
    """One sub-query a concern, in the order of the concerns."""

    subqueries: Annotated[tuple[str, ...], _SUBQUERIES, Leniently(sentences=True, aligned=True)]


class PlanAndAskReply(Reply):
    """The judgement, and concerns with their sub-queries."""

    judgement: Annotated[Verdict, _JUDGEMENT, _CHOICES]
    concerns: Annotated[tuple[Inquiry, ...], _CONCERNS] = ()


def with_subqueries(concerns: Sequence[Concern], reply: SubqueriesReply) -> tuple[tuple[Inquiry, ...], tuple[str, ...]]:
    """Return each concern with its sub-query, short replies padded with the concern's text, and notes."""
    surplus = len(reply.subqueries) - len(concerns)
    notes = (f"{surplus} sub-queries beyond the concerns were dropped",) if surplus > 0 else ()
    texts = (*reply.subqueries, *("" for _ in concerns))
    return tuple(map(Concern.asked, concerns, texts)), notes


class Ahead(Standing):
    """How the question stands, the judgement and what to ask next, at the end of a reply that holds a whole step."""

    judgement: Annotated[Verdict | None, _JUDGEMENT, _CHOICES] = None
    concerns: Annotated[tuple[Inquiry, ...], _CONCERNS] = ()


class StepWithoutMergesReply(Ahead, Additions):
    """A step that merges nothing: what the evidence adds, the judgement, and what to ask next."""


class StepReply(StepWithoutMergesReply, Ahead, Retiring, MergeReply, Additions):
    """A whole step: what the evidence adds, which points to merge and to drop, the judgement, and what to ask next.

    Points that this reply inserts are counted on from those shown, in the order of `insert`.
    """

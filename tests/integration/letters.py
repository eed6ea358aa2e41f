"""A very small corpus, and a scripted model for three steps on it, shared by tests of the loop."""

from collections.abc import Callable, Mapping
from typing import Any

from hgmem.extraction.replies import Extraction
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Inquiry,
    Insertion,
    Joining,
    MergeReply,
    PlanReply,
    StepReply,
    SubqueriesReply,
)
from hgmem.testing import ScriptedModel
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

SENTENCES = (
    "Anna sold the mill to Bo in spring.",
    "Bo bought a boat from Cleo.",
    "Cleo left the harbour in May.",
    "Dag burned the mill at night.",
    "Eve counts the lamps of the pier.",
)
TEXT = "\n".join(SENTENCES)
NAMES = ("Anna", "Bo", "Cleo", "Dag", "Eve", "Mill", "Boat", "Harbour", "Pier")
LETTERS = Given(
    documents=(Document(id="letters", title="Letters", text=TEXT),),
    chunks=tuple(
        GivenChunk(id=f"c{at}", document="letters", text=text, start=TEXT.index(text))
        for at, text in enumerate(SENTENCES)
    ),
    entities=tuple(
        GivenEntity(
            name=name,
            type="person",
            description=f"{name} of the letters.",
            chunks=tuple(
                f"c{at}"
                for at, text in enumerate(SENTENCES)
                if name.casefold() in text.casefold().split(".")[0].split()
            ),
        )
        for name in NAMES
    ),
    relations=tuple(
        GivenRelation(source=source, target=target, description=f"{source} and {target}.", chunks=(chunk,))
        for source, target, chunk in (
            ("Anna", "Bo", "c0"),
            ("Anna", "Mill", "c0"),
            ("Bo", "Boat", "c1"),
            ("Bo", "Cleo", "c1"),
            ("Cleo", "Harbour", "c2"),
            ("Dag", "Mill", "c3"),
        )
    ),
)
QUESTION = "Who sold the mill, and who burned it?"


class Wanting:
    """Replies of a model that always adds two points, merges the first two in the prompt, and asks for another step."""

    def __init__(self) -> None:
        self.step = 0

    def insertions(self) -> tuple[Insertion, ...]:
        self.step += 1
        pairs = (
            ("Anna", "Mill"),
            ("Dag", "Mill"),
            ("Bo", "Boat"),
            ("Cleo", "Harbour"),
            ("Eve", "Pier"),
            ("Bo", "Cleo"),
        )
        return tuple(
            Insertion(entities=pairs[(2 * self.step + at) % 6], description=f"Point {at} of step {self.step}.")
            for at in range(2)
        )

    def inquiries(self, first: int = 0) -> tuple[Inquiry, ...]:
        return (
            Inquiry(text=f"Concern {self.step}.", subquery=f"Local query {self.step}", points=(first,)),
            Inquiry(text=f"Other {self.step}.", subquery=f"Global query {self.step}"),
        )

    def evolve(self, _: object) -> EvolveReply:
        return EvolveReply(insert=self.insertions())

    def merging(self, shown: int) -> tuple[Joining, ...]:
        return (Joining(points=(0, 1), description=f"Merged at step {self.step}."),) if shown > 1 else ()

    def merge(self, task: Any) -> MergeReply:
        return MergeReply(merge=self.merging(len(task.memory.points)))

    def plan(self, task: Any) -> PlanReply:
        first = next(iter(task.memory.numbers), 0)  # that the prompt shows
        concerns = tuple(Concern(text=one.text, points=one.points) for one in self.inquiries(first))
        return PlanReply(judgement="local", concerns=concerns)

    def subqueries(self, _: object) -> SubqueriesReply:
        return SubqueriesReply(subqueries=tuple(one.subquery for one in self.inquiries()))


def whole(parts: Mapping[str, Callable[[Any], Any]], task: Any) -> StepReply:
    """Return the reply to a whole step that the replies to its parts make together."""
    evolved, plan = parts["evolve"](task), parts["plan"](task)
    merge = parts["merge"](task).merge if task.merging else ()
    asked = parts["subqueries"](task).subqueries if plan.concerns else ()
    inquiries = tuple(map(Concern.asked, plan.concerns, asked))
    return StepReply(
        update=evolved.update,
        insert=evolved.insert,
        merge=(*evolved.merge, *merge),
        retire=evolved.retire,
        premise=evolved.premise,
        open=evolved.open,
        judgement=plan.judgement,
        concerns=inquiries,
    )


def wanting(**replies: Callable[[Any], object]) -> ScriptedModel:
    """Return a model that by default uses every step.

    A whole step is what the replies to its parts are together. A first look finds nothing to search by.
    """
    play = Wanting()
    usual = {
        "evolve": play.evolve,
        "merge": play.merge,
        "plan": play.plan,
        "subqueries": play.subqueries,
        "step": lambda task: whole(made, task),
        "clues": lambda _: CluesReply(),
        "describe": lambda _: Extraction(),
        "answer": lambda _: AnswerReply(text="Anna sold it [1]."),
    }
    made: dict[str, Any] = {**usual, **replies}
    return ScriptedModel(made)

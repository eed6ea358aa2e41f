"""Estimates of a question: no system takes more calls or longer prompts, whatever a model replies."""

import re
from collections.abc import Callable, Sequence
from itertools import count as counting
from typing import Any

import pytest
from conversing import conversation, messages

from hgmem import Document, HGMem
from hgmem.extraction.replies import Extraction
from hgmem.models.prompts import prompt_of
from hgmem.models.reply import TextReply
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.hgmem.replies import (
    Additions,
    EvolveReply,
    Inquiry,
    Insertion,
    Joining,
    MergeReply,
    PlanReply,
    SubqueriesReply,
)
from hgmem.systems.registry import installed
from hgmem.systems.remindrag.tasks import EnoughReply, MoveReply, NextReply, UsefulReply
from hgmem.systems.spec import AnySpec
from hgmem.testing import ScriptedModel
from hgmem.text.tokens import count
from hgmem.values.inputs import Given, GivenChunk, GivenEntity, GivenRelation

LIMITS = {"chunk_tokens": 150, "max_tokens": 400}
QUESTION = "Who gave the keys of the mill to whom, and when did each of them say so? " * 4
PEOPLE = [f"{name} {place}" for place in ("Alder", "Birch", "Cedar", "Dogwood") for name in ("Anna", "Bruno", "Clara")]
WORDS = ("ferry", "harbour", "ledger", "pilot", "winter", "pier", "lamp", "engine", "mill", "key", "letter", "bell")


def said(seed: int, tokens: int) -> str:
    """Return a text of nearly so many tokens, unlike those of other seeds."""
    words = [WORDS[(seed * (at + 3) + at * at) % len(WORDS)] for at in range(tokens - 4)]
    return f"{' '.join(words)} {seed}."


def thick() -> Given:
    """Return documents whose chunks are as long as they may be, of people who are all tied to each other."""
    chunks = [
        GivenChunk(id=f"{at}-{part}", document=name, text=f"{name} {said(at * 10 + part, LIMITS['chunk_tokens'] - 10)}")
        for at, name in enumerate(PEOPLE)
        for part in range(8)
    ]
    named = {name: tuple(f"{at}-{part}" for part in range(8)) for at, name in enumerate(PEOPLE)}
    return Given(
        documents=tuple(
            Document(id=name, title=f"{name}: {said(at, 30)}", text=f"{name} in full.")
            for at, name in enumerate(PEOPLE)
        ),
        chunks=tuple(chunks),
        entities=tuple(
            GivenEntity(name=name, type="person", description=said(at, 300), chunks=named[name])
            for at, name in enumerate(PEOPLE)
        ),
        relations=tuple(
            GivenRelation(source=one, target=other, description=said(at, 300), chunks=named[one][:3])
            for at, (one, other) in enumerate((a, b) for a in PEOPLE for b in PEOPLE if a < b)
        ),
    )


class Lavish:
    """Replies with as much as a reply may hold, never has enough, and chooses what leads on by its last try."""

    def __init__(self) -> None:
        self._number = counting()
        self.tries = 0

    def model(self) -> ScriptedModel:
        """Return the model."""
        own = ("move", "next_node", "clues", "plan", "subqueries", "merge", "evolve", "step")
        return ScriptedModel(
            {
                **{name: getattr(self, name) for name in own},
                "describe": lambda task: Extraction(),
                "enough": lambda task: EnoughReply(enough=False),
                "useful": lambda task: UsefulReply(useful=tuple(range(len(task.ways)))),
                "passage_summary": lambda task: TextReply(text=self.text(LIMITS["max_tokens"])),
                "answer": lambda task: AnswerReply(text=self.text(LIMITS["max_tokens"])),
            }
        )

    def text(self, tokens: int) -> str:
        """Return a text of nearly so many tokens that was not said before."""
        return said(next(self._number), tokens)

    def filled(self, make: Callable[[int], Any], *, most: int = 200) -> Any:
        """Return the longest of the replies of 0, 1, 2 … parts that a reply has room for."""
        reply = make(0)
        for parts in range(1, most):
            longer = make(parts)
            if count(longer.model_dump_json(exclude_defaults=True)) > LIMITS["max_tokens"]:
                break
            reply = longer
        return reply

    def insertions(self, parts: int) -> tuple[Insertion, ...]:
        names = [(f"New {next(self._number)}", PEOPLE[at % len(PEOPLE)]) for at in range(parts)]
        return tuple(Insertion(entities=pair, description=self.text(30), chunks=(0,)) for pair in names)

    def evolve(self, task: Any) -> Any:
        reply = self.filled(lambda parts: Additions(insert=self.insertions(parts)))
        return EvolveReply(insert=reply.insert) if task.merging else reply

    def merge(self, task: Any) -> MergeReply:
        return self.filled(lambda parts: MergeReply(merge=self.joined(task, parts)))

    def joined(self, task: Any, parts: int) -> tuple[Joining, ...]:
        numbers = list(task.memory.numbers_of(range(len(task.memory.points))))
        pairs = list(zip(numbers[::2], numbers[1::2], strict=False))[:parts]
        return tuple(Joining(points=pair, description=self.text(60)) for pair in pairs)

    def concerns(self, task: Any) -> tuple[Inquiry, ...]:
        each = (LIMITS["max_tokens"] - 60) // (2 * task.concerns) - 12
        where = {"strategy": "global"} if task.judging == "concern" else {}
        return tuple(Inquiry(text=self.text(each), subquery=self.text(each), **where) for _ in range(task.concerns))

    def plan(self, task: Any) -> PlanReply:
        verdict = "open" if task.judging == "concern" else "local" if task.strategies == "local" else "global"
        points = (0,) if verdict == "local" else ()
        asked = [one.model_copy(update={"points": points}) for one in self.concerns(task)]
        return PlanReply(judgement=verdict, concerns=asked)

    def subqueries(self, task: Any) -> SubqueriesReply:
        each = LIMITS["max_tokens"] // len(task.concerns) - 8
        return SubqueriesReply(subqueries=tuple(self.text(each) for _ in task.concerns))

    def step(self, task: Any) -> Any:
        return task.reply_type(insert=self.insertions(4), judgement="open", concerns=self.concerns(task))

    def clues(self, task: Any) -> CluesReply:
        def written(parts: int) -> CluesReply:
            spans = tuple(self.text(8) for _ in range(parts))
            kinds = {kind: " ".join(spans) if kind == "draft" else spans for kind in task.kinds}
            return CluesReply(**kinds, look=range(task.look and len(task.memory)))

        return self.filled(written)

    def refused(self, options: Sequence[Any]) -> int | None:
        self.tries += 1
        return 0 if self.tries % 3 == 0 and options else None

    def move(self, task: Any) -> MoveReply:
        return MoveReply(found=self.text(LIMITS["max_tokens"] - 20), next=self.refused(task.options))

    def next_node(self, task: Any) -> NextReply:
        return NextReply(next=self.refused(task.options))


ABLATION = re.compile("^no-|-only$")
GISTS = {"passage_tokens": 600, "ratio": 4, "memory_tokens": 1_500}  # so few that a question looks into some


@pytest.mark.parametrize("spec", [one for one in installed() if one.info.answers], ids=lambda spec: spec.name)
def test_no_reply_makes_a_question_cost_more(spec: AnySpec, open_client: Callable[..., HGMem]) -> None:
    maker, lavish = open_client(**LIMITS), Lavish()
    if spec.only_conversations:
        maker.add([conversation(messages(120), id_=name, title=name) for name in PEOPLE[:4]], graph=False)
    else:
        maker.add_graph(thick())
    over = {}
    for recipe, config in spec.recipes.items() or [(None, spec.default)]:
        if recipe and ABLATION.search(recipe):
            continue
        asked = {"system": spec.name, "recipe": recipe, "settings": GISTS if "gists" in str(config) else {}}
        model = lavish.model()
        client = open_client(model=model, **LIMITS)
        plan = client.plan_question(**asked)
        for build, options in plan.builds.items():
            maker.build(build, recipe=options)
        client.ask(QUESTION, **asked)
        prompts = [prompt_of(task).filled(task.fields()) for task in model.tasks]
        tokens = sum(count(message.content) for prompt in prompts for message in prompt)
        assert prompts
        if len(prompts) > plan.calls or tokens > plan.prompt_tokens:
            over[recipe] = (len(prompts), plan.calls, tokens, plan.prompt_tokens)
    assert not over

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from hgmem.models.extractive import ExtractiveModel
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.replies import Concern, PlanReply
from hgmem.systems.hgmem.tasks import Plan, Subqueries
from hgmem.testing import DeterministicEmbedder
from hgmem.values.graph_elements import Entity
from hgmem.values.records import MemoryPoint

QUESTION = "Why did Ilse Maron sell the lighthouse to Tom Vale?"


def point(description: str, names: Iterable[str]) -> MemoryPoint:
    tied = tuple(Entity(uid=name, name=name) for name in names)
    return MemoryPoint(uid=description, description=description, entities=tied)


def plan(*points: MemoryPoint, previous: Sequence[str] = (), **how: Any) -> PlanReply:
    task = Plan(question=QUESTION, memory=PromptMemory(points=points), previous=tuple(previous), **how)
    return ExtractiveModel(DeterministicEmbedder(256)).reply(task)


WHOLE = point("Ilse Maron did sell the lighthouse to Tom Vale.", ["Ilse Maron", "Tom Vale", "lighthouse"])
SELLER = point("Ilse Maron would sell all that she owned.", ["Ilse Maron"])


def test_a_point_that_holds_the_whole_question_suffices() -> None:
    assert plan(WHOLE) == PlanReply(judgement="sufficient")


def test_an_empty_memory_is_filled_from_everywhere() -> None:
    reply = plan()
    assert reply.judgement == "open"
    assert reply.concerns
    assert all((concern.strategy, concern.points) == ("global", ()) for concern in reply.concerns)


def test_a_name_that_memory_does_not_hold_is_looked_for_beyond_it() -> None:
    reply = plan(SELLER)
    assert reply.concerns[0].strategy == "global"
    assert "Tom Vale" in reply.concerns[0].text


def test_a_plan_may_have_a_name_to_look_for_beyond_memory_and_a_phrase_around_its_points() -> None:
    reply = plan(point("Ilse Maron would leave.", ["Ilse Maron"]))
    by_strategy = {where: [one for one in reply.concerns if one.strategy == where] for where in ("global", "local")}
    assert all("Tom Vale" in concern.text and not concern.points for concern in by_strategy["global"])
    assert all(concern.points == (0,) for concern in by_strategy["local"])
    assert all(by_strategy.values())


def test_a_plan_that_judges_a_step_is_local_or_global_as_a_whole() -> None:
    for points, judgement in (((SELLER,), "global"), ((), "global")):
        reply = plan(*points, judging="step")
        assert reply.judgement == judgement
        assert all(concern.strategy is None for concern in reply.concerns)


def test_numbers_of_points_are_those_of_the_prompt() -> None:
    points = (point("It rained.", ["Rain"]), point("Ilse Maron knew Tom Vale well.", ["Ilse Maron", "Tom Vale"]))
    task = Plan(question=QUESTION, memory=PromptMemory(points=points, numbers=(3, 7)))
    reply = ExtractiveModel(DeterministicEmbedder(256)).reply(task)
    named = {at for concern in reply.concerns for at in concern.points}
    assert 7 in named
    assert named <= {3, 7}
    asking = Subqueries(question=QUESTION, memory=task.memory, concerns=reply.concerns)
    assert asking.fields()["concerns"].count("(points: ") == len([one for one in reply.concerns if one.points])


def test_a_missing_phrase_is_looked_for_around_the_point_that_holds_the_name() -> None:
    reply = plan(
        point("It rained.", ["Rain"]),
        point("Ilse Maron knew Tom Vale well and would sell.", ["Ilse Maron", "Tom Vale"]),
    )
    assert reply.concerns[0].strategy == "local"
    assert "lighthouse" in reply.concerns[0].text
    assert 1 in reply.concerns[0].points


def test_concerns_stay_within_what_is_asked_for_and_name_points_that_exist() -> None:
    for count in (1, 2, 3):
        reply = plan(SELLER, WHOLE, point("Far away.", ["X"]), previous=["rain"], concerns=count)
        assert len(reply.concerns) <= count
        assert all(0 <= at < 3 for concern in reply.concerns for at in concern.points)


def test_what_was_asked_for_in_vain_is_not_asked_for_again() -> None:
    previous: list[str] = []
    for _ in range(12):
        reply = plan(SELLER, previous=previous)
        texts = [concern.text for concern in reply.concerns]
        assert not set(texts) & set(previous)
        previous += texts
    assert reply.judgement == "sufficient"


def test_hints_give_a_covered_question_something_new_to_ask() -> None:
    covered = [
        point("Ilse Maron met Tom Vale.", ["Ilse Maron"]),
        point("To sell a lighthouse is hard.", ["lighthouse"]),
    ]
    hint = Entity(uid="h", name="Tidewater Fund", description="It paid Ilse Maron for the lighthouse.")
    reply = plan(*covered, hints=(hint,), concerns=20)
    assert any("Tidewater Fund" in concern.text for concern in reply.concerns)


FAIR = "What does the owner of the Larch Fair collect?"
OWNED = point("The Larch Fair was bought by Petra Voss in 1921.", ["Larch Fair", "Petra Voss", "1921"])


def asked_of(*points: MemoryPoint, previous: Sequence[str] = ()) -> PlanReply:
    task = Plan(question=FAIR, memory=PromptMemory(points=points), previous=tuple(previous))
    return ExtractiveModel(DeterministicEmbedder(256)).reply(task)


def test_a_name_that_memory_brought_is_followed_with_what_its_point_leaves_open() -> None:
    reply = asked_of(point("Rain fell.", ["Rain"]), OWNED)
    assert reply.concerns[0].strategy == "local"
    assert reply.concerns[0].text.startswith("Petra Voss, ")
    assert "collect" in reply.concerns[0].text
    assert reply.concerns[0].points == (1,)


def test_names_are_followed_once() -> None:
    first = asked_of(OWNED).concerns[0].text
    assert not any("Petra Voss" in concern.text for concern in asked_of(OWNED, previous=[first]).concerns)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Larch Hall", "The Larch Fair is not Larch Hall."),  # shares a word with the question
        ("12 May 1921", "The Larch Fair began on 12 May 1921."),
        ("Danish", "The Larch Fair is a Danish market."),
        ("brass bands", "The Larch Fair is known for brass bands."),
    ],
)
def test_likenesses_dates_qualities_and_phrases_lead_nowhere(name: str, text: str) -> None:
    reply = asked_of(point(text, ["Larch Fair", name]))
    assert not any(concern.text.startswith(name) for concern in reply.concerns)


def test_a_name_that_most_points_hold_leads_nowhere() -> None:
    many = [point(f"The Larch Fair had {at} stalls in Ostrel.", ["Larch Fair", "Ostrel"]) for at in range(4)]
    assert not any("Ostrel" in concern.text for concern in asked_of(*many).concerns)
    assert asked_of(*many[:2]).concerns[0].text.startswith("Ostrel, ")


def test_each_concern_gets_a_subquery_unlike_every_earlier_one() -> None:
    concerns = (Concern(text="Tom Vale", points=(0,)), Concern(text="tom vale"), Concern(text="Tom Vale", points=(7,)))
    task = Subqueries(
        question=QUESTION, memory=PromptMemory(points=(WHOLE,)), concerns=concerns, previous=("TOM VALE",)
    )
    found = ExtractiveModel(DeterministicEmbedder()).reply(task).subqueries
    assert len({text.casefold() for text in found} - {"tom vale", QUESTION.casefold()}) == 3
    assert all("tom vale" in text.casefold() for text in found)


@pytest.mark.parametrize(
    "question",
    ["?", "why", "为什么他离开了北京大学？", 'MATCH (n) DETACH DELETE n // +-&&||!(){}[]^"~*?:\\/', "x" * 8000],
)
def test_any_question_gets_a_plan_and_subqueries(question: str) -> None:
    model = ExtractiveModel(DeterministicEmbedder())
    for points in ((), (WHOLE,)):
        reply = model.reply(Plan(question=question, memory=PromptMemory(points=points)))
        assert (reply.judgement == "sufficient") == (not reply.concerns)
        found = model.reply(Subqueries(question=question, memory=PromptMemory(points=points), concerns=reply.concerns))
        assert len(found.subqueries) == len(reply.concerns)
        assert all(text.strip() for text in found.subqueries)

"""Recipes and their options: the calls of a question, its search scope, and its points."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting
from test_plans import STATEMENTS

from hgmem import HGMem, UsageError
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.graph.retrieval import Scope, neighbours
from hgmem.models.metering import measuring
from hgmem.systems.hgmem.recipes import CODE, DEFAULT, PAPER, RECIPES
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Inquiry,
    Insertion,
    Joining,
    MergeReply,
    PlanReply,
    Revision,
    StepReply,
    SubqueriesReply,
)
from hgmem.testing import ScriptedModel
from hgmem.values.records import Answer

Open = Callable[..., HGMem]
Asked = Callable[..., tuple[Answer, ScriptedModel]]

CALLS = {
    "paper": (
        *("evolve", "plan", "subqueries"),
        *("evolve", "merge", "plan", "subqueries"),
        *("evolve", "merge", "answer"),
    ),
    "default": ("clues", "step", "step", "evolve", "answer"),
}
CALLS |= {"local-only": CALLS["paper"], "global-only": CALLS["paper"]}
AGAIN = {"only_new": False}  # a step of so small a corpus shows what an earlier one has shown


@pytest.fixture
def ask(open_client: Open) -> Asked:
    """Asks the question of the letters, with a model that uses every step."""

    def asking(replies: dict[str, Any] | None = None, **how: Any) -> tuple[Answer, ScriptedModel]:
        model = wanting(**(replies or {}))
        client = open_client(model=model)
        client.add_graph(LETTERS)
        return client.ask(QUESTION, **how), model

    return asking


def names(model: ScriptedModel) -> list[str]:
    return [task.name for task in model.tasks]


@pytest.mark.parametrize("recipe", CALLS)
def test_three_full_steps_take_the_calls_of_the_recipe_and_none_is_thrown_away(recipe: str, ask: Asked) -> None:
    answer, model = ask(recipe=recipe, steps=3)

    assert names(model) == list(CALLS[recipe])
    assert [step.number for step in answer.steps] == [1, 2, 3]
    assert [step.judgement is None for step in answer.steps] == [False, False, True]
    assert sum(answer.usage.calls["model"].values()) == len(CALLS[recipe])


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_answers_without_a_language_model_too(recipe: str, client: HGMem) -> None:
    client.add_graph(LETTERS)
    answer = client.ask("What did Bo, Cleo and Anna buy, sell and leave?", recipe=recipe)

    assert answer.status == "answered"
    assert answer.citations
    assert all(citation.quote in " ".join(LETTERS.documents[0].text.split("\n")) for citation in answer.citations)
    assert any(point.alive(answer.step) for point in answer.points)


def test_the_paper_adds_a_merged_point_beside_its_parts_and_every_other_recipe_puts_it_in_their_place(
    ask: Asked,
) -> None:
    added, _ = ask(recipe="paper", steps=3)
    replaced, _ = ask(recipe="default", steps=3)

    for answer, living in ((added, True), (replaced, False)):
        merge = next(one for step in answer.steps for one in step.operations if one.kind == "merge")
        whole = next(point for point in answer.points if point.uid == merge.point)
        parts = [point for point in answer.points if point.uid in merge.parts]
        assert {part.alive(2) for part in parts} == {living}
        assert {e.uid for e in whole.entities} == {e.uid for part in parts for e in part.entities}


@pytest.mark.parametrize(
    ("update", "entities"), [("unite", {"Anna", "Mill", "Bo"}), ("keep", {"Anna", "Mill"}), ("replace", {"Bo"})]
)
def test_an_update_unites_keeps_or_replaces_the_entities(update: str, entities: set[str], ask: Asked) -> None:
    replies = iter(
        [
            EvolveReply(insert=(Insertion(entities=("Anna", "Mill"), description="Sold."),)),
            EvolveReply(update=(Revision(point=0, description="Sold to Bo.", replaces=True, entities=("Bo",)),)),
        ]
    )
    answer, _ = ask({"evolve": lambda _: next(replies)}, settings={"update": update, "merge": "off", **AGAIN}, steps=2)

    assert {entity.name for entity in answer.points[-1].entities} == entities
    assert answer.points[-1].description == "Sold to Bo."


def test_without_updates_or_merges_they_are_dropped_and_noted_and_the_calls_that_only_merge_are_saved(
    ask: Asked,
) -> None:
    replies = iter(
        [
            EvolveReply(insert=(Insertion(entities=("Anna", "Mill"), description="Sold."),)),
            EvolveReply(update=(Revision(point=0, description="Never."),)),
        ]
    )
    answer, _ = ask({"evolve": lambda _: next(replies)}, recipe="no-update", steps=2)
    assert [point.description for point in answer.points] == ["Sold."]
    assert [one.reason for one in answer.steps[1].operations] == ["update of point 0: updates are off"]

    answer, model = ask(recipe="no-merge", steps=3)
    assert "merge" not in names(model)
    assert {one.kind for step in answer.steps for one in step.operations} == {"insert"}


def test_global_only_never_looks_around_points_and_local_only_always_does_after_the_first_step(ask: Asked) -> None:
    everywhere, _ = ask(recipe="global-only", steps=3)
    assert [step.strategy for step in everywhere.steps] == ["global"] * 3
    assert "the plan judged local, but this recipe always uses global" in everywhere.steps[0].notes

    plan = {"plan": lambda _: PlanReply(judgement="global", concerns=(Concern(text="What?", points=(0,)),))}
    around, _ = ask(plan, recipe="local-only", steps=3)
    assert [step.strategy for step in around.steps] == ["global", "local", "local"]


def test_a_step_can_be_answered_each_and_the_memory_keeps_all_answers(ask: Asked, open_client: Open) -> None:
    answer, model = ask(settings={"answer_each_step": "true"}, steps=3)
    memory = open_client().memory(answer.memory)

    assert names(model).count("answer") == 3
    assert [one.step for one in memory.answers] == [1, 2, 3]
    assert memory.status == "answered"


def test_the_default_shows_each_chunk_once_and_of_entities_what_memory_lacks(ask: Asked) -> None:
    few = {"retrieval.searched_chunks": 2, "later_chunks": 2, "retrieval.chunks": 0, "retrieval.entities": 3}
    answer, model = ask(settings=few, steps=3)
    steps: list[Any] = [task for task in model.tasks if task.name in ("step", "evolve")]
    shown = [chunk.uid for task in steps for chunk in task.evidence.chunks]
    supports = {uid for point in answer.points if point.alive(3) for uid in point.chunks}

    assert len(shown) == len(set(shown)) > len(steps[0].evidence.chunks)
    for task in steps[1:]:
        involved = {entity.uid for point in task.memory.points for entity in point.entities}
        assert not involved & {entity.uid for entity in task.evidence.entities}
    passages: Any = model.tasks[-1]
    assert {chunk.uid for chunk in passages.passages} >= supports


def test_one_call_may_merge_and_dig_into_the_points_that_it_inserts_itself(ask: Asked) -> None:
    play = iter(
        [
            StepReply(
                insert=(Insertion(entities=("Anna", "Mill"), description="One."),),
                merge=(Joining(points=(0, 0), description="Not in the first step."),),
                judgement="local",
                concerns=(Inquiry(text="Who?", subquery="Anna at the mill", points=(0,)),),
            ),
            StepReply(
                insert=(Insertion(entities=("Dag", "Mill"), description="Two."),),
                merge=(Joining(points=(0, 1), description="Both.", replaces=True),),
                judgement="local",
                concerns=(Inquiry(text="Where?", subquery="The mill at night", points=(1,)),),
            ),
        ]
    )
    replies = {"step": lambda _: next(play), "evolve": lambda _: EvolveReply()}
    answer, _ = ask(replies, steps=3)

    first, second, third = answer.steps
    assert first.planned[0].targets == (first.operations[0].point,)
    assert second.strategy == "local"
    assert [point.description for point in answer.points if point.alive(3)] == ["Both."]
    whole = next(point for point in answer.points if point.description == "Both.")
    assert second.planned[0].targets == (whole.uid,)
    assert third.judgement is None


def test_a_whole_step_without_a_judgement_goes_on_with_its_concerns_and_says_so(ask: Asked) -> None:
    inquiry = Inquiry(text="Who?", subquery="Anna at the mill")
    insert = (Insertion(entities=("Anna",), description="One."),)
    answer, _ = ask({"step": lambda _: StepReply(insert=insert, concerns=(inquiry,))}, steps=2)

    assert [step.judgement for step in answer.steps] == ["global", None]
    assert "step: judgement missing, so it was inferred from the concerns" in answer.steps[0].notes


def test_a_step_that_finds_nothing_new_asks_nothing_of_the_model_about_it(ask: Asked) -> None:
    everything = EvolveReply(
        insert=(
            Insertion(
                entities=tuple(entity.name for entity in LETTERS.entities), description="All.", chunks=tuple(range(5))
            ),
        )
    )
    all_chunks = {"retrieval.searched_chunks": 9, "retrieval.chunk_search": "vector"}
    answer, model = ask({"evolve": lambda _: everything}, settings=all_chunks, steps=2)

    assert names(model) == ["clues", "step", "answer"]
    assert "evolve: no new evidence, so the model was not called" in answer.steps[1].notes


def test_a_concern_that_names_a_point_merged_in_the_same_reply_digs_into_the_whole(ask: Asked) -> None:
    answer, _ = ask(steps=3)
    merge = next(one for one in answer.steps[1].operations if one.kind == "merge")

    assert answer.steps[1].planned[0].targets == (merge.point,)


def test_code_describes_absent_names_and_pairs_by_calls_of_their_own_in_the_memory_alone(
    ask: Asked, open_client: Open
) -> None:
    described = Extraction(
        entities=(ExtractedEntity(name="Old Tom", type="person", description="A trader."),),
        relations=(ExtractedRelation(source="Bo", target="Old Tom", description="They trade.", keywords=("trade",)),),
    )
    evolve = EvolveReply(insert=(Insertion(entities=("Bo", "Old Tom"), description="Bo trades with Old Tom."),))
    answer, model = ask({"evolve": lambda _: evolve, "describe": lambda _: described}, recipe="code", steps=1)
    tom = next(entity for entity in answer.points[0].entities if entity.name == "Old Tom")

    assert names(model) == ["evolve", "describe", "answer"]
    assert (tom.provisional, tom.type, tom.description) == (True, "person", "A trader.")
    client = open_client()
    query = client.embedder.embed(["x"], kind="query")[0]
    scope = Scope(corpus=answer.corpus, memory=answer.memory)
    beside = neighbours(client._database, scope=scope, uids=[tom.uid], query=query, limits=(5, 5))
    assert [entity.name for entity in beside] == ["Bo"]
    assert client.status().relations == len(LETTERS.relations)


def test_code_asks_three_times_at_most_for_what_is_still_undescribed(ask: Asked) -> None:
    evolve = EvolveReply(insert=(Insertion(entities=("Bo", "Old Tom"), description="They trade."),))
    answer, model = ask({"evolve": lambda _: evolve}, recipe="code", steps=1)

    assert names(model) == ["evolve", *["describe"] * 3, "answer"]
    assert answer.points[0].entities[1].description == "They trade."


def test_a_memory_beyond_the_limit_is_shown_in_part_targets_and_the_newest_first(ask: Asked) -> None:
    long = " ".join(["word"] * 40)
    inserted = [
        EvolveReply(
            insert=tuple(Insertion(entities=("Anna", "Mill"), description=f"{long} {step}-{at}") for at in range(10))
        )
        for step in range(3)
    ]
    replies = iter(inserted)
    answer, model = ask(
        {
            "evolve": lambda _: next(replies),
            "merge": lambda _: MergeReply(),
            "subqueries": lambda task: SubqueriesReply(subqueries=(f"after {len(task.memory.points)}",)),
        },
        settings={"memory_tokens": 300, **AGAIN},
        steps=3,
    )
    last = [task for task in model.tasks if task.name == "evolve"][-1]
    target = answer.steps[1].planned[0].targets[0]

    assert 4 <= len(last.memory.points) <= 7
    assert last.memory.more == 20 - len(last.memory.points)
    assert target in {point.uid for point in last.memory.points}
    assert sum(point.born == 1 for point in last.memory.points) <= 1
    assert len(model.tasks[-1].memory.points) + model.tasks[-1].memory.more == 30


# Settings by name ---------------------------------------------------------------------------------------------


def test_settings_are_changed_by_name_and_text_is_converted(ask: Asked, open_client: Open) -> None:
    answer, _ = ask(recipe="paper", settings={"retrieval.hops": "2", "hints": "3", "steps": 9}, steps=1)

    assert len(answer.steps) == 1


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"recipe": "papper"}, "unknown recipe 'papper': choose one of default, paper"),
        ({"settings": {"hops": 2}}, "unknown recipe option 'hops': choose from clues, most_clues"),
        ({"settings": {"retrieval": 2}}, "unknown recipe option 'retrieval'"),
        ({"settings": {"retrieval.hops": "many"}}, "invalid recipe option 'retrieval.hops'"),
        ({"settings": {"concerns": 0}}, "invalid recipe option 'concerns'"),
        ({"system": "naive", "recipe": "paper"}, "'naive' has no recipes"),
    ],
)
def test_a_recipe_or_setting_that_does_not_exist_is_refused_before_anything_is_asked(
    how: dict[str, Any], what: str, ask: Asked
) -> None:
    with pytest.raises(UsageError) as error:
        ask(**how)
    assert what in str(error.value)


def test_the_recipes_differ_where_their_sources_do() -> None:
    assert (PAPER.steps, PAPER.update, PAPER.merge, PAPER.retrieval.chunk_search) == (4, "keep", "add", "off")
    assert (CODE.update, CODE.retrieval.hops, CODE.retrieval.exclude, CODE.describe) == ("replace", 2, False, True)
    assert (DEFAULT.describe, bool(DEFAULT.additions), DEFAULT.calls) == (False, True, "whole")
    assert all(one.describe for one in (PAPER, CODE))
    assert (PAPER.additions, CODE.additions) == ((), ("one_merge",))
    assert {(one.calls, one.clues, one.later_chunks) for one in (PAPER, CODE)} == {("separate", (), 0)}
    assert (DEFAULT.update, DEFAULT.merge, DEFAULT.retrieval.chunk_search) == ("unite", "replace", "hybrid")


def test_a_question_runs_no_statements_but_those_whose_plans_are_looked_at(client: HGMem, affair: Path) -> None:
    question = "Who owns the Tallow Stairs Warehouse?"
    client.add(affair)
    with measuring() as meter:
        for recipe in ("default", "paper", "code"):
            answer = client.ask(question, recipe=recipe, steps=2, settings={"memory_tokens": 1})
            client.ask("Who sold it?", memory=answer.memory, steps=1)
        client.ask(question, system="naive")
    ran = set(meter.usage().calls["neo4j"]) - {"commit"}

    assert ran <= {*STATEMENTS, "near_built", "find_build"}  # whose plans are looked at with those of builds
    assert {"retrieve", "point_scores", "memory_points", "chunks_around_points", "chunks_of_entities"} <= ran

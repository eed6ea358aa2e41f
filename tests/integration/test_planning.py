"""What a plan is told, and where its concerns are looked for."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting

from hgmem import HGMem
from hgmem.models.prompts import prompt_of
from hgmem.systems.hgmem.recipes import CODE, DEFAULT, PAPER, HGMemConfig
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Insertion,
    Joining,
    MergeReply,
    PlanReply,
    Revision,
    SubqueriesReply,
)
from hgmem.systems.spec import loaded
from hgmem.testing import ScriptedModel
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity
from hgmem.values.records import Answer

Open = Callable[..., HGMem]
SEPARATE = {"calls": "separate", "clues": []}
TEXTS = {
    "The mill": ("Anna sold the mill to Bo.", "The mill burned at night."),
    "Harbour log": ("Cleo left the harbour in May.",),
    "Tax roll": ("Dag paid no tax on the mill.",),
}
PAPERS = Given(
    documents=tuple(
        Document(id=title, title=title, text="\n".join(texts), metadata={"kind": title.split()[0]})
        for title, texts in TEXTS.items()
    ),
    chunks=tuple(
        GivenChunk(id=f"{title} {at}", document=title, text=text, start="\n".join(texts).index(text))
        for title, texts in TEXTS.items()
        for at, text in enumerate(texts)
    ),
    entities=(
        GivenEntity(name="Mill", type="place", description="It burned.", chunks=("The mill 0", "The mill 1")),
        GivenEntity(name="Cleo", type="person", description="She sails.", chunks=("Harbour log 0",)),
    ),
)


def sent(task: Any) -> str:
    """Return a task's whole prompt."""
    return "\n".join(message.content for message in prompt_of(task).filled(task.fields()))


def between(text: str, tag: str) -> list[str]:
    """Return the lines of a tag in a prompt, none where it has no such tag."""
    return text.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0].splitlines()


def of(model: ScriptedModel, *names: str) -> list[Any]:
    return [task for task in model.tasks if task.name in names]


def asked(
    open_client: Open, *, given: Given = LETTERS, replies: dict[str, Any] | None = None, **how: Any
) -> tuple[Answer, ScriptedModel, HGMem]:
    model = wanting(**(replies or {}))
    client = open_client(model=model)
    client.add_graph(given)
    return client.ask(how.pop("question", QUESTION), **how), model, client


def inserting(*entities: Sequence[str]) -> EvolveReply:
    return EvolveReply(
        insert=tuple(Insertion(entities=tuple(names), description=f"About {', '.join(names)}.") for names in entities)
    )


# Judgements -----------------------------------------------------------------------------------------------------


def mixed(_: object) -> PlanReply:
    concerns = (
        Concern(text="What became of Anna's mill.", strategy="local", points=(0,)),
        Concern(text="What the pier is for.", strategy="global"),
    )
    return PlanReply(judgement="open", concerns=concerns)


def test_a_step_may_dig_into_points_and_look_beyond_memory_at_once(open_client: Open) -> None:
    replies = {"evolve": lambda _: inserting(("Anna", "Mill"), ("Eve", "Pier")), "plan": mixed}
    answer, _, client = asked(open_client, replies=replies, steps=2)
    first, second = answer.steps
    local, beyond = second.retrieved
    point = answer.points[0]

    assert [(one.strategy, one.targets) for one in first.planned] == [("local", (point.uid,)), ("global", ())]
    assert (first.judgement, second.strategy) == ("local", "local")
    assert {hit.name for hit in local.entities} <= {"Anna", "Mill", "Bo", "Dag"}  # the point's own and their neighbours
    assert beyond.entities
    assert not {hit.name for hit in beyond.entities} & {"Anna", "Mill", "Eve", "Pier"}  # V_G − V_M
    assert client.memory(answer.memory).steps[0].planned == first.planned


def test_a_plan_whose_concerns_are_all_global_explores(open_client: Open) -> None:
    concerns = (Concern(text="What the pier is for.", strategy="global", points=(0,)),)
    replies = {"plan": lambda _: PlanReply(judgement="open", concerns=concerns)}
    answer, _, _ = asked(open_client, replies=replies, steps=2)

    assert [step.judgement for step in answer.steps] == ["global", None]
    assert answer.steps[1].strategy == "global"
    assert answer.steps[0].planned[0].targets == ()


@pytest.mark.parametrize("recipe", ["paper", "code"])
def test_the_paper_and_the_official_code_judge_a_step_as_a_whole(recipe: str, open_client: Open) -> None:
    concerns = (Concern(text="What?", strategy="local", points=(0,)), Concern(text="Where?"))
    replies = {"plan": lambda _: PlanReply(judgement="global", concerns=concerns)}
    answer, model, _ = asked(open_client, replies=replies, recipe=recipe, steps=2)

    assert [one.strategy for one in answer.steps[0].planned] == ["global", "global"]
    assert "strategy" not in sent(of(model, "plan")[0])


def test_a_memory_of_a_recipe_without_the_newer_options_goes_on_as_it_was_made() -> None:
    old = loaded(HGMemConfig, {"calls": "separate", "steps": 3})
    assert (old.judging, old.titles, old.describe_hints, old.clues) == ("step", 0, True, ())
    assert [one.judging for one in (DEFAULT, PAPER, CODE)] == ["concern", "step", "step"]


# What a plan is told --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options"), [("step", {}), ("plan", SEPARATE)])
def test_a_plan_knows_its_round_and_that_the_next_is_the_last(
    name: str, options: dict[str, Any], open_client: Open
) -> None:
    answer, model, client = asked(open_client, settings=options, steps=3)
    rounds = [next(line for line in sent(task).splitlines() if line.startswith("Round ")) for task in of(model, name)]
    assert rounds == [
        "Round 1 of 3: 2 rounds are left.",
        "Round 2 of 3: one round is left, the last. Ask for what the answer needs most.",
    ]

    del model.tasks[:]
    client.ask("And who left the harbour?", memory=answer.memory, steps=2)
    assert "Round 1 of 2: one round is left" in sent(of(model, name)[0])


def test_a_question_that_is_taken_up_again_counts_its_earlier_rounds(open_client: Open) -> None:
    answer, model, client = asked(open_client, steps=1)
    del model.tasks[:]
    client.ask(memory=answer.memory, steps=2)
    plans = of(model, "plan", "step")
    assert [(one.name, one.round.done, one.round.rounds) for one in plans] == [("plan", 1, 3), ("step", 2, 3)]


def test_a_plan_is_told_the_documents_read_and_the_nearest_ones_unread(open_client: Open) -> None:
    few = {"retrieval.searched_chunks": 1, "retrieval.chunk_search": "vector", "retrieval.entities": 1}
    _, model, _ = asked(open_client, given=PAPERS, question="Anna sold the mill", settings=few, steps=2)
    lines = between(sent(of(model, "step")[0]), "documents")

    assert lines[0].startswith("- read: The mill (")
    assert sorted(lines[1:]) == ["- unread: Harbour log", "- unread: Tax roll"]


def test_documents_of_one_title_are_told_apart_by_their_dates_or_once(open_client: Open) -> None:
    dated = (
        ("Deposition", "1901-05-01"),
        ("Deposition", "1902-05-01"),
        ("Report", ""),
        ("Report", ""),
        ("Roll", "1903"),
    )
    model = wanting()
    client = open_client(model=model)
    client.add(
        [
            Document(id=str(at), title=title, text=f"Anna sold the mill {at}.", metadata={"date": date} if date else {})
            for at, (title, date) in enumerate(dated)
        ],
        graph=False,
    )
    few = {"retrieval.searched_chunks": 3, "retrieval.chunk_search": "vector", "clues": []}
    client.ask("Anna sold the mill 0 2.", settings=few, steps=2)
    lines = between(sent(of(model, "step")[0]), "documents")

    named = sorted(line.removeprefix("- read: ").removeprefix("- unread: ") for line in lines)
    assert len(lines) == len(set(lines)) >= 4
    assert {name.partition(" (")[0] for name in named} == {
        "Deposition, 1901-05-01",
        "Deposition, 1902-05-01",
        "Report",
        "Roll",
    }


def test_documents_that_a_filter_leaves_out_are_not_told(open_client: Open) -> None:
    few = {"retrieval.searched_chunks": 1, "retrieval.chunk_search": "vector", "retrieval.entities": 1}
    filters = {"kind": ["The", "Tax"]}
    _, model, _ = asked(
        open_client, given=PAPERS, question="Anna sold the mill", settings=few, filters=filters, steps=2
    )
    assert between(sent(of(model, "step")[0]), "documents")[1:] == ["- unread: Tax roll"]


@pytest.mark.parametrize(("given", "how"), [(LETTERS, {}), (PAPERS, {"recipe": "paper"}), (PAPERS, {"recipe": "code"})])
def test_no_titles_are_told_of_one_document_and_in_the_recipes_of_the_sources(
    given: Given, how: dict[str, Any], open_client: Open
) -> None:
    _, model, _ = asked(open_client, given=given, steps=2, **how)
    assert "documents>" not in sent(of(model, "plan", "step")[0])


def test_hints_are_names_told_once_and_in_code_descriptions_told_again(open_client: Open) -> None:
    evolve = {"evolve": lambda _: inserting(("Anna", "Dag")), "merge": lambda _: MergeReply()}
    _, model, _ = asked(open_client, replies=evolve, settings={"hints": 1, **SEPARATE}, steps=3)
    once = [between(sent(task), "entities") for task in of(model, "plan")]
    _, model, _ = asked(open_client, replies=evolve, recipe="code", settings={"hints": 1}, steps=3)
    again = [between(sent(task), "entities") for task in of(model, "plan")]

    assert all(line in ("- Mill (person)", "- Bo (person)") for hints in once for line in hints)
    assert once[0] != once[1]
    assert again[0] == again[1]
    assert "of the letters." in again[0][0]


# Merges ---------------------------------------------------------------------------------------------------------


def test_no_word_of_merging_is_said_where_nothing_may_be_merged(open_client: Open) -> None:
    _, model, _ = asked(open_client, steps=3)
    first, second = of(model, "step")
    assert not any(word in sent(first).casefold() for word in ("merg", "retire"))
    assert not {"merge", "retire"} & first.reply_type.model_fields.keys()
    assert [sent(second).count(name) for name in ('"merge"', '"retire"')] == [2, 2]  # its form and its example
    _, model, _ = asked(open_client, settings={"merge": "off"}, steps=3)
    assert not any("merg" in sent(task).casefold() for task in of(model, "step", "evolve"))


def test_the_last_evolve_merges_too_also_points_that_it_inserts(open_client: Open) -> None:
    evolves = iter(
        [
            inserting(("Anna", "Mill")),
            EvolveReply(
                insert=(Insertion(entities=("Dag", "Mill"), description="Dag burned it."),),
                merge=(Joining(points=(0, 1), description="Sold, then burned.", replaces=True),),
            ),
        ]
    )
    replies = {"evolve": lambda _: next(evolves)}
    answer, model, _ = asked(open_client, replies=replies, settings={"only_new": False}, steps=2)

    assert [task.name for task in model.tasks] == ["clues", "step", "evolve", "answer"]
    assert [task.merging for task in of(model, "step", "evolve")] == [False, True]
    assert [point.description for point in answer.points if point.alive(2)] == ["Sold, then burned."]
    assert [one.kind for one in answer.steps[1].operations] == ["insert", "merge"]


def test_the_only_step_merges_nothing(open_client: Open) -> None:
    _, model, _ = asked(open_client, steps=1)
    assert [task.merging for task in of(model, "evolve")] == [False]


# Numbers --------------------------------------------------------------------------------------------------------


def test_a_point_has_one_number_in_all_prompts_of_a_question(open_client: Open) -> None:
    better = Revision(point=0, description="Better.", replaces=True)
    evolves = iter(
        [
            inserting(("Anna",), ("Bo",), ("Cleo",)),
            EvolveReply(update=(better,), insert=inserting(("Dag",), ("Eve",)).insert),
        ]
    )
    concerns = (Concern(text="What?", strategy="local", points=(0, 2)),)
    merged = MergeReply(merge=(Joining(points=(1, 3), description="Whole.", replaces=True),))
    replies = {
        "evolve": lambda _: next(evolves, EvolveReply()),
        "merge": lambda _: merged,
        "plan": lambda _: PlanReply(judgement="open", concerns=concerns),
        "subqueries": lambda task: SubqueriesReply(subqueries=(f"What of {len(task.memory.points)}?",)),
    }
    answer, model, _ = asked(open_client, replies=replies, settings={"only_new": False}, steps=3)
    shown = [between(sent(task), "memory") for task in of(model, "step", "evolve")]

    assert [[line.partition(" —")[0] for line in lines] for lines in shown[1:]] == [
        ["(0) About Anna.", "(1) About Bo.", "(2) About Cleo."],
        ["(0) Better.", "(2) About Cleo.", "(3) About Eve.", "(4) Whole."],
    ]
    by_text = {point.description: point.uid for point in answer.points}
    assert answer.steps[1].planned[0].targets == (by_text["Better."], by_text["About Cleo."])


def test_points_that_fit_a_prompt_later_are_numbered_on(open_client: Open) -> None:
    long = " ".join(["word"] * 60)
    evolves = iter([inserting(*((f"{long} {at}"[:290],) for at in range(4))), EvolveReply()])
    replies = {"evolve": lambda _: next(evolves, EvolveReply()), "merge": lambda _: MergeReply()}
    _, model, _ = asked(open_client, replies=replies, settings={"memory_tokens": 300}, steps=2)
    shown = [task.memory for task in model.tasks if task.name in ("step", "evolve")]
    for memory in shown:
        assert list(memory.numbers) == sorted(memory.numbers)
        assert [memory.numbered[at] for at in memory.numbers] == list(memory.points)

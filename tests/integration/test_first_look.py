"""The first look at a corpus and what a question's first step asks with it, and points that memory drops."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from letters import LETTERS, QUESTION, SENTENCES, wanting
from test_replaying import drawn
from typer.testing import CliRunner

from hgmem import Answer, HGMem
from hgmem.cli import app
from hgmem.errors import BadReplyError
from hgmem.models.prompts import prompt_of
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Inquiry,
    Insertion,
    Joining,
    PlanReply,
    Retirement,
    Revision,
    StepReply,
)
from hgmem.testing import ScriptedModel
from hgmem.text.tokens import count
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity

Open = Callable[..., HGMem]
CLUES = CluesReply(spans=("Bo set fire to the mill.",), queries=("What burned at night?", "mill fire"))
UNTITLED = Document(id="untitled", text="A lantern hung over the door. Nobody lit it.")
FERRIES = tuple(
    Document(id=f"ferry-{year}", title=title, text=f"The ferry of {year} was late. It rained.", metadata={"year": year})
    for year, title in (("1901", "Ferry log"), ("1902", "Ferry log"), ("1903", "Harbour roll"))
)


def clueing(reply: Any = CLUES, **replies: Any) -> ScriptedModel:
    """Return a model whose first look replies with this, and which plans one concern after a step."""
    plan = PlanReply(judgement="open", concerns=(Concern(text="The pier's lamps"),))
    return wanting(**{"clues": lambda _: reply, "plan": lambda _: plan, **replies})


def looked(open_client: Open, model: ScriptedModel, given: Given = LETTERS, **how: Any) -> tuple[Answer, HGMem]:
    client = open_client(model=model)
    client.add_graph(given)
    return client.ask(QUESTION, **{"steps": 2, **how}), client


def of(model: ScriptedModel, name: str) -> Any:
    """Return the only task of this name."""
    (task,) = [task for task in model.tasks if task.name == name]
    return task


def sections(overview: str) -> dict[str, list[str]]:
    """Return the lines of an overview by the heading above them."""
    return {part.splitlines()[0]: part.splitlines()[1:] for part in overview.split("\n\n") if part}


def asked(answer: Answer, step: int) -> list[tuple[str, str]]:
    return [(one.subquery.text, one.subquery.concern) for one in answer.steps[step - 1].retrieved]


# What the first step asks -----------------------------------------------------------------------------------------


def test_the_first_step_searches_for_the_question_and_the_clues_of_one_call(open_client: Open) -> None:
    model = clueing()
    answer, client = looked(open_client, model)

    assert asked(answer, 1) == [
        (QUESTION, ""),
        ("Bo set fire to the mill.", "text span"),
        ("What burned at night?", "surrogate query"),
        ("mill fire", "surrogate query"),
    ]
    assert all(one.chunks for one in answer.steps[0].retrieved)
    assert {one.subquery.strategy for one in answer.steps[0].retrieved} == {"global"}
    assert [task.name for task in model.tasks] == ["clues", "step", "evolve", "answer"]
    assert (of(model, "clues").kinds, of(model, "clues").question) == (("spans", "queries"), QUESTION)
    assert answer.steps[0].usage.calls["model"] == {"clues": 1, "step": 1}
    stored = client.memory(answer.memory).steps[0]
    assert [one.subquery for one in stored.retrieved] == [one.subquery for one in answer.steps[0].retrieved]


def test_clues_are_guesses_that_no_later_prompt_tells(open_client: Open) -> None:
    model = clueing()
    answer, client = looked(open_client, model, steps=3)
    client.ask(memory=answer.memory, steps=1)  # with the steps that are stored

    told = [prompt_of(task).filled(task.fields()) for task in model.tasks if task.name != "clues"]
    assert len(told) > 4
    for text in ("Bo set fire to the mill.", "mill fire"):
        assert not any(text in message.content for messages in told for message in messages)


def test_the_same_question_is_not_looked_at_again(open_client: Open) -> None:
    model = clueing()
    answer, client = looked(open_client, model, steps=1)
    client.ask(memory=answer.memory, steps=1)
    assert [task.name for task in model.tasks].count("clues") == 1


def test_a_plan_that_asks_what_a_clue_asked_is_not_followed(open_client: Open) -> None:
    plan = PlanReply(judgement="open", concerns=(Concern(text="What burned at night?"),))
    answer, _ = looked(open_client, clueing(plan=lambda _: plan, subqueries=lambda _: NOTHING_ASKED))
    assert "sub-query 'What burned at night?' was dropped: it was asked before" in answer.steps[0].notes


NOTHING_ASKED = type("Asked", (), {"subqueries": ("",)})  # the concern is the query then


def test_an_unusable_reply_is_noted_and_the_question_is_asked_alone(open_client: Open) -> None:
    answer, client = looked(open_client, clueing(BadReplyError("nothing but dots", task="clues")), steps=1)

    assert asked(answer, 1) == [(QUESTION, "")]
    assert answer.status == "answered"
    assert answer.steps[0].notes == ("clues: no usable reply (nothing but dots)",)
    assert client.memory(answer.memory).steps[0].notes == answer.steps[0].notes


@pytest.mark.parametrize(
    "reply",
    [
        CluesReply(),
        CluesReply(spans=("", " ", "- ", "mill"), queries=(QUESTION, f"1. {QUESTION.upper()}")),
        CluesReply(draft="Bo set fire to the mill.", key_points=("Dag burned it at night.",)),  # not asked for
    ],
)
def test_clues_that_say_nothing_leave_the_question_alone(reply: CluesReply, open_client: Open) -> None:
    answer, _ = looked(open_client, clueing(reply), steps=1)
    assert (asked(answer, 1), answer.steps[0].notes) == ([(QUESTION, "")], ())


def test_of_a_thousand_clues_the_first_of_each_kind_search(open_client: Open) -> None:
    spans = tuple(f"The mill burned on day {at}." for at in range(1_000))
    queries = tuple(f"mill fire {at}" for at in range(9))
    answer, _ = looked(open_client, clueing(CluesReply(spans=spans, queries=queries)), steps=1)

    assert [text for text, _ in asked(answer, 1)] == [QUESTION, *spans[:8], *queries[:8]]
    assert answer.steps[0].notes == (
        "992 clues of kind 'text span' beyond 8 dropped",
        "1 clue of kind 'surrogate query' beyond 8 dropped",
    )


def test_later_steps_search_less(open_client: Open) -> None:
    settings = {"retrieval.chunks": 0, "retrieval.searched_chunks": 4, "later_chunks": 2}
    answer, _ = looked(open_client, clueing(), settings=settings)
    assert [[len(one.chunks) for one in step.retrieved] for step in answer.steps] == [[4] * 4, [2]]

    answer, _ = looked(open_client, clueing(), settings={**settings, "later_chunks": 0})
    assert [len(one.chunks) for one in answer.steps[1].retrieved] == [4]


def test_later_steps_leave_out_what_bears_on_none_of_their_subqueries(open_client: Open) -> None:
    lamps = Inquiry(text="Lamps", subquery="Who counts the lamps?", strategy="global")

    def second(*, bearing: bool) -> list[str]:
        model = clueing(CluesReply(), step=lambda _: StepReply(judgement="open", concerns=(lamps,)))
        settings = {"retrieval.chunks": 0, "later_chunks": 5, "only_new": False, "bearing": bearing}
        answer, _ = looked(open_client, model, settings=settings)
        assert len(answer.steps[0].retrieved[0].chunks) == len(SENTENCES)
        return [chunk.text for chunk in of(model, "evolve").evidence.chunks]

    assert second(bearing=False) == list(SENTENCES)
    assert SENTENCES[4] in (kept := second(bearing=True))
    assert len(kept) < len(SENTENCES)


def test_a_step_asks_for_documents_by_name_and_gets_all_of_one_name(open_client: Open) -> None:
    ferry = Inquiry(text="What the log says", subquery="The Ferry log", strategy="global")
    model = clueing(CluesReply(), step=lambda _: StepReply(judgement="open", concerns=(ferry,)))
    others = [Document(id=f"d{at}", title=f"Notes {at}", text=f"The mill {at} was sold.") for at in range(40)]
    client = open_client(model=model)
    client.add([*others, *FERRIES], graph=False)
    few = {"retrieval.chunks": 0, "retrieval.searched_chunks": 4, "only_new": False}
    answer = client.ask("What became of the mill?", steps=2, settings=few)

    known = {row["uid"]: row["id"] for row in client.documents()}
    found = [known[chunk.document] for chunk in of(model, "evolve").evidence.chunks]
    assert {"ferry-1901", "ferry-1902"} <= set(found)
    assert asked(answer, 2) == [("The Ferry log", "What the log says")]


def test_chunks_that_clues_find_are_shown_beside_those_of_the_question(open_client: Open) -> None:
    few = {"retrieval.chunks": 0, "retrieval.searched_chunks": 1, "retrieval.chunk_search": "vector"}
    clues = CluesReply(spans=("Eve counts the lamps of the pier.",))
    model = clueing(clues)
    looked(open_client, model, settings=few)
    without = clueing(CluesReply())
    looked(open_client, without, settings=few)

    texts = [[chunk.text for chunk in of(one, "step").evidence.chunks] for one in (model, without)]
    assert SENTENCES[4] in texts[0]
    assert SENTENCES[4] not in texts[1]


def test_without_a_language_model_sentences_and_phrases_are_the_clues(client: HGMem) -> None:
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION, steps=1)
    labels = {label for _, label in asked(answer, 1)}
    assert "surrogate query" in labels
    assert answer.status == "answered"


# What the look sees -----------------------------------------------------------------------------------------------


def test_it_sees_documents_and_entities_near_the_question(open_client: Open) -> None:
    model = clueing()
    looked(open_client, model)
    seen = sections(of(model, "clues").overview)

    assert seen["Documents"] == ["- Letters"]
    assert "- Anna (person): Anna of the letters." in seen["Entities"]
    assert len(seen["Entities"]) == len(LETTERS.entities)


def test_without_a_graph_it_sees_what_the_nearest_chunks_begin_with(open_client: Open) -> None:
    model = clueing()
    client = open_client(model=model)
    client.add([*FERRIES, UNTITLED], graph=False)
    answer = client.ask("When was the ferry late?", steps=1)
    seen = sections(of(model, "clues").overview)

    assert seen["Documents"] == ["- Ferry log", "- Harbour roll"]  # equal titles once, none where it is missing
    assert "- The ferry of 1902 was late." in seen["What they say"]
    assert "- A lantern hung over the door." in seen["What they say"]
    assert len(seen["What they say"]) == 4
    assert answer.status == "answered"


def test_it_sees_nothing_that_a_filter_leaves_out(open_client: Open) -> None:
    model = clueing()
    client = open_client(model=model)
    client.add_graph(LETTERS)
    client.add(FERRIES, graph=False)
    client.ask("When was the ferry late?", steps=1, filters={"year": "1903"})
    seen = sections(of(model, "clues").overview)

    assert seen == {"Documents": ["- Harbour roll"], "What they say": ["- The ferry of 1903 was late."]}


def test_entities_of_the_chosen_documents_are_seen_though_many_others_are_nearer(open_client: Open) -> None:
    model = clueing()
    client = open_client(model=model)
    client.add_graph(LETTERS)
    crowd = tuple(GivenEntity(name=f"the late ferry {at}", type="object", chunks=("c",)) for at in range(450))
    text = "The ferry was late."
    client.add_graph(
        Given(
            documents=(Document(id="crowd", text=text),),
            chunks=(GivenChunk(id="c", document="crowd", text=text),),
            entities=crowd,
        )
    )
    client.ask("When was the late ferry late?", steps=1, filters={"title": "Letters"})
    assert len(sections(of(model, "clues").overview)["Entities"]) == len(LETTERS.entities)


def test_under_a_filter_it_sees_no_description_that_other_documents_wrote_too(open_client: Open) -> None:
    model = clueing()
    client = open_client(model=model)
    client.add_graph(LETTERS)
    text = "Anna sold the mill."
    client.add_graph(
        Given(
            documents=(Document(id="diary", text=text),),
            chunks=(GivenChunk(id="c", document="diary", text=text),),
            entities=(GivenEntity(name="Anna", type="person", description="Sold the mill.", chunks=("c",)),),
        )
    )
    client.ask(QUESTION, steps=1, filters={"title": "Letters"})
    seen = sections(of(model, "clues").overview)["Entities"]

    assert "- Anna (person)" in seen
    assert "- Cleo (person): Cleo of the letters." in seen


def test_it_sees_gists_first_where_they_are_built(open_client: Open) -> None:
    texts = [f"In year {at} the ferry of Holm was late by {at} minutes, and the pilot paid." for at in range(40)]
    open_client().add([Document(id="log", title="Ferry log", text="\n\n".join(texts))], graph=False)
    open_client().build("gists", settings={"passage_tokens": 128, "ratio": 4, "memory_tokens": 100})
    model = clueing()
    client = open_client(model=model)
    client.ask("When was the ferry late?", steps=1, settings={"overview_tokens": 500})
    task = of(model, "clues")

    assert task.memory
    assert sum(count(gist.text) for gist in task.memory) <= 300
    assert sections(task.overview)["Documents"] == ["- Ferry log"]
    user = prompt_of(task).filled(task.fields())[-1].content
    assert 0 < user.index(task.memory[0].text) < user.index("Documents\n- Ferry log")


@pytest.mark.parametrize("tokens", [30, 60, 200])
def test_what_it_sees_fits_the_option(tokens: int, open_client: Open) -> None:
    model = clueing()
    client = open_client(model=model)
    client.add([Document(id=str(at), title=f"Ferry log {at}", text="It rained.") for at in range(150)], graph=False)
    client.ask("When was the ferry late?", steps=1, settings={"overview_tokens": tokens})
    seen = sections(of(model, "clues").overview)

    assert sum(count(line) for lines in seen.values() for line in lines) <= tokens
    assert 0 < sum(count(line) for line in seen["Documents"]) <= 0.4 * tokens


def test_nothing_is_asked_of_a_model_that_would_see_nothing(open_client: Open) -> None:
    model = clueing()
    answer, client = looked(open_client, model, Given())
    assert (answer.status, model.tasks) == ("no_evidence", [])

    client.add_graph(LETTERS)
    client.ask(QUESTION, steps=1, settings={"overview_tokens": 0})
    assert [task.name for task in model.tasks] == ["evolve", "answer"]


# Points that memory drops -----------------------------------------------------------------------------------------


def retiring() -> ScriptedModel:
    """Return a model that inserts three points, then drops one and asks about it, then replies wrongly."""
    inserted = tuple(
        Insertion(entities=(name,), description=f"About {name}.", chunks=(at,))
        for at, name in enumerate(("Anna", "Bo", "Cleo"))
    )
    first = Inquiry(text="Where?", subquery="The pier", strategy="global")
    about = Inquiry(text="What of Bo?", subquery="Bo's boat", strategy="local", points=(1,))
    steps = iter(
        [
            StepReply(insert=inserted, judgement="open", concerns=(first,)),
            StepReply(
                retire=(
                    Retirement(point=1, reason="It is not about the mill."),
                    Retirement(point=1, reason="Twice."),
                    Retirement(point=0, reason="It is in the merged one."),
                    Retirement(point=9, reason="Nobody."),
                    Retirement(point=-1, reason="Nobody."),
                ),
                merge=(Joining(points=(0, 2), description="They go together."),),
                judgement="open",
                concerns=(about,),
            ),
        ]
    )
    return wanting(step=lambda _: next(steps), evolve=lambda _: EvolveReply())


def test_a_retired_point_is_gone_with_its_reason_and_its_lineage_stays(open_client: Open) -> None:
    model = retiring()
    answer, client = looked(open_client, model, steps=3)
    anna, bo, cleo, both = answer.points
    operations = answer.steps[1].operations
    memory = client.memory(answer.memory)

    assert [(one.kind, one.point, one.parts) for one in operations if one.kind != "drop"] == [
        ("merge", both.uid, (anna.uid, cleo.uid)),
        ("retire", "", (bo.uid,)),
    ]
    assert [one.reason for one in operations if one.kind != "merge"] == [
        "It is not about the mill.",
        "retirement of point 1: the point does not exist",
        "retirement of point 0: the point was merged",
        "retirement of point 9: the point does not exist",
        "retirement of point -1: the point does not exist",
    ]
    assert both.description == "They go together. About Anna. About Cleo."
    assert [point.uid for point in memory.points] == [both.uid]
    assert [point.uid for point in client.memory(answer.memory, step=1).points] == [anna.uid, bo.uid, cleo.uid]
    assert (memory.steps[1].operations, bo.died) == (operations, 2)
    lineage = client.lineage(bo.uid)
    assert (lineage.kind, lineage.point.died, lineage.parts) == ("insert", 2, ())
    assert answer.steps[1].planned[0].strategy == "global"  # the point that it names is gone
    assert [point.uid for point in of(model, "answer").memory.points] == [both.uid]
    assert client.check().findings == ()


def test_a_retired_point_is_told_by_the_terminal_and_the_replay(
    open_client: Open, environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer, client = looked(open_client, retiring(), steps=3)
    shown = CliRunner().invoke(app, ["memory", "show", answer.memory], env=environment).stdout
    bo = answer.points[1].uid
    assert f"retired {bo.removeprefix(f'{answer.memory}-')} (It is not about the mill.)" in " ".join(shown.split())

    told = drawn(client.replay(answer.memory))["steps"][1]["operations"]
    assert {"kind": "retire", "point": "", "parts": [bo], "reason": "It is not about the mill."} in told


def test_an_update_that_turns_a_fact_into_an_inference_is_stored_and_replayed(open_client: Open) -> None:
    said = Insertion(entities=("Bo",), description="Bo burned the mill.", chunks=(0,))
    about = Inquiry(text="Who?", subquery="The pier", strategy="global")
    replies = iter(
        [
            StepReply(insert=(said,), judgement="open", concerns=(about,)),
            StepReply(
                update=(Revision(point=0, description="It was Bo.", replaces=True, kind="inference"),),
                judgement="sufficient",
            ),
        ]
    )
    model = wanting(step=lambda _: next(replies))
    answer, client = looked(open_client, model, steps=3)

    assert [(point.inferred, point.alive(2)) for point in answer.points] == [(False, False), (True, True)]
    assert client.memory(answer.memory).points[0].inferred
    told = drawn(client.replay(answer.memory))["points"]
    assert [point.get("inferred", False) for point in told] == [False, True]
    memory = of(model, "answer").fields()["memory"]
    assert "It was Bo. (inferred)" in memory


def test_a_retirement_without_a_reason_is_dropped_and_an_evolve_may_retire_too(open_client: Open) -> None:
    said = (Insertion(entities=("Anna",), description="One."), Insertion(entities=("Bo",), description="Two."))
    replies = iter(
        [
            EvolveReply(insert=said),
            EvolveReply(retire=(Retirement(point=0, reason=" "), Retirement(point=1, reason="No help."))),
        ]
    )
    model = clueing(evolve=lambda _: next(replies))
    answer, _ = looked(open_client, model, settings={"only_new": False})

    assert [one.reason for one in answer.steps[1].operations] == [
        "retirement of point 0: it says no reason",
        "No help.",
    ]
    assert [point.description for point in answer.points if point.alive(2)] == ["One."]

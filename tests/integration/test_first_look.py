"""The first look at a corpus: what it sees, what the first step searches for, and what later steps search less."""

from collections.abc import Callable
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting

from hgmem import HGMem
from hgmem.cli.render import show, stored
from hgmem.memory.replay.page import scene
from hgmem.memory.stored_memories import load_history
from hgmem.retrieval.clues import CluesReply, WriteClues
from hgmem.systems.hgmem.replies import EvolveReply, Retirement
from hgmem.testing import ScriptedModel
from hgmem.text.tokens import count
from hgmem.values.inputs import Document

SIZES = {"chunk_tokens": 40, "chunk_overlap": 8, "chunk_restart": 60}
PIER = [
    Document(id=f"log-{at}", title="Log of the pier", text=f"Lamp {at} of the pier was lit. Eve counts {at} lamps.")
    for at in range(30)
]


def look_of(model: ScriptedModel) -> WriteClues:
    """Return the last first look that a model was asked for."""
    looks = [task for task in model.tasks if isinstance(task, WriteClues)]
    return looks[-1]


def lines(overview: str) -> dict[str, list[str]]:
    """Return the lines of an overview's parts by their names."""
    parts = (part.splitlines() for part in overview.split("\n\n"))
    return {name: found for name, *found in parts}


def test_a_first_look_sees_titles_and_entities_near_the_question(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=(model := wanting()))
    client.add_graph(LETTERS)
    client.ask(QUESTION, steps=1)
    look = look_of(model)

    assert (look.question, look.memory, look.kinds) == (QUESTION, (), ("spans", "queries"))
    seen = lines(look.overview)
    assert seen["Documents"] == ["- Letters"]
    assert len(seen["Entities"]) == len(LETTERS.entities)
    assert any(line.startswith("- Mill") for line in seen["Entities"])


def test_of_chosen_documents_alone_a_first_look_sees_what_they_hold(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=(model := wanting()))
    client.add_graph(LETTERS)
    client.add(Document(id="bell", title="Bell", text="Greta rang the bell of the mill."), graph=False)
    client.ask(QUESTION, steps=1, filters={"title": ["Bell"]})

    assert lines(look_of(model).overview) == {
        "Documents": ["- Bell"],
        "What they say": ["- Greta rang the bell of the mill."],
    }


def test_equal_titles_are_named_once_and_documents_without_one_not_at_all(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=(model := wanting()))
    client.add([*PIER[:3], Document(id="untitled", title=" ", text="Eve left the pier.")], graph=False)
    client.ask("Who counts the lamps of the pier?", steps=1)
    seen = lines(look_of(model).overview)

    assert len([line for line in seen["Documents"] if "Log of the pier" in line]) == 1
    assert "- " not in seen["Documents"]
    assert len(seen["What they say"]) == 4


def test_gists_come_first_where_they_are_built_and_leave_room_for_the_rest(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=(model := wanting()), **SIZES)
    client.add(PIER, graph=False)
    open_client(**SIZES).build("gists", settings={"passage_tokens": 128, "ratio": 4, "memory_tokens": 100})
    for tokens in (200, 4_000):
        client.ask("Who counts the lamps?", steps=1, settings={"overview_tokens": tokens})
        look = look_of(model)
        told = sum(count(gist.text) for gist in look.memory)
        assert 0 < told <= 0.6 * tokens
        assert look.overview.startswith("Documents\n- Log of the pier")
        assert told + count(look.overview) <= tokens + 10  # the names of its parts


def test_an_empty_look_searches_for_the_question_alone_and_a_recipe_without_clues_does_not_look(
    open_client: Callable[..., HGMem],
) -> None:
    client = open_client(model=(model := wanting()))
    client.add_graph(LETTERS)
    for settings, first in ({}, "clues"), ({"clues": []}, "evolve"):
        began = len(model.tasks)
        (step,) = client.ask(QUESTION, steps=1, settings=settings).steps
        assert [one.subquery.text for one in step.retrieved] == [QUESTION]
        assert (model.tasks[began].name, step.notes) == (first, ())


@pytest.mark.parametrize(("later", "found"), [(8, 8), (0, 20), (50, 20)])
def test_later_steps_search_for_fewer_chunks(later: int, found: int, open_client: Callable[..., HGMem]) -> None:
    clues = CluesReply(spans=("Lamp 7 of the pier was lit.",))
    client = open_client(model=wanting(clues=lambda _: clues), **SIZES)
    client.add(PIER, graph=False)
    settings = {"later_chunks": later, "retrieval.chunks": 0}
    first, second = client.ask("Who counts the lamps of the pier?", steps=2, settings=settings).steps

    assert [len(one.chunks) for one in first.retrieved] == [20, 20]
    assert [one.subquery.concern for one in first.retrieved] == ["", "text span"]
    assert [len(one.chunks) for one in second.retrieved] == [found, found]


def test_clues_are_in_no_later_prompt(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=(model := wanting(clues=lambda _: CluesReply(queries=("Where Dag was at night",)))))
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION, steps=3)

    assert [one.subquery.text for one in answer.steps[0].retrieved] == [QUESTION, "Where Dag was at night"]
    later: list[Any] = [task for task in model.tasks if task.name in ("step", "evolve")]
    assert later
    assert all("Where Dag" not in str(task.fields()) for task in later)


def test_a_point_that_is_retired_leaves_memory_and_its_history_says_why(
    open_client: Callable[..., HGMem], capsys: pytest.CaptureFixture[str]
) -> None:
    retire = (Retirement(point=0, reason="Nobody asked for it."), Retirement(point=7, reason="It is old."))
    client = open_client(model=wanting(evolve=lambda task: EvolveReply(retire=retire)))
    client.add_graph(LETTERS)
    memory = open_client(model=wanting()).ask(QUESTION, steps=1).memory
    answer = client.ask("Who has the boat?", memory=memory, steps=1)
    operations = answer.steps[-1].operations

    assert [(one.kind, one.reason) for one in operations] == [
        ("retire", "Nobody asked for it."),
        ("drop", "retirement of point 7: the point does not exist"),
    ]
    (retired,) = operations[0].parts
    stored_memory = client.memory(memory)
    assert retired not in {point.uid for point in stored_memory.points}
    assert retired in {point.uid for point in client.memory(memory, step=1).points}
    assert client.lineage(retired).point.died == 2
    assert client.check().findings == ()
    show(*stored(stored_memory, system=client.system("hgmem")))
    assert f"retired {retired.removeprefix(f'{memory}-')} (Nobody asked for it.)" in capsys.readouterr().out
    drawn = scene(load_history(client._services(None), memory))
    assert [one["kind"] for one in drawn["points"]] == ["insert", "insert"]
    assert drawn["steps"][-1]["operations"][0]["parts"] == (retired,)

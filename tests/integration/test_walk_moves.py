"""Moves of a walk beyond one way: searches, several at once, and a first look."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from walking import Guide, nodes, walked_town

from hgmem import HGMem
from hgmem.systems.remindrag.tasks import MoveReply

QUESTION = "Which key did Anna give away last?"
FAR = "Doris gave the key number 1"
WAY = {"quotes": 0, "fill": False, "look_tokens": 0}  # the walk alone


def replying(*replies: MoveReply) -> tuple[Any, list[Any]]:
    """Return a model that gives these replies, then that it is enough, and the tasks that it was asked."""
    seen: list[Any] = []

    def move(task: Any) -> MoveReply:
        seen.append(task)
        return replies[len(seen) - 1] if len(seen) <= len(replies) else MoveReply(enough=True, found="all")

    return Guide(FAR).model(move=move), seen


def texts(seen: Sequence[Any]) -> str:
    return "\n".join(each.text for each in seen)


def test_a_search_reads_what_no_way_leads_to_and_is_learnt(open_client: Callable[..., HGMem]) -> None:
    model, seen = replying(MoveReply(search=FAR, why="who gave it"))
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", settings={**WAY, "ways": 1, "seeds": 1})
    assert FAR not in texts(seen[0].fresh)
    assert FAR in texts(seen[1].fresh)
    assert [step.retrieved[0].subquery.strategy for step in answer.steps] == ["seeds", "search"]
    assert all(FAR in citation.quote for citation in answer.citations)
    [learnt] = client.remindrag.learn(memory=answer.memory)
    assert learnt.effective
    [row] = nodes(client, "Learning")
    found = {hit.uid for hit in answer.steps[1].retrieved[0].built if not hit.source}
    assert set(row["starts"]) & found
    again, seen = replying()
    second = walked_town(open_client, again).ask(QUESTION, system="remindrag", settings={**WAY, "seeds": 1})
    assert FAR in texts(seen[0].fresh)  # the next walk begins where the search led
    assert [step.strategy for step in second.steps] == ["seeds"]
    assert client.check().findings == ()


def test_one_call_takes_several_moves(open_client: Callable[..., HGMem]) -> None:
    model, seen = replying(MoveReply(next=0, also=(1, 99, 0, 2), search="mill"), MoveReply(next=0, also=(1, 2, 3, 4)))
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", settings=WAY)
    assert [len(step.retrieved) for step in answer.steps] == [1, 3, 3]
    assert [one.subquery.strategy for one in answer.steps[1].retrieved] == ["walk", "walk", "search"]
    assert len(seen) == 3
    model, seen = replying(MoveReply(next=0, also=(1, 2)), MoveReply(next=0, also=(1, 2), search="mill"))
    limited = walked_town(open_client, model).ask(QUESTION, system="remindrag", steps=4, settings=WAY)
    assert [len(step.retrieved) for step in limited.steps] == [1, 3, 1]
    assert not seen[2].options
    assert not seen[2].search


@pytest.mark.parametrize("words", ["mill", "no such thing anywhere"])
def test_a_search_that_was_made_before_is_asked_again_and_ends_the_walk(
    open_client: Callable[..., HGMem], words: str
) -> None:
    model, seen = replying(*[MoveReply(search=words) for _ in range(9)])
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", settings=WAY)
    assert len(seen) == 4
    assert "You named a search that was made before" in seen[2].refused
    assert "the model chose no way that exists, 3 times in a row" in answer.notes[0]
    assert answer.status == "answered"


def test_a_search_that_finds_nothing_new_says_so(open_client: Callable[..., HGMem]) -> None:
    model, seen = replying(*[MoveReply(search=f"key number {at}") for at in range(9)])
    client = walked_town(open_client, model)
    client.ask(QUESTION, system="remindrag", settings=WAY, filters={"title": "Ledger of Emil"})
    said = [task.refused for task in seen if task.refused]
    assert said
    assert said[-1].startswith("The search for 'key number ")


def test_the_first_prompt_has_the_nearest_passages(open_client: Callable[..., HGMem]) -> None:
    model, seen = replying()
    client = walked_town(open_client, model)
    for tokens in (0, 300):
        client.ask(FAR, system="remindrag", settings={"quotes": 0, "seeds": 1, "look_tokens": tokens})
    without, with_look = (len(task.fresh) for task in seen)
    assert without < with_look
    assert FAR in texts(seen[1].fresh)


def test_the_papers_walk_has_none_of_these(open_client: Callable[..., HGMem]) -> None:
    settings = client_settings()
    model, seen = replying(MoveReply(search="mill", next=0, also=(1, 2)))
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", settings={**WAY, **settings})
    assert [len(step.retrieved) for step in answer.steps] == [1, 1]
    assert not seen[0].search


def client_settings() -> dict[str, Any]:
    """Return what the recipe `paper` says of these moves."""
    from hgmem.systems.remindrag.recipes import PAPER

    return {"search": PAPER.search, "moves": PAPER.moves, "look_tokens": PAPER.look_tokens}

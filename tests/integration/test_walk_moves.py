"""Moves of a walk beyond one way: searches, several at once, and a first look."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from walking import SMALL, Guide, nodes, town, walked_town

from hgmem import HGMem
from hgmem.graph.database import Database
from hgmem.models.prompts import prompt_of
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.remindrag.tasks import MoveReply
from hgmem.systems.remindrag.walk_record import in_words

QUESTION = "Which key did Anna give away last?"
FAR = "Doris gave the key number 1"
WAY = {"quotes": 0, "fill": False, "look_tokens": 0}  # the walk alone
ASKED = {"seeds": 1, "at_once": False}


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
    second = walked_town(open_client, again).ask(QUESTION, system="remindrag", settings={**WAY, **ASKED})
    assert FAR in texts(seen[0].fresh)  # the next walk begins where the search led
    assert [step.strategy for step in second.steps] == ["seeds"]
    assert client.check().findings == ()


@pytest.mark.parametrize("titles", [True, False])
def test_a_search_counts_words_of_titles_as_the_recipe_says(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch, titles: bool
) -> None:
    run, counted = Database.run, []

    def recorded(self: Database, name: str, /, **parameters: Any) -> Any:
        if name == "worded" and "felix" in str(parameters["layers"]):
            counted.append(parameters["ranking"]["titles"])
        return run(self, name, **parameters)

    model, _ = replying(MoveReply(search="ledger of felix"))
    client = walked_town(open_client, model)
    monkeypatch.setattr(Database, "run", recorded)
    client.ask(QUESTION, system="remindrag", settings={**WAY, "titles": titles})
    assert counted == [titles]


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
    assert "the model chose no way that exists and no search that is new, 3 times in a row" in answer.notes[0]
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


@pytest.mark.parametrize("going", [True, False])
def test_what_a_description_says_is_cited_by_its_chunk_and_read_at_the_end_of_its_way(
    open_client: Callable[..., HGMem], going: bool
) -> None:
    seen: list[Any] = []

    def move(task: Any) -> MoveReply:
        seen.append(task)
        for at, way in enumerate(task.options):
            if way.node.text == "Bruno":
                return MoveReply(found=f"{said} [w{at}].", next=at, enough=not going)
        return MoveReply(enough=True)

    said = "Bruno gave the key number 2 to Clara"
    client = open_client(model=Guide(said).model(move=move))
    given = town()
    described = (replace(one, description=f"{said} in the mill.") for one in given.entities if one.name == "Bruno")
    others = (one for one in given.entities if one.name != "Bruno")
    client.add_graph(replace(given, entities=(*described, *others), relations=()))
    client.build("remindrag", settings=SMALL)
    chunk = f"{said} in the mill."
    answer = client.ask(
        "What did Anna give away?", system="remindrag", settings={**WAY, "quotes": 1, "look_tokens": 120, "seeds": 1}
    )
    assert chunk not in texts(seen[0].fresh)
    assert [chunk in texts(task.fresh) for task in seen[1:]] == [True] * going
    assert [chunk in citation.quote for citation in answer.citations] == [True]


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


def test_a_walk_begins_with_what_clues_find_and_goes_on_from_there(open_client: Callable[..., HGMem]) -> None:
    model, seen = replying(MoveReply(next=0))
    model = Guide(FAR).model(move=model._replies["move"], clues=lambda task: CluesReply(queries=(f"{FAR} to Emil?",)))
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", settings={"seeds": 1, "fill": False, "look_tokens": 700})
    names = [task.name for task in model.tasks if task.name != "anchor_title"]
    assert names == ["clues", "move", "move", "answer"]
    assert [step.strategy for step in answer.steps] == ["seeds", "first look", "walk"]
    look = answer.steps[1].retrieved
    assert [each.subquery.text for each in look] == [QUESTION, f"{FAR} to Emil?"]
    assert FAR in texts(seen[0].fresh)
    places = {hit.uid for hit in look[0].built}
    assert places & {way.source for way in seen[0].options}
    [learnt] = client.remindrag.learn(memory=answer.memory)
    assert learnt.effective  # of the passage that the answer cites, which no move entered
    [row] = nodes(client, "Learning")
    assert set(row["starts"]) & places


def test_what_is_still_to_be_found_is_shown_kept_and_ranks_the_ways(open_client: Callable[..., HGMem]) -> None:
    part = "Felix of the town."
    model, seen = replying(MoveReply(next=0, missing=(part,)), MoveReply(next=0))
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", settings={**WAY, "seeds": 3, "ways": 100})
    assert seen[1].missing == (part,)
    assert part in "".join(message.content for message in prompt_of(seen[1]).filled(seen[1].fields()))
    assert client.memory(answer.memory).steps[0].open == (part,)
    wanted, asked = (client.embedder.embed([text], kind="query")[0] for text in (part, QUESTION))
    vectors = {row["uid"]: row["embedding"] for row in nodes(client, "Anchor")}
    ways = [way for way in seen[1].options if way.node.uid in vectors and way.tie == "MENTIONS"]
    assert len(ways) > 2
    near = [float(np.asarray(vectors[way.node.uid]) @ wanted) for way in ways]
    assert [way.score for way in ways] == pytest.approx(near, abs=1e-3)
    assert [way.score for way in ways] != pytest.approx(
        [float(np.asarray(vectors[way.node.uid]) @ asked) for way in ways]
    )


def test_a_hint_that_says_something_is_kept_with_its_chunk(open_client: Callable[..., HGMem]) -> None:
    told: list[Any] = []

    def move(task: Any) -> MoveReply:
        at = next(at for at, way in enumerate(task.options) if way.sentence and way.chunks)
        told.append(task.options[at])
        return MoveReply(found=f"Keys were given away [w{at}].", enough=True)

    client = walked_town(
        open_client, Guide(FAR).model(move=move, answer=lambda task: told.append(task) or Guide(FAR).answer(task))
    )
    client.ask(QUESTION, system="remindrag", settings=WAY)
    way, task = told
    assert any("Keys were given away." in text or "Keys were given away [" in text for text in task.memory.statements)
    assert way.chunks[0] in {chunk.uid for chunk in task.passages}


def test_ways_say_where_they_lead_and_read_places_go(open_client: Callable[..., HGMem]) -> None:
    seen: list[Any] = []

    def move(task: Any) -> MoveReply:
        seen.append(task)
        first = [at for at, way in enumerate(task.options) if "number 0" in way.node.text]
        return MoveReply(next=(first or [0])[0])

    client = walked_town(open_client, Guide(FAR).model(move=move))
    client.ask(QUESTION, system="remindrag", settings={**WAY, "ways": 100, "trails": False})
    assert any(in_words(way).startswith("the next passage '") for task in seen for way in task.options)
    ours = {row["uid"]: row["title"] for row in nodes(client, "Anchor")}
    for task in seen:
        read = {uid for text in (*task.known, *task.fresh) if text.title for uid in text.chunks}
        held = {row["uid"] for row in nodes(client, "Chunk") if row["uid"] in read}
        assert held == read
        shown = {text.title.partition(", from")[0] for text in (*task.known, *task.fresh) if text.title}
        assert not shown & {ours[way.node.uid] for way in task.options if way.node.uid in ours}


def test_what_is_still_to_be_found_is_few_parts_of_few_words(open_client: Callable[..., HGMem]) -> None:
    model, seen = replying(MoveReply(next=0, missing=("who gave it " * 40,) * 9))
    walked_town(open_client, model).ask(QUESTION, system="remindrag", settings=WAY)
    assert [len(part) for part in seen[1].missing] == [200] * 6


def test_a_passage_of_which_a_first_look_read_a_part_is_offered(open_client: Callable[..., HGMem]) -> None:
    model, seen = replying()
    client = open_client(model=model)
    client.add_graph(town())
    client.build("remindrag")  # a passage has three chunks
    settings = {"seeds": 1, "quotes": 0, "fill": False, "look_tokens": 150, "ways": 100}
    answer = client.ask(QUESTION, system="remindrag", settings=settings)
    [part] = [hit.uid for hit in answer.steps[1].retrieved[0].built]
    [way] = [way for way in seen[0].options if way.node.uid == part]
    assert way.is_passage
    [place] = {row["position"] + 1 for row in nodes(client, "Chunk") if row["uid"] in seen[0].fresh[-1].chunks}
    assert in_words(way).startswith("the rest of the passage 'Ledger of ")
    assert f"chunks 1 to 3, of which {place} was read)" in in_words(way)


@pytest.mark.parametrize("look", [0, 150])
def test_the_rest_and_the_next_of_what_is_shown_are_offered_however_near_others_are(
    open_client: Callable[..., HGMem], look: int
) -> None:
    model, seen = replying(MoveReply(search="Doris gave the key number 4 to Emil", missing=("Felix of the town.",)))
    client = open_client(model=model)
    client.add_graph(town(chunks_each=9))
    client.build("remindrag", settings={"passage_tokens": 320})
    settings = {"seeds": 1, "quotes": 0, "fill": False, "look_tokens": look, "ways": 4}
    client.ask(QUESTION, system="remindrag", settings=settings)
    chunks = {row["uid"]: row for row in nodes(client, "Chunk")}
    places = [chunks[uid] for text in seen[1].fresh if text.title for uid in text.chunks]
    assert places
    document, last = places[-1]["document"], max(row["position"] for row in places)
    [after] = [way for way in seen[1].options if way.node.span and way.node.span[:2] == (document, last + 1)]
    assert in_words(after).startswith("the next passage '")
    assert re.search(rf"\(chunks? {last + 2}\b", in_words(after))

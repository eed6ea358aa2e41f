"""Trails on a real Neo4j: learning, replay, taking back, owners, many at once, and what a deletion takes."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from walking import Guide, edges, nodes, walked_town

from hgmem import HGMem, UsageError
from hgmem.systems.remindrag.trails import replayed

QUESTION = "Which key did Anna give away last?"
KEY = "Anna gave the key number 2"
WAY = {"quotes": 0, "fill": False, "look_tokens": 0}  # the walk alone


@pytest.fixture
def guided(open_client: Callable[..., HGMem]) -> HGMem:
    """A client on the town whose model walks to Anna's last key."""
    return walked_town(open_client, Guide(KEY).model())


def trails(client: HGMem) -> dict[str, np.ndarray]:
    """Return what each trail remembers, by uid."""
    return {row["uid"]: np.asarray(row["vector"], dtype=np.float32) for row in nodes(client, "Trail")}


def moves(client: HGMem) -> int:
    return sum(task.name == "move" for task in client.model.tasks)  # type: ignore[attr-defined]


def test_the_second_asking_follows_the_trail_and_takes_one_call(guided: HGMem) -> None:
    first = guided.ask(QUESTION, system="remindrag", settings=WAY)
    assert first.steps[-1].judgement == "sufficient"
    (learnt,) = guided.remindrag.learn(memory=first.memory)
    assert (learnt.number, learnt.question) == (1, QUESTION)
    assert 0 < learnt.effective <= learnt.trails
    guided.model.tasks.clear()  # type: ignore[attr-defined]
    second = guided.ask(QUESTION, system="remindrag", settings=WAY)
    assert [task.name for task in guided.model.tasks] == ["answer"]  # type: ignore[attr-defined]
    assert [(step.strategy, step.judgement) for step in second.steps] == [("replay", "sufficient")]
    assert second.text == first.text
    assert set(edges(second)) <= set(edges(first))
    assert guided.check().findings == ()


def test_answering_changes_nothing_that_is_not_its_memory(guided: HGMem) -> None:
    guided.ask(QUESTION, system="remindrag")
    assert nodes(guided, "Trail") == nodes(guided, "Learning") == nodes(guided, "TrailScope") == []


def test_a_question_may_be_learnt_at_once(guided: HGMem) -> None:
    answer = guided.ask(QUESTION, system="remindrag", learn=True, settings=WAY)
    assert answer.notes[-1].startswith("learnt: ")
    assert len(guided.remindrag.learnings()) == 1
    with pytest.raises(UsageError, match="system 'naive' does not learn from questions: omit learn="):
        guided.ask(QUESTION, system="naive", learn=True)


def test_a_trail_is_the_replay_of_its_learnings_and_taking_one_back_leaves_the_others(guided: HGMem) -> None:
    questions = [f"{QUESTION} Version {at}." for at in range(6)]
    memories = [guided.ask(question, system="remindrag", settings=WAY).memory for question in questions]
    for memory in memories:
        guided.remindrag.learn(memory=memory)
    before = trails(guided)
    assert before
    order = list(range(6))
    random.Random(3).shuffle(order)
    for gone in order[:3]:
        guided.remindrag.unlearn(memory=memories[gone])
        assert guided.check().findings == ()
    left = sorted(order[3:])
    again = trails(guided)
    for at in left:
        guided.remindrag.unlearn(memory=memories[at])
    assert trails(guided) == {}
    for at in left:
        guided.remindrag.learn(memory=memories[at])
    once = trails(guided)
    assert once.keys() == again.keys()
    assert all(np.array_equal(once[uid], again[uid]) for uid in once)


def test_a_way_of_no_use_is_weakened_and_one_that_led_to_use_stays(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    memory = client.ask(QUESTION, system="remindrag", settings=WAY).memory
    client.remindrag.learn(memory=memory)
    lengths = {row["uid"]: row["length"] for row in nodes(client, "Trail")}
    useless = walked_town(open_client, Guide(KEY, useful=()).model())
    alone = {**WAY, "replay": False, "starts": 0, "judge": "model"}
    worse = useless.ask(QUESTION, system="remindrag", settings=alone).memory
    useless.remindrag.learn(memory=worse)
    after = {row["uid"]: row["length"] for row in nodes(client, "Trail")}
    shared = [uid for uid in lengths if lengths[uid] > 0.5 and uid in after]
    assert shared
    assert all(after[uid] == pytest.approx(0.435, abs=1e-3) for uid in shared)  # 0.637 → 0.435, and R < λ


def test_trails_are_everybodys_or_an_owners(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    hers = client.ask(QUESTION, system="remindrag", owner="ann", settings=WAY)
    client.remindrag.learn(memory=hers.memory)
    assert {row["owner"] for row in nodes(client, "Trail")} == {"ann"}
    for owner, strategy in (("ann", "replay"), ("bob", "seeds"), (None, "seeds")):
        answer = client.ask(QUESTION, system="remindrag", owner=owner, settings=WAY)
        assert answer.steps[0].strategy == strategy
    ours = client.ask(QUESTION, system="remindrag", settings=WAY)
    client.remindrag.learn(memory=ours.memory)
    assert client.ask(QUESTION, system="remindrag", owner="bob", settings=WAY).steps[0].strategy == "replay"


def test_learnings_of_many_threads_are_those_of_their_order(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    memories = [
        client.ask(f"{QUESTION} Number {at}.", system="remindrag", settings={**WAY, "trails": False}).memory
        for at in range(24)
    ]
    with ThreadPoolExecutor(8) as pool:
        done = [
            one for found in pool.map(lambda memory: client.remindrag.learn(memory=memory), memories) for one in found
        ]
    assert sorted(one.number for one in done) == list(range(1, 25))
    listed = client.remindrag.learnings()
    assert [one.number for one in listed] == list(range(1, 25))
    assert client.check().findings == ()  # each trail is the replay of its learnings in order
    with ThreadPoolExecutor(8) as pool:
        random.Random(1).shuffle(memories)
        list(pool.map(lambda memory: client.remindrag.unlearn(memory=memory), memories))
    assert nodes(client, "Trail") == nodes(client, "Learning") == []


def test_a_tie_replays_exactly_where_the_question_is_near_enough(guided: HGMem) -> None:
    memory = guided.ask(QUESTION, system="remindrag", settings=WAY).memory
    guided.remindrag.learn(memory=memory)
    exactly = {"recall": "vector", "strong": 0.55, "starts": 10}
    learnt = guided.embedder.embed([QUESTION], kind="query")[0]
    held = {row["uid"]: row for row in nodes(guided, "Trail") if row["tie"] != "PASSAGE" and row["length"] > 0}
    near = [f"{QUESTION} {'x ' * number}word{number}" for number in range(0, 24, 2)]
    for question in [QUESTION, *near, "Who burned the mill?"]:
        vector = guided.embedder.embed([question], kind="query")[0]
        answer = guided.ask(question, system="remindrag", settings={**WAY, **exactly})
        step = answer.steps[0].retrieved
        reached = {(hit.source, hit.uid) for one in step for hit in one.built if hit.source and hit.kind != "Passage"}
        start = {hit.uid for hit in step[0].built if not hit.source}
        for row in held.values():
            ends = set(row["key"].split("/")[:2])
            least = (0.55 - 0.1 * row["alike"]) / (0.9 * row["length"])
            cosine = float(learnt @ vector)
            if ends & start and abs(cosine - least) > 1e-4:
                assert any(set(pair) == ends for pair in reached) == (cosine > least) or ends <= start


@pytest.mark.parametrize("penalty", ["fade", "forget", "shrink", "off"])
def test_reembedding_replays_all_learnings(open_client: Callable[..., HGMem], penalty: str) -> None:
    from hgmem.testing import DeterministicEmbedder

    client = walked_town(open_client, Guide(KEY).model())
    settings = {**WAY, "penalty": penalty}
    for at in range(3):
        client.remindrag.learn(memory=client.ask(f"{QUESTION} {at}", system="remindrag", settings=settings).memory)

    class Other(DeterministicEmbedder):
        name = "other"

    embedder = Other(48)
    moved = open_client(embedder=embedder)
    moved.reembed()
    assert {len(vector) for vector in trails(moved).values()} == {48}
    assert moved.check().findings == ()
    for row in nodes(moved, "Learning"):
        expected = embedder.embed([row["question"]], kind="query")[0]
        assert np.allclose(row["vector"], expected, atol=1e-6)


def test_a_deleted_document_takes_its_trails_and_an_archive_keeps_them(
    open_client: Callable[..., HGMem], tmp_path: Any
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    before = trails(client)
    client.export(tmp_path / "town.jsonl.gz")
    client.delete()
    copy = open_client(model=Guide(KEY).model())
    copy.import_archive(tmp_path / "town.jsonl.gz")
    restored = trails(copy)
    assert restored.keys() == before.keys()
    assert all(np.allclose(restored[uid], before[uid], atol=1e-7) for uid in before)
    assert copy.check().findings == ()
    assert copy.ask(QUESTION, system="remindrag", settings=WAY).steps[0].strategy == "replay"
    gone = {row["uid"] for row in nodes(copy, "Anchor") if "Ledger of Anna" in row["title"]}
    copy.delete(document="Anna")
    assert copy.check().findings == ()
    assert all(not gone & set(row["key"].split("/")) for row in nodes(copy, "Trail"))
    copy.build("remindrag")
    assert copy.ask(QUESTION, system="remindrag").status == "answered"
    copy.delete(system="remindrag")
    assert nodes(copy, "Built") == []


def test_what_cannot_be_learnt_is_refused_in_one_line(guided: HGMem, tmp_path: Any) -> None:
    first = guided.ask(QUESTION, system="remindrag", settings=WAY).memory
    guided.remindrag.learn(memory=first)
    naive = guided.ask(QUESTION, system="naive").memory
    gone = guided.ask(QUESTION, system="remindrag", settings={**WAY, "trails": False}).memory
    guided.delete(memory=gone)
    (tmp_path / "empty.txt").write_text("\n\n", encoding="utf-8")
    (tmp_path / "bad.jsonl").write_text('{"text": "x"}\n', encoding="utf-8")
    before = nodes(guided, "Built")
    for arguments, told in (
        (
            {"memory": first},
            f"memory '{first}' was learnt before: `hgmem remindrag unlearn {first} --corpus .*` takes that back",
        ),
        ({"memory": naive}, f"memory '{naive}' was made by system 'naive': only walks of 'remindrag' are learnt"),
        ({"memory": gone}, "not found"),
        ({}, "name one memory to learn from, or a file with questions="),
        ({"questions": str(tmp_path / "none.txt")}, "does not exist: correct the path"),
        ({"questions": str(tmp_path / "empty.txt")}, "has no questions: write one a line"),
        ({"questions": str(tmp_path / "bad.jsonl")}, "item 1 of .* has no question"),
    ):
        with pytest.raises(UsageError, match=told):
            guided.remindrag.learn(**arguments)
    for arguments, told in (
        ({}, "name what to unlearn"),
        ({"memory": naive}, f"nothing was learnt from memory '{naive}' by anybody"),
    ):
        with pytest.raises(UsageError, match=told):
            guided.remindrag.unlearn(**arguments)
    assert nodes(guided, "Built") == before


def test_questions_of_a_file_warm_it_up(guided: HGMem, tmp_path: Any) -> None:
    path = tmp_path / "faq.txt"
    path.write_text(f"{QUESTION}\n\nWhere did Anna give it?\n", encoding="utf-8")
    learnt = guided.remindrag.learn(questions=str(path))
    assert [one.question for one in learnt] == [QUESTION, "Where did Anna give it?"]
    strongest = guided.remindrag.trails(question=QUESTION, limit=3)
    assert [one.along for one in strongest] == sorted((one.along for one in strongest), reverse=True)
    assert len(guided.remindrag.trails(limit=100)) == len(nodes(guided, "Trail"))
    assert guided.remindrag.unlearn(question=QUESTION).learnings == 1
    assert guided.remindrag.unlearn(everything=True).learnings == 1
    assert nodes(guided, "Trail") == []


def test_learning_fails_whole_when_the_model_does(open_client: Callable[..., HGMem]) -> None:
    def broken(task: Any) -> Any:
        raise RuntimeError("no judgement")

    client = walked_town(open_client, Guide(KEY).model(useful=broken))
    memory = client.ask(QUESTION, system="remindrag", settings={**WAY, "judge": "model"}).memory
    with pytest.raises(Exception, match="no judgement"):
        client.remindrag.learn(memory=memory)
    assert nodes(client, "Trail") == nodes(client, "Learning") == []


def test_the_dimension_of_the_questions_is_that_of_the_trails(guided: HGMem) -> None:
    memory = guided.ask(QUESTION, system="remindrag", settings=WAY).memory
    guided.remindrag.learn(memory=memory)
    vector = guided.embedder.embed([QUESTION], kind="query")[0]
    touches = [{"question": vector, "effective": True, "penalty": "forget"}]
    expected = replayed(touches, dimensions=len(vector))
    found = [trail for trail in trails(guided).values() if np.any(trail)]
    assert found
    assert all(np.array_equal(trail, expected) for trail in found)

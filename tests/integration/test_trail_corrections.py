"""What speaks against what was learnt: answers that misled, owners who differ, documents and names that changed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from walking import Guide, nodes, walked_town

from hgmem import HGMem, UsageError
from hgmem.graph.values import vector
from hgmem.retrieval.answer import AnswerReply
from hgmem.systems.remindrag.tasks import MoveReply

QUESTION = "Which key did Anna give away last?"
KEY = "Anna gave the key number 2"
FAR = "Emil gave the key number 1"
WAY = {"quotes": 0, "fill": False, "look_tokens": 0}  # the walk alone
ALONE = {**WAY, "replay": False, "starts": 0}  # and nothing that was learnt before


def calls(client: HGMem) -> list[str]:
    return [task.name for task in client.model.tasks if task.name != "anchor_title"]  # type: ignore[attr-defined]


def begins(answer: Any) -> list[str]:
    """Return the texts of the nodes at which a walk began."""
    built = [hit for one in answer.steps[0].retrieved for hit in one.built]
    return [hit.text for hit in built if not hit.source]


def searching(task: Any) -> MoveReply:
    """Search for what is far away, and stop there."""
    found = any(FAR in seen.text for seen in (*task.known, *task.fresh))
    return MoveReply(enough=True, found="x") if found else MoveReply(search=FAR)


@pytest.mark.parametrize("owner", ["ann", None])
def test_a_question_is_not_known_again_once_two_answers_from_its_evidence_misled(
    open_client: Callable[..., HGMem], owner: str | None
) -> None:
    def second_keys(task: Any) -> AnswerReply:
        marks = [f"[{at}]" for at, chunk in enumerate(task.passages, start=1) if "key number 2" in chunk.text]
        return AnswerReply(text=f"So it is {' '.join(marks)}.")

    client = walked_town(open_client, Guide(KEY).model(answer=second_keys))
    client.ask(QUESTION, system="remindrag", settings={"fill": False}, learn=True)
    client.owner = owner
    asked = []
    for text in ("What about the mill?", "And what of the mill?", "The mill?"):
        client.model.tasks.clear()  # type: ignore[attr-defined]
        answer = client.ask(text, system="remindrag", settings={"fill": False})
        asked.append(calls(client))
        client.remindrag.unlearn(memory=answer.memory, wrong=True)
    assert asked[0] == asked[1] == ["answer"]
    assert asked[2][:2] == ["clues", "move"]


def test_what_misled_an_owner_ends_everybodys_beginning_for_that_owner_whatever_the_numbers(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client, Guide(FAR).model(move=searching))
    one_seed = {**ALONE, "seeds": 1, "ways": 1}
    for at in range(4):
        other = client.ask(f"Who rowed boat {at * 37} to island {at}?", system="remindrag", settings=one_seed)
        client.remindrag.learn(memory=other.memory)
    ours = [client.ask(QUESTION, system="remindrag", settings=one_seed).memory for _ in "12"]
    client.remindrag.learn(memory=ours[0])
    client.owner = "ann"
    plain = begins(client.ask(QUESTION, system="remindrag", settings=one_seed))
    learnt = {**WAY, "seeds": 1}
    assert len(begins(client.ask(QUESTION, system="remindrag", settings=learnt))) > len(plain) == 1
    for memory in ours:
        client.remindrag.unlearn(memory=memory, wrong=True)
    assert begins(client.ask(QUESTION, system="remindrag", settings=learnt)) == plain
    client.owner = "bob"
    assert len(begins(client.ask(QUESTION, system="remindrag", settings=learnt))) > 1


def test_an_owners_few_corrections_count_beside_very_many_learnings_of_everybody(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hgmem.systems.remindrag.touches.MOST", 3)
    client = walked_town(open_client, Guide(KEY).model())
    ours = [client.ask(QUESTION, system="remindrag", settings=ALONE).memory for _ in range(6)]
    for memory in ours:
        client.remindrag.learn(memory=memory)
    client.owner = "ann"
    assert client.ask(QUESTION, system="remindrag", settings=WAY).steps[0].strategy == "replay"
    for memory in ours[:2]:
        client.remindrag.unlearn(memory=memory, wrong=True)
    assert client.ask(QUESTION, system="remindrag", settings=WAY).steps[0].strategy == "seeds"


def test_corrections_count_beside_any_number_of_equal_learnings(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hgmem.systems.remindrag.touches.MOST", 3)
    monkeypatch.setattr("hgmem.systems.remindrag.walker.MOST", 3)
    client = walked_town(open_client, Guide(KEY).model())
    asked = [client.ask(QUESTION, system="remindrag", settings=ALONE).memory for _ in range(8)]
    for memory in asked[:6]:
        client.remindrag.learn(memory=memory)
    assert client.ask(QUESTION, system="remindrag", settings=WAY).steps[0].strategy == "replay"
    for memory in asked[6:]:
        client.remindrag.unlearn(memory=memory, wrong=True)
    before = begins(client.ask(QUESTION, system="remindrag", settings=ALONE))
    answer = client.ask(QUESTION, system="remindrag", settings=WAY)
    assert answer.steps[0].strategy == "seeds"
    assert begins(answer) == before
    assert calls(client).count("clues") == 0


def test_what_was_recorded_as_wrong_is_not_learnt_afterwards(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    memory = client.ask(QUESTION, system="remindrag", settings=WAY).memory
    client.remindrag.unlearn(memory=memory, wrong=True)
    recorded = f"memory '{memory}' was recorded as wrong before: `hgmem remindrag unlearn {memory}"
    with pytest.raises(UsageError, match=recorded):
        client.remindrag.learn(memory=memory)
    with pytest.raises(UsageError, match=recorded):
        client.remindrag.unlearn(memory=memory, wrong=True)
    client.remindrag.unlearn(memory=memory)
    assert client.remindrag.learn(memory=memory)


def test_an_answer_that_cites_nothing_teaches_no_beginning(open_client: Callable[..., HGMem]) -> None:
    silent = Guide(KEY).model(
        answer=lambda _: AnswerReply(text="Nothing is known."), move=lambda _: MoveReply(enough=True, found="")
    )
    client = walked_town(open_client, silent)
    question = "Anna and Bruno"
    answer = client.ask(question, system="remindrag")
    assert {hit.kind for one in answer.steps[0].retrieved for hit in one.built} == {"Entity"}
    before = calls(client)
    client.remindrag.learn(memory=answer.memory)
    assert [row["starts"] for row in nodes(client, "Learning")] == [[]]
    client.model.tasks.clear()  # type: ignore[attr-defined]
    client.ask(question, system="remindrag")
    assert calls(client) == before


def test_a_replay_reads_what_is_there_where_what_it_kept_is_gone_or_not_of_the_chosen_documents(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client)
    [bruno] = [row["uid"] for row in nodes(client, "Entity") if row["name"] == "Bruno"]
    chunks = {row["uid"]: row["document"] for row in nodes(client, "Chunk")}
    near = vector(client.embedder.embed(["Anna gave the key number 1"], kind="query")[0])
    [of_anna] = [row["uid"] for row in nodes(client, "Chunk") if row["text"].startswith("Anna gave the key number 1")]

    def read(kept: str, documents: list[str] | None) -> list[str]:
        places = [{"uid": bruno, "passage": False, "chunks": [kept], "k": 2}]
        given = {"corpus": client.corpus, "documents": documents, "vector": near, "read": []}
        return [row["chunk"]["uid"] for row in client._database.run("texts_of_places", places=places, **given)]

    assert read(of_anna, None) == [of_anna]
    others = sorted({document for document in chunks.values() if document != chunks[of_anna]})
    assert [chunks[uid] in others for uid in read(of_anna, others)] == [True, True]
    assert len(read("gone", None)) == 2


@pytest.mark.parametrize("owner", [None, "ann"])
@pytest.mark.parametrize("recall", ["touches", "vector"])
def test_trails_are_followed_and_corrected_after_their_places_got_another_name(
    open_client: Callable[..., HGMem], recall: str, owner: str | None
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    way = {**WAY, "recall": recall, "starts": 0}
    before = client.ask(QUESTION, system="remindrag", settings=way)
    uids = {row["name"]: row["uid"] for row in nodes(client, "Entity")}
    reached = {hit.text for one in before.steps[0].retrieved for hit in one.built} & uids.keys()
    assert reached
    for name, other in zip(sorted(reached), sorted(uids.keys() - reached, key=lambda name: uids[name]), strict=False):
        client.same(name, other, reason="a test")
    client.model.tasks.clear()  # type: ignore[attr-defined]
    after = client.ask(QUESTION, system="remindrag", settings=way)
    assert after.steps[0].strategy == "replay"
    assert calls(client) == ["answer"]
    client.owner = owner
    asked = [client.ask(QUESTION, system="remindrag", settings=way).memory for _ in "12"]
    for memory in asked:
        client.remindrag.unlearn(memory=memory, wrong=True)
    assert client.ask(QUESTION, system="remindrag", settings=way).steps[0].strategy == "seeds"
    assert client.check().findings == ()
    client.owner = "bob"
    others = client.ask(QUESTION, system="remindrag", settings=way).steps[0].strategy
    assert others == ("replay" if owner else "seeds")
    client.owner = owner
    for memory in asked:
        client.remindrag.unlearn(memory=memory)
    assert client.ask(QUESTION, system="remindrag", settings=way).steps[0].strategy == "replay"


def test_what_is_brought_for_a_known_question_fits_the_budget_together_with_its_replay(
    open_client: Callable[..., HGMem],
) -> None:
    def all_of_it(task: Any) -> AnswerReply:
        if task.tentative:
            return AnswerReply(text="NOT ENOUGH: more is needed")
        return AnswerReply(text=f"So it is {' '.join(f'[{at}]' for at in range(1, len(task.passages) + 1))}.")

    client = walked_town(open_client, Guide(KEY).model(answer=all_of_it))
    client.ask(QUESTION, system="remindrag", learn=True)

    def tokens(replayed: int) -> int:
        settings = {"fill": False, "quotes": 0, "look_tokens": 120, "replay_tokens": replayed, "seeds": 1}
        done = client.ask(QUESTION, system="remindrag", settings=settings, filters=None)
        read = {hit.uid for step in done.steps for one in step.retrieved for hit in one.chunks}
        return 100 * len(read)  # a chunk has about a hundred

    assert 0 < tokens(800) - tokens(0) <= 800


@pytest.mark.parametrize("cited", ["[1]", "[1] [2]"])
def test_a_question_whose_replay_never_suffices_is_learnt_once(open_client: Callable[..., HGMem], cited: str) -> None:
    def never(task: Any) -> AnswerReply:
        return AnswerReply(text="NOT ENOUGH: more is needed" if task.tentative else f"So it is {cited}.")

    client = walked_town(open_client, Guide(KEY).model(answer=never))
    for _ in range(3):
        client.ask(QUESTION, system="remindrag", learn=True)
    assert len(client.remindrag.learnings()) == 1


def test_a_valid_way_beside_one_that_does_not_exist_is_gone(open_client: Callable[..., HGMem]) -> None:
    def moves(task: Any) -> MoveReply:
        read = any(seen.title for seen in (*task.known, *task.fresh))
        return MoveReply(enough=True, found="x") if read or task.refused else MoveReply(next=999, also=(0,))

    client = walked_town(open_client, Guide(KEY).model(move=moves))
    answer = client.ask(QUESTION, system="remindrag", settings=WAY)
    assert answer.notes == ()
    assert "walk" in [step.strategy for step in answer.steps]


def test_an_archive_keeps_which_answers_were_wrong(open_client: Callable[..., HGMem], tmp_path: Path) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.ask(QUESTION, system="remindrag", learn=True)
    client.remindrag.unlearn(memory=client.ask(QUESTION, system="remindrag").memory, wrong=True)
    before = {row["uid"]: row.get("wrong") for row in nodes(client, "Learning")}
    assert set(before.values()) == {None, True}
    client.export(tmp_path / "town.jsonl.gz")
    client.delete()
    client.import_archive(tmp_path / "town.jsonl.gz")
    assert {row["uid"]: row.get("wrong") for row in nodes(client, "Learning")} == before
    assert client.check().findings == ()

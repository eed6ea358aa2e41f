"""What learning teaches and what a replay brings: judgement, owners who differ, a budget, and an end of learning."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from walking import PEOPLE, Guide, edges, nodes, walked_town

from hgmem import HGMem, UsageError
from hgmem.graph.database import Database
from hgmem.models.prompts import prompt_of
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.remindrag.tasks import MoveReply, UsefulReply
from hgmem.text.tokens import count

QUESTION = "Which key did Anna give away last?"
KEY = "Anna gave the key number 2"
WAY = {"quotes": 0, "fill": False, "look_tokens": 0}  # the walk alone
ALONE = {**WAY, "replay": False, "starts": 0}  # and nothing that was learnt before
NEVER: dict[str, Any] = {"useful": lambda task: UsefulReply(useful=())}


def followed(answer: Any) -> bool:
    """Whether an answer's walk began along strong trails."""
    return bool(answer.steps[0].strategy == "replay")


def test_of_use_is_what_the_answer_cites_and_no_call_asks_for_it(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY, useful=()).model())
    answer = client.ask(QUESTION, system="remindrag", settings=WAY, learn=True)
    assert "useful" not in [task.name for task in client.model.tasks]  # type: ignore[attr-defined]
    [learnt] = client.remindrag.learnings()
    assert 0 < learnt.effective <= learnt.trails
    cited = {citation.chunk for citation in answer.citations}
    read = [(hit.text, {chunk.uid for chunk in one.chunks}) for step in answer.steps for one in step.retrieved
            for hit in one.built if hit.kind == "Passage" and hit.source]  # fmt: skip
    assert any(chunks & cited for _, chunks in read)


def test_a_model_that_judges_use_sees_what_was_found_and_read(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.ask(QUESTION, system="remindrag", settings={**WAY, "judge": "model"}, learn=True)
    [task] = [one for one in client.model.tasks if one.name == "useful"]  # type: ignore[attr-defined]
    said = "\n".join(message.content for message in prompt_of(task).filled(task.fields()))
    assert "as the ledger says on every page" in said  # what a passage says
    assert f"found: it says {KEY}" in said


def test_a_model_that_judges_use_sees_the_passages_of_seeds_that_a_trail_had_read(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.ask(QUESTION, system="remindrag", settings=WAY, learn=True)
    again = client.ask(QUESTION, system="remindrag", settings={**WAY, "seeds": 100, "judge": "model"})
    client.remindrag.learn(memory=again.memory)
    assert [step.strategy for step in again.steps] == ["seeds"]
    [task] = [one for one in client.model.tasks if one.name == "useful"]  # type: ignore[attr-defined]
    assert any(f"{KEY} to" in way.text for way in task.ways)


def test_a_bad_experience_of_an_owner_with_everybodys_trail_counts_for_that_owner(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    shared = {row["uid"]: row["vector"] for row in nodes(client, "Trail")}
    useless = walked_town(open_client, Guide(KEY).model(**NEVER))
    hers = [useless.ask(QUESTION, system="remindrag", owner="ann", settings={**ALONE, "judge": "model"}) for _ in "12"]
    assert followed(client.ask(QUESTION, system="remindrag", owner="ann", settings=WAY))
    for answer in hers:
        useless.remindrag.learn(memory=answer.memory)
    assert not followed(client.ask(QUESTION, system="remindrag", owner="ann", settings=WAY))
    client.owner = "ann"
    assert not any(one.strong for one in client.remindrag.trails(question=QUESTION))
    client.owner = None
    for owner in ("bob", None):
        assert followed(client.ask(QUESTION, system="remindrag", owner=owner, settings=WAY))
    assert {row["uid"]: row["vector"] for row in nodes(client, "Trail") if not row["owner"]} == shared
    assert client.check().findings == ()
    for answer in hers:
        client.remindrag.unlearn(memory=answer.memory)
    assert followed(client.ask(QUESTION, system="remindrag", owner="ann", settings=WAY))
    assert client.check().findings == ()


def through_the_ledger(client: HGMem) -> None:
    """Learn a walk through all of Anna's ledger."""
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)


def wanderer(steps: int) -> Any:
    """Return a model that takes so many moves, then has enough, and finds all of them useful."""
    left = [steps]

    def move(task: Any) -> MoveReply:
        left[0] -= 1
        return MoveReply(enough=left[0] < 0 or not task.options, found="something", next=0)

    return Guide(KEY).model(move=move, useful=lambda task: UsefulReply(useful=tuple(range(99))))


@pytest.mark.parametrize("tokens", [0, 150, 400, 100_000])
def test_a_replay_brings_the_strongest_within_its_tokens(open_client: Callable[..., HGMem], tokens: int) -> None:
    client = walked_town(open_client, wanderer(8))
    first = client.ask(QUESTION, system="remindrag", settings={**WAY, "judge": "model"})
    client.remindrag.learn(memory=first.memory)
    seen = []
    again = walked_town(
        open_client, Guide(KEY).model(move=lambda task: (seen.append(task), MoveReply(enough=True, found="all"))[1])
    )
    again.ask(QUESTION, system="remindrag", settings={**WAY, "replay": False})
    answer = again.ask(QUESTION, system="remindrag", settings={**WAY, "replay_tokens": tokens, "at_once": False})
    alone, followed = (sum(count(each.text) for each in task.fresh) for task in seen)
    assert alone <= followed <= alone + tokens
    if tokens == 100_000:
        assert set(edges(answer)) == set(edges(first))
    assert len(edges(answer)) <= len(edges(first))
    places = {hit.uid for one in answer.steps[0].retrieved for hit in one.built}
    assert {hit.source for one in answer.steps[0].retrieved for hit in one.built if hit.source} <= places


def test_a_replay_takes_as_many_statements_however_much_it_brings(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = walked_town(open_client, wanderer(8))
    way = {"fill": False, "look_tokens": 0}
    first = client.ask(QUESTION, system="remindrag", settings={**way, "judge": "model"})
    client.remindrag.learn(memory=first.memory)
    again = walked_town(open_client, Guide(KEY).model(move=lambda task: MoveReply(enough=True, found="all")))
    run, asked = Database.run, []
    monkeypatch.setattr(Database, "run", lambda self, name, **more: (asked.append(name), run(self, name, **more))[1])
    answer = again.ask(QUESTION, system="remindrag", settings={**way, "replay_tokens": 100_000, "at_once": False})
    assert len(edges(answer)) > 5
    assert {name: asked.count(name) for name in ("replay", "texts_of_places", "ways")} == {
        "replay": 1, "texts_of_places": 1, "ways": 1,
    }  # fmt: skip
    assert not {"passage_chunks", "chunks_of_entities"}.intersection(asked)


def test_a_finding_cites_the_text_that_says_it(open_client: Callable[..., HGMem]) -> None:
    told: list[Any] = []

    def answer(task: Any) -> Any:
        told.append(task)
        return Guide(KEY).answer(task)

    def move(task: Any) -> MoveReply:
        said = [at for at, seen in enumerate(task.fresh, start=1) if "key number 1" in seen.text]
        if said:
            giver = task.fresh[said[0] - 1].text.split(" gave the key number 1")[0].split()[-1]
            return MoveReply(found=f"The key had number 1 [{said[0]}]. {giver} had key number 1.", enough=True)
        named = [at for at, one in enumerate(task.options) if "key number 1" in getattr(one, "node", one).text]
        return MoveReply(next=(named or [0])[0])

    client = walked_town(open_client, Guide(KEY).model(move=move, answer=answer))
    client.ask(QUESTION, system="remindrag", settings={"fill": False, "look_tokens": 0})
    [task] = told
    assert len(task.passages) > 1
    numbers = {at for at, chunk in enumerate(task.passages, start=1) if "key number 1" in chunk.text}
    for statement in task.memory.statements:
        assert " had key number 1" not in statement or "[" not in statement.split(" had key number 1")[0]
    marked = [statement for statement in task.memory.statements if "number 1" in statement]
    assert len(marked) == 2
    assert all(sum(f"[{at}]" in statement for at in numbers) == 1 for statement in marked)
    others = set(range(1, len(task.passages) + 1)) - numbers
    assert not any(f"[{at}]" in statement for statement in marked for at in others)


def test_a_question_whose_beginning_is_enough_is_learnt_once(open_client: Callable[..., HGMem]) -> None:
    enough = {"move": lambda task: MoveReply(enough=True), "answer": lambda task: AnswerReply(text="So it is [1].")}
    client = walked_town(open_client, Guide(KEY).model(**enough))
    way = {"fill": False, "look_tokens": 0}
    notes = [client.ask(QUESTION, system="remindrag", learn=True, settings=way).notes[-1] for _ in range(4)]
    assert notes[0].startswith("learnt: ")
    assert all(note.startswith("not learnt: ") for note in notes[1:])
    assert len(client.remindrag.learnings()) == 1


def test_the_last_call_of_a_walk_names_no_way(open_client: Callable[..., HGMem]) -> None:
    seen: list[Any] = []
    client = walked_town(
        open_client, Guide(KEY).model(move=lambda task: (seen.append(task), MoveReply(found="", next=0))[1])
    )
    client.ask(QUESTION, system="remindrag", steps=1, settings=WAY)
    first, last = ("\n".join(one.content for one in prompt_of(task).filled(task.fields())) for task in seen)
    assert '"next"' in first
    assert '"next"' not in last
    assert "Ways to go" not in last


def test_ways_that_were_offered_and_not_gone_come_after_others(open_client: Callable[..., HGMem]) -> None:
    offered: list[list[str]] = []

    def move(task: Any) -> MoveReply:
        offered.append([way.node.uid for way in task.options])
        return MoveReply(found="", next=len(task.options) - 1)

    client = walked_town(open_client, Guide(KEY).model(move=move))
    client.ask(QUESTION, system="remindrag", settings={**WAY, "ways": 4, "trails": False})
    again = [len(set(offered[at]) & set(offered[at - 1]) & set(offered[at - 2])) for at in range(2, len(offered))]
    assert sum(again) / len(again) < 2  # of four ways, before most were the same three times in a row


def test_a_replay_that_is_not_enough_is_followed_by_a_first_look(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    moves: list[Any] = []

    def answer(task: Any) -> AnswerReply:
        return AnswerReply(text="NOT ENOUGH: who had it then") if task.tentative else Guide(KEY).answer(task)

    def move(task: Any) -> MoveReply:
        moves.append(task)
        return MoveReply(enough=True, found="all")

    model = Guide(KEY).model(answer=answer, move=move)
    done = walked_town(open_client, model).ask(QUESTION, system="remindrag")
    assert [task.name for task in model.tasks if task.name != "anchor_title"] == ["answer", "clues", "move", "answer"]
    assert [step.strategy for step in done.steps[:2]] == ["replay", "first look"]
    assert moves[0].missing == ("who had it then",)
    assert done.status == "answered"
    assert "NOT ENOUGH" not in done.text
    assert len(client.memory(done.memory).answers) == 1


def test_a_question_that_is_known_again_and_not_answered_so_is_looked_for_with_clues(
    open_client: Callable[..., HGMem],
) -> None:
    settings = {"fill": False, "look_tokens": 600}
    client = walked_town(open_client, Guide(KEY).model(answer=second_keys))
    client.ask(QUESTION, system="remindrag", settings=settings, learn=True)

    def answer(task: Any) -> AnswerReply:
        return AnswerReply(text="NOT ENOUGH: who was there") if task.tentative else second_keys(task)

    moves: list[Any] = []

    def move(task: Any) -> MoveReply:
        moves.append(task)
        return MoveReply(enough=True, found="all")

    model = Guide(KEY).model(answer=answer, move=move)
    done = walked_town(open_client, model).ask("The number 2?", system="remindrag", settings=settings)
    assert [task.name for task in model.tasks if task.name != "anchor_title"] == ["answer", "clues", "move", "answer"]
    assert [step.strategy for step in done.steps] == ["seeds", "first look", "first look"]
    assert moves[0].missing == ("who was there",)
    tried, last = (task.passages for task in model.tasks if task.name == "answer")
    assert {chunk.uid for chunk in tried} <= {chunk.uid for chunk in last}


def test_an_answer_that_cites_what_filled_the_room_teaches_a_way_to_it(open_client: Callable[..., HGMem]) -> None:
    way = {"seeds": 1, "quotes": 0, "look_tokens": 0}
    for far in (f"{name} gave the key number {at}" for name in PEOPLE for at in range(3)):
        client = walked_town(open_client, Guide(far).model(move=lambda task: MoveReply(enough=True, found="all")))
        asked = f"{far} to whom?"
        answer = client.ask(asked, system="remindrag", settings=way)
        [cited] = {citation.chunk for citation in answer.citations}
        begun = [one for step in answer.steps if step.strategy == "seeds" for one in step.retrieved]
        if cited not in {hit.uid for one in begun for hit in one.chunks}:  # else the seed's own passage has it
            break
    else:
        pytest.fail("every seed's own passage had what the answer cites")
    client.remindrag.learn(memory=answer.memory)
    again = client.ask(asked, system="remindrag", settings={**way, "fill": False})
    assert {citation.chunk for citation in again.citations} == {cited}
    assert client.check().findings == ()


def test_a_wrong_answer_takes_back_what_it_taught_and_speaks_against_its_trails(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    first, second = (client.ask(QUESTION, system="remindrag", settings=ALONE).memory for _ in "12")
    for memory in (first, second):
        client.remindrag.learn(memory=memory)
    assert followed(client.ask(QUESTION, system="remindrag", settings=WAY))
    done = client.remindrag.unlearn(memory=first, wrong=True)
    assert (done.learnings, done.useless > 0) == (1, True)
    assert [one.effective for one in client.remindrag.learnings() if one.memory == first] == [0]
    assert [row["starts"] for row in nodes(client, "Learning") if row["memory"] == first] == [
        []
    ]  # no walk begins there
    with pytest.raises(UsageError, match=f"'{first}' was recorded as wrong before: `hgmem remindrag unlearn {first}"):
        client.remindrag.unlearn(memory=first, wrong=True)
    client.remindrag.unlearn(memory=second, wrong=True)
    assert not followed(client.ask(QUESTION, system="remindrag", settings=WAY))
    assert client.check().findings == ()
    assert client.remindrag.unlearn(memory=first).learnings == 1
    client.delete(memory=second)
    with pytest.raises(UsageError, match=rf"not found.*; `hgmem remindrag unlearn {second} .* takes back what"):
        client.remindrag.unlearn(memory=second, wrong=True)
    assert client.remindrag.unlearn(memory=second).learnings == 1
    assert nodes(client, "Trail") == []
    for arguments in ({"question": QUESTION}, {"everything": True}):
        with pytest.raises(UsageError, match=r"wrong= \(--wrong\) is about one answer: name its memory"):
            client.remindrag.unlearn(wrong=True, **arguments)


def test_an_owner_corrects_everybodys_trails_for_that_owner_alone(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    ours = [client.ask(QUESTION, system="remindrag", settings=ALONE).memory for _ in "12"]
    client.remindrag.learn(memory=ours[0])
    shared = {row["uid"]: row["vector"] for row in nodes(client, "Trail")}
    client.owner = "ann"
    with pytest.raises(UsageError, match="has no owner, so its trails are everybody's: learn it without an owner"):
        client.remindrag.learn(memory=ours[1])
    with pytest.raises(UsageError, match=r"nothing was learnt from .* by ann"):
        client.remindrag.unlearn(memory=ours[0])
    for memory in ours:
        client.remindrag.unlearn(memory=memory, wrong=True)
    assert not followed(client.ask(QUESTION, system="remindrag", settings=WAY))
    client.owner = "bob"
    assert followed(client.ask(QUESTION, system="remindrag", settings=WAY))
    client.owner = None
    assert {row["uid"]: row["vector"] for row in nodes(client, "Trail") if not row["owner"]} == shared
    assert client.check().findings == ()


def second_keys(task: Any) -> AnswerReply:
    """Cite each passage that tells of a key number 2."""
    marks = [f"It is so [{at}]." for at, chunk in enumerate(task.passages, start=1) if "number 2" in chunk.text]
    return AnswerReply(text=" ".join(marks))


def test_a_question_in_other_words_is_known_by_the_evidence_that_it_finds_again(
    open_client: Callable[..., HGMem],
) -> None:
    def asked(text: str, spans: Sequence[str] = (), **more: Any) -> tuple[list[str], Any]:
        model = Guide(KEY).model(answer=second_keys, clues=lambda task: CluesReply(spans=tuple(spans)))
        client = walked_town(open_client, model)
        settings = {"fill": False, **more.pop("settings", {})}
        done = client.ask(text, system="remindrag", settings=settings, **more)
        names = [task.name for task in client.model.tasks]  # type: ignore[attr-defined]
        return [name for name in names if name != "anchor_title"], done

    other = "What about the mill?"
    before, _ = asked(other)
    assert before[:2] == ["clues", "move"]
    _, first = asked(QUESTION, learn=True)
    cited = {citation.chunk for citation in first.citations}
    assert len(cited) > 2
    calls, again = asked(other)
    assert calls == ["answer"]
    assert {citation.chunk for citation in again.citations} == cited
    assert asked(other, settings={"replay": False})[0] == before
    few = {"look_tokens": 600}  # six chunks, of which two say it where the question alone is searched for
    calls, again = asked("Doris?", settings=few, spans=("The key number 2.", "Key number 2 in the mill."))
    assert calls == ["clues", "answer"]
    assert {citation.chunk for citation in again.citations} == cited
    assert asked("Doris?", settings=few)[0][:2] == ["clues", "move"]
    client = walked_town(open_client)
    client.remindrag.unlearn(memory=first.memory, wrong=True)
    assert asked(other)[0] == before
    assert client.check().findings == ()


def test_what_the_answer_to_a_question_with_the_same_evidence_cites_comes_first_and_within_its_tokens(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client, Guide(KEY).model(answer=second_keys))
    settings = {"fill": False, "quotes": 0, "seeds": 1}
    first = client.ask(QUESTION, system="remindrag", settings=settings, learn=True)
    cited = {citation.chunk for citation in first.citations}

    def again(question: str, **more: Any) -> tuple[list[str], list[str]]:
        done = client.ask(question, system="remindrag", settings={**settings, **more})
        look = [hit.uid for one in done.steps[1].retrieved if "learnt" in one.subquery.concern for hit in one.chunks]
        [*_, task] = [task for task in client.model.tasks if task.name == "answer"]  # type: ignore[attr-defined]
        return look, [chunk.uid for chunk in task.passages]

    assert len(cited) == 6
    _, shown = again("What about the mill?", evidence_tokens=450)
    assert len(shown) > 3
    assert len(set(shown) - cited) <= 1  # that of the seed
    brought, shown = again("The number 2 in the mill?", look_tokens=400)
    assert brought
    assert cited <= set(shown)
    brought, shown = again("The number 2 in the mill?", look_tokens=400, replay_tokens=50)  # less than a chunk has
    assert not brought
    assert not cited <= set(shown)

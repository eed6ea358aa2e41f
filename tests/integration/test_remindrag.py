"""ReMindRAG on a real Neo4j: anchors, the walk, what limits it, and what the record tells."""

from collections.abc import Callable
from typing import Any

import pytest
from dumping import dump
from walking import PEOPLE, SMALL, Guide, edges, nodes, town, walked_town

from hgmem import HGMem, UsageError
from hgmem.models.prompts import prompt_of
from hgmem.models.reply import TextReply
from hgmem.systems.remindrag.tasks import ChooseNext, EnoughReply, JudgeEnough, MoveReply, NextReply
from hgmem.testing import ScriptedModel
from hgmem.values.inputs import Document

QUESTION = "Which key did Anna give away last?"
KEY = "Anna gave the key number 2"
PAPER = {"recipe": "paper", "settings": {"learn": False}}


def test_anchors_are_chained_within_a_document_and_tied_to_what_they_mention(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client)
    anchors = {row["uid"]: row for row in nodes(client, "Anchor")}
    assert len(anchors) == 3 * len(PEOPLE)
    assert all(row["title"].startswith("Ledger of ") for row in anchors.values())
    held = dump(client.settings, client.corpus)
    chain = held.joined("NEXT_ANCHOR")
    assert len(chain) == 2 * len(PEOPLE)
    assert all(anchors[one]["document"] == anchors[other]["document"] for one, other, _ in chain)
    assert all(anchors[one]["place"] < anchors[other]["place"] for one, other, _ in chain)
    assert len(held.joined("MENTIONS")) == 2 * len(anchors)
    assert sorted(row["text"] for row in nodes(client, "EntityName")) == sorted(PEOPLE)
    assert client.build("remindrag").made == 0
    assert client.check().findings == ()


def test_a_changed_chunk_makes_anew_what_rests_on_it_and_nothing_else(open_client: Callable[..., HGMem]) -> None:
    client = open_client(chunk_tokens=40, chunk_overlap=0)
    texts = {name: [f"{name} sold lamp number {at} to Bo. " * 6 for at in range(6)] for name in ("Ada", "Eve")}
    client.add([Document(id=name, title=name, text="\n\n".join(parts)) for name, parts in texts.items()])
    client.build("remindrag", settings={"passage_tokens": 80})
    before = {row["uid"]: row["title"] for row in nodes(client, "Anchor")}
    texts["Ada"][2] = "Ada bought a violin from Cleo instead. " * 6
    client.add(Document(id="Ada", title="Ada", text="\n\n".join(texts["Ada"])))
    client.build("remindrag")
    after = {row["uid"]: row["title"] for row in nodes(client, "Anchor")}
    assert 1 <= len(after.keys() - before.keys()) <= 3
    assert len(before.keys() & after.keys()) >= len(before) - 3
    assert client.check().findings == ()
    fresh = open_client(corpus=f"{client.corpus}-again", chunk_tokens=40, chunk_overlap=0)
    fresh.add([Document(id=name, title=name, text="\n\n".join(parts)) for name, parts in texts.items()])
    fresh.build("remindrag", settings={"passage_tokens": 80})
    assert sorted(row["title"] for row in nodes(fresh, "Anchor")) == sorted(after.values())


def test_synonyms_tie_like_names_and_merge_nothing(open_client: Callable[..., HGMem]) -> None:
    client = open_client()
    client.add(Document(id="d", title="d", text="Anna Miller met Dora Field. Anna Miller Stone met Dora Field again."))
    client.build("remindrag", settings={"synonym": 0.7})
    found = nodes(client, "Synonym")
    assert found
    assert all(0.7 <= row["similarity"] < 1 for row in found)
    held = dump(client.settings, client.corpus)
    assert len(held.joined("SYNONYM_OF")) == 2 * len(found)
    assert client.build("remindrag", settings={"synonym": 1.0}).deleted
    assert nodes(client, "Synonym") == []


def test_what_a_walk_read_is_ranked_as_a_search_for_the_question_ranks_it(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client)
    answer = client.ask(QUESTION, system="remindrag", settings={"look_tokens": 0})
    read = [one.chunk.uid for one in client.passages(answer.memory)]
    searched = [one.chunk.uid for one in client.search(QUESTION, limit=100)]
    in_order = [hit.uid for step in answer.steps for one in step.retrieved for hit in one.chunks]

    assert read == [uid for uid in searched if uid in read]
    assert read != list(dict.fromkeys(in_order))
    assert [one.chunk.uid for one in client.passages(answer.memory, limit=2)] == read[:2]


def test_a_walk_goes_where_the_model_chooses_and_tells_it_step_by_step(open_client: Callable[..., HGMem]) -> None:
    guide = Guide(KEY)
    client = walked_town(open_client, guide.model())
    answer = client.ask(QUESTION, system="remindrag", settings={"quotes": 0, "fill": False, "look_tokens": 0})
    assert answer.steps[0].strategy == "seeds"
    assert {step.strategy for step in answer.steps[1:]} == {"walk"}
    assert answer.steps[-1].judgement == "sufficient"
    assert answer.steps[-1].notes == (f"found: it says {KEY}",)
    assert ("Passage" in place for _, place in edges(answer))
    assert all(KEY in one.quote for one in answer.citations)
    stored = client.memory(answer.memory)
    assert stored.steps == answer.steps


def test_without_a_language_model_it_goes_to_what_is_nearest(open_client: Callable[..., HGMem]) -> None:
    client = open_client()
    client.add_graph(town())
    client.build("remindrag", settings=SMALL)
    answer = client.ask("Which key number did Clara give to Doris?", system="remindrag")
    assert answer.status == "answered"
    assert "Clara gave" in answer.citations[0].quote


@pytest.mark.parametrize("choice", [0, 99, -1, None], ids=["always the same", "unknown", "negative", "none"])
def test_a_model_that_never_has_enough_or_chooses_nothing_ends_with_what_was_found(
    open_client: Callable[..., HGMem], choice: int | None
) -> None:
    model = Guide(KEY).model(move=lambda task: MoveReply(found="", next=choice))
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", settings={"look_tokens": 0, "max_calls": 20})
    asked = sum(task.name == "move" for task in model.tasks)
    assert answer.status == "answered"
    (note,) = answer.notes
    if choice == 0:
        assert "10 jumps (max_jumps)" in note
        assert asked == 11
    else:
        assert "the model chose no way that exists" in note
        assert asked == 3


def test_calls_are_limited_whatever_the_model_does(open_client: Callable[..., HGMem]) -> None:
    model = Guide(KEY).model(
        enough=lambda task: EnoughReply(enough=False),
        next_node=lambda task: NextReply(next=len(task.options) - 1),  # back and forth
        passage_summary=lambda task: TextReply(text="a summary"),
    )
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", recipe="paper", settings={"learn": False, "max_calls": 9})
    assert sum(task.name in ("enough", "next_node", "passage_summary") for task in model.tasks) == 9
    assert answer.notes, [
        (task.name, getattr(task, "options", None) and len(task.options))
        for task in model.tasks
        if task.name != "anchor_title"
    ]
    assert "9 model calls (max_calls)" in answer.notes[0]


def test_the_papers_walk_asks_twice_a_move_and_summarises_long_passages_once(
    open_client: Callable[..., HGMem],
) -> None:
    def enough(task: Any) -> EnoughReply:
        return EnoughReply(enough=any(KEY in seen.text for seen in task.known))

    def going(task: Any) -> NextReply:
        named = [at for at, way in enumerate(task.options) if "Anna gave the key number 2" in _name(way)]
        return NextReply(next=(named or [0])[0], why="its title")

    model = Guide(KEY).model(
        enough=enough, next_node=going, passage_summary=lambda task: TextReply(text=f"In short: {task.text[:30]}")
    )
    client = walked_town(open_client, model)
    answer = client.ask(QUESTION, system="remindrag", recipe="paper", settings={"summary_tokens": 20})
    names = [task.name for task in model.tasks if task.name != "anchor_title"]
    assert names[0] in ("passage_summary", "enough")
    assert names[-2:] == ["answer", "useful"]  # the paper learns after each walk
    assert answer.notes[-1].startswith("learnt: ")
    summaries = [hit for step in answer.steps for one in step.retrieved for hit in one.built if hit.kind == "Summary"]
    assert summaries
    model.tasks.clear()
    again = client.ask(QUESTION, system="remindrag", recipe="paper", settings={"summary_tokens": 20})
    names = [task.name for task in model.tasks]
    assert [name for name in names if name != "passage_summary"] == ["enough", "answer"]
    assert any(step.strategy == "replay" for step in again.steps)


def _name(option: Any) -> str:
    return str(getattr(option, "node", option).text)


def test_prompts_of_a_walk_have_less_than_half_of_the_papers_characters(open_client: Callable[..., HGMem]) -> None:
    ours: list[int] = []
    papers: list[int] = []

    def move(task: Any) -> MoveReply:
        known, visited = (*task.known, *task.fresh), tuple(seen.title for seen in task.known)
        judged = JudgeEnough(question=task.question, known=known)
        going = ChooseNext(question=task.question, known=known, visited=visited, options=task.options)
        ours.append(_size(task))
        papers.append(_size(judged) + (_size(going) if task.options else 0))
        return MoveReply(found="Anna gave it to Bruno in the mill.", next=0)

    client = walked_town(open_client, Guide(KEY).model(move=move))
    client.ask(QUESTION, system="remindrag", settings={"look_tokens": 0, "max_calls": 20})
    assert len(ours) == 11
    assert sum(ours) <= sum(papers) / 2


def _size(task: Any) -> int:
    return sum(len(message.content) for message in prompt_of(task).filled(task.fields()))


def test_ablations_leave_out_what_they_name(open_client: Callable[..., HGMem]) -> None:
    seen: dict[str, set[str]] = {}
    for recipe in ("default", "no-chain", "no-synonyms"):
        ties: set[str] = set()

        def move(task: Any, ties: set[str] = ties) -> MoveReply:
            ties |= {way.tie for way in task.options}
            middle = [at for at, way in enumerate(task.options) if "key number 1" in way.node.text]
            return MoveReply(next=(middle or [0])[0])

        client = walked_town(open_client, Guide(KEY).model(move=move))
        client.ask(QUESTION, system="remindrag", recipe=recipe, settings={"ways": 100, "look_tokens": 0})
        seen[recipe] = ties
    assert {"RELATES", "MENTIONS", "NEXT_ANCHOR"} <= seen["default"]
    assert "NEXT_ANCHOR" not in seen["no-chain"]
    assert "SYNONYM_OF" not in seen["no-synonyms"]


def test_names_with_separators_and_a_corpus_of_one_chunk(open_client: Callable[..., HGMem]) -> None:
    client = open_client()
    client.add(Document(id="one", title="anchor_one: a_b", text="Anchor Smith met A_B: C_D at anchor-7."))
    client.build("remindrag")
    answer = client.ask("Whom did Anchor Smith meet?", system="remindrag")
    assert answer.status == "answered"
    assert client.remindrag.learn(memory=answer.memory)[0].number == 1 if edges(answer) else True
    assert client.check().findings == ()


def test_a_corpus_without_a_graph_is_walked_along_its_text(open_client: Callable[..., HGMem]) -> None:
    client = open_client(chunk_tokens=40, chunk_overlap=0)
    text = "\n\n".join(f"On day {at} the crew of the Aurora saw island number {at}. " * 3 for at in range(12))
    client.add(Document(id="log", title="Log", text=text), graph=False)
    client.build("remindrag", settings=SMALL)
    answer = client.ask("What did the crew see on day 7?", system="remindrag")
    assert answer.citations
    assert {hit.kind for step in answer.steps for one in step.retrieved for hit in one.built} == {"Anchor", "Passage"}


def test_filters_keep_the_walk_within_documents(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model(move=lambda task: MoveReply(next=0)))
    answer = client.ask(QUESTION, system="remindrag", filters={"title": "Ledger of Emil"})
    chunks = {chunk.uid: chunk.title for chunk in client.chunks()}
    read = {chunks[hit.uid] for step in answer.steps for one in step.retrieved for hit in one.chunks}
    assert read == {"Ledger of Emil"}


def test_it_has_to_be_built(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=ScriptedModel({"anchor_title": lambda task: TextReply(text="x")}))
    client.add_graph(town())
    with pytest.raises(UsageError, match="no build 'remindrag': make it with `hgmem build remindrag"):
        client.ask(QUESTION, system="remindrag")

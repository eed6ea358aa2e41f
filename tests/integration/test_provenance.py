"""What lines of evidence rest on, and the passages of findings in an answer's prompt."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from letters import LETTERS, QUESTION, SENTENCES, TEXT, Wanting, wanting

from hgmem import Document, HGMem
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.models.prompts import prompt_of
from hgmem.retrieval.answer import AnswerReply
from hgmem.systems.hgmem.replies import EvolveReply, Insertion, Joining, MergeAndPlanReply, MergeReply, Revision
from hgmem.values.graph_elements import Chunk

Open = Callable[..., HGMem]
UNREAD = {"retrieval.chunks": 0, "retrieval.chunk_search": "off", "retrieval.line_chunks": False}
NEW = {"only_new": True, "retrieval.line_chunks": True}
MARKED = re.compile(r"(?:\[\d+\]){1,3}$")


def asked(client: HGMem, name: str) -> list[Any]:
    """Return the tasks of this name that the client's model got."""
    model: Any = client.model
    return [task for task in model.tasks if task.name == name]


def prompt(task: Any) -> str:
    return "\n".join(message.content for message in prompt_of(task).filled(task.fields()))


def lines(task: Any) -> list[str]:
    """Return the lines of entities and relations in a prompt's evidence."""
    text = task.fields()["evidence"].split("Chunks")[0]
    return [line for line in text.splitlines() if line.startswith("- ")]


def number_of(task: Any, text: str) -> int:
    """Return the number behind the line that begins with this text."""
    (line,) = [line for line in lines(task) if line.startswith(text)]
    found = re.search(r"\[(\d+)\]$", line)
    assert found
    return int(found[1])


def insertion(*chunks: int, of: str = "A finding.", entities: tuple[str, ...] = ("Anna", "Mill")) -> Insertion:
    return Insertion(entities=entities, description=of, chunks=chunks)


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        ("default", {}),
        ("compact", {}),
        ("single", {"evidence_tokens": 1}),
        ("default", {"only_new": True}),
    ],
)
def test_every_line_names_chunks_that_are_there_whatever_is_shown(
    letters: Any, recipe: str, options: dict[str, Any]
) -> None:
    client = letters()
    client.ask(QUESTION, recipe=recipe, steps=3, settings=options)
    tasks = [*asked(client, "evolve"), *asked(client, "step")]
    assert any(lines(task) for task in tasks)
    for task in tasks:
        assert [line for line in lines(task) if not MARKED.search(line)] == []
        on_show = {chunk.uid for chunk in task.evidence.chunks}
        assert on_show.isdisjoint(source.uid for source in task.evidence.sources)
        texts = task.fields()["evidence"]
        assert all(re.search(rf"^\[{number}\]", texts, re.M) for number in range(len(task.evidence.numbered)))


def test_what_a_memory_alone_knows_rests_on_what_its_point_rests_on(letters: Any) -> None:
    def evolve(task: Any) -> EvolveReply:
        said = [insertion(at, entities=("Zebulon Quay", name)) for at, name in enumerate(("Mill", "Boat"))]
        return EvolveReply(insert=() if task.memory.points else tuple(said))

    def described(_: Any) -> Extraction:
        zebulon = ExtractedEntity(name="Zebulon Quay", type="person", description="A buyer.")
        bought = (ExtractedRelation(source="Zebulon Quay", target=name, keywords=()) for name in ("Mill", "Boat"))
        return Extraction(entities=(zebulon,), relations=tuple(bought))

    client = letters(evolve=evolve, describe=described, merge=lambda _: MergeReply())
    every = {"retrieval.entities": 20, "retrieval.relations": 20}  # five of them depend on uids, where scores are equal
    settings = {"retrieval.exclude": False, "describe": True, **every}
    answer = client.ask(QUESTION, recipe="default", steps=2, settings=settings)
    task = asked(client, "evolve")[1]
    mill, boat = (point.chunks for point in answer.points)
    assert mill != boat
    behind = {
        line.partition(":")[0]: {task.evidence.numbered[int(at)].uid for at in re.findall(r"\[(\d+)\]", line)}
        for line in lines(task)
        if "Zebulon Quay" in line
    }
    assert behind["- Zebulon Quay (person)"] == {*mill, *boat}
    assert behind["- Mill — Zebulon Quay"] == {*mill}
    assert behind["- Boat — Zebulon Quay"] == {*boat}


def test_what_memory_holds_is_hidden_and_still_a_source(letters: Any) -> None:
    def evolve(task: Any) -> EvolveReply:
        every = range(len(task.evidence.chunks))
        return EvolveReply(insert=() if task.memory.points else (insertion(*every),))

    client = letters(evolve=evolve)
    client.ask(QUESTION, steps=2, settings={"only_new": True})
    second = asked(client, "evolve")[1]
    assert not [chunk for chunk in second.evidence.numbered if isinstance(chunk, Chunk)]
    assert re.search(r"Chunks not shown\n\[0\] Letters, chunk \d\n", second.fields()["evidence"])


def test_chunks_behind_lines_are_found_and_shown_once(letters: Any) -> None:
    few = {**NEW, "retrieval.chunks": 0, "retrieval.chunk_search": "off", "retrieval.entities": 2}
    client = letters(evolve=lambda _: EvolveReply())
    answer = client.ask(QUESTION, steps=1, settings=few)
    (first,) = [task.evidence for task in asked(client, "evolve")]
    (retrieved,) = answer.steps[0].retrieved
    scores = [hit.score for hit in retrieved.chunks]
    assert scores == sorted(scores, reverse=True)
    behind = {uid for uids in first.behind.values() for uid in uids}
    assert {hit.uid for hit in retrieved.chunks} == behind == {chunk.uid for chunk in first.chunks}
    assert (first.relations, first.sources) == ((), ())  # their chunks are on show

    tokens = 2 * max(chunk.tokens for chunk in first.chunks)
    client.ask(QUESTION, steps=2, settings={**NEW, "evidence_tokens": tokens})
    one, two = (task.evidence for task in asked(client, "evolve")[1:])
    assert len({chunk.uid for chunk in (*one.chunks, *two.chunks)}) == len(one.chunks) + len(two.chunks)


def test_a_finding_rests_on_a_chunk_that_no_step_read_and_the_answer_cites_it(letters: Any) -> None:
    def evolve(task: Any) -> EvolveReply:
        return EvolveReply(insert=(insertion(number_of(task, "- Dag — Mill"), entities=("Dag", "Mill")),))

    client = letters(evolve=evolve, answer=lambda _: AnswerReply(text="Dag burned the mill [1]."))
    answer = client.ask(QUESTION, steps=1, settings=UNREAD)
    assert answer.steps[0].retrieved[0].chunks == ()
    (citation,) = answer.citations
    assert citation.quote == SENTENCES[3]
    assert "- A finding. [1]\n" in prompt(asked(client, "answer")[0])
    (point,) = client.memory(answer.memory).points
    assert point.chunks == (citation.chunk,) == answer.points[0].chunks
    (passage,) = client.passages(answer.memory)
    assert (passage.chunk.uid, passage.score, passage.step) == (citation.chunk, None, 1)
    assert client.check().findings == ()

    client.delete(document="letters")
    (point,) = client.memory(answer.memory).points
    assert (point.chunks, point.deleted_chunks) == ((), (citation.chunk,))
    assert client.memory(answer.memory).answers[0].citations[0].withdrawn


def test_a_source_that_is_deleted_meanwhile_is_noted_at_the_point_and_does_no_harm(letters: Any) -> None:
    def evolve(task: Any) -> EvolveReply:
        at = number_of(task, "- Dag — Mill")
        client.delete(document="letters")
        return EvolveReply(insert=(insertion(at, entities=("Dag", "Mill")),))

    client = letters(evolve=evolve)
    answer = client.ask(QUESTION, steps=1, settings=UNREAD)
    (point,) = client.memory(answer.memory).points
    assert (point.chunks, len(point.deleted_chunks)) == ((), 1)


def test_no_number_leads_to_a_document_that_a_filter_leaves_out(open_client: Open) -> None:
    client = open_client(model=wanting())
    client.add_graph(LETTERS)
    client.add_graph(
        replace(
            LETTERS,
            documents=(Document(id="other", title="Other", text=TEXT),),
            chunks=tuple(replace(one, id=f"o{one.id}", document="other") for one in LETTERS.chunks),
            entities=tuple(replace(one, chunks=tuple(f"o{uid}" for uid in one.chunks)) for one in LETTERS.entities),
            relations=tuple(replace(one, chunks=tuple(f"o{uid}" for uid in one.chunks)) for one in LETTERS.relations),
        )
    )
    client.ask(QUESTION, steps=2, filters={"title": "Letters"})
    for task in asked(client, "evolve"):
        assert {one.title for one in task.evidence.numbered} <= {"Letters"}
        assert [line for line in lines(task) if not MARKED.search(line)] == []


# Passages of findings -----------------------------------------------------------------------------------------


def findings(task: Any) -> EvolveReply:
    """One finding for every sentence, and revisions of the first point that bring what is left."""
    if not task.memory.points:
        return EvolveReply(
            insert=tuple(insertion(at, of=f"Finding {at}.", entities=("Mill", "Bo")) for at in range(3)),
        )
    return EvolveReply(update=(Revision(point=0, description="Said better.", chunks=(3, 4)),))


def test_every_finding_that_was_merged_and_revised_has_its_passage_in_the_answers_prompt(letters: Any) -> None:
    client = letters(
        evolve=findings,
        merge=lambda task: (
            MergeReply(merge=(Joining(points=(0, 1, 2), description="All of it."),))
            if len(task.memory.points) > 2
            else MergeReply()
        ),
    )
    tokens = 4 * len(SENTENCES[0].split())
    small = {"read_tokens": 0, "answer_tokens": tokens, "only_new": False}
    answer = client.ask(QUESTION, steps=2, settings=small)
    (living,) = [point for point in answer.points if point.died is None]
    assert len(living.chunks) == 5
    shown = {chunk.text for chunk in asked(client, "answer")[-1].passages}
    assert shown < set(SENTENCES)
    assert {chunk.position for chunk in asked(client, "answer")[-1].passages} >= {0, 1, 2}  # a finding each
    stored = {one.chunk.uid for one in client.passages(answer.memory)}
    assert {chunk.uid for chunk in asked(client, "answer")[-1].passages} == stored

    client.ask(memory=answer.memory, at_step=1, settings=small)
    assert {chunk.position for chunk in asked(client, "answer")[-1].passages} == {0, 1, 2}
    client.ask("What does Eve count?", memory=answer.memory, steps=1, settings={**small, "answer_tokens": 6_000})
    assert {chunk.position for chunk in asked(client, "answer")[-1].passages} == {0, 1, 2, 3, 4}


def test_what_was_read_follows_what_points_rest_on_up_to_its_own_budget(letters: Any) -> None:
    client = letters(evolve=lambda task: EvolveReply(insert=(insertion(4, of="The lamps.", entities=("Eve", "Pier")),)))
    client.ask(QUESTION, steps=1, settings={"read_tokens": 0})
    assert [chunk.position for chunk in asked(client, "answer")[-1].passages] == [4]
    answer = client.ask(QUESTION, steps=1)
    assert [chunk.position for chunk in asked(client, "answer")[-1].passages] == [0, 1, 2, 3, 4]
    assert client.passages(answer.memory)[0].chunk.position == 4


def test_an_answer_gets_the_chunks_that_no_step_had_room_for(letters: Any) -> None:
    client = letters(evolve=lambda task: EvolveReply(insert=(insertion(1, of="The lamps.", entities=("Eve", "Pier")),)))
    small = {"read_tokens": 0, "evidence_tokens": 1}

    def positions(**settings: int) -> list[int]:
        client.ask(QUESTION, steps=1, settings={**small, **settings})
        return [chunk.position for chunk in asked(client, "answer")[-1].passages]

    (support,) = positions()
    (shown,) = [chunk.position for chunk in asked(client, "evolve")[-1].evidence.chunks]
    assert shown != support
    unread = {0, 1, 2, 3, 4} - {shown, support}
    assert positions(unread_tokens=10_000) == sorted({support, *unread})
    tokens = [chunk.tokens for chunk in asked(client, "answer")[-1].passages]
    assert positions(unread_tokens=min(tokens) - 1) == [support]  # none fits
    assert positions(unread_tokens=10_000, answer_tokens=sum(tokens) - 1) != sorted({support, *unread})
    told = [chunk.tokens for chunk in asked(client, "answer")[-1].passages]
    assert sum(told) < sum(tokens)


@pytest.mark.parametrize("only_new", [False, True])
def test_stored_steps_tell_which_chunks_they_showed(letters: Any, only_new: bool) -> None:
    client = letters(evolve=lambda _: EvolveReply(insert=(insertion(0),)))  # one of the chunks that a step shows
    tokens = {"read_tokens": 0, "evidence_tokens": 30, "unread_tokens": 10_000}
    answer = client.ask(QUESTION, steps=2, settings={**tokens, "only_new": only_new})
    prompted = {chunk.uid for chunk in asked(client, "answer")[-1].passages}
    shown = {chunk.uid for task in asked(client, "evolve") for chunk in task.evidence.chunks}
    supports = {uid for point in answer.points if point.died is None for uid in point.chunks}
    assert shown - supports
    assert prompted.isdisjoint(shown - supports)

    assert {one.chunk.uid for one in client.passages(answer.memory)} == prompted
    client.ask(memory=answer.memory, at_step=2)
    assert {chunk.uid for chunk in asked(client, "answer")[-1].passages} == prompted


def test_compact_shows_the_numbers_of_passages_behind_a_merged_point(letters: Any) -> None:
    client = letters(
        evolve=findings,
        merge_and_plan=lambda task: MergeAndPlanReply(judgement="local", concerns=Wanting().inquiries()),
    )
    client.ask(QUESTION, recipe="compact", steps=2)
    assert "- Said better. [1]" in prompt(asked(client, "answer")[0])

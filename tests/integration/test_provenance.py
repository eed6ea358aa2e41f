"""What lines of evidence rest on, and the passages of findings in an answer's prompt."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from letters import LETTERS, QUESTION, SENTENCES, TEXT, wanting

from hgmem import Document, HGMem
from hgmem.models.prompts import prompt_of
from hgmem.retrieval.answer import AnswerReply
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Inquiry,
    Insertion,
    Joining,
    PlanReply,
    Revision,
    StepReply,
    SubqueriesReply,
)

Open = Callable[..., HGMem]
PLAN = PlanReply(judgement="open", concerns=(Concern(text="Cleo left the harbour"),))
AGAIN = {"only_new": False}  # a step of so small a corpus shows what an earlier one has shown


def asked(client: HGMem, name: str) -> list[Any]:
    """Return the tasks of this name that the client's model got."""
    model: Any = client.model
    return [task for task in model.tasks if task.name == name]


def prompt(task: Any) -> str:
    return "\n".join(message.content for message in prompt_of(task).filled(task.fields()))


def insertion(*chunks: int, of: str = "A finding.", entities: tuple[str, ...] = ("Anna", "Mill")) -> Insertion:
    return Insertion(entities=entities, description=of, chunks=chunks)


def test_what_was_shown_is_named_and_not_shown_again_and_findings_still_rest_on_it(letters: Any) -> None:
    replies = iter([EvolveReply(insert=(insertion(0),)), EvolveReply(insert=(insertion(3, of="Another."),))])
    client = letters(evolve=lambda _: next(replies), plan=lambda _: PLAN)
    answer = client.ask(QUESTION, steps=2, settings={"retrieval.entities": 9})
    (first,), (second,) = asked(client, "step"), asked(client, "evolve")

    assert [chunk.text for chunk in first.evidence.chunks] == list(SENTENCES)
    assert (second.evidence.chunks, second.evidence.numbered) == ((), first.evidence.chunks)
    again = second.fields()["evidence"].partition("Found again, shown in an earlier round\n")[2].splitlines()
    assert "[0] Letters" in again
    assert "[3] Letters, chunk 4" in again
    assert "A finding. — Anna; Mill [0]" in second.fields()["memory"]
    assert [point.chunks for point in answer.points] == [(first.evidence.chunks[at].uid,) for at in (0, 3)]


def test_no_line_of_an_entity_stands_where_a_chunk_of_an_earlier_prompt_says_it(letters: Any) -> None:
    client = letters(evolve=lambda _: EvolveReply(insert=(insertion(0),)), plan=lambda _: PLAN)
    answer = client.ask(QUESTION, steps=2, settings={"retrieval.entities": 9, "retrieval.relations": 9})
    evolved = asked(client, "evolve")[-1].evidence

    assert answer.steps[1].retrieved[0].entities
    assert answer.steps[1].retrieved[0].relations
    assert (evolved.entities, evolved.relations) == ((), ())
    client.ask(QUESTION, steps=2, settings={"retrieval.entities": 9, "only_new": False})
    assert asked(client, "evolve")[-1].evidence.entities


@pytest.mark.parametrize(("points", "beside"), [((0,), {1, 3}), ((0, 1), {1, 4}), ((), set())])
def test_what_asks_about_points_reads_on_around_the_chunks_that_they_rest_on(
    points: tuple[int, ...], beside: set[int], letters: Any
) -> None:
    inserted = tuple(insertion(at, of=f"Finding {at}.") for at in (2, 3))
    about = Inquiry(text="More", subquery="What else?", points=points, strategy="local" if points else "global")
    step = StepReply(insert=inserted, judgement="open", concerns=(about,))
    client = letters(step=lambda _: step, evolve=lambda _: EvolveReply())
    found = {
        "retrieval.chunks": 0,
        "retrieval.searched_chunks": 5,
        "later_chunks": 1,
        "retrieval.chunk_search": "vector",
    }
    answer = client.ask(QUESTION, steps=2, settings={**found, **AGAIN})
    without = client.ask(QUESTION, steps=2, settings={**found, **AGAIN, "retrieval.beside": 0})

    uids = {chunk.uid: SENTENCES.index(chunk.text) for chunk in asked(client, "step")[0].evidence.chunks}
    after, before = ([uids[hit.uid] for hit in one.steps[1].retrieved[0].chunks] for one in (answer, without))
    assert (len(before), after[:1]) == (1, before)
    assert {*after[1:]} == beside - {*before}


def test_numbers_of_chunks_go_on_over_the_steps_and_the_rounds_of_a_question(letters: Any) -> None:
    few = {"retrieval.chunks": 0, "retrieval.searched_chunks": 1, "later_chunks": 1, "retrieval.chunk_search": "vector"}
    asking = {"plan": lambda _: PLAN, "subqueries": lambda _: SubqueriesReply(subqueries=("",))}
    client = letters(evolve=lambda _: EvolveReply(insert=(insertion(0),)), **asking)
    answer = client.ask("Anna sold the mill", steps=1, settings=few)
    client.ask(memory=answer.memory, steps=2)
    shown = [task.evidence for task in client.model.tasks if task.name in ("step", "evolve")]

    assert [chunk.text for one in shown for chunk in one.chunks][:2] == [SENTENCES[0], SENTENCES[2]]
    for before, after in itertools.pairwise(shown):
        assert after.shown == before.numbered
    assert "\n[1] Letters, chunk 3\n" in prompt(next(task for task in client.model.tasks if task.name == "step"))


def test_no_step_shows_a_chunk_that_an_earlier_one_has_shown(letters: Any) -> None:
    client = letters(evolve=lambda _: EvolveReply())
    client.ask(QUESTION, steps=2, settings={"evidence_tokens": 25})
    (one,), (two,) = ([task.evidence for task in asked(client, name)] for name in ("step", "evolve"))
    assert one.chunks
    assert two.chunks
    assert len({chunk.uid for chunk in (*one.chunks, *two.chunks)}) == len(one.chunks) + len(two.chunks)


def test_an_insertion_without_a_number_rests_on_what_mentions_it_only_if_no_other_has_one(letters: Any) -> None:
    dag, eve = (insertion(of=names[0], entities=names) for names in (("Dag", "Mill"), ("Eve",)))
    alone = letters(evolve=lambda _: EvolveReply(insert=(dag, eve))).ask(QUESTION, steps=1)
    beside = letters(evolve=lambda _: EvolveReply(insert=(dag, insertion(0)))).ask(QUESTION, steps=1)

    assert [len(point.chunks) for point in alone.points] == [1, 1]
    assert [len(point.chunks) for point in beside.points] == [0, 1]


def test_a_finding_rests_on_the_chunk_of_its_number_and_the_answer_cites_it(letters: Any) -> None:
    burned = EvolveReply(insert=(insertion(3, entities=("Dag", "Mill")),))
    client = letters(evolve=lambda _: burned, answer=lambda _: AnswerReply(text="Dag burned the mill [1]."))
    answer = client.ask(QUESTION, steps=1, settings={"read_tokens": 0})
    (citation,) = answer.citations
    assert citation.quote == SENTENCES[3]
    assert "- A finding. [1]\n" in prompt(asked(client, "answer")[0])
    (point,) = client.memory(answer.memory).points
    assert point.chunks == (citation.chunk,) == answer.points[0].chunks
    (passage,) = client.passages(answer.memory)
    assert (passage.chunk.uid, passage.step) == (citation.chunk, 1)
    assert client.check().findings == ()

    client.delete(document="letters")
    (point,) = client.memory(answer.memory).points
    assert (point.chunks, point.deleted_chunks) == ((), (citation.chunk,))
    assert client.memory(answer.memory).answers[0].citations[0].withdrawn


def test_a_chunk_that_is_deleted_meanwhile_is_noted_at_the_point_and_does_no_harm(letters: Any) -> None:
    def evolve(_: Any) -> EvolveReply:
        client.delete(document="letters")
        return EvolveReply(insert=(insertion(3, entities=("Dag", "Mill")),))

    client = letters(evolve=evolve)
    answer = client.ask(QUESTION, steps=1)
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
    tasks = [*asked(client, "step"), *asked(client, "evolve")]
    assert [task.name for task in tasks] == ["step", "evolve"]
    for task in tasks:
        assert {one.title for one in task.evidence.numbered} == {"Letters"}
        assert "Other" not in prompt(task)


# Passages of findings -----------------------------------------------------------------------------------------


def findings(task: Any) -> EvolveReply:
    """A finding for each of three sentences; then a revision of the first that brings what is left, and one merge."""
    if not task.memory.points:
        return EvolveReply(
            insert=tuple(insertion(at, of=f"Finding {at}.", entities=("Mill", "Bo")) for at in range(3)),
        )
    return EvolveReply(
        update=(Revision(point=0, description="Said better.", replaces=True, chunks=(3, 4)),),
        merge=(Joining(points=(0, 1, 2), description="All of it."),),
    )


def test_every_finding_that_was_merged_and_revised_has_its_passage_in_the_answers_prompt(letters: Any) -> None:
    client = letters(evolve=findings)
    tokens = 4 * len(SENTENCES[0].split())
    small = {"read_tokens": 0, "answer_tokens": tokens, **AGAIN}
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
    client = letters(evolve=lambda task: EvolveReply(insert=(insertion(0, of="The lamps.", entities=("Eve", "Pier")),)))
    small = {"read_tokens": 0, "evidence_tokens": 1}

    def positions(**settings: int) -> list[int]:
        client.ask(QUESTION, steps=1, settings={**small, **settings})
        return [chunk.position for chunk in asked(client, "answer")[-1].passages]

    (support,) = positions()
    (shown,) = [chunk.position for chunk in asked(client, "evolve")[-1].evidence.chunks]
    assert shown == support
    unread = {0, 1, 2, 3, 4} - {support}
    assert positions(read_tokens=6_000) == sorted({support, *unread})
    tokens = [chunk.tokens for chunk in asked(client, "answer")[-1].passages]
    assert positions(read_tokens=6_000, answer_tokens=sum(tokens) - 1) != sorted({support, *unread})
    told = [chunk.tokens for chunk in asked(client, "answer")[-1].passages]
    assert sum(told) < sum(tokens)


def test_the_answer_is_shown_the_numbers_of_passages_behind_a_merged_point(letters: Any) -> None:
    client = letters(evolve=findings)
    client.ask(QUESTION, steps=2, settings=AGAIN)
    said = "- All of it. Said better. Finding 1. Finding 2. [1][2][3][4][5]"
    assert said in prompt(asked(client, "answer")[0])

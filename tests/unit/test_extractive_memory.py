from collections.abc import Iterable, Sequence

import pytest

from hgmem.models.embedding import CheckedEmbedder, TextKind, Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.replies import EvolveReply, MergeReply
from hgmem.systems.hgmem.tasks import Evolve, Merge
from hgmem.testing import DeterministicEmbedder
from hgmem.text.segmentation import collapse
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Chunk, Entity
from hgmem.values.records import MemoryPoint

NAMES = ("Ilse Maron", "Harwick", "Tom Vale", "Tidewater Fund", "Lighthouse")
QUESTION = "Why did Ilse Maron buy the Lighthouse at Harwick?"
FIRST = "Ilse Maron bought the Lighthouse at Harwick because its lamp had to\nburn. Rain fell for days on empty roads."
SECOND = "Tom Vale kept the Lighthouse. He was paid by the Tidewater Fund, and Ilse Maron signed each cheque for it."


def entities(*names: str) -> tuple[Entity, ...]:
    return tuple(Entity(uid=name, name=name) for name in names)


def chunks(*texts: str) -> tuple[Chunk, ...]:
    return tuple(
        Chunk(uid=f"c{at}", document=f"d{at}", position=0, text=text, tokens=50) for at, text in enumerate(texts)
    )


def point(uid: str, description: str, names: Iterable[str]) -> MemoryPoint:
    return MemoryPoint(uid=uid, description=description, entities=entities(*names))


def evolve(*texts: str, points: Sequence[MemoryPoint] = (), question: str = QUESTION) -> EvolveReply:
    evidence = Evidence(entities=entities(*NAMES), chunks=chunks(*texts))
    task = Evolve(question=question, subqueries=(), memory=PromptMemory(points=tuple(points)), evidence=evidence)
    return ExtractiveModel(DeterministicEmbedder(256)).reply(task)


def merge(*points: MemoryPoint) -> MergeReply:
    return ExtractiveModel(DeterministicEmbedder(256)).reply(
        Merge(question=QUESTION, memory=PromptMemory(points=points))
    )


def test_a_near_sentence_becomes_a_point_over_the_entities_it_names() -> None:
    first = evolve(FIRST, SECOND).insert[0]
    assert first.description == "Ilse Maron bought the Lighthouse at Harwick because its lamp had to burn."
    assert set(first.entities) == {"Ilse Maron", "Lighthouse", "Harwick"}
    assert first.chunks == (0,)


def test_a_sentence_that_names_too_few_is_joined_with_its_neighbour() -> None:
    found = evolve(SECOND, question="Who was paid by the Tidewater Fund for the cheque?").insert
    assert set(found[0].entities) == {"Tom Vale", "Lighthouse", "Tidewater Fund", "Ilse Maron"}
    assert found[0].description == SECOND


def test_a_heading_joins_no_sentence() -> None:
    text = f"# The Tidewater Fund of Tom Vale\n\n{FIRST}\n\n## Tom Vale at the Lighthouse\n\nIt rained all day."
    assert all("Vale" not in each.description for each in evolve(text).insert)


def test_every_description_is_quoted_from_the_chunk_it_names() -> None:
    texts = (FIRST, SECOND)
    found = evolve(*texts).insert
    assert found
    assert all(each.description in collapse(texts[each.chunks[0]]) for each in found)


def test_a_point_that_ties_no_entity_is_never_proposed() -> None:
    assert all(each.entities for each in evolve(FIRST, "The lamp had to burn at dusk, they say.").insert)


def test_what_memory_says_already_is_not_said_again() -> None:
    held = evolve(FIRST).insert[0]
    again = evolve(FIRST, points=[point("p", held.description, held.entities)])
    assert held.description not in {each.description for each in again.insert}
    assert not again.update


def test_a_sentence_over_mostly_the_same_entities_revises_the_point() -> None:
    old = "Ilse Maron bought the Lighthouse at Harwick."
    new = "Ilse Maron bought the Lighthouse at Harwick with gold from her aunt, and Tom Vale saw why."
    reply = evolve(new, points=[point("p", old, ["Ilse Maron", "Lighthouse", "Harwick"])])
    assert [(each.point, each.description) for each in reply.update] == [(0, f"{old} {new}")]
    assert reply.update[0].entities == ("Tom Vale",)
    assert reply.insert == ()


def test_a_point_is_revised_once_in_a_reply_and_stays_short() -> None:
    texts = [f"Ilse Maron bought the Lighthouse at Harwick for reason number {n} of many." for n in range(30)]
    held = point("p", "Ilse Maron bought the Lighthouse at Harwick.", ["Ilse Maron", "Lighthouse", "Harwick"])
    reply = evolve(*texts, points=[held])
    assert len({each.point for each in reply.update}) == len(reply.update)
    assert all(len(each.description) <= 600 for each in reply.update)
    assert len(reply.insert) <= 6


def test_a_chunk_without_known_entities_ties_what_looks_like_a_name() -> None:
    evidence = Evidence(chunks=chunks("It was Orla Dunne who painted the pier at Harwick in green."))
    task = Evolve(question="Who painted the pier?", subqueries=(), memory=PromptMemory(), evidence=evidence)
    reply = ExtractiveModel(DeterministicEmbedder()).reply(task)
    assert "Orla Dunne" in reply.insert[0].entities


def test_no_evidence_adds_nothing() -> None:
    assert evolve() == EvolveReply()


def test_points_that_share_an_entity_and_cover_the_question_together_are_merged() -> None:
    reply = merge(
        point("a", "Ilse Maron bought the Lighthouse for its lamp.", ["Ilse Maron", "Lighthouse"]),
        point("b", "Rain fell on Tom Vale.", ["Tom Vale"]),
        point("c", "The Lighthouse stands at Harwick by the sea.", ["Lighthouse", "Harwick"]),
    )
    assert [each.points for each in reply.merge] == [(0, 2)]
    assert reply.merge[0].description == (
        "Ilse Maron bought the Lighthouse for its lamp. The Lighthouse stands at Harwick by the sea."
    )


def test_a_merged_description_repeats_no_sentence() -> None:
    shared = "Ilse Maron bought the Lighthouse."
    reply = merge(
        point("a", shared, ["Ilse Maron", "Lighthouse"]),
        point("b", f"{shared} It stands at Harwick.", ["Ilse Maron", "Lighthouse", "Harwick"]),
    )
    assert reply.merge[0].description == f"{shared} It stands at Harwick."


def test_each_point_takes_part_in_one_merge_at_most_and_no_merge_is_a_blob() -> None:
    points = [
        point(f"p{n}", f"Ilse Maron bought the Lighthouse, part {n}.", ["Ilse Maron", "Lighthouse"]) for n in range(9)
    ]
    used = [at for each in merge(*points).merge for at in each.points]
    assert len(used) == len(set(used))
    assert all(2 <= len(each.points) <= 3 for each in merge(*points).merge)


def test_points_without_a_shared_entity_stay_apart() -> None:
    assert (
        merge(point("a", "Tom Vale slept.", ["Tom Vale"]), point("b", "Tom Vale slept.", ["Harwick"])) == MergeReply()
    )


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_points_are_never_merged(count: int) -> None:
    assert merge(*[point("a", "Tom Vale slept.", ["Tom Vale"])] * count) == MergeReply()


class Counting(DeterministicEmbedder):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        self.seen.extend(texts)
        return super().embed(texts, kind=kind)


def test_a_sentence_is_embedded_once_for_all_steps() -> None:
    embedder = Counting()
    model = ExtractiveModel(embedder)
    task = Evolve(
        question=QUESTION,
        subqueries=(),
        memory=PromptMemory(),
        evidence=Evidence(entities=entities(*NAMES), chunks=chunks(FIRST)),
    )
    assert model.reply(task) == model.reply(task)
    assert len(embedder.seen) == len(set(embedder.seen))


def test_a_step_embeds_a_few_dozen_sentences_of_thousands() -> None:
    embedder = Counting()
    texts = [f"Harwick number {n} saw Ilse Maron buy. The Lighthouse {n} burnt, they said." for n in range(1000)]
    evidence = Evidence(entities=entities(*NAMES), chunks=chunks(*texts))
    ExtractiveModel(embedder).reply(Evolve(question=QUESTION, subqueries=(), memory=PromptMemory(), evidence=evidence))
    assert len(embedder.seen) < 50


def test_the_cache_keeps_no_more_than_its_size() -> None:
    embedder = Counting()
    cache = CheckedEmbedder(embedder, recent=2)
    for text in ("a", "b", "c", "a"):
        cache.of([text])
    assert embedder.seen == ["a", "b", "c", "a"]

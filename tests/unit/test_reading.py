"""The order of a question's passages in its answer's prompt."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from hgmem.graph.retrieval import Scope
from hgmem.memory.recording import MemoryPoints
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.hgmem.investigation import RetrievedChunks
from hgmem.systems.hgmem.recipes import DEFAULT
from hgmem.values.evidence import Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Step

QUERY = np.ones(2, dtype=np.float32)


def step(number: int, *asked: Sequence[tuple[str, float]]) -> Step:
    """Return a step whose sub-queries found these chunks with these scores, in this order."""
    return Step(
        number=number,
        question="Who?",
        strategy="global",
        retrieved=tuple(
            Retrieved(
                subquery=Subquery(text=f"{number}.{at}"),
                chunks=tuple(Hit(uid=uid, rank=rank, score=score) for rank, (uid, score) in enumerate(found, start=1)),
            )
            for at, found in enumerate(asked)
        ),
    )


def order(steps: Sequence[Step]) -> list[str]:
    nothing = cast(Any, None)  # all texts are available: nothing is fetched
    services = Services(database=nothing, model=nothing, embedder=nothing, settings=Settings(), corpus="c")
    scope = Scope(corpus="c")
    retrieved = RetrievedChunks(services=services, scope=scope, config=DEFAULT, question="Who?", query=QUERY)
    retrieved.texts = {
        hit.uid: Chunk(uid=hit.uid, document="d", position=0, text=hit.uid, tokens=1, start=0, end=1)
        for each in steps
        for found in each.retrieved
        for hit in found.chunks
    }
    retrieved.add_steps(steps, MemoryPoints())
    return [chunk.uid for chunk in retrieved.ranked((), MemoryPoints())]


def test_what_one_sub_query_finds_stands_as_it_was_found_whatever_its_cosine() -> None:
    assert order([step(1, [("by words", 0.1), ("near", 0.9)])]) == ["by words", "near"]


def test_the_question_counts_twice_so_that_what_two_later_sub_queries_find_comes_beside_its_own() -> None:
    steps = [step(1, [("a", 0.9), ("b", 0.8)]), step(2, [("c", 0.95), ("d", 0.9)])]
    assert order(steps) == ["a", "b", "c", "d"]
    steps.append(step(3, [("c", 0.95)], [("c", 0.9)]))
    assert order(steps) == ["c", "a", "b", "d"]


def test_what_most_sub_queries_find_outweighs_the_question() -> None:
    asked = [step(1, [("a", 0.9), ("b", 0.8)]), *(step(at, [("c", 0.9), ("d", 0.8)]) for at in (2, 3, 4))]
    assert order(asked) == ["c", "d", "a", "b"]


def test_what_several_sub_queries_find_comes_before_what_one_does() -> None:
    assert order([step(1, [("a", 0.9), ("both", 0.3)]), step(2, [("b", 0.9), ("both", 0.3)])]) == ["both", "a", "b"]

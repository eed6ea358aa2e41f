"""What of a later step's chunks bears on none of its sub-queries."""

import pytest

from hgmem.retrieval.step_evidence import bearing
from hgmem.values.evidence import Evidence, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk

TEXTS = {
    "best": "Ida Berg ran the Holm ferry until June.",
    "words": "Nobody else would take the ferry of Holm.",
    "near": "The boat stopped in summer.",
    "neither": "Apples were dear at the market.",
}


def found(query: str, **scores: float) -> Retrieved:
    hits = (Hit(uid=uid, rank=rank, score=score) for rank, (uid, score) in enumerate(scores.items(), start=1))
    return Retrieved(subquery=Subquery(text=query), chunks=tuple(hits))


def left(*retrieved: Retrieved, titles: dict[str, str] | None = None, language: str = "en") -> Evidence:
    chunks = tuple(
        Chunk(uid=uid, document=uid, position=0, text=text, tokens=9, title=(titles or {}).get(uid, ""))
        for uid, text in TEXTS.items()
    )
    return bearing(Evidence(retrieved=retrieved, chunks=chunks), language=language)


def test_a_chunk_that_is_far_from_a_subquery_and_holds_none_of_its_telling_words_is_left_out() -> None:
    kept = left(found("the Holm ferry", best=0.6, words=0.2, near=0.55, neither=0.2))

    assert [chunk.uid for chunk in kept.chunks] == ["best", "words", "near"]
    assert [(hit.uid, hit.rank) for hit in kept.retrieved[0].chunks] == [("best", 1), ("words", 2), ("near", 3)]


def test_a_chunk_that_bears_on_one_of_several_subqueries_stays_for_all() -> None:
    kept = left(found("the Holm ferry", best=0.6, neither=0.2), found("apples", neither=0.5))
    assert [[hit.uid for hit in one.chunks] for one in kept.retrieved] == [["best", "neither"], ["neither"]]


def test_words_of_a_title_count() -> None:
    query = found("the Holm ferry", best=0.6, neither=0.2)
    assert "neither" not in {chunk.uid for chunk in left(query).chunks}
    assert "neither" in {chunk.uid for chunk in left(query, titles={"neither": "Holm ferry log"}).chunks}


@pytest.mark.parametrize("query", ["Wer fuhr die Fähre?", "渡し船", "", "?!"])
def test_where_no_chunk_holds_a_word_of_a_subquery_none_is_left_out(query: str) -> None:
    kept = left(found(query, best=0.6, words=0.2, near=0.1, neither=-0.2))
    assert len(kept.chunks) == len(TEXTS)


def test_cosines_below_zero_and_nothing_at_all_are_no_error() -> None:
    kept = left(found("the Holm ferry", best=-0.1, neither=-0.5), found("apples"))
    assert [chunk.uid for chunk in kept.chunks] == ["best"]
    assert left().chunks == ()

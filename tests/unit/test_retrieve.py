from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.graph.retrieval import Query, QueryHits, Retrieval, Scope
from hgmem.retrieval.step_evidence import (
    PROPOSED_NEAREST,
    SMALL,
    RetrievalConfig,
    Scene,
    _again,
    _as_searched,
    _chunks,
    _combined,
    _limits,
    _search,
    fuse,
)
from hgmem.values.evidence import Subquery

CONFIG = RetrievalConfig()
LOCAL = Subquery(text="who", strategy="local", targets=("p",))
GLOBAL = Subquery(text="who")


def scene(*, covered=0, entities=SMALL, documents=None, narrow=False):
    scope = Scope(corpus="c", memory="m", documents=documents)
    return Scene(scope=scope, covered=covered, entities=entities, narrow=narrow)


def found(number=0, *, entities=(), seen=0, **others):
    lists = {"relations": {}, "chunks": {}, "near": {}, "matching": (), "read": {}, "nearest": {}} | others
    return QueryHits(number=number, seen=seen, entities=dict.fromkeys(entities, 0.5), **lists)


def query(number=0, search="index"):
    return Query(number=number, vector=[1.0], search=search, chosen=("e",) if search == "scope" else ())


def retrieval(*founds):
    return Retrieval(found=founds, entities={}, relations={}, chunks={})


# Fusion -------------------------------------------------------------------------------------------------------


def test_what_both_rankings_hold_comes_before_what_one_holds():
    assert fuse([["a", "b", "c"], ["d", "b", "e"]])[0] == "b"


def test_equal_ranks_are_ordered_by_uid():
    assert fuse([["z", "y"], ["a", "b"]]) == ["a", "z", "b", "y"]


def test_one_ranking_is_fused_to_itself():
    assert fuse([["z", "a", "m"], []]) == ["z", "a", "m"]


def test_nothing_is_fused_to_nothing():
    assert fuse([[], []]) == []


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=4))
def test_fusion_keeps_everything_once_and_what_is_first_everywhere_first(rankings):
    order = fuse(rankings)

    assert sorted(order) == sorted({uid for ranking in rankings for uid in ranking})
    if rankings and all(rankings) and len({ranking[0] for ranking in rankings}) == 1:
        assert order[0] == rankings[0][0]


# Choice of search ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("covered", "entities"), [(0, 0), (9, 10), (1_999, SMALL)])
def test_exploring_asks_the_index_however_much_memory_holds(covered, entities):
    assert _search(GLOBAL, scene(covered=covered, entities=entities)) == "index"


def test_a_local_sub_query_searches_its_scope_however_small_the_corpus():
    assert _search(LOCAL, scene(covered=9, entities=10)) == "scope"


def test_few_documents_are_searched_by_what_they_mention_and_many_by_the_index():
    assert _search(GLOBAL, scene(documents=("d",), narrow=True, covered=9, entities=10)) == "documents"
    assert _search(GLOBAL, scene(documents=("d",))) == "index"
    assert _search(LOCAL, scene(documents=("d",), narrow=True)) == "scope"


def test_the_index_is_asked_for_all_of_memory_more_than_would_do():
    assert _limits(scene(covered=70), CONFIG)["overfetch"] == PROPOSED_NEAREST + 70
    assert _limits(scene(covered=70), replace(CONFIG, entities=40))["overfetch"] == 270


def test_no_chunk_is_searched_for_where_plain_search_is_off():
    assert _limits(scene(), replace(CONFIG, chunk_search="off"))["search_limit"] == 0


# Second requests ----------------------------------------------------------------------------------------------


def again(*pairs, entities=SMALL, covered=0):
    limits = _limits(scene(covered=covered), CONFIG)
    queries, founds = zip(*pairs, strict=True)
    return _again(queries, retrieval(*founds), scene=scene(covered=covered, entities=entities), limits=limits)


def test_enough_entities_are_enough():
    assert again((query(), found(entities="abcde", seen=PROPOSED_NEAREST))) == ([], ())


def test_too_few_of_all_that_the_index_has_is_the_result():
    assert again((query(), found(entities="abc", seen=PROPOSED_NEAREST - 1))) == ([], ())


@pytest.mark.parametrize(("entities", "expected"), [(SMALL - 1, "exact"), (SMALL, "index")])
def test_too_few_of_as_many_as_were_asked_for_is_asked_once_more(entities, expected):
    queries, notes = again((query(), found(entities="abc", seen=PROPOSED_NEAREST)), entities=entities)

    assert [one.search for one in queries] == [expected]
    assert notes == ()


def test_too_few_of_chosen_documents_are_asked_for_once_more():
    queries, _ = again((query(search="documents"), found(entities="abc", seen=PROPOSED_NEAREST)))

    assert len(queries) == 1
    assert again((query(search="documents"), found(entities="abc", seen=PROPOSED_NEAREST - 1))) == ([], ())


def test_what_was_exact_is_not_asked_again():
    assert again((query(search="exact"), found(entities="abc", seen=1000))) == ([], ())


def test_an_empty_scope_is_asked_globally_and_noted():
    queries, notes = again(
        (query(0), found(0, entities="abcde", seen=PROPOSED_NEAREST)),
        (query(1, search="scope"), found(1)),
        (query(2, search="scope"), found(2, entities="a")),
    )

    assert [(one.number, one.search, one.chosen) for one in queries] == [(1, "index", ())]
    assert notes == ("sub-query 2: nothing around its points, so it was asked globally",)


def test_a_sub_query_that_was_asked_globally_after_all_says_so():
    assert _as_searched(LOCAL, query()) == replace(LOCAL, strategy="global", targets=())
    assert _as_searched(LOCAL, query(search="scope")) == LOCAL


def test_second_findings_replace_the_first_ones_of_their_sub_query_alone():
    first = retrieval(found(0, entities="a"), found(1, entities="b"))
    second = retrieval(found(1, entities="xyz"))

    assert [tuple(one.entities) for one in _combined(first, second).found] == [("a",), ("x", "y", "z")]


def test_what_the_first_request_found_among_all_chunks_stays_for_the_second_one_does_not_search_them():
    lists = {"near": {"c": 0.5}, "matching": ("d",), "read": {"c": 0.5, "d": 0.1}}
    first = retrieval(found(0, chunks={"a": 0.5}, **lists))
    (both,) = _combined(first, retrieval(found(0, entities="x", chunks={"b": 0.5}))).found

    assert (dict(both.near), both.matching, dict(both.read)) == tuple(lists.values())
    assert (tuple(both.entities), dict(both.chunks)) == (("x",), {"b": 0.5})


# Chunks -------------------------------------------------------------------------------------------------------


def test_chunks_are_the_entities_own_and_what_was_read_of_the_search_by_fused_rank():
    chunks, near = (dict.fromkeys(uids, 0.5) for uids in ("ab", "cd"))
    order = list(_chunks(found(chunks=chunks, near=near, matching=tuple("dae"), read=dict.fromkeys("dc", 0.5))))

    assert order[0] == "a"  # first of the entities' chunks, second of the full-text hits
    assert set(order) == {"a", "b", "c", "d"}


def test_a_chunk_keeps_the_score_that_it_was_found_with():
    lists = {"near": {"a": 0.9, "b": 0.1}, "matching": ("c",), "read": {"a": 0.9, "b": 0.1, "c": -0.2}}
    scores = _chunks(found(chunks={"a": 0.9}, **lists))

    assert scores == {"a": 0.9, "b": 0.1, "c": -0.2}

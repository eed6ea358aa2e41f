from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.systems.hgmem.recipes import DEFAULT
from hgmem.systems.hgmem.replies import Concern, PlanReply, SubqueriesReply, with_subqueries
from hgmem.systems.hgmem.step import StepDraft
from hgmem.values.records import MemoryPoint

POINTS = tuple(MemoryPoint(uid=f"p{at}", description=f"Point {at}.", entities=()) for at in range(3))


def plan(*concerns, judgement="global"):
    return PlanReply(judgement=judgement, concerns=tuple(Concern(text=text, points=at) for text, at in concerns))


def asked(plan_reply, *texts, previous=()):
    inquiries, notes = with_subqueries(plan_reply.concerns, SubqueriesReply(subqueries=texts))
    config = replace(DEFAULT, concerns=9)
    draft = StepDraft(memory="m", number=1, config=config, before=POINTS, asked=previous)
    found = draft.next_step(plan_reply.judgement, inquiries, known=POINTS)
    return replace(found, notes=(*notes, *found.notes))


def texts_of(following):
    return [subquery.text for subquery in following.subqueries]


def test_each_concern_has_its_sub_query_in_order():
    following = asked(plan(("who", ()), ("where", ())), "Who was it?", "Where was it?")

    assert [(one.text, one.concern, one.strategy, one.targets) for one in following.subqueries] == [
        ("Who was it?", "who", "global", ()),
        ("Where was it?", "where", "global", ()),
    ]
    assert following.notes == ()
    assert following.judgement == "global"


@pytest.mark.parametrize("texts", [(), ("Who?",), ("Who?", ""), ("Who?", " \n")])
def test_a_short_reply_is_padded_with_the_concerns_own_text(texts):
    following = asked(plan(("who", ()), ("where", ())), *texts)

    assert texts_of(following) == [*(text for text in texts[:1]), *["who"][len(texts[:1]) :], "where"]


def test_sub_queries_beyond_the_concerns_are_dropped_and_noted():
    following = asked(plan(("who", ())), "Who?", "What else?", "And?")

    assert texts_of(following) == ["Who?"]
    assert following.notes == ("2 sub-queries beyond the concerns were dropped",)


@pytest.mark.parametrize("repeat", ["WHO IS ANNA?", " who  is\nAnna? "])
def test_a_sub_query_that_was_asked_before_is_dropped_and_noted(repeat):
    following = asked(plan(("a", ()), ("b", ())), repeat, "New.", previous=["Who is\tAnna?"])

    assert texts_of(following) == ["New."]
    assert len(following.notes) == 1
    assert "asked before" in following.notes[0]


def test_the_same_sub_query_twice_in_one_reply_is_asked_once():
    following = asked(plan(("a", ()), ("b", ())), "Who?", "who?")

    assert texts_of(following) == ["Who?"]


def test_where_nothing_is_left_to_ask_there_is_no_sub_query():
    following = asked(plan(("Who?", ())), "Who?", previous=["who?"])

    assert following.subqueries == ()


def test_a_concern_and_a_sub_query_without_text_are_dropped_as_empty():
    following = asked(plan((" ", ())), "")

    assert following.subqueries == ()
    assert "it is empty" in following.notes[0]


def test_a_local_concern_digs_into_the_living_points_that_it_names_each_once():
    following = asked(plan(("who", (2, 0, 2, -1, 3)), judgement="local"), "Who?")

    assert following.subqueries[0].targets == ("p2", "p0")
    assert following.subqueries[0].strategy == "local"
    assert following.judgement == "local"


@pytest.mark.parametrize("points", [(), (3,), (-1,), (99, -7)])
def test_a_local_concern_without_a_living_point_is_asked_globally_and_noted(points):
    following = asked(plan(("who", points), ("where", (1,)), judgement="local"), "Who?", "Where?")

    assert [one.strategy for one in following.subqueries] == ["global", "local"]
    assert following.subqueries[0].targets == ()
    assert following.notes == ("sub-query 'Who?' names no active point: searched globally",)


def test_a_global_plan_has_no_targets_even_where_concerns_name_points():
    following = asked(plan(("who", (0,))), "Who?")

    assert following.subqueries[0].targets == ()
    assert following.subqueries[0].strategy == "global"
    assert following.notes == ()


@given(
    st.lists(st.tuples(st.text(max_size=5), st.lists(st.integers(-4, 5), max_size=3).map(tuple)), max_size=4),
    st.lists(st.text(max_size=5), max_size=5),
    st.sampled_from(["local", "global"]),
    st.lists(st.text(max_size=5), max_size=3),
)
def test_whatever_is_replied_sub_queries_are_new_and_at_most_one_a_concern(concerns, texts, judgement, previous):
    following = asked(plan(*concerns, judgement=judgement), *texts, previous=previous)
    said = [" ".join(text.split()).casefold() for text in texts_of(following)]

    assert len(following.subqueries) <= len(concerns)
    assert all(said)
    assert len(set(said)) == len(said)
    assert not set(said) & {" ".join(text.split()).casefold() for text in previous}
    assert all((one.strategy == "local") == bool(one.targets) for one in following.subqueries)

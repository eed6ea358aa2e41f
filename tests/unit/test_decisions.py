"""Decisions and the classes that follow from them."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hgmem.text.identity import decision_uid
from hgmem.values.decisions import RANKS, Decision, classes

ENDS = "abcdef"
PAIRS = [(a, b) for a in ENDS for b in ENDS if a < b]


def decision(a: str, b: str, kind: Any = "same", by: Any = "person", confidence: float = 1.0) -> Decision:
    uid = decision_uid("corpus", (a, b), by)
    return Decision(uid=uid, a=a, b=b, name_a=a, name_b=b, kind=kind, by=by, confidence=confidence)


DECISIONS = st.builds(
    lambda ends, kind, by, confidence: decision(*ends, kind=kind, by=by, confidence=confidence),
    st.sampled_from(PAIRS),
    st.sampled_from(["same", "same", "different", "open"]),
    st.sampled_from([*RANKS]),
    st.sampled_from([0.5, 0.9, 1.0]),
)


def test_what_is_tied_by_several_decisions_is_one_class_with_the_least_uid() -> None:
    found = classes([decision("b", "c"), decision("a", "c"), decision("d", "e")], ENDS)
    assert found.members == {"a": ("a", "b", "c"), "d": ("d", "e")}
    assert found.of == {"a": "a", "b": "a", "c": "a", "d": "d", "e": "d"}


def test_a_join_that_a_decision_of_at_least_its_rank_forbids_is_void_and_says_which() -> None:
    apart = decision("a", "c", "different", by="rule")
    found = classes([decision("a", "b", by="rule"), decision("b", "c", by="model"), apart], ENDS)
    assert found.members == {"a": ("a", "b")}
    assert found.void == {decision("b", "c", by="model").uid: apart.uid}


def test_a_lower_rank_keeps_nothing_apart_and_is_void_itself() -> None:
    apart = decision("a", "b", "different", by="model")
    found = classes([decision("a", "b"), apart], ENDS)
    assert found.members == {"a": ("a", "b")}
    assert found.void == {apart.uid: ""}


def test_the_more_confident_of_two_joins_counts_where_both_cannot() -> None:
    sure, unsure = decision("b", "c", by="model", confidence=0.9), decision("a", "b", by="model", confidence=0.5)
    apart = decision("a", "c", "different", by="model")
    found = classes([unsure, sure, apart], ENDS)
    assert (found.members, found.void) == ({"b": ("b", "c")}, {unsure.uid: apart.uid})


def test_a_decision_sleeps_while_an_entity_is_gone() -> None:
    chain = [decision("a", "b"), decision("b", "c")]
    assert classes(chain, "ac").members == {}
    assert classes(chain, "abc").members == {"a": ("a", "b", "c")}


@given(st.lists(DECISIONS, max_size=20), st.sets(st.sampled_from(ENDS)), st.randoms(use_true_random=False))
def test_classes_do_not_depend_on_the_order_and_keep_what_prevails_apart(
    decisions: list[Decision], alive: set[str], chance: Any
) -> None:
    latest = {one.uid: one for one in decisions}
    found = classes(latest.values(), alive)
    shuffled = list(latest.values())
    chance.shuffle(shuffled)
    assert classes(shuffled, alive) == found
    assert set(found.of) <= alive
    of = found.of
    for one in latest.values():
        together = one.a in of and of[one.a] == of.get(one.b)
        if one.uid in found.void or not {one.a, one.b} <= alive:
            continue
        assert together or one.kind != "same"
        assert not together or one.kind != "different"
    assert not [uid for uid in found.void if latest[uid].kind == "different" and latest[uid].by == "person"]

"""Differences between memories as values: empty with itself, backwards the reverse, one after another the sum."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem import MemoryPoint, UsageError
from hgmem.values.differences import (
    ComparedMemory,
    ComparedPoint,
    EvidenceChunk,
    MemoryDiff,
    MemoryState,
    PointPair,
    difference,
)

KEYS = st.sampled_from("abcdefgh")
CHUNKS = st.frozensets(st.sampled_from("uvwxyz"), max_size=4)


def chunk(uid: str) -> EvidenceChunk:
    return EvidenceChunk(uid=uid, document="d", title="Letters", position=ord(uid), beginning=uid)


@st.composite
def states(draw: st.DrawFn) -> MemoryState:
    """Draw a memory whose points rest on chunks, some of them made from others. A key may be there twice."""
    memory = draw(st.sampled_from(("m1", "m2", "m3")))
    points = draw(st.lists(st.tuples(KEYS, st.frozensets(KEYS, max_size=3), CHUNKS, st.integers(1, 3)), max_size=7))
    compared = (
        ComparedPoint(
            key=key,
            behind=behind - {key},
            point=MemoryPoint(
                uid=f"{memory}-{at}", description=key, entities=(), chunks=tuple(sorted(chunks)), born=born
            ),
        )
        for at, (key, behind, chunks, born) in enumerate(points)
    )
    at = draw(st.integers(1, 3))
    answer = draw(st.sampled_from(("", "Anna.", "Bo.")))
    named = ComparedMemory(memory=memory, step=at, system="hgmem", model="m", question="Who?", answer=answer)
    return MemoryState(memory=named, points=tuple(compared), evidence=tuple(map(chunk, draw(CHUNKS))))


def turned(pairs: tuple[PointPair, ...]) -> set[PointPair]:
    return {PointPair(before=pair.after, after=pair.before) for pair in pairs}


@given(states())
def test_a_memory_does_not_differ_from_itself(state: MemoryState) -> None:
    found = difference(state, state)
    assert found.is_empty
    assert {pair.before.key for pair in found.kept} == {one.key for one in state.points}
    assert not {pair for pair in found.kept if pair.before != pair.after}


@given(states(), states(), states())
def test_one_difference_after_another_is_the_difference_of_both_ends(
    one: MemoryState, other: MemoryState, third: MemoryState
) -> None:
    assert difference(one, other).then(difference(other, third)) == difference(one, third)


@given(states(), states())
def test_backwards_what_was_gained_is_lost(one: MemoryState, other: MemoryState) -> None:
    there, back = difference(one, other), difference(other, one)
    assert (there.gained, there.lost, there.evidence_gained) == (back.lost, back.gained, back.evidence_lost)
    assert ({*there.kept}, {*there.revised}) == (turned(back.kept), turned(back.revised))
    assert there.is_empty == back.is_empty


@given(states(), states())
def test_every_point_is_told_once_on_each_side(one: MemoryState, other: MemoryState) -> None:
    found = difference(one, other)
    pairs = (*found.kept, *found.revised)
    for points, alone, ends in (
        (one.points, found.lost, [pair.before for pair in pairs]),
        (other.points, found.gained, [pair.after for pair in pairs]),
    ):
        assert {each.key for each in points} == {each.key for each in (*alone, *ends)}
        assert not {each.key for each in alone} & {each.key for each in ends}
    assert not {pair.before.key for pair in found.kept} & {pair.before.key for pair in found.revised}


def test_differences_that_do_not_follow_one_another_are_refused() -> None:
    named = [ComparedMemory(memory=f"m{at}", step=at, system="s", model="m", question="?") for at in (1, 2)]
    found = MemoryDiff(before=named[0], after=named[1])
    with pytest.raises(UsageError, match="the first ends with 'm2' at step 2, the second begins with 'm1' at step 1"):
        found.then(found)

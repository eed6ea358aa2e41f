"""Tests of what a trail remembers: the figures that follow from the paper's equations."""

from math import sqrt
from typing import Any

import numpy as np
import pytest

from hgmem.systems.remindrag.recipes import DEFAULT, Penalty
from hgmem.systems.remindrag.touches import NEAR, Touch, cited_again, nearest_use, relevance, standing, strong_trails
from hgmem.systems.remindrag.trails import Vector, delta, least_cosine, replayed, touched

ALPHA, STRONG = 0.1, 0.55  # the paper's


def pair(cosine: float) -> tuple[Vector, Vector]:
    """Return two unit vectors of this cosine."""
    one, other = np.zeros(8), np.zeros(8)
    one[0], other[0], other[1] = 1, cosine, sqrt(1 - cosine**2)
    return one.astype(np.float32), other.astype(np.float32)


def learnt(question: Vector, times: int) -> Vector:
    return replayed([{"question": question, "effective": True, "penalty": "forget"}] * times, dimensions=8)


def test_a_trail_moves_far_at_first_and_no_more_at_length_one() -> None:
    assert [round(delta(x), 3) for x in (0, 1, 2)] == [0.637, 0, -0.637]
    one, _ = pair(0)
    lengths = [float(np.linalg.norm(learnt(one, times))) for times in range(5)]
    assert np.allclose(lengths, [0, 0.637, 0.981, 1.0, 1.0], atol=1e-3)


def test_one_learning_makes_a_trail_strong_for_the_same_question() -> None:
    one, _ = pair(0)
    scores = [relevance(0.4, float(learnt(one, times) @ one), alpha=ALPHA) for times in (0, 1, 2, 3)]
    assert np.allclose(scores, [0.04, 0.613, 0.923, 0.94], atol=1e-3)
    assert [score > STRONG for score in scores] == [False, True, True, True]


@pytest.mark.parametrize(("times", "cosine"), [(1, 0.89), (2, 0.58)])
def test_how_near_another_question_has_to_be(times: int, cosine: float) -> None:
    one, _ = pair(0)
    length = float(np.linalg.norm(learnt(one, times)))
    least = least_cosine(0.4, length, alpha=ALPHA, strong=STRONG)
    assert least == pytest.approx(cosine, abs=0.005)
    for near, strong in ((least + 0.01, True), (least - 0.01, False)):
        _, other = pair(near)
        assert (relevance(0.4, float(learnt(one, times) @ other), alpha=ALPHA) > STRONG) is strong


def test_a_trail_keeps_two_questions_that_take_turns() -> None:
    one, other = pair(0.8)
    touches = [{"question": each, "effective": True, "penalty": "forget"} for each in (one, other)] * 20
    trail = replayed(touches, dimensions=8)
    assert (float(trail @ one), float(trail @ other)) == pytest.approx((0.98, 0.91), abs=0.005)


@pytest.mark.parametrize(
    ("penalty", "before", "after"),
    [
        ("forget", 0.98, 0.02), ("forget", 1.0, 0.0), ("forget", 0.637, 0.23),
        ("shrink", 0.98, 0.96), ("shrink", 0.637, 0.418), ("shrink", 0.418, 0.207), ("shrink", 1.0, 1.0),
        ("fade", 1.0, 0.58), ("fade", 0.58, 0.412), ("fade", 0.637, 0.435), ("fade", 0.3, 0.3), ("fade", 0.2, 0.2),
        ("off", 0.637, 0.637),
    ],
)  # fmt: skip
def test_a_way_of_no_use_loses_what_is_along_the_question(penalty: Penalty, before: float, after: float) -> None:
    one, other = pair(0)
    trail = (before * one + 0.3 * other).astype(np.float32)
    moved = touched(trail, question=one, effective=False, penalty=penalty)
    assert float(moved @ one) == pytest.approx(after, abs=0.005)
    assert float(moved @ other) == pytest.approx(0.3, abs=1e-6)  # what is across stays


@pytest.mark.parametrize("cosine", [0.95, 0.9, 0.8, 0.6])
def test_a_mature_trail_outlives_another_question_however_often_they_take_turns(cosine: float) -> None:
    one, other = pair(cosine)
    trail, scores = learnt(one, 3), []
    for _ in range(50):
        trail = touched(trail, question=other, effective=False, penalty=DEFAULT.penalty)
        scores.append(relevance(0, float(trail @ one), alpha=DEFAULT.alpha))
        trail = touched(trail, question=one, effective=True, penalty=DEFAULT.penalty)
    assert min(scores) > DEFAULT.strong
    assert relevance(1, float(trail @ other), alpha=DEFAULT.alpha) < DEFAULT.strong


@pytest.mark.parametrize("times", [1, 2, 3, 10])
def test_a_trail_that_misleads_twice_is_followed_no_more(times: int) -> None:
    one, _ = pair(0)
    trail = learnt(one, times)
    for _ in range(2):
        trail = touched(trail, question=one, effective=False, penalty=DEFAULT.penalty)
    assert relevance(1, float(trail @ one), alpha=DEFAULT.alpha) < DEFAULT.strong


def test_an_owners_trail_lowers_what_everybodys_says() -> None:
    one, _ = pair(0)
    none = np.zeros(8, dtype=np.float32)
    own = touched(none, question=one, effective=False, penalty=DEFAULT.penalty, beside=1.0)
    assert float(own @ one) == pytest.approx(-0.42)
    again = touched(own, question=one, effective=False, penalty=DEFAULT.penalty, beside=1.0)
    assert 1 + float(again @ one) == pytest.approx(0.412)  # as everybody's own would be
    assert np.array_equal(touched(none, question=one, effective=False, penalty=DEFAULT.penalty), none)


@pytest.mark.parametrize("penalty", ["fade", "forget", "shrink", "off"])
def test_a_question_that_points_away_is_no_matter(penalty: Penalty) -> None:
    one, _ = pair(0)
    trail = (-0.5 * one).astype(np.float32)
    assert np.array_equal(touched(trail, question=one, effective=False, penalty=penalty), trail)


def touch(near: float, effective: bool, number: int, *, own: bool = False) -> Touch:
    return Touch(near=near, effective=effective, own=own, number=number)


def test_a_touch_of_use_counts_by_its_question_whatever_others_were_of_use() -> None:
    assert nearest_use([touch(0.7, True, at) for at in range(100)] + [touch(1, True, 100)]) == 1
    assert nearest_use([]) == nearest_use([touch(1, False, 1)]) == 0


@pytest.mark.parametrize(("cosine", "left"), [(1, 0.55), (0.95, 0.62), (0.9, 0.68), (0.8, 0.81), (0.5, 1)])
def test_a_useless_touch_since_takes_a_share_the_nearer_the_more(cosine: float, left: float) -> None:
    assert nearest_use([touch(1, True, 1), touch(cosine, False, 2)]) == pytest.approx(left, abs=0.005)
    assert nearest_use([touch(1, True, 1), touch(cosine, False, 2), touch(1, True, 3)]) == 1


def test_two_useless_touches_of_the_same_question_end_a_trail_and_a_useful_one_renews_it() -> None:
    found = [*(touch(1, True, at) for at in range(3)), touch(1, False, 3)]
    assert relevance(0.4, nearest_use(found), alpha=DEFAULT.alpha) > DEFAULT.strong
    found.append(touch(1, False, 4))
    assert relevance(1, nearest_use(found), alpha=DEFAULT.alpha) < DEFAULT.strong
    assert nearest_use([*found, touch(1, True, 5)]) == 1


def test_an_owners_bad_experience_counts_against_everybodys_good_one_and_not_the_reverse() -> None:
    assert nearest_use([touch(1, True, 9), touch(1, False, 1, own=True)]) == pytest.approx(0.55)
    assert nearest_use([touch(1, True, 1, own=True), touch(1, False, 9)]) == 1


def test_a_question_is_known_again_by_what_its_answer_cited() -> None:
    def learning(memory: str, cited: str, owner: str = "", **more: object) -> dict[str, object]:
        told = {"memory": memory, "owner": owner, "cited": list(cited), "question": memory, "number": 1, "wrong": False}
        return told | more

    learnt = [learning("one", "abcd"), learning("two", "efgh"), learning("three", "ax")]
    assert cited_again(standing(learnt, owner=""), "abe") == [
        list("abcd")
    ]  # of the second too little, of the third one chunk
    assert cited_again(standing(learnt, owner=""), "abcefx") == [list("ax"), list("abcd"), list("efgh")]
    wrong = learning("one", "ab", owner="ann", wrong=True)
    assert cited_again(standing([*learnt, wrong], owner="ann"), "ab") == []
    assert cited_again(standing([*learnt, wrong], owner="bob"), "ab") == [list("abcd")]
    again = [learning(f"{at}", cited, number=at, wrong=True) for at, cited in ((2, "ab"), (3, "abx"), (4, "efgh"))]
    assert cited_again(standing([*learnt, *again[:1]], owner=""), "ab") == [list("abcd")]
    assert cited_again(standing([*learnt, *again], owner="ann"), "abefgh") == [list("efgh")]  # once is not enough
    learnt_since = learning("four", "abcd", number=4)
    assert cited_again(standing([*learnt, *again, learnt_since], owner=""), "ab") == [list("abcd")]
    asked_again = [{**one, "question": "two", "cited": []} for one in again[:2]]
    assert cited_again(standing([*learnt, *asked_again], owner=""), "efgh") == []
    a_chunk_each = [learning("8", "a", number=8, wrong=True), learning("9", "b", number=9, wrong=True)]
    assert cited_again(standing([learning("five", "ab"), *a_chunk_each], owner=""), "ab") == [list("ab")]


def test_of_very_many_strong_trails_the_strongest_500_are_followed() -> None:
    class Near:
        """A database in which near questions touched 600 trails, the first one by the farthest."""

        def run(self, name: str, /, **parameters: Any) -> list[dict[str, Any]]:
            assert (name, parameters["least"]) == ("near_touches", NEAR)
            trail = {"owner": "", "tie": "RELATES", "alike": 0.4, "chunks": None}
            return [
                {**trail, "uid": str(at), "ends": ("a", str(at)), "touches": [(0.7 + at / 2_000, True, at)]}
                for at in range(600)
            ]

    query, _ = pair(1)
    found = strong_trails(Near(), corpus="c", owners=[""], query=query, config=DEFAULT)
    assert [trail.uid for trail in found] == [str(at) for at in range(599, 99, -1)]

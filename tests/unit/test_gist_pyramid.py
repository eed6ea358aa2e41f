"""Gists: which of them fit a budget, what the prompt asks for, and what the rule-based model writes."""

import pytest

from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.prompts import prompt_of
from hgmem.systems.gists.reading import GistPlace, Pyramid
from hgmem.systems.gists.tasks import WriteGist
from hgmem.testing import DeterministicEmbedder
from hgmem.text.tokens import count


def places(*levels: int, above: dict[int, str] | None = None, tokens: int = 10) -> Pyramid:
    ties = above or {}
    return Pyramid(
        places=[
            GistPlace(uid=f"g{at}", level=level, tokens=tokens, above=(ties[at],) if at in ties else ())
            for at, level in enumerate(levels)
        ]
    )


def test_memory_is_the_most_detailed_level_that_fits() -> None:
    whole = places(2, 1, 1, 1, 1, above={1: "g0", 2: "g0", 3: "g0", 4: "g0"})
    assert whole.fitting(40) == (["g1", "g2", "g3", "g4"], 0)
    assert whole.fitting(39) == (["g0"], 0)
    assert whole.fitting(1) == ([], 1)
    assert list(whole.below("g0")) == ["g1", "g2", "g3", "g4"]
    assert places().fitting(10) == ([], 0)


def test_a_level_with_others_below_it_leaves_room_for_looking_into_them() -> None:
    above = {at: "g0" if at < 5 else f"g{1 + (at - 5) // 2}" for at in range(1, 13)}
    three = places(3, *[2] * 4, *[1] * 8, above=above)
    assert three.fitting(80, looking=40) == (
        [f"g{at}" for at in range(5, 13)],
        0,
    )  # nothing lies below, so no room is kept
    assert three.fitting(79, looking=39) == (["g1", "g2", "g3", "g4"], 0)
    assert three.fitting(79, looking=40) == (["g0"], 0)
    assert three.fitting(15, looking=7) == (["g0"], 0)  # the highest may take all of the budget
    assert three.fitting(9, looking=4) == ([], 1)
    assert [three.depth(uids) for uids in (["g0"], ["g5", "g1"], ["g5"], [])] == [2, 1, 0, 0]


def test_a_gist_that_none_above_condenses_is_shown_beside_those_above() -> None:
    assert places(2, 1, 1, 1, above={1: "g0", 2: "g0"}).fitting(25) == (["g0", "g3"], 0)


def test_a_top_that_does_not_fit_is_cut_off() -> None:
    assert places(1, 1, 1).fitting(25) == (["g0", "g1"], 1)


def test_extractive_gists_are_sentences_of_the_text_in_order_and_fit() -> None:
    text = " ".join(f"The {word} of the town was repaired in {1800 + at}." for at, word in enumerate("abcdefghij"))
    reply = WriteGist(texts=(("A ledger", text),), tokens=40).extractive(CheckedEmbedder(DeterministicEmbedder()))
    chosen = reply.text.split("\n")
    assert 1 < len(chosen) < 10
    assert count(reply.text) <= 45
    assert all(sentence in text for sentence in chosen)
    assert [text.index(sentence) for sentence in chosen] == sorted(text.index(sentence) for sentence in chosen)


@pytest.mark.parametrize(
    "text", ["他们都害怕水。桥断了。没有人说话。", "هم يخافون. انكسر الجسر. لم يتكلم أحد.", "— * —"]
)
def test_extractive_gists_of_any_text_say_something(text: str) -> None:
    reply = WriteGist(texts=(("", text),), tokens=5).extractive(CheckedEmbedder(DeterministicEmbedder()))
    assert reply.text


ENGLISH = "In Arbor the anchor was sold to a barrel maker for nine pounds, and nobody in the town spoke of it again. "
CHINESE = "大桥在一八七四年断了。没有人说话。他们都害怕水。"


@pytest.mark.parametrize(("text", "least", "most"), [(ENGLISH, 60, 90), (CHINESE, 50, 100), ("12.5 | " * 9, 20, 80)])
def test_the_prompt_limits_a_gist_in_words_that_have_about_its_tokens(text: str, least: int, most: int) -> None:
    task = WriteGist(texts=(("A ledger", text * 30),), tokens=100)
    assert least <= task.words <= most
    assert task.words % 10 == 0
    system, user = prompt_of(task).filled(task.fields())
    assert f"in at most {task.words} words" in user.content
    assert "token" not in system.content + user.content

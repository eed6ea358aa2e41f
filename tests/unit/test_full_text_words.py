"""Words that full-text search takes from a question: none of the characters can act as Lucene syntax."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.graph.full_text import as_indexed, searched_words, split_words

HOSTILE = [
    *'+-!(){}[]^"~*?:\\/<>=|&;,.%@#$`',
    "AND",
    "OR",
    "NOT",
    "TO",
    "text:a",
    "corpus_key:0",
    "\\u0022",
    "it's",
    "\u200d",
]


@given(st.lists(st.one_of(st.sampled_from(HOSTILE), st.text())).map(" ".join))
def test_whatever_the_text_only_letters_digits_and_our_own_forms_are_searched(text: str) -> None:
    for form in as_indexed(searched_words(text)):
        word = re.fullmatch(r"(\*?)(.+?)(\*|['’]s)?", form)
        assert word
        assert split_words(word[2]) == [word[2]]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Who sold the miller's wife's bell, don't you know?", ["sold", "miller", "wife", "bell", "don", "know"]),
        ("To be or not to be", ["to", "be", "or", "not"]),
        ("Bell bell BELL", ["bell"]),
        ("snake_case and 3.14", ["snake", "case", "3", "14"]),
        ("Λόγος Straße चक्की", ["λόγος", "straße", "चक्की"]),
        ("他卖掉", ["他卖", "卖掉"]),
        ("…🦊 ͏", []),
    ],
)
def test_words_are_in_lower_case_without_function_words_and_endings(text: str, wanted: list[str]) -> None:
    assert [word["text"] for word in searched_words(text)] == wanted


def test_words_are_bounded() -> None:
    assert len(searched_words(" ".join(f"word{at}" for at in range(10_000)))) == 64
    assert searched_words("x" * 101) == []

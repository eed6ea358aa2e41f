"""The stems of texts and questions: by language, in every script, and nothing of Lucene's syntax among them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.graph.full_text import MOST_DOCUMENTS, MOST_TERMS, lucene, within
from hgmem.text.identity import chunk_layer, layer_key
from hgmem.text.stems import searched_stems, split_words, stems, stored_stems

HOSTILE = [
    *'+-!(){}[]^"~*?:\\/<>=|&;,.%@#$`',
    "AND",
    "OR",
    "NOT",
    "TO",
    "stems:a",
    "layer_key:0",
    "\\u0022",
    "it's",
    "\u200d",
]


def searched(text: str, language: str = "en") -> list[str]:
    return searched_stems(text, language, most=MOST_TERMS)


TEXTS = st.lists(st.one_of(st.sampled_from(HOSTILE), st.text())).map(" ".join)


@given(TEXTS, st.sampled_from(["en", "ar", "zh", "xx"]))
def test_whatever_the_text_stems_are_letters_digits_and_marks_alone(text: str, language: str) -> None:
    found = searched(text, language)
    assert [word for one in found for word in split_words(one)] == found
    assert set(found) <= set(stems(text, language))  # so that a text finds itself


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Who sold the miller's wife's bells, don't you know?", ["sold", "miller", "wife", "bell", "don", "know"]),
        ("To be or not to be", ["to", "be", "or", "not"]),
        ("Bell bells BELL", ["bell"]),
        ("snake_case and 3.14", ["snake", "case", "3", "14"]),
        ("Λόγος चक्की", ["λόγος", "चक्की"]),
        ("他卖掉", ["他卖", "卖掉"]),
        ("中", ["中"]),
        ("…🦊 ͏", []),
    ],
)
def test_words_are_in_lower_case_without_function_words_and_endings(text: str, wanted: list[str]) -> None:
    assert searched(text) == wanted


@pytest.mark.parametrize(
    ("language", "one", "other"),
    [
        ("en", "She supplies lamps", "the supply of a lamp"),
        ("de", "die Straßen der Lieferanten", "eine Strasse, ein Lieferant"),
        ("ar", "المدرسة", "مدرسة"),
        ("fr", "les contrats signés", "contrat signé"),
        ("ru", "контракты", "контракта"),
    ],
)
def test_forms_of_one_word_have_one_stem(language: str, one: str, other: str) -> None:
    assert set(searched(other, language)) <= set(searched(one, language)) | set(stems(one, language))
    assert not set(searched(other, "xx")) <= set(searched(one, "xx"))  # no language with a stemmer


def test_a_part_of_a_word_in_a_script_without_spaces_is_found() -> None:
    text = stems("我们去北京大学", "zh")
    assert {"北京", "京大", "大学", "北"} <= set(text)


def test_stored_stems_can_be_counted_however_often_one_follows_itself() -> None:
    assert stored_stems("Bell, bell! Bells ring.", "en").count(" bell ") == 3


def test_words_are_bounded() -> None:
    assert len(searched(" ".join(f"word{at}" for at in range(10_000)))) == MOST_TERMS
    assert searched("x" * 101) == []


def test_a_query_is_of_one_layer_and_names_documents_all_at_once_or_in_parts() -> None:
    key = chunk_layer("c")
    assert lucene(["anna", "or"]) == "+(stems:anna stems:or)"
    assert lucene([]) == ""
    assert len({key, chunk_layer("C"), layer_key("c", "toy", "Gist")}) == 3
    whole = f"+layer_key:{key}^0 "
    assert within(key) == within(key, []) == (whole, [])
    many = [f"d{number}" for number in range(2 * MOST_DOCUMENTS + 1)]
    assert within(key, many[:2]) == (f"{whole}+(document:d0 document:d1)^0 ", [])
    assert within(key, many[:MOST_DOCUMENTS])[1] == []
    beginning, parts = within(key, many)
    named = [re.findall(r"document:(\w+)", part) for part in parts]
    assert beginning == whole
    assert [uid for part in named for uid in part] == many
    assert [len(part) for part in named] == [MOST_DOCUMENTS, MOST_DOCUMENTS, 1]


def test_a_long_run_without_spaces_is_found() -> None:
    run = "北京大学图书馆" * 20
    assert set(searched("图书馆", "zh")) <= set(stems(run, "zh"))
    assert stems("x" * 101, "en") == []

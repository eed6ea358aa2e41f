import subprocess
import sys
import time
from itertools import pairwise

import pytest

from hgmem.text.segmentation import collapse, has_half_pair, headings, sentences, words


def cut(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


def test_sentences_end_at_stops_and_keep_their_closing_quotes() -> None:
    assert cut('He ran. "Stop!" She stood?  So it was…  Done.') == [
        "He ran.",
        '"Stop!"',
        "She stood?",
        "So it was…",
        "Done.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Mr. Vale met Dr. Ilse Maron.",
        "The letter of J. P. Orme was lost.",
        "It came at 5 p.m. from the U.S. Army.",
        '"Go!" he cried, and went.',
        "He paused... then spoke.",
        "It cost 3.50 or so, cf. the ledger.",
    ],
)
def test_abbreviations_initials_and_lower_case_end_no_sentence(text: str) -> None:
    assert cut(text) == [text]


def test_an_abbreviation_that_closes_a_firm_ends_a_sentence_before_an_ordinary_word() -> None:
    assert cut("They sued Orme Ltd. The court sat.") == ["They sued Orme Ltd.", "The court sat."]


def test_blank_lines_headings_and_list_items_end_sentences_but_wrapped_lines_do_not() -> None:
    text = "# Notes\nA line that\nis wrapped\n\nAnother one\n- first item\n- second item\n1. third item"
    assert cut(text) == [
        "# Notes",
        "A line that\nis wrapped",
        "Another one",
        "- first item",
        "- second item",
        "1. third item",
    ]


def test_chinese_and_arabic_stops_need_no_space_or_capital() -> None:
    assert cut("他来了。她走了！为什么？") == ["他来了。", "她走了！", "为什么？"]
    assert cut("وصل أحمد؟ عاد عمر۔") == ["وصل أحمد؟", "عاد عمر۔"]


def test_rules_of_dashes_and_empty_texts_hold_no_sentence() -> None:
    assert sentences("-----\n\n* * *\n\n...") == []
    assert sentences("") == []


def test_spans_are_trimmed_ordered_and_do_not_overlap() -> None:
    text = "  One.  \n\n Two!\tThree?  "
    spans = sentences(text)
    assert all(text[span.start : span.end].strip() == text[span.start : span.end] for span in spans)
    assert all(one.end <= other.start for one, other in pairwise(spans))


def test_words_are_folded_and_lose_a_possessive() -> None:
    assert words("The Keeper’s LAMP, Straße ﬁve") == ["the", "keeper", "lamp", "strasse", "five"]
    assert words("snake_case don't ice-cold") == ["snake", "case", "don't", "ice-cold"]


def test_words_of_an_unspaced_script_are_pairs_of_characters() -> None:
    assert words("北京大学 in 1918年") == ["北京", "京大", "大学", "in", "1918", "年"]


def test_collapse_makes_every_whitespace_one_space() -> None:
    assert collapse("  a\n\tb\u00a0 c ") == "a b c"


MANY = 100_000


@pytest.mark.parametrize("text", ["." * MANY, "a" * MANY, "\n" * MANY, "A. " * MANY, "a'" * MANY, "- " * MANY])
def test_time_is_linear_in_a_text_of_one_repeated_token(text: str) -> None:
    began = time.process_time()
    sentences(text)
    words(text)
    assert time.process_time() - began < 5  # a time that grew with the square would be minutes


def test_importing_it_loads_no_numpy() -> None:
    code = "import sys, hgmem.text.segmentation; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_headings_are_found_outside_of_code_with_any_line_ends(end: str) -> None:
    lines = ["# One", "text # no", "```", "# code", "  ```", "## Two ##", "#none", "####### seven", "~~~", "# open"]
    text = end.join(lines)
    assert [text[slice(*span)] for span in headings(text)] == ["# One", "## Two ##"]


def test_half_a_surrogate_pair_is_seen_and_a_whole_one_is_not() -> None:
    assert has_half_pair("a\ud83d b")
    assert not has_half_pair("a\U0001f600 b")

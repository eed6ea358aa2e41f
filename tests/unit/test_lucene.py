import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.graph.lucene import LONGEST_TERM, MOST_DOCUMENTS, MOST_TERMS, lucene, telling, terms
from hgmem.text.identity import corpus_key

HOSTILE = [*'+-!(){}[]^"~*?:\\/', "&&", "||", "AND", "OR", "NOT", "TO"]
QUERY = re.compile(r"\+corpus_key:[0-9a-f]{16}\^0 \+\((text:[^\W_]+)( text:[^\W_]+)*\)")

texts = st.lists(st.one_of(st.sampled_from([*HOSTILE, "text:a", "corpus_key:0", "\\u0022", "it's"]), st.text()))


@given(texts.map(" ".join))
def test_whatever_the_text_the_query_holds_words_and_our_own_syntax_alone(text):
    query = lucene(terms(text), corpus="c")

    assert query == "" or QUERY.fullmatch(query)


@pytest.mark.parametrize("text", ["", " ", '+-&&||!(){}[]^"~*?:\\/', "___", "\0\u200e", "…—·"])
def test_a_text_without_words_is_no_query(text):
    assert lucene(terms(text), corpus="c") == ""


def test_the_words_of_a_text_are_each_asked_for_once_in_one_corpus():
    assert (
        lucene(terms("Anna's mill OR anna"), corpus="c")
        == f"+corpus_key:{corpus_key('c')}^0 +(text:anna text:mill text:or)"
    )


def test_words_that_most_passages_hold_are_asked_for_where_there_are_no_others_alone():
    assert telling(terms("Who sold the mill to Anna?")) == ["sold", "mill", "anna"]
    assert telling(terms("To be or not to be")) == ["to", "be", "or", "not"]


def test_other_corpora_have_other_keys():
    assert lucene(["mill"], corpus="a") != lucene(["mill"], corpus="A")


def test_a_query_is_bounded_however_long_the_text():
    query = lucene(terms(" ".join(f"word{at}" for at in range(10_000))), corpus="c")

    assert query.count("text:") == MOST_TERMS
    assert lucene(terms("x" * (LONGEST_TERM + 1)), corpus="c") == ""


@pytest.mark.parametrize("text", ["Кто продал мельницу?", "谁卖掉了磨坊？", "من باع الطاحونة؟", "ใครขายโรงสี", "Ποιος;"])
def test_every_script_has_words(text):
    assert QUERY.fullmatch(lucene(terms(text), corpus="c"))


def test_documents_are_named_where_they_are_not_too_many():
    few, many = [f"d{number}" for number in range(3)], [f"d{number}" for number in range(MOST_DOCUMENTS + 1)]

    assert " +(document:d0 document:d1 document:d2)^0 +(text:mill)" in lucene(["mill"], corpus="c", documents=few)
    assert lucene(["mill"], corpus="c", documents=many) == lucene(["mill"], corpus="c", documents=[])
    assert lucene(["mill"], corpus="c", documents=None) == lucene(["mill"], corpus="c")

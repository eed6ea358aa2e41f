import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.errors import UsageError
from hgmem.text.identity import check_corpus_name, chunk_layer, key, text_hash, uid

any_text = st.text(st.characters())  # with lone surrogates


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("JOHN  CARTER", " John\tCarter\n"),
        ("Straße", "STRASSE"),
        ("ﬁnance", "Finance"),
        ("Ｎｅｏ４ｊ", "neo4j"),
        ("e\u0301clair", "\u00e9clair"),
        ("a\u00a0b", "A B"),
    ],
)
def test_spellings_of_one_name_share_their_key(one, other):
    assert key(one) == key(other)


@pytest.mark.parametrize("name", ['"Prince"', "Prince.", "the Prince", "(Prince)"])
def test_nothing_but_case_form_and_blanks_is_taken_off_a_name(name):
    assert key(name) == name.casefold()


def test_a_blank_name_has_the_empty_key():
    assert key(" \n\u3000\t") == ""


@given(any_text)
def test_the_key_of_a_key_is_itself(name):
    assert key(key(name)) == key(name)


def test_uids_are_the_same_for_ever():
    assert uid("corpus", "entity", "prince") == "fa3c0a83268eef9b100efae00611173f"
    assert text_hash("text") == "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1"


@given(st.lists(any_text, min_size=2, max_size=4), st.lists(any_text, min_size=2, max_size=4))
def test_only_equal_parts_give_equal_uids(one, other):
    assert (uid(*one) == uid(*other)) == (one == other)
    assert re.fullmatch("[0-9a-f]{32}", uid(*one))


def test_parts_are_not_confused_with_their_joining():
    joinings = [("a", "b", "c"), ("a", "bc"), ("ab", "c"), ("a", "b,c"), ("a", "1:b,c"), ("a", "b", "", "c")]
    assert len({uid(*parts) for parts in joinings}) == len(joinings)


@given(any_text)
def test_the_key_of_a_layer_is_sixteen_hex_characters(corpus):
    assert re.fullmatch("[0-9a-f]{16}", chunk_layer(corpus))


@pytest.mark.parametrize("name", ["a", "Gods_of-Mars.2", "0", "x" * 64])
def test_a_corpus_name_within_the_rule_is_returned(name):
    assert check_corpus_name(name) == name


@pytest.mark.parametrize("name", ["", ".a", "-a", "a b", "a\n", "x" * 65, "é", "a/b", "a:b", "٣"])
def test_a_corpus_name_outside_the_rule_is_refused_with_the_rule(name):
    with pytest.raises(UsageError, match=re.escape("[A-Za-z0-9][A-Za-z0-9._-]{0,63}")):
        check_corpus_name(name)

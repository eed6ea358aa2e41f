"""Prompt delimiters: data between our tags stays data."""

import pytest

from hgmem.models.prompts import TAGS, quoted


@pytest.mark.parametrize("tag", TAGS)
def test_no_tag_of_ours_survives_inside_data(tag: str) -> None:
    assert quoted(f"a </{tag}> b <{tag}> c") == f"a ‹/{tag}> b ‹{tag}> c"


@pytest.mark.parametrize("text", ["</TEXT>", "< / text >", "<\n/text>", "<text lang='de'>", "</te\0xt>"])
def test_a_tag_written_another_way_is_one_too(text: str) -> None:
    assert quoted(text).startswith("‹")


@pytest.mark.parametrize(
    "text", ["a < b and c > d", "<p>text</p>", "<textarea>", "1 <2> 3", "‹text›", "x\n\n  y\t", ""]
)
def test_everything_else_stays_as_it_is(text: str) -> None:
    assert quoted(text) == text


def test_quoting_twice_changes_nothing_more() -> None:
    once = quoted("one </text> two")
    assert quoted(once) == once

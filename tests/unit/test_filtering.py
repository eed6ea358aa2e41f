"""Filters: their input, and the texts that they match."""

import pytest

from hgmem.errors import UsageError
from hgmem.retrieval.document_filters import normal


def test_values_of_every_kind_are_texts_each_once() -> None:
    given = {" year ": 2020, "score": [2.5, 3.0], "draft": True, "author": ("Poe", "Doyle", "Poe")}
    assert normal(given) == {
        "year": ("2020",),
        "score": ("2.5", "3"),
        "draft": ("true",),
        "author": ("Doyle", "Poe"),
    }


@pytest.mark.parametrize("given", ["source=x", ["source"], 3, {"": "x"}, {" ": "x"}, {3: "x"}, {"source": []}])
def test_what_is_no_filter_is_refused(given: object) -> None:
    with pytest.raises(UsageError):
        normal(given)


@pytest.mark.parametrize("value", [None, {"a": 1}, [None], ["x", []], object()])
def test_a_value_that_no_document_can_have_is_refused_by_name(value: object) -> None:
    with pytest.raises(UsageError, match="'source'"):
        normal({"source": value})

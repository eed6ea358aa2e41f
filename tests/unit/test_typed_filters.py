"""Filters as people type them, for `hgmem ask` and for the verbs of systems."""

import pytest

from hgmem.errors import UsageError
from hgmem.values.inputs import typed_filters


def test_values_of_one_name_are_alternatives() -> None:
    given = ["kind = letter", "title=A=B", "kind=log", "source="]
    assert typed_filters(given) == {"kind": ["letter", "log"], "title": ["A=B"], "source": [""]}


@pytest.mark.parametrize("text", ["Arbor", "=Arbor", " = Arbor", ""])
def test_a_filter_without_a_name_or_a_sign_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        typed_filters([text])
    assert str(raised.value) == f"invalid --where {text!r} (where=): use KEY=VALUE, such as source=report.pdf"

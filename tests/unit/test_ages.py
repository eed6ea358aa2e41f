"""Ages as users type them."""

from datetime import timedelta

import pytest

from hgmem.cli.memory import age
from hgmem.errors import UsageError


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("90m", timedelta(minutes=90)),
        ("12h", timedelta(hours=12)),
        ("30d", timedelta(days=30)),
        (" 2w ", timedelta(weeks=2)),
    ],
)
def test_a_number_and_a_unit_are_an_age(text: str, meant: timedelta) -> None:
    assert age(text) == meant


@pytest.mark.parametrize(
    "text", ["", "30", "d", "0d", "-3d", "1.5h", "3 d", "3y", "30D", "٣d", f"{10**12}w", "9" * 5000 + "d"]
)
def test_what_is_no_age_is_refused_with_how_one_is_written(text: str) -> None:
    with pytest.raises(UsageError, match=r"invalid age .*: use a number with m, h, d or w, such as 90m"):
        age(text)

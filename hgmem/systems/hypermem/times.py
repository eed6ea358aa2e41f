"""When things happen: the first and last day that a fact or a question tells, beside the time of speaking."""

import re
from calendar import monthrange
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, timedelta
from typing import TypeAlias

from hgmem.models.extractive.english import absolute_times

Days: TypeAlias = tuple[str, str]  # the first and last day, as in 2023-05-01, both empty where no time is told

NO_DAYS: Days = ("", "")
_DATE = re.compile(r"(?<![\d-])(week of )?(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?![\d-])")
_MEANT = re.compile(r"\(([^)]*)\)")  # what words mean: "in May 2022 (2022-05)"
_YEARS = re.compile(r"\b(?:years?|decades?|century|centuries)\b", re.IGNORECASE)


def days_of(time: str, *, said_at: str, words: str) -> Days:
    """Return the days of a fact's time, such as "yesterday (2023-05-07)" or "for two weeks (… to …)".

    What is no date is left out, and so is a year that nobody said: it stands in none of the `words`, and is not that
    in which they were said (`said_at`) or one beside it, unless they speak of years.
    """
    said = int(said_at[:4]) if said_at else None
    known = _YEARS.search(f"{time} {words}") is not None and said is not None
    found = [
        days
        for year, days in _dates(time)
        if known or str(year) in words or (said is not None and abs(year - said) <= 1)
    ]
    return (min(first for first, _ in found), max(last for _, last in found)) if found else NO_DAYS


def _dates(time: str) -> Iterator[tuple[int, Days]]:
    meant = " ".join(_MEANT.findall(time))
    for week, year, month, day in _DATE.findall(meant if _DATE.search(meant) else time):
        with suppress(ValueError):
            first = date(int(year), int(month or 1), int(day or 1))
            last = first
            if not day:
                ends = int(month or 12)
                last = date(first.year, ends, monthrange(first.year, ends)[1])
            elif week:
                last = first + timedelta(days=6)
            yield first.year, (first.isoformat(), last.isoformat())


def days_asked(question: str, *, last: str) -> Days:
    """Return the days that a question tells, such as "last week", seen from the `last` day of what was said."""
    return days_of("; ".join(absolute_times(question, last)), said_at=last, words=question)


def overlap(one: Days, other: Days) -> bool:
    """Return whether two spans of days have a day in common. No time overlaps with none."""
    return bool(one[0] and other[0]) and one[0] <= other[1] and other[0] <= one[1]

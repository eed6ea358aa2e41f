"""Times in messages: what "yesterday" means at the time of a message. Words are recognised in English."""

import re
from contextlib import suppress
from datetime import UTC, date
from functools import lru_cache

from hgmem.extraction.message_chunks import moment

_UNIT = r"(?:day|week|weekend|month|year|fortnight)s?"
_NAME = (
    r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tues?|wed|thurs?|fri|sat|sun"
    r"|january|february|march|april|may|june|july|august|september|october|november|december)"
)
_MANY = r"(?:\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|a couple of|a few|several)"
_RELATIVE = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|last night|this (?:morning|afternoon|evening|week|month|year|weekend)"
    rf"|(?:last|next|this past) (?:{_UNIT}|{_NAME})"
    rf"|{_MANY} {_UNIT} ago"
    rf"|in {_MANY} {_UNIT}"
    rf"|(?:on|this) {_NAME})\b",
    re.IGNORECASE,
)
# What the library does not know, in words that it knows.
_SAME = {
    "last weekend": "last saturday",
    "this past weekend": "last saturday",
    "this weekend": "saturday",
    "next weekend": "next saturday",
    "tonight": "today",
    "this afternoon": "today",
    "this evening": "today",
    "this week": "today",
    "this month": "today",
    "this year": "today",
    "a couple of": "2",
    "a few": "3",
    "several": "3",
}
# A sentence with one of these is about the future, and so is a plain "on Friday" in it.
_AHEAD = re.compile(
    r"\b(?:will|won['’]t|shall|next|(?<!was )(?<!were )(?:going|plan|plans|planning|hope|hopes|hoping) to)\b|['’]ll\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(r"\b(week|weekend|month|year|fortnight)s?\b", re.IGNORECASE)


def sortable(time: str) -> str:
    """Return a time in ISO 8601 in a form in which texts sort like times: in UTC, to the second. `''` stays."""
    return moment(time).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S") if time else ""


def until(time: str) -> str:
    """Return the latest time that still counts as before or at `time`, as `sortable` does. Of a day, it is the end."""
    given = time.strip()
    with suppress(ValueError):
        given = f"{date.fromisoformat(given)}T23:59:59"
    return sortable(given)


def absolute_times(text: str, said_at: str) -> list[str]:
    """Return the relative times in a sentence, each as "yesterday (2023-05-07)". `said_at` is in ISO 8601 or empty.

    A day of the week or a month is the last one, or the next one where the sentence is about the future. A week, month
    or year is told as such, as "last week (week of 2023-04-24)".
    """
    if not said_at:
        return []
    found = dict.fromkeys(match[0] for match in _RELATIVE.finditer(text))
    ahead = bool(_AHEAD.search(text))
    told = ((phrase, _told(phrase.casefold(), said_at, ahead=ahead)) for phrase in found)
    return [f"{phrase} ({time})" for phrase, time in told if time]


@lru_cache(maxsize=4_096)
def _told(phrase: str, said_at: str, *, ahead: bool) -> str:
    import dateparser  # its data take time to load, and most questions need none

    words = phrase
    for ours, theirs in _SAME.items():
        words = words.replace(ours, theirs)
    ahead = ahead or phrase.startswith(("this ", "next", "in ", "tomorrow"))
    found = dateparser.parse(
        words.removeprefix("on ").removeprefix("this "),
        languages=["en"],
        settings={
            "RELATIVE_BASE": moment(said_at).replace(tzinfo=None),
            "PREFER_DATES_FROM": "future" if ahead else "past",
        },
    )
    if found is None:
        return ""
    vague = _VAGUE.search(phrase)
    unit = vague[1] if vague else ""
    if unit == "year":
        return f"{found:%Y}"
    if unit == "month":
        return f"{found:%Y-%m}"
    return f"week of {found:%Y-%m-%d}" if unit in ("week", "fortnight") else f"{found:%Y-%m-%d}"

"""Rules of English: the first person, and the days that words such as "yesterday" mean."""

import re
import tomllib
from datetime import datetime
from functools import lru_cache
from pathlib import Path

_WORDS = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))
_FIRST_PERSON: dict[str, str] = _WORDS["third_person"]
_FIRST_PERSON_WORDS = re.compile(
    r"\b(?:" + "|".join(re.escape(words) for words in sorted(_FIRST_PERSON, key=len, reverse=True)) + r")\b(?!['’])",
    re.IGNORECASE,
)
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
# A sentence with one of these is about the future, and so is a plain "on Friday" in it.
_AHEAD = re.compile(
    r"\b(?:will|won['’]t|shall|next|(?<!was )(?<!were )(?:going|plan|plans|planning|hope|hopes|hoping) to)\b|['’]ll\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(r"\b(week|weekend|month|year|fortnight)s?\b", re.IGNORECASE)


def in_third_person(text: str, speaker: str) -> str:
    """Return a sentence with the speaker's name for the first person, or after the name where it has none."""
    replaced = _FIRST_PERSON_WORDS.sub(
        lambda match: _FIRST_PERSON[match[0].casefold()].format(name=speaker), text.replace("’", "'")
    )
    return replaced if speaker in replaced else f"{speaker}: {text}"


def absolute_times(text: str, said_at: str) -> list[str]:
    """Return the relative times in a sentence, each as "yesterday (2023-05-07)". `said_at` is in ISO 8601 or empty.

    A day of the week or a month is the last one, or the next one where the sentence is about the future. A week, month
    or year is told as such, as "last week (week of 2023-04-24)".
    """
    if not said_at:
        return []
    phrases = dict.fromkeys(match[0] for match in _RELATIVE.finditer(text))
    ahead = bool(_AHEAD.search(text))
    times = ((phrase, _absolute(phrase.casefold(), said_at, ahead=ahead)) for phrase in phrases)
    return [f"{phrase} ({time})" for phrase, time in times if time]


@lru_cache(maxsize=4_096)
def _absolute(phrase: str, said_at: str, *, ahead: bool) -> str:
    import dateparser  # its data take time to load, and most questions need none

    words = phrase
    for ours, theirs in _WORDS["same_times"].items():
        words = words.replace(ours, theirs)
    ahead = ahead or phrase.startswith(("this ", "next", "in ", "tomorrow"))
    time = dateparser.parse(
        words.removeprefix("on ").removeprefix("this "),
        languages=["en"],
        settings={
            "RELATIVE_BASE": datetime.fromisoformat(said_at).replace(tzinfo=None),
            "PREFER_DATES_FROM": "future" if ahead else "past",
        },
    )
    if time is None:
        return ""
    vague = _VAGUE.search(phrase)
    unit = vague[1] if vague else ""
    if unit == "year":
        return f"{time:%Y}"
    if unit == "month":
        return f"{time:%Y-%m}"
    return f"week of {time:%Y-%m-%d}" if unit in ("week", "fortnight") else f"{time:%Y-%m-%d}"

"""What documents are and when they are from, by metadata, title and first lines."""

import re
from collections.abc import Mapping
from datetime import date, datetime
from functools import lru_cache

DATED = ("date", "published", "created", "created_at", "time", "timestamp")  # keys of metadata that hold a date
TYPES = ("type", "kind", "genre")  # keys of metadata that say what a document is
_LINES, _LONGEST = 3, 200  # first lines that are read, and characters of each
_ISO = re.compile(r"(?<!\d)(\d{4})-(\d\d)(?:-(\d\d))?(?![\d-])")
_DOTTED = re.compile(r"(?<![\d.])(\d{1,2})\.(\d{1,2})\.(\d{4})(?!\d)")  # day first
_MONTH = re.compile(r"\s*(0?[1-9]|1[0-2])[/.]((?:1[0-9]|20)\d\d)\s*")  # alone: within a text, 3/1861 may be a number
_YEAR = re.compile(r"(?<![\d.])(?:1[0-9]|20)\d\d(?!\d)")
_AMBIGUOUS = re.compile(r"(?<!\d)(0?[1-9]|1[0-2])[/-](0?[1-9]|1[0-2])[/-]\d{4}")  # day and month, or month and day
_WORD = re.compile(r"\d+[./-]\d+[./-]|[^\W_]+[.,]?")
_WORDS = 3  # before a year, and after it


def date_of(title: str, text: str, metadata: Mapping[str, object], *, language: str) -> str:
    """Return a document's date as YYYY-MM-DD or YYYY-MM, or `''` if none is told."""
    for name in DATED:
        if found := _first(str(metadata.get(name) or ""), language):
            return found
    lines = [line.strip()[:_LONGEST] for line in text[: _LINES * 10 * _LONGEST].splitlines() if line.strip()]
    return next((found for line in (title, *lines[:_LINES]) if (found := _first(line, language))), "")


def type_of(metadata: Mapping[str, object]) -> str:
    """Return what the metadata call a document, such as "letter", or `''`."""
    return next((str(metadata[name]) for name in TYPES if isinstance(metadata.get(name), str)), "")


def _first(text: str, language: str) -> str:
    """Return the first date in a text."""
    numbers = {one.start(1): _numbered(one[1], one[2], one[3]) for one in _ISO.finditer(text)}
    numbers |= {one.start(3): _numbered(one[3], one[2], one[1]) for one in _DOTTED.finditer(text)}
    if alone := _MONTH.fullmatch(text):
        numbers[alone.start(2)] = f"{alone[2]}-{int(alone[1]):02}"
    years = sorted({*numbers, *(year.start() for year in _YEAR.finditer(text))})
    told = (numbers[at] if at in numbers else _worded(text, at, language) for at in years)
    return next(filter(None, told), "")


def _numbered(year: str, month: str, day: str | None) -> str:
    """Return the date that numbers are, or `''`: 1910-12 may be years, and there is no 31 February."""
    if day is None and int(month) > int(year[2:]):
        return ""
    try:
        whole = date(int(year), int(month), int(day or 1)).isoformat()
    except ValueError:
        return ""
    return whole if day else whole[:7]


def _worded(text: str, at: int, language: str) -> str:
    """Return the date around a year (its place in the text), or `''`. The longest that may be one comes first."""
    end = at + 4
    before = [word.start() for word in _WORD.finditer(text, max(0, at - 40), at)][-_WORDS:]
    after = [word.end() for word in _WORD.finditer(text, end, end + 40)][:_WORDS]
    words = [*(text[start:end] for start in before), *(text[at:last] for last in reversed(after))]
    return next((found for one in words if (found := _parsed(one, language))), "")


@lru_cache(maxsize=4_096)
def _parsed(words: str, language: str) -> str:
    """Return the date that words are, of which at least month and year are told."""
    import dateparser  # its data take time to load, and most documents need none

    def parse(*parts: str) -> datetime | None:
        asked = {"REQUIRE_PARTS": list(parts), "PREFER_DAY_OF_MONTH": "first", "PARSERS": ["absolute-time"]}
        languages = [language] if language in _known() else None
        found: datetime | None = dateparser.parse(words, languages=languages, settings=asked)
        return found

    if (twofold := _AMBIGUOUS.search(words)) and int(twofold[1]) != int(twofold[2]):
        return ""
    if day := parse("day", "month", "year"):
        return date(day.year, day.month, day.day).isoformat()
    rest = _YEAR.sub("", words)
    if any(map(str.isdigit, rest)) and not re.search("[月월]", rest):
        return ""  # a number beside a year is no month: "volume 3 of 1861"
    month = parse("month", "year")
    return f"{month.year:04}-{month.month:02}" if month else ""


@lru_cache(maxsize=1)
def _known() -> frozenset[str]:
    from dateparser.data.languages_info import language_order

    return frozenset(language_order)

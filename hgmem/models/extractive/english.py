"""Rules of English: the first person, and the days that words such as "yesterday" mean."""

import re
import tomllib
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from hgmem.models.extractive.key_phrases import stems

_WORDS = tomllib.loads(Path(__file__).with_name("english.toml").read_text(encoding="utf-8"))
_FIRST_PERSON: dict[str, str] = _WORDS["third_person"]
_FIRST_PERSON_WORDS = re.compile(
    r"\b(?:" + "|".join(re.escape(words) for words in sorted(_FIRST_PERSON, key=len, reverse=True)) + r")\b(?!['’])",
    re.IGNORECASE,
)
COURTESY = frozenset(stems(_WORDS["courtesy"]["words"]))  # stems of greetings, thanks and cheering
THANKS = frozenset(stems(_WORDS["courtesy"]["thanks"]))  # those that are no news also in the first person
_UNIT = r"(?:day|week|weekend|month|year|fortnight)s?"
_NAME = (
    r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|mon|tues?|wed|thurs?|fri|sat|sun"
    r"|january|february|march|april|may|june|july|august|september|october|november|december)"
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_SEASONS = {"winter": 12, "spring": 3, "summer": 6, "autumn": 9, "fall": 9}  # first months, in the northern hemisphere
_MANY = r"(?:\d{1,3}|a|an|one|two|three|four|five|six|seven|eight|nine|ten|a couple of|a few|several)"
_RELATIVE = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|last night|this (?:morning|afternoon|evening|week|month|year|weekend)"
    rf"|(?:last|next|this past|this) (?:{'|'.join(_SEASONS)})"
    rf"|(?:last|next|this past) (?:{_UNIT}|{_NAME})"
    rf"|{_MANY} {_UNIT} ago"
    rf"|in {_MANY} {_UNIT}"
    rf"|for (?:the (?:last|past) )?{_MANY} {_UNIT}"
    rf"|(?:on )?(?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {_MONTH}(?:,? \d{{4}})?"
    rf"|(?:on )?{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
    rf"|in {_MONTH}(?:,? \d{{4}})?|in (?:19|20)\d\d"
    rf"|(?:on|this) {_NAME})\b",
    re.IGNORECASE,
)
_PAST = frozenset(_WORDS["tenses"]["past"].split())
_PRESENT = frozenset(_WORDS["tenses"]["present"].split())
_ADVERBS = f"(?:{'|'.join(_WORDS['inflection']['adverbs'].split())})"
_BE = r"\b(?:am|are|is)"
# What says whether a plain "on Friday" is the next or the last one: words about the future, or of a past tense.
_TENSE = re.compile(
    r"(?:\b(?:will|won['’]t|shall|next|(?<!was )(?<!were )(?:going|plans?|planning|hopes?|hoping) to)\b|['’]ll\b)"
    rf"(?: (?:{_ADVERBS} )?(?:be|get|have) \w+)?"
    rf"|(?:{_BE}|['’](?:m|re|s)) (?:not |{_ADVERBS} )*\w+ing\b|{_BE} (?:{_ADVERBS} )*\w+ed\b"
    r"|(?:['’](?:ve|s)|\b(?:have|has)) got\b"
    rf"|\b(?P<past>{'|'.join(_PAST)}|(?!(?:{'|'.join(_PRESENT)})\b)\w+ed)\b",
    re.IGNORECASE,
)
_LASTING = re.compile(r"for (?:the (?P<past>last|past) )?", re.IGNORECASE)
_PERFECT = re.compile(r"(?:\b(?:have|has)|['’](?:ve|s))(?: \w+)? (?:been|had|\w+ed|\w+en)\b", re.IGNORECASE)
_OF_A_DATE = re.compile(r"^(?:on|in) |\bthe |\bof |(?<=\d)(?:st|nd|rd|th)\b|,")
_YEAR = re.compile(r"\d{4}")
_WHEN = re.compile(
    r"\bwhen\b|\bhow (?:long|recently)\b|\b(?:what|which) (?:day|date|month|season|time|week|weekend|year)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"\b(?:did|was|were|wasn't|weren't|had|used to|before|earlier|ever|first|former(?:ly)?|once|original(?:ly)?"
    r"|previous(?:ly)?)\b",
    re.IGNORECASE,
)
_NOW = re.compile(r"\b(?:am|are|can|do|does|doesn't|don't|is|will)\b|\b(?:who|what|where)'s\b", re.IGNORECASE)
_NO_PAST = ("today", "tonight", "tomorrow", "this ", "next ")
_VAGUE = re.compile(r"\b(week|weekend|month|year|fortnight)s?\b", re.IGNORECASE)


_AUXILIARY = r"\b(?:am|can|could|did|didn't|do|don't|had|have|may|might|must|shall|should|will|would) "
_CLAUSE = r"(?:^|[,.;:!?] |\b(?:because|but|so|that|when|where|while) )"
_OTHERS = (
    r"(?:(?:her|his|my|our|the|their) (?:(?:best|big|little|old|older|younger) )?\w+|(?-i:[A-Z])\w+|s?he|they|you)"
)
# "I" and its verb, which is an infinitive in "did I say", and has several subjects in "my brother and I say".
_VERB = re.compile(
    rf"(?P<kept>{_AUXILIARY}|{_CLAUSE}{_OTHERS} and )?\bI(?:,? {_ADVERBS},?)* (?P<verb>[a-z]+(?:'t)?)\b(?!')",
    re.IGNORECASE,
)
_IRREGULAR: dict[str, str] = _WORDS["inflection"]["irregular"]
_UNCHANGED = _PAST | frozenset(_WORDS["inflection"]["unchanged"].split())


def in_third_person(text: str, speaker: str) -> str:
    """Return a sentence with the speaker's name for the first person, or after the name where it has none.

    The verb after "I" gets the ending of the third person.
    """
    replaced = _FIRST_PERSON_WORDS.sub(
        lambda match: _FIRST_PERSON[match[0].casefold()].format(name=speaker),
        _VERB.sub(_inflected, text.replace("’", "'")),
    )
    return replaced if speaker in replaced else f"{speaker}: {text}"


def _inflected(match: re.Match[str]) -> str:
    verb = match["verb"].casefold()
    if match["kept"] or verb in _UNCHANGED or (verb.endswith("ed") and verb not in _PRESENT):
        return match[0]
    ending = "es" if verb.endswith(("s", "x", "z", "ch", "sh", "o")) else "s"
    regular = f"{verb[:-1]}ies" if re.search("[^aeiou]y$", verb) else verb + ending
    return match[0][: -len(verb)] + _IRREGULAR.get(verb, regular)


def absolute_times(text: str, said_at: str) -> list[str]:
    """Return the times in a sentence, each as "yesterday (2023-05-07)". `said_at` is in ISO 8601 or empty.

    A day of the week, and a day or month without a year, is the last one where a past tense stands nearest before it,
    or else first behind it, and the next one in other sentences. A week, month, season or year is told as such, as
    "last week (week of 2023-04-24)". "For two weeks" ends now where something has gone on, and begins now in a plan.
    """
    return [f"{match[0]} ({time})" for match, time in _times(text, said_at)]


def with_days(text: str, said_at: str) -> str:
    """Return a sentence with the days that words such as "yesterday" mean behind them, where they tell no year."""
    for match, time in reversed(_times(text, said_at)):
        if not _YEAR.search(match[0]):
            text = f"{text[: match.end()]} ({time}){text[match.end() :]}"
    return text


def tells_time(text: str) -> bool:
    """Return whether a sentence has words such as "yesterday" or "in May"."""
    return _RELATIVE.search(text) is not None


def asks_when(question: str) -> bool:
    """Return whether a question asks for a time."""
    return _WHEN.search(question) is not None


def asks_before(question: str) -> bool:
    """Return whether a question asks for what was, or may have been, rather than for what holds now."""
    times = (match[0].casefold() for match in _RELATIVE.finditer(question))
    if _BEFORE.search(question) or any(not time.startswith(_NO_PAST) for time in times):
        return True
    return not _NOW.search(question) and any(tense["past"] for tense in _TENSE.finditer(question))


def _times(text: str, said_at: str) -> list[tuple[re.Match[str], str]]:
    """Return the words that tell a time, each once, with the days that they mean, in the order of the sentence."""
    if not said_at:
        return []
    found: dict[str, re.Match[str]] = {}
    for match in _RELATIVE.finditer(text):
        found.setdefault(match[0], match)
    times = []
    for phrase, match in found.items():
        at = match.start()
        ahead = _is_ahead(text, at)
        lasting = _LASTING.match(phrase)
        if lasting and not lasting["past"] and not ahead and not _PERFECT.search(text[:at]):
            continue  # it may have ended at any time
        ahead = ahead and not (lasting and (lasting["past"] or _PERFECT.search(text[:at])))
        times.append((match, _absolute(phrase.casefold(), said_at, ahead=ahead)))
    return [(match, time) for match, time in times if time]


def _is_ahead(text: str, at: int) -> bool:
    """Return whether what happens at the day that is named at a place of a sentence lies ahead."""
    tenses = list(_TENSE.finditer(text))
    before = [tense for tense in tenses if tense.start() < at]
    nearest = before[-1:] or tenses[:1]
    return not (nearest and nearest[0]["past"])


@lru_cache(maxsize=4_096)
def _absolute(phrase: str, said_at: str, *, ahead: bool) -> str:
    said = datetime.fromisoformat(said_at).replace(tzinfo=None)
    season = next((month for name, month in _SEASONS.items() if phrase.endswith(name)), 0)
    if season:
        return _season(season, said, ahead=phrase.startswith("next"), current=phrase.startswith("this "))
    if _LASTING.match(phrase):
        lasts = _LASTING.sub("", phrase)
        other = _parsed(f"in {lasts}" if ahead else f"{lasts} ago", said, ahead=ahead)
        ends = sorted((said, other)) if other else []
        return " to ".join(f"{end:%Y-%m-%d}" for end in ends)
    if re.fullmatch(r"in \d{4}", phrase):
        return phrase[3:]
    dated = re.search(rf"\b{_MONTH}\b", phrase) is not None and not phrase.startswith(("this ", "next", "last"))
    if dated:
        phrase = _OF_A_DATE.sub("", phrase)
    elif phrase.startswith(("this ", "next", "in ", "tomorrow")):
        ahead = True
    time = _parsed(phrase, said, ahead=ahead)
    if time is None:
        return ""
    if dated and not re.search(r"\b\d{1,2}\b", phrase):
        return f"{time:%Y-%m}"
    vague = _VAGUE.search(phrase)
    unit = vague[1] if vague else ""
    if unit == "year":
        return f"{time:%Y}"
    if unit == "month":
        return f"{time:%Y-%m}"
    return f"week of {time:%Y-%m-%d}" if unit in ("week", "fortnight") else f"{time:%Y-%m-%d}"


def _season(month: int, said: datetime, *, ahead: bool, current: bool) -> str:
    """Return the months of a season: the first that begins after a time, the last that ended before it, or this one."""
    year = said.year
    begins = year * 12 + month - 1 - (12 if month == 12 and said.month < 12 and not ahead else 0)
    now = year * 12 + said.month - 1
    if ahead and begins <= now:
        begins += 12
    elif not ahead and not current and begins + 2 >= now:
        begins -= 12
    ends = begins + 2
    return f"{begins // 12:04d}-{begins % 12 + 1:02d} to {ends // 12:04d}-{ends % 12 + 1:02d}"


def _parsed(phrase: str, said: datetime, *, ahead: bool) -> datetime | None:
    import dateparser  # its data take time to load, and most questions need none

    for ours, theirs in _WORDS["same_times"].items():
        phrase = phrase.replace(ours, theirs)
    found: datetime | None = dateparser.parse(
        phrase.removeprefix("on ").removeprefix("this "),
        languages=["en"],
        settings={"RELATIVE_BASE": said, "PREFER_DATES_FROM": "future" if ahead else "past"},
    )
    return found

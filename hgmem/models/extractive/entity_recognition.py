"""Named-entity recognition by rules: runs of capitalised words, joined over "of", initials and titles, and dates."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hgmem.models.extractive.entity_types import FORMS_OF_ADDRESS, TITLES, kind_of
from hgmem.models.extractive.stopwords import STARTERS, STOPWORDS
from hgmem.text.segmentation import word_set

_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:['’\-][^\W_]+)*|&")
_CONNECTORS = word_set("of de du des la le von van der den del della di da dos bin ibn al el zu & y")
_FIRM_ENDS = word_set("sons brothers bros co company daughters partners")
_ABBREVIATED = word_set("mr mrs ms mx dr prof st rev capt col gen lt sgt maj jr mt")
# A capital after one of these is no evidence: every sentence begins with one.
_OPENING = re.compile("[\"“”„«»‘:;.!?…()\\[\\]*_—–]|--|^'|\\s'")
_VERBS = word_set(
    "was is are were had has have did does would could will can shall may might must said says cried asked replied "
    "answered told came went stood sat looked turned took gave knew saw made thought felt wrote lived died"
)
_ORDINARY_ENDINGS = ("ing", "ly", "ness", "ment", "tion", "sion", "ance", "ence", "ity", "ism", "less", "ful", "ous")
_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december|"
    "januar|februar|märz|mai|juni|juli|oktober|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|"
    "octobre|novembre|décembre|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|"
    "diciembre|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря"
)
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?(?:{_MONTHS})(?:,? \d{{4}})?"
    rf"|(?:{_MONTHS}) (?:\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{4}}))\b",
    re.IGNORECASE,
)
_CALENDAR = word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "
    "september october november december"
)
_LONGEST = 6


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a sentence, with its likely type. `start` is its offset in the sentence."""

    text: str
    kind: str
    start: int


@dataclass(slots=True, eq=False)
class _Word:
    text: str
    start: int
    gap: str
    low: str = field(init=False)
    owner: bool = field(init=False)

    def __post_init__(self) -> None:
        self.owner = self.text.endswith(("'s", "’s"))
        self.text = self.text[:-2] if self.owner else self.text
        self.low = self.text.casefold()

    @property
    def capital(self) -> bool:
        return self.text[0].isupper()

    @property
    def doubtful(self) -> bool:
        """Whether any word would be capitalised at this position."""
        return self.start == 0 or bool(_OPENING.search(self.gap))


def names(sentences: Sequence[str]) -> list[list[Name]]:
    """Return the names in each sentence (whitespace collapsed), in order of mention.

    A capitalised word at the start of a sentence counts if other sentences, or its neighbours, confirm it as a name.
    Headings in capitals are skipped.
    """
    cut = [[] if _shouted(text) else _cut(text) for text in sentences]
    runs = [list(_runs(row)) for row in cut]
    common = {word.low for row in cut for word in row if not word.capital}
    sure = {word.low for row in runs for run in row for word in run if not word.doubtful}
    found = []
    for text, row, its_runs in zip(sentences, cut, runs, strict=True):
        kept = [run for run in its_runs if _is_name(row, run, common=common, sure=sure)]
        found.append(sorted([*_dates(text), *(_name(text, row, run) for run in kept)], key=lambda name: name.start))
    return found


def _shouted(text: str) -> bool:
    small, large = sum(map(str.islower, text)), sum(map(str.isupper, text))
    return " " in text and small * 3 < large


def _cut(text: str) -> list[_Word]:
    words: list[_Word] = []
    end = 0
    for match in _TOKEN.finditer(text):
        words.append(_Word(match.group(), match.start(), text[end : match.start()][-4:]))
        end = match.end()
    return words


def _runs(words: list[_Word]) -> Iterator[list[_Word]]:
    run: list[_Word] = []
    for at, word in enumerate(words):
        if run and not _continues(run, words, at):
            yield from _trimmed(run)
            run = []
        if run or (word.capital and not _ordinary_start(words, at)):
            run.append(word)
    yield from _trimmed(run)


def _continues(run: list[_Word], words: list[_Word], at: int) -> bool:
    word, last = words[at], run[-1]
    if last.owner or len(run) >= _LONGEST or not _adjoins(last, word):
        return False
    if word.capital:
        ordinary = word.low in STOPWORDS and (len(word.text) > 1 or word.text == "I")
        return not ordinary and word.low != last.low
    return _connects(run, words, at)


def _connects(run: list[_Word], words: list[_Word], at: int) -> bool:
    """Whether a lower-case word joins the run to a capitalised word after it."""
    following = words[at + 1 : at + 3]
    if not following or following[0].gap != " ":
        return False
    low, nearest = words[at].low, following[0]
    if low in ("and", "&"):
        return (nearest.low in _FIRM_ENDS and nearest.capital) or (low == "&" and nearest.capital)
    if low == "the":
        return run[-1].low == "of" and nearest.capital
    if low not in _CONNECTORS or run[-1].low in _CONNECTORS or (len(run) > 1 and run[0].low in TITLES):
        return False
    return nearest.capital or (low == "of" and len(run) == 1 and _the_great(following))


def _the_great(following: list[_Word]) -> bool:
    return len(following) > 1 and following[0].low == "the" and following[1].capital


def _adjoins(last: _Word, word: _Word) -> bool:
    if word.gap == " ":
        return True
    abbreviated = last.low in _ABBREVIATED or (len(last.text) == 1 and last.capital)
    return word.gap == ". " and abbreviated


def _ordinary_start(words: list[_Word], at: int) -> bool:
    word = words[at]
    if word.low in TITLES and at + 1 < len(words) and words[at + 1].capital:
        return False
    return word.low in STOPWORDS or (word.doubtful and word.low in STARTERS)


def _trimmed(run: list[_Word]) -> Iterator[list[_Word]]:
    while run and (not run[-1].capital or (run[-1].low in STOPWORDS and len(run[-1].text) > 1)):
        run.pop()
    if run:
        yield run


def _is_name(words: list[_Word], run: list[_Word], *, common: set[str], sure: set[str]) -> bool:
    first = run[0]
    if len(run) > 1:
        return True
    if first.low in FORMS_OF_ADDRESS or first.low in _CALENDAR or len(first.text) < 2:
        return False
    if not first.doubtful:
        return True
    if first.low in common or first.low.endswith(_ORDINARY_ENDINGS):
        return False
    return first.low in sure or first.owner or _acts(words, first)


def _acts(words: list[_Word], word: _Word) -> bool:
    """Whether a verb follows, or "and" with a second name, as after a subject."""
    after = words[words.index(word) + 1 :][:2]
    if not after or after[0].gap != " ":
        return False
    if after[0].low == "and":
        return len(after) > 1 and after[1].capital
    return after[0].low in _VERBS or (len(after[0].low) > 4 and after[0].low.endswith("ed"))


def _name(text: str, words: list[_Word], run: list[_Word]) -> Name:
    first, last = words.index(run[0]), words.index(run[-1])
    lows = [word.low for word in run]
    kind = kind_of(
        lows,
        before=words[first - 1].low if first else "",
        after=words[last + 1].low if last + 1 < len(words) else "",
        joined="of" in lows,
    )
    return Name(text[run[0].start : run[-1].start + len(run[-1].text)], kind, run[0].start)


def _dates(text: str) -> Iterator[Name]:
    for match in _DATE.finditer(text):
        yield Name(match.group(), "event", match.start())


def leads(name: str, text: str) -> bool:
    """Whether an entity in a text may be worth asking about next: a name, and not a date.

    A single word before a common noun ("an American actress") only qualifies that noun.
    """
    written = any(map(str.isupper, name)) or name.upper() == name.lower()  # scripts without capitals pass
    if not written or _DATE.fullmatch(name):
        return False
    nouns = (word for word in re.findall(rf"\b{re.escape(name)} ([^\W\d_]+)", text) if word.islower())
    return " " in name or all(word in STOPWORDS or word in _VERBS for word in nouns)

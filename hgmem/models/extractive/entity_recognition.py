"""Named-entity recognition by rules: runs of capitalised words, joined over "of", initials and titles, and dates.

The aspects of a question are its names and its other key phrases.
"""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from hgmem.models.extractive.key_phrases import STOPWORDS, WORDS, joins, stem, stopwords, written
from hgmem.text.segmentation import collapse, words

TITLES = WORDS["titles"]
_PLACE_ENDINGS = ("ville", "shire", "burgh", "stadt", "grad", "mouth", "borough", "bury", "wick", "haven", "stan")
_TOKEN = re.compile(r"(?:[^\W\d_]\.){2,}|[^\W_]+(?:['’\-][^\W_]+)*|&")
# A capital after one of these is no evidence: every sentence begins with one.
_OPENING = re.compile("[\"“”„«»‘:;.!?…()\\[\\]*_—–]|--|^'|\\s'")
_ORDINARY_ENDINGS = ("ing", "ly", "ness", "ment", "tion", "sion", "ance", "ence", "ity", "ism", "less", "ful", "ous")
_MONTHS = "|".join(sorted(WORDS["months"], reverse=True))  # longer names first
_DATE = re.compile(
    rf"\b(?:\d{{1,2}}(?:st|nd|rd|th|\.)? (?:of )?(?:{_MONTHS})(?:,? \d{{4}})?"
    rf"|(?:{_MONTHS}) (?:\d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?|\d{{4}}))\b",
    re.IGNORECASE,
)
_LONGEST = 6
_MOST = 8
_LONGEST_PHRASE = 3
_ENOUGH = 0.5
_CHARACTERS = 2_000


def kind_of(words: Sequence[str], *, before: str = "", after: str = "") -> str:
    """Return the likely type of the name made of `words` (casefolded), by default "concept".

    `before` and `after` are its neighbours in the sentence. Before an "of", the words say what the whole name is.
    """
    head = words[: words.index("of")] if "of" in words[1:] else words
    first, last = head[0], head[-1]
    if first in WORDS["forms_of_address"] and len(words) > 1:
        return "person"
    if last.split("-")[-1] in WORDS["roles"] or (first in TITLES and (len(words) == 1 or words[1] == "of")):
        return "role"
    if first in TITLES or last in WORDS["person_suffix"]:
        return "person"
    if last in WORDS["event_words"]:
        return "event"
    if _organization(words, head):
        return "organization"
    return "place" if _place(words, head) else _from_context(words, before=before, after=after)


def _organization(words: Sequence[str], head: Sequence[str]) -> bool:
    if head[-1] in WORDS["organization_ends"] or not {"and", "&"}.isdisjoint(words):
        return True
    return "of" in words and head[0] in WORDS["organization_starts"]


def _place(words: Sequence[str], head: Sequence[str]) -> bool:
    if len(words) > 1 and (head[-1] in WORDS["place_words"] or head[0] in WORDS["place_starts"]):
        return True
    return len(head[-1]) > 5 and head[-1].endswith(_PLACE_ENDINGS)


def _from_context(words: Sequence[str], *, before: str, after: str) -> str:
    if any(map(str.isdigit, "".join(words))):
        return "concept"  # a code, as of a batch or a model
    if before in WORDS["determiners"]:  # "the Warden said", but no "the Ada Lovelace"
        return "role" if after in WORDS["speaking"] else "concept"
    if after in WORDS["speaking"] or before in WORDS["speaking"]:
        return "person"
    if before in WORDS["within"]:
        return "place"
    return "person" if len(words) in (2, 3) and "of" not in words else "concept"


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
        dates = [Name(match.group(), "event", match.start()) for match in _DATE.finditer(text)]
        found.append(sorted([*dates, *(_name(text, row, run) for run in kept)], key=lambda name: name.start))
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
        return (nearest.low in WORDS["firm_ends"] and nearest.capital) or (low == "&" and nearest.capital)
    if low == "the":
        return run[-1].low == "of" and nearest.capital
    if low not in WORDS["connectors"] or run[-1].low in WORDS["connectors"] or (len(run) > 1 and run[0].low in TITLES):
        return False
    return nearest.capital or (low == "of" and len(run) == 1 and _the_great(following))


def _the_great(following: list[_Word]) -> bool:
    return len(following) > 1 and following[0].low == "the" and following[1].capital


def _adjoins(last: _Word, word: _Word) -> bool:
    if word.gap == " ":
        return True
    abbreviated = last.low in WORDS["abbreviated"] or (len(last.text) == 1 and last.capital)
    return word.gap == ". " and abbreviated


def _ordinary_start(words: list[_Word], at: int) -> bool:
    word = words[at]
    if word.low in TITLES and at + 1 < len(words) and words[at + 1].capital:
        return False
    return word.low in STOPWORDS or (word.doubtful and word.low in WORDS["starters"])


def _trimmed(run: list[_Word]) -> Iterator[list[_Word]]:
    while run and (not run[-1].capital or (run[-1].low in STOPWORDS and len(run[-1].text) > 1)):
        run.pop()
    if run:
        yield run


def _is_name(words: list[_Word], run: list[_Word], *, common: set[str], sure: set[str]) -> bool:
    first = run[0]
    if len(run) > 1:
        return True
    if first.low in WORDS["forms_of_address"] or first.low in WORDS["calendar"] or len(first.text) < 2:
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
    return after[0].low in WORDS["verbs"] or (len(after[0].low) > 4 and after[0].low.endswith("ed"))


def _name(text: str, words: list[_Word], run: list[_Word]) -> Name:
    first, last = words.index(run[0]), words.index(run[-1])
    lows = [word.low for word in run]
    kind = kind_of(
        lows,
        before=words[first - 1].low if first else "",
        after=words[last + 1].low if last + 1 < len(words) else "",
    )
    return Name(text[run[0].start : run[-1].start + len(run[-1].text)], kind, run[0].start)


def leads(name: str, text: str) -> bool:
    """Whether an entity in a text may be worth asking about next: a name, and not a date.

    A single word before a common noun ("an American actress") only qualifies that noun.
    """
    written = any(map(str.isupper, name)) or name.upper() == name.lower()  # scripts without capitals pass
    if not written or _DATE.fullmatch(name):
        return False
    nouns = (word for word in re.findall(rf"\b{re.escape(name)} ([^\W\d_]+)", text) if word.islower())
    return " " in name or all(word in STOPWORDS or word in WORDS["verbs"] for word in nouns)


@dataclass(frozen=True, slots=True)
class Aspect:
    """A name or key phrase of a question, with the stems of its words."""

    text: str
    stems: frozenset[str]
    name: bool

    def covered_by(self, covered: AbstractSet[str]) -> bool:
        """Whether at least half of the words are among the stems `covered`."""
        return len(self.stems & covered) >= _ENOUGH * len(self.stems)


def aspects(question: str) -> list[Aspect]:
    """Return the names of `question`, then its other key phrases in order, without question words."""
    text = collapse(question)[:_CHARACTERS]
    found: dict[frozenset[str], Aspect] = {}
    for name in dict.fromkeys(name.text for name in names([text])[0]):
        _add(found, words(name), name=name, is_name=True)
    taken = {word for each in found for word in each}
    for phrase in _phrases(text, taken):
        _add(found, phrase, name=written(phrase), is_name=False)
    return list(found.values())[:_MOST]


def _add(found: dict[frozenset[str], Aspect], tokens: list[str], *, name: str, is_name: bool) -> None:
    key = frozenset(stem(word) for word in tokens if word not in stopwords([]))
    if key:
        found.setdefault(key, Aspect(name, key, is_name))


def _phrases(text: str, taken: AbstractSet[str]) -> list[list[str]]:
    """Return the runs of words without stop words, question words and parts of names."""
    tokens = words(text)
    stop = stopwords(tokens) | WORDS["asking"]
    phrases: list[list[str]] = [[]]
    for word in tokens:
        plain = word in stop or stem(word) in taken or joins(word)
        if plain or len(phrases[-1]) == _LONGEST_PHRASE:
            phrases.append([])
        if not plain:
            phrases[-1].append(word)
    return [phrase for phrase in phrases if phrase]

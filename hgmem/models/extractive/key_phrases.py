"""Key phrases of a text in any script, for topics without names."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hgmem.text.resources import word_lists
from hgmem.text.segmentation import words

WORDS = word_lists(Path(__file__).with_name("words.toml"))
STOPWORDS = WORDS["english"] | WORDS["other_languages"]

# Chinese and Japanese particles, which join words.
GLUE = frozenset(
    "的了是在和与之也就都而及或把被这那不我你他她它们为于以从到对向有个着过吗呢吧啊么什哪谁怎很更最又还但却因所其此"
    "は が を に の へ と も で や か ら し た て い る れ な あ こ そ ど ま す".replace(" ", "")
)
_PART = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*|[^\s\w]")
_UNSPACED = re.compile("[぀-ヿ㐀-鿿豈-﫿]")
_NO_NOUN = ("ly", "ing", "ed")
_LONGEST = 40


def stopwords(tokens: list[str]) -> frozenset[str]:
    """Return the stop words for a text of these (casefolded) words."""
    return STOPWORDS | WORDS["german"] if len(WORDS["german_signs"].intersection(tokens)) > 1 else STOPWORDS


def stem(word: str) -> str:
    """Return `word` (casefolded) without the most common English endings. Other scripts stay unchanged."""
    if not word.isascii() or len(word) < 4:
        return word
    for ending, rest in (("ies", "y"), ("ing", ""), ("ied", "y"), ("ed", ""), ("es", ""), ("s", ""), ("ly", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2 and not word.endswith("ss"):
            return _undoubled(word[: -len(ending)] + rest)
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def stems(text: str) -> list[str]:
    """Return the stems of the words of `text` in order, without stop words and single letters."""
    found = words(text)
    stop = stopwords(found)
    return [stem(word) for word in found if word not in stop and not joins(word)]


def written(tokens: Sequence[str]) -> str:
    """Return words as one text. Overlapping character pairs of an unspaced script are merged again."""
    text = ""
    for token in tokens:
        if text and len(token) == 2 and _UNSPACED.match(token) and token[0] == text[-1]:
            text += token[1]
        else:
            text += f" {token}" if text else token
    return text


def joins(word: str) -> bool:
    """Whether a word is a single letter, or a character pair that contains a particle."""
    if word.isascii():
        return len(word) == 1
    return len(word) <= 2 and not GLUE.isdisjoint(word)


def key_phrases(text: str, *, limit: int, repeated: bool) -> list[str]:
    """Return up to `limit` key phrases of `text`, as written, best first.

    A phrase is one to three words without a stop word among them (in Chinese and Japanese, the text between particles).
    With `repeated`, only phrases that occur twice are kept.
    """
    text = unicodedata.normalize("NFKC", text)
    counts: Counter[str] = Counter()
    written: dict[str, str] = {}
    for phrase in _candidates(text):
        counts[phrase.casefold()] += 1
        written.setdefault(phrase.casefold(), phrase)
    frequency = Counter(word for phrase in counts.elements() for word in phrase.split())
    ranked = sorted(counts, key=lambda key: (-_weight(key, counts[key], frequency=frequency), key))
    kept = (key for key in ranked if not repeated or counts[key] > 1)
    return [written[key] for key in _distinct(kept, limit=limit)]


def _undoubled(word: str) -> str:
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
        return word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _candidates(text: str) -> Iterator[str]:
    parts = _PART.findall(text)
    stop = stopwords([part.casefold() for part in parts])
    run: list[str] = []
    for part in [*parts, "."]:
        if _UNSPACED.search(part):
            yield from _stretches(part)
            part = "."
        if _may_be_part(part, stop):
            run.append(part)
            continue
        yield from _phrases(run)
        run = []


def _may_be_part(part: str, stop: frozenset[str]) -> bool:
    low = part.casefold()
    return part[0].isalpha() and 2 < len(part) <= _LONGEST and low not in stop and not low.endswith(("n't", "’t"))


def _phrases(run: list[str]) -> Iterator[str]:
    """Yield a run of up to three words as a phrase, then its longer words."""
    if 1 < len(run) <= 3:
        yield " ".join(run)
    for word in run:
        if len(word) > 3 and not (word.isascii() and word.endswith(_NO_NOUN)):
            yield word


def _stretches(run: str) -> Iterator[str]:
    stretch = ""
    for character in [*run[:2000], "的"]:
        if character not in GLUE:
            stretch += character
            continue
        if 2 <= len(stretch) <= 8:
            yield stretch
        stretch = ""


def _weight(key: str, count: int, *, frequency: Counter[str]) -> float:
    parts = key.split()
    together = sum(frequency[part] for part in parts) / len(parts)
    return count * (1.0 + 0.5 * (len(parts) - 1)) * (1.0 + 0.1 * together) * math.sqrt(min(len(key), 12))


def _distinct(keys: Iterable[str], *, limit: int) -> Iterator[str]:
    """Yield phrases that share no word stem with each other."""
    taken: set[str] = set()
    kept = 0
    for key in keys:
        parts = {stem(word) for word in key.split()}
        if kept >= limit:
            return
        if not parts & taken:
            kept += 1
            taken |= parts
            yield key

"""Stems: the words of a text as full-text search compares them, by Snowball's stemmer of the corpus's language."""

import re
import unicodedata
from collections.abc import Sequence

import Stemmer

from hgmem.text.language import common_words
from hgmem.text.segmentation import pieces, unspaced_runs, word_set

LONGEST = 100  # characters of a word; longer ones are not searched
_JOINERS = "\u200c\u200d"  # inside words of Persian and Indian languages
_IN_WORDS = frozenset("LNM")  # Unicode's categories of letters, numbers and marks
_ENDING = re.compile(r"(?<=\w)['’](?:s|t|d|m|ll|re|ve)(?!\w)")  # of English
# English words that occur in most passages, so that they rank nothing.
_FUNCTION_WORDS = word_set(
    "a about after all also am an and any are as at be because been before being but by can could did do does for from "
    "had has have he her hers him his how i if in into is it its just me more most my no nor not of on one only or "
    "other our out over she should so some such than that the their them then there these they this those through to "
    "too under until up us very was we were what when where which while who whom whose why will with would you your"
)


def stems(text: str, language: str) -> list[str]:
    """Return the stems of all words of a text, in order. Without a stemmer for the language, they are the words.

    A word of a script without spaces is in pairs of neighbouring characters, followed by its characters.
    """
    found: list[str] = []
    for word in split_words(text):
        found += _parts(word)
        found += (character for run in unspaced_runs(word) if len(run) > 1 for character in run)
    return _stemmed(found, language)


def stored_stems(text: str, language: str) -> str:
    """Return the stems of a text as one property: each between two blanks, so that a statement can count it."""
    return "".join(f" {stem} " for stem in stems(text, language))


def searched_stems(text: str, language: str, *, most: int) -> list[str]:
    """Return the first stems of a text to search for, each once: function words only if there are no others."""
    words = [part for word in split_words(text) for part in _parts(word) if any(map(str.isalnum, part))]
    common = _FUNCTION_WORDS if language == "en" else common_words(language)
    telling = [word for word in words if word not in common] or words
    return list(dict.fromkeys(_stemmed(telling, language)))[:most]


def split_words(text: str) -> list[str]:
    """Return the runs of letters, digits and marks of a text, in lower case: nothing of Lucene's syntax."""
    text = _ENDING.sub("", unicodedata.normalize("NFKC", text).lower())
    between = (one if one in _JOINERS or unicodedata.category(one)[0] in _IN_WORDS else " " for one in text)
    return [word for word in "".join(between).split() if any(map(str.isalnum, word))]


def _parts(word: str) -> list[str]:
    return [part for part in pieces(word) if len(part) <= LONGEST]


def _stemmed(words: Sequence[str], language: str) -> list[str]:
    try:
        stemmer = Stemmer.Stemmer(language)  # made anew: a stemmer belongs to one thread
    except KeyError:
        return list(words)
    return list(stemmer.stemWords(words))

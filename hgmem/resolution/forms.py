"""Forms of names: what stays of a name without article, titles, punctuation, accents or plural. Pure functions."""

import re
from collections.abc import Sequence

from anyascii import anyascii

from hgmem.text.identity import key
from hgmem.text.segmentation import word_set

ARTICLES = frozenset(("the", "a", "an"))
# What abbreviations of titles stand for.
_LONG = {
    "mr": "mister", "dr": "doctor", "doc": "doctor", "prof": "professor", "capt": "captain", "col": "colonel",
    "gen": "general", "maj": "major", "lt": "lieutenant", "lieut": "lieutenant", "sgt": "sergeant", "rev": "reverend",
    "gov": "governor", "sen": "senator", "pres": "president", "adm": "admiral", "hon": "honourable",
    "mme": "madame", "mlle": "mademoiselle", "sr": "senior", "jr": "junior", "st": "saint",
}  # fmt: skip
# Titles that with a full name can only mean who has that name. "Mrs. John Smith" is not John Smith.
OWN_TITLES = word_set(
    "mister miss ms doctor professor sir captain colonel general major lieutenant sergeant corporal constable "
    "inspector detective commander admiral judge president senator governor reverend monsieur herr signor"
)
# Titles and qualifiers that may tell relatives, offices or generations of one name apart.
OTHER_TITLES = word_set(
    "mrs mistress madame madam mademoiselle lady lord dame frau signora countess count baroness baron duchess "
    "duke princess prince queen king emperor empress saint father mother brother sister uncle aunt cousin widow "
    "master friar abbot pope bishop archbishop cardinal squire messrs honourable old young elder younger little "
    "big poor late dear junior senior ii iii iv"
)
TITLES = OWN_TITLES | OTHER_TITLES
# Words of offices, which make no personal name.
OFFICES = word_set(
    "of the and for chief justice mayor chancellor minister secretary keeper treasurer chamberlain steward "
    "attorney advocate commissioner marshal provost seal officer clerk manager agent director chairman master "
    "inspector superintendent ambassador consul magistrate sheriff warden dean"
)
_MALE = word_set(
    "mister sir lord king father brother uncle monsieur herr signor count baron duke prince master emperor"
)
_FEMALE = word_set(
    "mrs miss ms lady queen mother sister aunt madame madam mademoiselle mistress dame frau signora countess "
    "baroness duchess princess empress widow"
)
_APOSTROPHES = str.maketrans("’‘ʼ`", "''''")
_INITIALS = re.compile(r"(?<=\b[^\W\d_])\.(?=[^\W\d_]\b)")  # of U.S.A.
_DROPPED = re.compile(r"(?<!\d)[.,:;]|[.,:;](?!\d)|[\"“”„«»]|(?<=[^\W\d_])[-‐-―](?=[^\W\d_])")
_SINGLE = re.compile(r"\b([^\W\d_]) (?=[^\W\d_]\b)")  # letters that stand alone, as in A. B. Smith
_WORD = re.compile(r"[^\W_]+")


def plain(name: str) -> str:
    """Return a name without case, punctuation and leading article: names that differ in these alone are equal.

    Apostrophes, brackets, signs and the points of numbers stay: they tell Smith's from Smiths, and 1.5 from 15.
    """
    folded = key(name).translate(_APOSTROPHES)
    first, _, rest = folded.lstrip('"“„« ').partition(" ")
    if first in ARTICLES and len(rest.partition(" ")[0]) > 1:  # else it is an initial
        folded = rest
    text = _DROPPED.sub(" ", _INITIALS.sub("", folded)).replace("&", " and ")
    return _SINGLE.sub(r"\1", " ".join(text.split()))


def marked(name: str) -> bool:
    """Return whether a name has an article or quotation marks, as ships and books do that are called like people."""
    words = key(name).split()
    return words[:1] != [] and (words[0] in ARTICLES or any(mark in name for mark in '"“”„«»'))


def titled(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the titles and qualifiers of a name, written out, and its other words."""
    words = [_LONG.get(word, word) for word in plain(name).split()]
    start, end = 0, len(words)
    while start < end - 1 and words[start] in TITLES:
        start += 1
    while end > start + 1 and words[end - 1] in ("junior", "senior", "ii", "iii", "iv"):
        end -= 1
    return (*words[:start], *words[end:]), tuple(words[start:end])


def full_name(words: Sequence[str]) -> bool:
    """Return whether these words are a given name and a surname: written out, and of no office."""
    return len(words) > 1 and all(len(word) > 1 and word not in OFFICES | TITLES for word in words)


def opposed(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether titles are of a man and a woman."""
    return bool(
        (_MALE.intersection(first) and _FEMALE.intersection(second))
        or (_FEMALE.intersection(first) and _MALE.intersection(second))
    )


def bare(words: Sequence[str]) -> tuple[str, ...]:
    """Return words in Latin letters, without accents, possessive and plural."""
    found = _WORD.findall(anyascii(" ".join(words).replace("'s", "")).casefold())
    return (*found[:-1], _singular(found[-1])) if found else ()


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word

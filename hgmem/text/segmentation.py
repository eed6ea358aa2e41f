"""Rule-based splitting of text into sentences, words and headings, and text that can be stored.

Offsets are half-open, in code points. Every pattern here matches unconditionally from its start and consumes what it
reads, so the running time is linear in the text.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from hgmem.text.resources import word_lists

TITLE_LENGTH = 120  # characters of a document's title at most
_CLOSERS = "\"'”’»›)\\]}』」）】_*"
_STOP = re.compile(
    rf"(?P<hard>[。！？｡؟۔।॥]+[{_CLOSERS}]*)"
    rf"|(?P<soft>[.!?…]+[{_CLOSERS}]*)"
    r"|(?P<blank>\n[ \t\r]*\n)"
    r"|(?P<heading>(?<![^\n])#{1,6} [^\n]*)"
    r"|(?P<item>\n[ \t]*(?=[-*•] |#{1,6} |\d\d?[.)] ))"
)
_FENCE_OR_HEADING = re.compile(r"(?<![^\r\n])(?:[ \t]*(?P<fence>```|~~~)|#{1,6}[ \t]+\S[^\r\n]*)")
_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_BEFORE_STOP = re.compile(r"(?:\w\.)*\w+$")
_DOTTED = re.compile(r"(?:\w\.)+\w$")
_FOLLOWING = re.compile(r"[^\W_]+")
_LOOKBACK = 24
# Scripts without spaces: their words are pairs of neighbouring characters.
_UNSPACED = re.compile("[぀-ヿ㐀-鿿豈-﫿ｦ-ﾟ฀-໿ក-៿က-႟𠀀-𯿿]+")


class Span(NamedTuple):
    """A piece of a text: `text[start:end]`."""

    start: int
    end: int


def word_set(text: str) -> frozenset[str]:
    """Return the words of a space-separated list."""
    return frozenset(text.split())


_WORDS = word_lists(Path(__file__).with_name("words.toml"))


def sentences(text: str) -> list[Span]:
    """Return the sentences of `text` in order, trimmed. Blank lines and list items end one too.

    Text without a letter or digit (such as a rule of dashes) is left out. Abbreviations, initials and a lower-case
    continuation do not end a sentence.
    """
    spans: list[Span] = []
    start = 0
    for stop in _STOP.finditer(text):
        if stop.lastgroup == "soft" and not _ends_sentence(text, start, stop):
            continue
        _append(spans, text, start, stop.end())
        start = stop.end()
    _append(spans, text, start, len(text))
    return spans


def sentence_texts(text: str) -> list[str]:
    """Return the words of each sentence of `text` in order, whitespace collapsed."""
    return [collapse(text[start:end]) for start, end in sentences(text)]


def is_question(sentence: str) -> bool:
    """Return whether a sentence ends with a question mark of any script."""
    return sentence.endswith(("?", "？", "؟"))


def words(text: str) -> list[str]:
    """Return the words of `text` in order, in NFKC, casefolded, without a possessive 's.

    Scripts without spaces (Chinese, Japanese, Thai, …) give overlapping pairs of characters.
    """
    found: list[str] = []
    for match in _WORD.finditer(unicodedata.normalize("NFKC", text).casefold()):
        word = match.group()
        if word.isascii():
            found.append(_unpossessed(word))
        else:
            found.extend(pieces(_unpossessed(word)))
    return found


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a script without spaces, so that it is a pair of characters."""
    return _UNSPACED.match(word) is not None


def pieces(word: str) -> list[str]:
    """Return a word in pieces: scripts without spaces as overlapping pairs of characters, the rest whole."""
    parts: list[str] = []
    end = 0
    for run in _UNSPACED.finditer(word):
        parts.extend(part for part in [word[end : run.start()]] if part)
        written = run.group()
        parts.extend(written[at : at + 2] for at in range(max(1, len(written) - 1)))
        end = run.end()
    parts.extend(part for part in [word[end:]] if part)
    return parts


def unspaced_runs(word: str) -> list[str]:
    """Return the parts of a word that are of a script without spaces."""
    return _UNSPACED.findall(word)


def sound(text: str) -> str:
    """Return the text in storable form: NULs removed, unpaired surrogates replaced by �."""
    text = text.replace("\0", "")
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if has_half_pair(text) else text


def has_half_pair(text: str) -> bool:
    """Return whether the text holds an unpaired surrogate, which databases reject."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def storable(text: str) -> bool:
    """Return whether the text has no null character and no unpaired surrogate."""
    return "\0" not in text and not has_half_pair(text)


def first_line(text: str) -> str:
    """Return the first line with text, trimmed and cut to the length of a title, else `''`."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:TITLE_LENGTH]


def headings(text: str) -> Iterator[Span]:
    """Yield the lines that are Markdown headings outside code blocks."""
    fenced = False
    for line in _FENCE_OR_HEADING.finditer(text):
        if line["fence"]:
            fenced = not fenced
        elif not fenced:
            yield Span(*line.span())


def collapse(text: str) -> str:
    """Return `text` with each run of whitespace as one space, trimmed."""
    return " ".join(text.split())


def clipped(text: str, most: int) -> str:
    """Return `text`, or its first `most` characters, to the end of a word if one is near, and an ellipsis."""
    if len(text) <= most:
        return text
    end = text.rfind(" ", 2 * most // 3, most + 1)
    return f"{text[: most if end < 0 else end].rstrip()} …"


def _append(spans: list[Span], text: str, start: int, end: int) -> None:
    piece = text[start:end]
    if not _WORD.search(piece):
        return
    left = len(piece) - len(piece.lstrip())
    spans.append(Span(start + left, start + len(piece.rstrip())))


def _ends_sentence(text: str, start: int, stop: re.Match[str]) -> bool:
    end = stop.end()
    if end < len(text) and not text[end].isspace():
        return False
    following = _following(text, end)
    if following[:1].islower():
        return False
    if not stop.group().startswith(".") or stop.group().startswith(".."):
        return True
    return not following or _full_stop(text[max(start, stop.start() - _LOOKBACK) : stop.start()], following)


def _following(text: str, end: int) -> str:
    """Return the next word without opening marks, within a few characters."""
    word = _FOLLOWING.search(text, end, end + _LOOKBACK)
    return word.group() if word else ""


def _full_stop(before: str, following: str) -> bool:
    token = _BEFORE_STOP.search(before)
    if not token:
        return True
    word = token.group().casefold()
    if word in _WORDS["abbreviations"]:
        return False
    if word in _WORDS["endable"] or _DOTTED.match(word):
        return following.casefold() in _WORDS["starters"]
    if len(word) == 1 and word.isalpha():
        # An initial ("J. Smith"), unless it is the pronoun. Scripts without case have no initials.
        return word == "i" or word.upper() == word
    # "1. First": a list item's number is not a sentence.
    return not (word.isdigit() and len(word) <= 2 and before.strip() == token.group())


def _unpossessed(word: str) -> str:
    return word[:-2] if word.endswith(("'s", "’s")) else word


class NamesIn:
    """Which names texts have, as whole words in any case."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = "\n".join(texts).casefold()

    def __contains__(self, name: str) -> bool:
        name = name.casefold()
        return name in self._text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self._text) is not None

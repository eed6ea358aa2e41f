"""Language detection of questions (English if unclear), fixed sentences in it, and parts of messages."""

import re
import tomllib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

from hgmem.text.segmentation import words

_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
)
SIMILAR = 3  # names that an error names
_PART = 4  # a script with a quarter of the letters is more than a quotation
_LANGUAGES = tomllib.loads(Path(__file__).with_name("languages.toml").read_text(encoding="utf-8"))


def language_of(text: str) -> str:
    """Return the two-letter code of the text's language."""
    letters = sum(character.isalpha() for character in text)
    for code, script in _SCRIPTS:
        if len(script.findall(text)) * _PART > letters:
            return code
    found = words(text)
    counts = {code: sum(word in set(common.split()) for word in found) for code, common in _LANGUAGES["common"].items()}
    best = max(counts, key=lambda code: (counts[code], code == "en"))
    return best if counts[best] else "en"


def common_words(language: str) -> frozenset[str]:
    """Return frequent words of a language, none of one that is not listed."""
    return frozenset(_LANGUAGES["common"].get(language, "").split())


def no_evidence(question: str) -> str:
    """Return the sentence that reports missing evidence, in the question's language."""
    return str(_LANGUAGES["no_evidence"][language_of(question)])


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, such as "1,200 chunks". `many` is an irregular plural."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def similar(name: str, names: Iterable[str]) -> str:
    """Return the names that a name may stand for, as a part of a sentence, or nothing."""
    return similar_ones(get_close_matches(name, list(names), n=SIMILAR))


def similar_ones(names: Sequence[str]) -> str:
    """Return the first of these names as a part of a sentence, or nothing if there are none."""
    return f" (similar: {', '.join(map(repr, names[:SIMILAR]))})" if names else ""

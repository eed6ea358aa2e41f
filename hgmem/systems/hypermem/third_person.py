"""What somebody says, told of them: the first person of English becomes the speaker."""

import re

_WORDS = {
    "i'm": "{name} is",
    "i am": "{name} is",
    "i was": "{name} was",
    "i've": "{name} has",
    "i have": "{name} has",
    "i'll": "{name} will",
    "i'd": "{name} would",
    "i": "{name}",
    "me": "{name}",
    "my": "{name}'s",
    "mine": "{name}'s",
    "myself": "{name}",
}
_FIRST = re.compile(
    r"\b(?:" + "|".join(re.escape(words) for words in sorted(_WORDS, key=len, reverse=True)) + r")\b(?!['’])",
    re.IGNORECASE,
)


def in_third_person(text: str, speaker: str) -> str:
    """Return a sentence with the speaker's name for the first person, or after the name where it has none."""
    found = _FIRST.sub(lambda match: _WORDS[match[0].casefold()].format(name=speaker), text.replace("’", "'"))
    return found if speaker in found else f"{speaker}: {text}"

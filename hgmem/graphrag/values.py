"""Property values of theirs as text: whatever Neo4j can store."""

import math
import re

from hgmem.inputs import Scalar
from hgmem.text import collapse, sound

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def text(value: object) -> str:
    """Return the value in one line: lists with commas, times as ISO 8601; empty for bytes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(filter(None, map(text, value)))
    if isinstance(value, bytes | bytearray):
        return ""
    return collapse(sound(str(value)))


def scalar(value: object) -> Scalar:
    """Return the value as metadata holds it: numbers, true and false as they are, the rest as text."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return text(value)


def words(name: str) -> str:
    """Return the words of a property's name or a relationship type: `WORKS_FOR` and `worksFor` are `works for`."""
    spaced = collapse(_CAMEL.sub(" ", sound(name)).replace("_", " "))
    return spaced.lower() if name.isupper() or spaced != name else spaced

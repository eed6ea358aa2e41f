"""Convert foreign property values of any type to text."""

import math
import re

from hgmem.text.segmentation import collapse, sound
from hgmem.values.inputs import Scalar

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def text(value: object) -> str:
    """Return the value in one line.

    Lists are joined with commas, times are ISO 8601, and bytes are empty.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(filter(None, map(text, value)))
    if isinstance(value, bytes | bytearray):
        return ""
    return collapse(sound(str(value)))


def scalar(value: object) -> Scalar:
    """Return the value as metadata: numbers and booleans unchanged, everything else as text."""
    if isinstance(value, str):
        return sound(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return text(value)


def words(name: str) -> str:
    """Return a property name or relationship type as words.

    `WORKS_FOR` and `worksFor` become `works for`.
    """
    spaced = collapse(_CAMEL.sub(" ", sound(name)).replace("_", " "))
    return spaced.lower() if name.isupper() or spaced != name else spaced

"""Ages as users type them: 90m, 12h, 30d, 2w."""

import re
from datetime import timedelta

from hgmem.errors import UsageError

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def age(text: str) -> timedelta:
    """Return the age that the text gives.

    Raises `UsageError`, which describes the format.
    """
    found = re.fullmatch(r"([0-9]+)([mhdw])", text.strip())
    try:
        meant = timedelta(**{UNITS[found[2]]: int(found[1])}) if found else timedelta(0)
    except (OverflowError, ValueError):  # more days, or more digits, than a timedelta can hold
        meant = timedelta(0)
    if not meant:
        raise UsageError(f"invalid age {text!r}: use a number with m, h, d or w, such as 90m, 12h, 30d or 2w")
    return meant

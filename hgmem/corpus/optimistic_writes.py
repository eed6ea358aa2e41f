"""Writes that are prepared from what was read, and start again where another writer was faster."""

import random
import time
from collections.abc import Iterator

_LONGEST_PAUSE = 0.2  # seconds between two attempts


class OvertakenError(Exception):
    """Another writer has changed what was read."""


def attempts(most: int) -> Iterator[int]:
    """Yield the numbers of attempts from 0, with a random pause before each but the first."""
    for attempt in range(most):
        if attempt:
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.01 * 2**attempt)))  # noqa: S311
        yield attempt

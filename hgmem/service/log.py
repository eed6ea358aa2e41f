"""The log of a process: lines of JSON on stderr, without texts and tokens."""

import sys
import traceback

from hgmem.client.access_log import json_line


def say(**fields: object) -> None:
    """Write a line about the process to stderr."""
    print(json_line(**fields), file=sys.stderr, flush=True)  # noqa: T201


def say_error(error: BaseException) -> None:
    """Write an error that nobody expected, with where it happened."""
    places = [f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)]
    say(event="unexpected", error=f"{type(error).__name__}: {error}", places=places[-8:])

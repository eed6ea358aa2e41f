"""Where output goes: results to stdout, everything about them to stderr, nothing that could steer a terminal."""

import json
import os
import re
import sys
from typing import IO, Any

LONGEST = 1_000  # characters of an error line

# A document may hold the codes that move a terminal's cursor, or worse; here they are shown, not sent.
_CODES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def clean(text: str) -> str:
    """Return the text with control characters spelt out; newlines and tabs stay."""
    return text.replace("\r\n", "\n").translate(_CODES)


def one_line(text: str) -> str:
    """Return the text as one line, the middle of a very long one left out."""
    line = re.sub(r"\s*[\n\t]\s*", " ", clean(text)).strip()
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"


def cut(text: str, most: int) -> str:
    """Return the text as one line of so many characters at most."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def when(time: str) -> str:
    """Return an ISO time as people read it, to the minute."""
    return time[:16].replace("T", " ")


def plain(line: str = "") -> None:
    """Print a line of a result, which is never wrapped."""
    print(clean(line))


def note(line: str) -> None:
    """Print a line about the result, to stderr."""
    print(clean(line), file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, ensure_ascii=False, indent=2))


def flush() -> None:
    """Write out what is still held back, so that a closed pipe is noticed now and not when Python ends."""
    if sys.stdout is not None:  # it may have been closed before
        sys.stdout.flush()


def abandon(stream: IO[str]) -> None:
    """Let nothing more be written to a stream that nobody reads."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # not a file of the system's, so nothing waits to be written
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def use_utf8(*streams: Any) -> None:
    """Write UTF-8 to files and pipes, whatever the locale says, and to terminals what they can show."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")

"""Output: results to stdout, messages to stderr, control characters escaped."""

import os
import re
import sys
from typing import IO, Any

LONGEST = 1_000  # characters of an error message

# Documents may hold terminal escape sequences. They are printed visibly, not sent.
_CODES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def clean(text: str) -> str:
    """Return the text with control characters escaped, except newlines and tabs."""
    return text.replace("\r\n", "\n").translate(_CODES)


def one_line(text: str) -> str:
    """Return the text as one line, shortened in the middle if very long."""
    line = re.sub(r"\s*[\n\t]\s*", " ", clean(text)).strip()
    return line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"


def cut(text: str, most: int) -> str:
    """Return the text as one line of at most `most` characters."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def when(time: str) -> str:
    """Return an ISO time in readable form, to the minute."""
    return time[:16].replace("T", " ")


def plain(line: str = "") -> None:
    """Print a line of a result, unwrapped."""
    print(clean(line))


def note(*lines: str) -> None:
    """Print messages about the result to stderr."""
    for line in lines:
        print(clean(line), file=sys.stderr, flush=True)


def flush() -> None:
    """Flush stdout, so that a closed pipe is noticed now rather than at exit."""
    if sys.stdout is not None:  # it may have been closed before
        sys.stdout.flush()


def abandon(stream: IO[str]) -> None:
    """Redirect a stream that nobody reads to the null device."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):  # not an operating-system file, so nothing is buffered
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def use_utf8(*streams: Any) -> None:
    """Write UTF-8 to files and pipes in any locale, and to terminals what their encoding allows."""
    for stream in streams:
        if hasattr(stream, "reconfigure"):
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")

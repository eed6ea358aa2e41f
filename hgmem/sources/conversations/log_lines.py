"""Conversations in plain logs: a line `[time] Name: text` a message, and further lines of it below."""

import re
from datetime import datetime

from hgmem.errors import DocumentError
from hgmem.values.conversations import Message

_HEAD = re.compile(r"\[(?P<time>[^\]]*\d[^\]]*)\]\s+(?P<name>[^:\s][^:]{0,99}):(?:\s+(?P<text>.*))?$")


def log_messages(text: str, *, name: str) -> list[Message]:
    """Return the messages of a log. A line without time and name continues the message before.

    Raises `DocumentError` for a first line without them, a time that can't be read, and a message without words.
    """
    said: list[tuple[int, datetime, str, list[str]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        found = _HEAD.match(line.strip())
        if found:
            time = _time(found["time"], f"{name}, line {number}")
            said.append((number, time, found["name"], [found["text"] or ""]))
        elif said:
            said[-1][-1].append(line)
        elif line.strip():
            raise DocumentError(
                f"{name}, line {number}: it does not begin a message: write it like [2023-02-04 19:12] Ann: Hello."
            )
    for number, _, _, lines in said:
        if not any(line.strip() for line in lines):
            raise DocumentError(f"{name}, line {number}: the message has no text: leave it out, or write what it shows")
    return [Message(speaker=speaker, text="\n".join(lines), time=time) for _, time, speaker, lines in said]


def _time(text: str, place: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise DocumentError(f"{place}: the time {text!r} can't be read: write it like 2023-02-04 19:12") from None

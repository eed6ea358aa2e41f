"""Conversations in JSON and JSON Lines: a message an object, with fields of any names."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hgmem.errors import DocumentError, UsageError
from hgmem.sources.conversations.locomo import is_locomo, locomo_conversation
from hgmem.sources.json_records import Record, records
from hgmem.text.segmentation import has_half_pair
from hgmem.values.conversations import Conversation, Message

FIELDS = ("speaker", "text", "time", "id", "conversation", "title", "messages")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """The names of fields in a file, by what they are here."""

    names: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        """Return the name in the file."""
        return self.names.get(name, name)


def fields_of(given: Mapping[str, str] | None) -> Fields:
    """Return the names of fields. Raises `UsageError` for a field that messages do not have."""
    unknown = [name for name in given or {} if name not in FIELDS]
    if unknown:
        raise UsageError(f"messages have no field {unknown[0]!r}: choose from {', '.join(FIELDS)}")
    return Fields(names=dict(given or {}))


def json_conversations(value: object, path: Path, fields: Fields) -> list[Conversation]:
    """Return the conversations of a JSON value: messages, an object with `messages`, several, or data of LoCoMo."""
    values = value if isinstance(value, list) else [value]
    if any(is_locomo(one) for one in values):
        return [locomo_conversation(sample) for sample in records(values, path, what="sample")]
    nested = [isinstance(one, dict) and fields["messages"] in one for one in values]
    if values and all(nested):
        return [_nested(one, fields) for one in records(values, path, what="conversation")]
    if any(nested) or not isinstance(value, list):
        raise DocumentError(
            f"{str(path)!r}: it holds no conversation: write a list of messages, or objects with "
            f"{fields['messages']!r}, or name the fields"
        )
    return grouped(records(values, path, what="message"), path, fields)


def grouped(said: Iterable[Record], path: Path, fields: Fields) -> list[Conversation]:
    """Return the conversations of messages, each of which may name its conversation."""
    messages: dict[str, list[Message]] = {}
    titles: dict[str, str] = {}
    for one in said:
        name = one.text(fields["conversation"], default="") or path.stem
        messages.setdefault(name, []).append(message_of(one, fields))
        titles[name] = titles.get(name) or one.text(fields["title"], default="")
    return [Conversation(id=name, title=titles[name], messages=some) for name, some in messages.items()]


def line_records(lines: Iterable[tuple[int, str]], path: Path) -> Iterator[Record]:
    """Yield the objects of JSON Lines, with their lines."""
    for number, line in lines:
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DocumentError(f"{str(path)!r}, line {number}: not JSON: write one message a line") from error
        yield Record(value, path=path, place=f"line {number}")


def message_of(one: Record, fields: Fields) -> Message:
    """Return a message. Raises `DocumentError` if it has no speaker, no text, or one that cannot be stored."""
    speaker = one.text(fields["speaker"], default="")
    if not speaker.strip():
        one.fail("it has no speaker: write who it is from, or name the field that does", fields["speaker"])
    text = one.text(fields["text"], default="")
    if not text.strip():
        one.fail("it has no text: leave the message out, or name the field that has it", fields["text"])
    id_ = one.text(fields["id"]) if one.has(fields["id"]) else None
    if has_half_pair(f"{speaker}{text}{id_}"):
        one.fail("it has an unpaired surrogate, such as \\ud83d: remove it")
    return Message(speaker=speaker, text=text, time=_time(one, fields["time"]), id=id_)


def _nested(one: Record, fields: Fields) -> Conversation:
    number = one.place.split()[-1]
    id_ = one.text(fields["conversation"], fields["id"], default="")
    said = [
        Record(value, path=one.path, place=f"{one.place}, message {at}")
        for at, value in enumerate(one.items(fields["messages"]), start=1)
    ]
    return Conversation(
        id=id_ or (one.path.stem if number == "1" else f"{one.path.stem}-{number}"),
        title=one.text(fields["title"], default=""),
        messages=[message_of(each, fields) for each in said],
    )


def _time(one: Record, field: str) -> datetime | None:
    value = one.values.get(field)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        return datetime.fromisoformat(str(value).strip())
    except (ValueError, OverflowError, OSError):
        one.fail(f"the time {value!r} can't be read: write it like 2023-02-04T19:12, or in seconds since 1970", field)

"""Read conversations from files: JSON, JSON Lines, LoCoMo's data, and plain logs."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from hgmem.errors import DocumentError, UsageError
from hgmem.sources.conversations.locomo import is_locomo, locomo_conversation
from hgmem.sources.conversations.rendering import document_of
from hgmem.sources.json_records import Record, json_of, lines_of, records, text_of
from hgmem.text.segmentation import has_half_pair
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document, Skipped

SUFFIXES = (".json", ".jsonl", ".ndjson", ".log", ".txt")
FIELDS = ("speaker", "text", "time", "id", "conversation", "title", "messages")
Fields: TypeAlias = Mapping[str, str]  # the names of fields in a file, by what they are here
_HEAD = re.compile(r"\[(?P<time>[^\]]*\d[^\]]*)\]\s+(?P<name>[^:\s][^:]{0,99}):(?:\s+(?P<text>.*))?$")


def read_conversations(path: str | os.PathLike[str], *, fields: Mapping[str, str] | None = None) -> list[Conversation]:
    """Return the conversations of a file, or of all files of a folder with a suffix of `SUFFIXES`.

    JSON holds a list of messages, an object with `messages`, a list of these, or data of LoCoMo. JSON Lines hold a
    message a line. A message is an object with `speaker`, `text`, `time`, and perhaps `id`, `conversation` and
    `title`, or with the names in `fields`, such as `{"speaker": "from"}`. Any other file is a log, a line
    `[2023-02-04 19:12] Ann: Hello.` a message. A conversation without an id has the name of its file. Raises
    `DocumentError` that names the file, the message and the remedy.
    """
    named = _fields_of(fields)
    found = [conversation for file in _files(Path(path)) for conversation, _ in _conversations_in(file, named)]
    seen: set[str] = set()
    for read in found:
        if read.id in seen:
            raise DocumentError(f"{str(path)!r} has two conversations {read.id!r}: give each an id of its own")
        seen.add(read.id)
    return found


def load_conversations(
    paths: Iterable[str | os.PathLike[str]], *, fields: Mapping[str, str] | None, max_bytes: int
) -> Iterator[Document | Skipped]:
    """Yield the conversations of files and folders as documents, and files that can't be used.

    Raises `UsageError` at once for a path that does not exist, and `DocumentError` at the end if there was nothing.
    """
    named = _fields_of(fields)
    files = [file for path in paths for file in _files(Path(path))]
    seen: dict[str, str] = {}
    reasons: list[str] = []
    for file in files:
        try:
            documents = _documents(file, named, max_bytes=max_bytes)
            twice = [document.id for document in documents if document.id in seen]
            if twice:
                raise DocumentError(f"conversation {twice[0]!r} is in {seen[twice[0]]!r} too: give it another id")
        except DocumentError as error:
            reasons.append(str(error))
            yield Skipped(path=str(file), reason=str(error))
            continue
        seen |= {document.id: str(file) for document in documents}
        yield from documents
    if not seen:
        raise DocumentError(f"no conversation was found: {reasons[0] if reasons else 'the folders have no such files'}")


def messages_in(
    text: str, *, name: str, conversation: str = "", fields: Mapping[str, str] | None = None
) -> list[Message]:
    """Return the messages of a text, JSON Lines or a log. `name` stands for it in errors.

    Raises `DocumentError` for a line that names another conversation than this one, if one is given.
    """
    named = _fields_of(fields)
    if _one_value(text):
        raise DocumentError(
            f"{name!r} is one JSON value, and append takes JSON Lines or a log: write a message a line, or index the "
            "file (`hgmem index --conversations`)"
        )
    if not text.lstrip().startswith("{"):
        return _log_messages(text, name=repr(name))
    lines = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    found = []
    for record in _line_records(lines, Path(name)):
        other = record.text(named["conversation"], default="")
        if conversation and other not in ("", conversation):
            record.fail(
                f"the message is of conversation {other!r}, not {conversation!r}: append it to its own, or leave the "
                "field out",
                named["conversation"],
            )
        found.append(_message_of(record, named))
    return found


def _log_messages(text: str, *, name: str) -> list[Message]:
    """Return the messages of a log. A line without time and name continues the message before.

    Raises `DocumentError` for a first line without them, a time that can't be read, and a message without words.
    """
    messages: list[tuple[int, datetime, str, list[str]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        found = _HEAD.match(line.strip())
        if found:
            time = _log_time(found["time"], f"{name}, line {number}")
            messages.append((number, time, found["name"], [found["text"] or ""]))
        elif messages:
            messages[-1][-1].append(line)
        elif line.strip():
            raise DocumentError(
                f"{name}, line {number}: it does not begin a message: write it like [2023-02-04 19:12] Ann: Hello."
            )
    for number, _, _, lines in messages:
        if not any(line.strip() for line in lines):
            raise DocumentError(f"{name}, line {number}: the message has no text: leave it out, or write what it shows")
    return [Message(speaker=speaker, text="\n".join(lines), time=time) for _, time, speaker, lines in messages]


def _log_time(text: str, place: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        raise DocumentError(f"{place}: the time {text!r} can't be read: write it like 2023-02-04 19:12") from None


def _fields_of(given: Mapping[str, str] | None) -> Fields:
    """Return the names of fields. Raises `UsageError` for a field that messages do not have."""
    unknown = [name for name in given or {} if name not in FIELDS]
    if unknown:
        raise UsageError(f"messages have no field {unknown[0]!r}: choose from {', '.join(FIELDS)}")
    return {**{name: name for name in FIELDS}, **(given or {})}


def _json_conversations(value: object, path: Path, fields: Fields) -> list[Conversation]:
    """Return the conversations of a JSON value: messages, an object with `messages`, several, or data of LoCoMo."""
    values = value if isinstance(value, list) else [value]
    if any(is_locomo(record) for record in values):
        return [locomo_conversation(sample) for sample in records(values, path, what="sample")]
    nested = [isinstance(record, dict) and fields["messages"] in record for record in values]
    if values and all(nested):
        return [_nested(record, fields) for record in records(values, path, what="conversation")]
    if any(nested) or not isinstance(value, list):
        raise DocumentError(
            f"{str(path)!r}: it holds no conversation: write a list of messages, or objects with "
            f"{fields['messages']!r}, or name the fields"
        )
    return _grouped(records(values, path, what="message"), path, fields)


def _grouped(found: Iterable[Record], path: Path, fields: Fields) -> list[Conversation]:
    """Return the conversations of messages, each of which may name its conversation."""
    messages: dict[str, list[Message]] = {}
    titles: dict[str, str] = {}
    for record in found:
        name = record.text(fields["conversation"], default="") or path.stem
        messages.setdefault(name, []).append(_message_of(record, fields))
        titles[name] = titles.get(name) or record.text(fields["title"], default="")
    return [Conversation(id=name, title=titles[name], messages=some) for name, some in messages.items()]


def _line_records(lines: Iterable[tuple[int, str]], path: Path) -> Iterator[Record]:
    """Yield the objects of JSON Lines, with their lines."""
    for number, line in lines:
        try:
            value = json.loads(line)
        except (json.JSONDecodeError, RecursionError) as error:
            raise DocumentError(f"{str(path)!r}, line {number}: not JSON: write one message a line") from error
        yield Record(value, path=path, place=f"line {number}")


def _message_of(record: Record, fields: Fields) -> Message:
    """Return a message. Raises `DocumentError` if it has no speaker, no text, or one that cannot be stored."""
    speaker = record.text(fields["speaker"], default="")
    if not speaker.strip():
        record.fail("it has no speaker: write who it is from, or name the field that does", fields["speaker"])
    text = record.text(fields["text"], default="")
    if not text.strip():
        record.fail("it has no text: leave the message out, or name the field that has it", fields["text"])
    id_ = record.text(fields["id"]) if record.has(fields["id"]) else None
    if has_half_pair(f"{speaker}{text}{id_}"):
        record.fail("it has an unpaired surrogate, such as \\ud83d: remove it")
    return Message(speaker=speaker, text=text, time=_message_time(record, fields["time"]), id=id_)


def _nested(record: Record, fields: Fields) -> Conversation:
    number = record.place.split()[-1]
    id_ = record.text(fields["conversation"], fields["id"], default="")
    messages = [
        Record(value, path=record.path, place=f"{record.place}, message {at}")
        for at, value in enumerate(record.items(fields["messages"]), start=1)
    ]
    return Conversation(
        id=id_ or (record.path.stem if number == "1" else f"{record.path.stem}-{number}"),
        title=record.text(fields["title"], default=""),
        messages=[_message_of(each, fields) for each in messages],
    )


def _message_time(record: Record, field: str) -> datetime | None:
    value = record.values.get(field)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        return datetime.fromisoformat(str(value).strip())
    except (ValueError, OverflowError, OSError):
        record.fail(
            f"the time {value!r} can't be read: write it like 2023-02-04T19:12, or in seconds since 1970", field
        )


def _one_value(text: str) -> bool:
    """Return whether a text is JSON, but no line of JSON Lines."""
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return False
    return not isinstance(value, dict) or "\n" in text.strip()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    if not path.exists():
        raise UsageError(f"{str(path)!r} does not exist: correct the path")
    return [path]


def _documents(file: Path, fields: Fields, *, max_bytes: int) -> list[Document]:
    size = file.stat().st_size
    if size > max_bytes:
        raise DocumentError(f"{size:,} bytes, more than the limit of {max_bytes:,}: raise HGMEM_MAX_FILE_BYTES")
    return [document for _, document in _conversations_in(file, fields)]


def _conversations_in(file: Path, fields: Fields) -> list[tuple[Conversation, Document]]:
    """Return the conversations of a file, each as a document too."""
    suffix = file.suffix.lower()
    if suffix == ".json":
        found = _json_conversations(json_of(file), file, fields)
    elif suffix in (".jsonl", ".ndjson"):
        found = _grouped(_line_records(lines_of(file), file), file, fields)
    else:
        logged = _log_messages(text_of(file), name=repr(str(file)))
        found = [Conversation(id=file.stem, messages=logged)] if logged else []
    if not any(conversation.messages for conversation in found):
        raise DocumentError(f"{str(file)!r} holds no message: remove it, or add its messages")
    try:
        rendered = [(conversation, document_of(conversation)) for conversation in found]
    except DocumentError as error:
        raise DocumentError(f"{str(file)!r}: {error}") from None
    ids = [conversation.id for conversation in found]
    twice = [id_ for id_ in ids if ids.count(id_) > 1]
    if twice:
        raise DocumentError(f"{str(file)!r} has two conversations {twice[0]!r}: give each an id of its own")
    return rendered

"""Read conversations from files: JSON, JSON Lines, LoCoMo's data, and plain logs."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hgmem.errors import DocumentError, UsageError
from hgmem.sources.conversations.json_messages import (
    Fields,
    fields_of,
    grouped,
    json_conversations,
    line_records,
    message_of,
)
from hgmem.sources.conversations.log_lines import log_messages
from hgmem.sources.conversations.rendering import document_of
from hgmem.sources.json_files import json_of, lines_of, text_of
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document, Skipped

SUFFIXES = (".json", ".jsonl", ".ndjson", ".log", ".txt")


def read_conversations(path: str | os.PathLike[str], *, fields: Mapping[str, str] | None = None) -> list[Conversation]:
    """Return the conversations of a file, or of all files of a folder with a suffix of `SUFFIXES`.

    JSON holds a list of messages, an object with `messages`, a list of these, or data of LoCoMo. JSON Lines hold a
    message a line. A message is an object with `speaker`, `text`, `time`, and perhaps `id`, `conversation` and
    `title`, or with the names in `fields`, such as `{"speaker": "from"}`. Any other file is a log, a line
    `[2023-02-04 19:12] Ann: Hello.` a message. A conversation without an id has the name of its file. Raises
    `DocumentError` that names the file, the message and the remedy.
    """
    named = fields_of(fields)
    found = [conversation for file in _files(Path(path)) for conversation, _ in _read(file, named)]
    seen: set[str] = set()
    for one in found:
        if one.id in seen:
            raise DocumentError(f"{str(path)!r} has two conversations {one.id!r}: give each an id of its own")
        seen.add(one.id)
    return found


def load_conversations(
    paths: Iterable[str | os.PathLike[str]], *, fields: Mapping[str, str] | None, max_bytes: int
) -> Iterator[Document | Skipped]:
    """Yield the conversations of files and folders as documents, and files that can't be used.

    Raises `UsageError` at once for a path that does not exist, and `DocumentError` at the end if there was nothing.
    """
    named = fields_of(fields)
    files = [file for path in paths for file in _files(Path(path))]
    seen: dict[str, str] = {}
    reasons: list[str] = []
    for file in files:
        try:
            documents = _documents(file, named, max_bytes=max_bytes)
            twice = [one.id for one in documents if one.id in seen]
            if twice:
                raise DocumentError(f"conversation {twice[0]!r} is in {seen[twice[0]]!r} too: give it another id")
        except DocumentError as error:
            reasons.append(str(error))
            yield Skipped(path=str(file), reason=str(error))
            continue
        seen |= {one.id: str(file) for one in documents}
        yield from documents
    if not seen:
        raise DocumentError(f"no conversation was found: {reasons[0] if reasons else 'the folders have no such files'}")


def messages_in(
    text: str, *, name: str, conversation: str = "", fields: Mapping[str, str] | None = None
) -> list[Message]:
    """Return the messages of a text, JSON Lines or a log. `name` stands for it in errors.

    Raises `DocumentError` for a line that names another conversation than this one, if one is given.
    """
    named = fields_of(fields)
    if _one_value(text):
        raise DocumentError(
            f"{name!r} is one JSON value, and append takes JSON Lines or a log: write a message a line, or index the "
            "file (`hgmem index --conversations`)"
        )
    if not text.lstrip().startswith("{"):
        return log_messages(text, name=repr(name))
    lines = ((number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip())
    found = []
    for one in line_records(lines, Path(name)):
        other = one.text(named["conversation"], default="")
        if conversation and other not in ("", conversation):
            one.fail(
                f"the message is of conversation {other!r}, not {conversation!r}: append it to its own, or leave the "
                "field out",
                named["conversation"],
            )
        found.append(message_of(one, named))
    return found


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
    return [document for _, document in _read(file, fields)]


def _read(file: Path, fields: Fields) -> list[tuple[Conversation, Document]]:
    """Return the conversations of a file, each as a document too."""
    suffix = file.suffix.lower()
    if suffix == ".json":
        found = json_conversations(json_of(file), file, fields)
    elif suffix in (".jsonl", ".ndjson"):
        found = grouped(line_records(lines_of(file), file), file, fields)
    else:
        said = log_messages(text_of(file), name=repr(str(file)))
        found = [Conversation(id=file.stem, messages=said)] if said else []
    if not any(one.messages for one in found):
        raise DocumentError(f"{str(file)!r} holds no message: remove it, or add its messages")
    try:
        rendered = [(one, document_of(one)) for one in found]
    except DocumentError as error:
        raise DocumentError(f"{str(file)!r}: {error}") from None
    ids = [one.id for one in found]
    twice = [id_ for id_ in ids if ids.count(id_) > 1]
    if twice:
        raise DocumentError(f"{str(file)!r} has two conversations {twice[0]!r}: give each an id of its own")
    return rendered

"""Conversations in the files of LoCoMo (Maharana et al., 2024): sessions of two people, one date and time for each."""

import re
import warnings
from collections.abc import Iterator
from datetime import datetime

from hgmem.errors import DocumentWarning
from hgmem.sources.conversations.rendering import in_order_of_time
from hgmem.sources.json_records import Record
from hgmem.values.conversations import Conversation, Message

_SESSION = re.compile(r"session_(\d+)")
_DATE = re.compile(r"session_(\d+)_date_time")
_NAMED = 5  # sessions that a warning names
_TIME = "%I:%M %p on %d %B, %Y"


def is_locomo(value: object) -> bool:
    """Return whether a JSON value is a sample of LoCoMo."""
    conversation = value.get("conversation") if isinstance(value, dict) else None
    return isinstance(conversation, dict) and any(_SESSION.match(name) for name in conversation)


def locomo_conversation(sample: Record) -> Conversation:
    """Return the conversation of a sample, its sessions in order of time.

    Warns of sessions between others that have no messages. Raises `DocumentError` for one without its date and time.
    """
    record = Record(sample.values.get("conversation"), path=sample.path, place=f"{sample.place}, conversation")
    _warn_of_gaps(record)
    people = " and ".join(record.text(name, default="?") for name in ("speaker_a", "speaker_b"))
    id_ = sample.text("sample_id", default=f"{sample.path.stem}-{sample.place.split()[-1]}")
    return Conversation(id=id_, title=f"Conversation of {people}", messages=in_order_of_time(_messages(record)))


def _warn_of_gaps(conversation: Record) -> None:
    """Warn of sessions that are empty, or have a date and time alone. Published data has such dates behind the last."""
    with_messages = {
        int(found[1]): bool(value) for name, value in conversation.values.items() if (found := _SESSION.fullmatch(name))
    }
    dated = {int(found[1]) for name in conversation.values if (found := _DATE.fullmatch(name))}
    last = max((number for number, filled in with_messages.items() if filled), default=0)
    gaps = [
        number
        for number in sorted(with_messages.keys() | dated)
        if not with_messages.get(number) and (number in with_messages or number < last)
    ]
    if gaps:
        named = ", ".join(f"session_{number}" for number in gaps[:_NAMED]) + ", …" * (len(gaps) > _NAMED)
        warnings.warn(
            f"{str(conversation.path)!r}, {conversation.place}: sessions without messages are left out ({named}): add "
            "the messages, or remove the sessions",
            DocumentWarning,
            stacklevel=2,
        )


def _messages(conversation: Record) -> Iterator[Message]:
    """Yield the messages of the sessions by number, those of one session with its time."""
    numbers = sorted(int(found[1]) for name in conversation.values if (found := _SESSION.fullmatch(name)))
    for number in numbers:
        session = f"session_{number}"
        time = _time(conversation, f"{session}_date_time")
        for value in conversation.items(session):
            turn = Record(value, path=conversation.path, place=f"{conversation.place}, {session}")
            caption = turn.text("blip_caption", default="")
            text = turn.text("text", default="") + (f" [picture: {caption}]" if caption else "")
            yield Message(id=turn.text("dia_id"), time=time, speaker=turn.text("speaker"), text=text)


def _time(conversation: Record, field: str) -> datetime:
    if not conversation.has(field):
        conversation.fail("it is missing: add when the session was, such as '1:56 pm on 8 May, 2023'", field)
    text = conversation.text(field)
    try:
        return datetime.strptime(text.strip(), _TIME)  # the data tells no time zone
    except ValueError:
        conversation.fail(f"{text!r} is not a time such as '1:56 pm on 8 May, 2023'", field)

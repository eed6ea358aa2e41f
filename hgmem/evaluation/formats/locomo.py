"""LoCoMo (Maharana et al., 2024): long conversations of two people, with questions and evidence by message."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.conversations import Conversation, Message, rendered
from hgmem.evaluation.data_set import DataSet, EvalQuestion
from hgmem.evaluation.formats.evidence import at_place
from hgmem.evaluation.formats.reading import json_of
from hgmem.evaluation.formats.records import Record, records

# The paper's categories by the numbers of its data.
KINDS = {"1": "several", "2": "time", "3": "open", "4": "single", "5": "adversarial"}
UNANSWERABLE = "Not mentioned in the conversation."
_SESSION = re.compile(r"session_(\d+)")
_ID = re.compile(r"D:?(\d+):(\d+)")
_TIME = "%I:%M %p on %d %B, %Y"


def read(path: Path) -> DataSet:
    """Return the conversations of a file, or of all JSON files of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{str(path)!r} has no JSON files: name a file or folder of LoCoMo")
    samples = [record for file in files for record in _samples(file)]
    conversations = [_conversation(sample) for sample in samples]
    return DataSet(
        name=path.resolve().stem,
        documents=tuple(one.document for one in conversations),
        questions=tuple(
            question for sample, one in zip(samples, conversations, strict=True) for question in _questions(sample, one)
        ),
    )


def _samples(file: Path) -> list[Record]:
    held = json_of(file)
    return list(records(held if isinstance(held, list) else [held], file, what="sample"))


def _conversation(sample: Record) -> Conversation:
    said = Record(sample.values.get("conversation"), path=sample.path, place=f"{sample.place}, conversation")
    people = " and ".join(said.text(name, default="?") for name in ("speaker_a", "speaker_b"))
    return rendered(_id(sample), _messages(said), title=f"Conversation of {people}")


def _id(sample: Record) -> str:
    return sample.text("sample_id", default=f"{sample.path.stem}-{sample.place.split()[-1]}")


def _messages(said: Record) -> Iterator[Message]:
    """Yield the messages of the sessions by number; all of a session have its time."""
    numbers = sorted(int(found[1]) for name in said.values if (found := _SESSION.fullmatch(name)))
    for number in numbers:
        session = f"session_{number}"
        time = _time(said, f"{session}_date_time")
        for value in said.items(session):
            turn = Record(value, path=said.path, place=f"{said.place}, {session}")
            caption = turn.text("blip_caption", default="")
            text = turn.text("text", default="") + (f" [picture: {caption}]" if caption else "")
            yield Message(id=turn.text("dia_id"), time=time, speaker=turn.text("speaker"), text=text)


def _time(said: Record, field: str) -> datetime:
    text = said.text(field)
    try:
        return datetime.strptime(text.strip(), _TIME)  # the data tells no time zone
    except ValueError:
        said.fail(f"{text!r} is not a time such as '1:56 pm on 8 May, 2023'", field)


def _questions(sample: Record, conversation: Conversation) -> Iterator[EvalQuestion]:
    for number, one in enumerate(records(sample.values.get("qa"), sample.path, what="question"), start=1):
        category = one.text("category")
        wanted = UNANSWERABLE if KINDS.get(category) == KINDS["5"] else None
        yield EvalQuestion(
            id=f"{conversation.document.id}-{number}",
            kind=KINDS.get(category, category),
            question=one.text("question"),
            answer=one.text("answer", default=wanted),
            evidence=tuple(
                at_place(conversation.document, conversation.places[name], source=name)
                for name in _named(one.texts("evidence"))
                if name in conversation.places  # a few of the published ids name no message
            ),
        )


def _named(texts: list[str]) -> list[str]:
    """Return the ids in the data's evidence, where several may stand in one text, and some are misspelt."""
    found = (f"D{int(turn[1])}:{int(turn[2])}" for text in texts for turn in _ID.finditer(text))
    return list(dict.fromkeys(found))

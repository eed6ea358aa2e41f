"""LoCoMo (Maharana et al., 2024): long conversations of two people, with questions and evidence by message."""

import re
from collections.abc import Iterator
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, at_place
from hgmem.sources.conversations.locomo import locomo_conversation
from hgmem.sources.conversations.rendering import document_of
from hgmem.sources.json_records import Record, json_of, records
from hgmem.text.segmentation import Span
from hgmem.values.inputs import Document

# The paper's categories by the numbers of its data.
KINDS = {"1": "several", "2": "time", "3": "open", "4": "single", "5": "adversarial"}
UNANSWERABLE = "Not mentioned in the conversation."
_ID = re.compile(r"D:?(\d+):(\d+)")


def read_locomo(path: Path) -> DataSet:
    """Return the conversations of a file, or of all JSON files of a folder."""
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"{str(path)!r} has no JSON files: name a file or folder of LoCoMo")
    samples: list[Record] = []
    for file in files:
        loaded = json_of(file)
        samples += records(loaded if isinstance(loaded, list) else [loaded], file, what="sample")
    conversations = [document_of(locomo_conversation(sample)) for sample in samples]
    return DataSet(
        name=path.resolve().stem,
        documents=tuple(conversations),
        questions=tuple(
            question
            for sample, conversation in zip(samples, conversations, strict=True)
            for question in _questions(sample, conversation)
        ),
    )


def _questions(sample: Record, conversation: Document) -> Iterator[EvalQuestion]:
    places = {place.id: Span(place.start, place.end) for place in conversation.messages}
    for number, record in enumerate(records(sample.values.get("qa"), sample.path, what="question"), start=1):
        category = record.text("category")
        wanted = UNANSWERABLE if KINDS.get(category) == KINDS["5"] else None
        yield EvalQuestion(
            id=f"{conversation.id}-{number}",
            kind=KINDS.get(category, category),
            question=record.text("question"),
            answer=record.text("answer", default=wanted),
            evidence=tuple(
                at_place(conversation, places[name], source=name)
                for name in _named(record.texts("evidence"))
                if name in places  # a few of the published ids name no message
            ),
        )


def _named(texts: list[str]) -> list[str]:
    """Return the ids in the data's evidence, where several may stand in one text, and some are misspelt."""
    found = (f"D{int(turn[1])}:{int(turn[2])}" for text in texts for turn in _ID.finditer(text))
    return list(dict.fromkeys(found))

"""What replies of language models have in common: values that note what of them could not be used.

A reply type names what models call its fields and choices instead; `models/llm/lenient_validation.py` reads by it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, PrivateAttr


@dataclass(frozen=True, slots=True, kw_only=True)
class Leniently:
    """How a field is read, where a model takes liberties.

    `sentences`: the items of a list are sentences, so a text is split at line ends and not at commas. `aligned`: the
    items answer to something by position, so an unreadable one leaves an empty text. `words` stand for a choice. An
    unknown choice drops what has it, unless it is `minor`: then the field's default is used.
    """

    sentences: bool = False
    aligned: bool = False
    words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    minor: bool = False


def named(name: str, *others: str) -> Any:
    """Return the annotation of a field that models also give by other names, best first.

    Another name counts where the field's own is absent, and for one field alone.
    """
    return Field(validation_alias=AliasChoices(name, *others))


def with_fields(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the schema of an object with these of its fields alone, all of them required, in its own order."""
    held = set(names)
    fields = {name: part for name, part in schema["properties"].items() if name in held}
    return {**schema, "properties": fields, "required": list(fields)}


class Reply(BaseModel):
    """A validated reply to a task. `notes` list what was dropped or repaired."""

    model_config = ConfigDict(frozen=True)
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on what was dropped or repaired, one line each."""
        return self._notes

    def noted(self, notes: Iterable[str]) -> Self:
        """Return this reply with additional notes."""
        copy = self.model_copy()
        copy._notes = (*self._notes, *notes)
        return copy


class TextReply(Reply):
    """A plain-text reply: no JSON is requested, and the text is used unchanged."""

    text: str

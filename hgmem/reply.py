"""What replies of language models have in common: they are values, and say what of them could not be used."""

from collections.abc import Iterable
from typing import Self

from pydantic import BaseModel, ConfigDict, PrivateAttr


class Reply(BaseModel):
    """A reply to a task, validated. `notes` say what was left out of it, or mended, on the way in."""

    model_config = ConfigDict(frozen=True)
    _notes: tuple[str, ...] = PrivateAttr(default=())

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out of the reply or mended, a line each."""
        return self._notes

    def noted(self, notes: Iterable[str]) -> Self:
        """Return this reply with these notes as well."""
        copy = self.model_copy()
        copy._notes = (*self._notes, *notes)
        return copy


class TextReply(Reply):
    """A reply in plain text: no JSON is asked for, and the text is taken as it stands."""

    text: str

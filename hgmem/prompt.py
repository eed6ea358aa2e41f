"""Prompts: one Markdown file a task in `prompts/`, filled with the task's fields.

A file is a comment that says what the prompt is for, then the parts `# System` and `# User`. `{{name}}` stands for
the field of that name; what a field holds is never searched for placeholders itself.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from hgmem.resources import PACKAGE

Role: TypeAlias = Literal["system", "user", "assistant"]

FOLDER = PACKAGE / "prompts"
_PLACE = re.compile(r"\{\{(\w+)\}\}")
_PARTS = re.compile(r"\A<!--(?P<purpose>.*?)-->\s*^# System\n(?P<system>.*?)^# User\n(?P<user>.*)\Z", re.S | re.M)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation with a language model."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A task's prompt; `version` changes with every change of its text, `fields` are what it takes."""

    name: str
    purpose: str
    system: str
    user: str
    version: str
    fields: frozenset[str]

    def filled(self, fields: Mapping[str, str]) -> tuple[Message, ...]:
        """Return the messages to send; `fields` has to hold exactly what the prompt takes."""
        if fields.keys() != self.fields:
            raise TypeError(f"prompt {self.name!r} takes {sorted(self.fields)}, got {sorted(fields)}")

        def fill(text: str) -> str:
            return _PLACE.sub(lambda place: fields[place[1]], text)

        return Message(role="system", content=fill(self.system)), Message(role="user", content=fill(self.user))


@cache
def prompt(name: str) -> Prompt:
    """Return the prompt of the task of this name."""
    text = FOLDER.joinpath(f"{name}.md").read_text(encoding="utf-8")
    parts = _PARTS.match(text)
    if parts is None:
        raise ValueError(f"prompt {name!r} has to be a comment, then # System, then # User")
    return Prompt(
        name=name,
        purpose=" ".join(parts["purpose"].split()),
        system=parts["system"].strip(),
        user=parts["user"].strip(),
        version=hashlib.sha256(text.encode()).hexdigest()[:12],
        fields=frozenset(_PLACE.findall(parts["system"] + parts["user"])),
    )

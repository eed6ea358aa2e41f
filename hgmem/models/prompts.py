"""Prompts: one Markdown file per task, beside the task's module, filled with the task's fields.

A file has a comment on the prompt's purpose, then the parts `# System` and `# User`. `{{name}}` is replaced by the
field of that name. `{{#name}}…{{/name}}` holds a text that is left out where that field is empty; with its ends on
lines of their own it holds whole lines. Placeholders inside field values are not replaced.
"""

import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, get_origin, get_type_hints

from hgmem.errors import UsageError
from hgmem.text.resources import PACKAGE
from hgmem.text.segmentation import word_set
from hgmem.values.task import Task

Role: TypeAlias = Literal["system", "user", "assistant"]

_PLACE = re.compile(r"\{\{#?(\w+)\}\}")
_SECTION = re.compile(r"\{\{#(?P<name>\w+)\}\}(?P<text>.*?)\{\{/(?P=name)\}\}", re.S)
_ALONE = re.compile(r"^(\{\{[#/]\w+\}\})\n", re.M)  # an end of such a text, on a line of its own
_END = re.compile(r"\{\{[#/]\w+\}\}")
_PARTS = re.compile(r"\A<!--(?P<purpose>.*?)-->\s*^# System\n(?P<system>.*?)^# User\n(?P<user>.*)\Z", re.S | re.M)
TAGS = tuple(
    sorted(
        word_set(
            "answer chunk concern descriptions documents earlier entities episode episodes evidence facts found "
            "history memory message messages name overview parts passage passages point points question relations "
            "subqueries subquery text title topic topics types ways"
        )
    )
)
"""The names of all delimiter tags."""
_OURS = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation with a language model."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A task's prompt, which is in `file`. `version` is a hash of its text, `fields` are its placeholders."""

    name: str
    purpose: str
    system: str
    user: str
    version: str
    fields: frozenset[str]
    file: Path

    def filled(self, fields: Mapping[str, str]) -> tuple[Message, ...]:
        """Return the messages to send. Raises `UsageError` unless `fields` are exactly the prompt's placeholders."""
        if fields.keys() != self.fields:
            raise UsageError(
                f"prompt {self.name!r} ({self.file}) has the fields {_listed(self.fields)}, and its task gives "
                f"{_listed(fields)}: let the task's fields() return what stands in {{{{braces}}}} in the prompt"
            )

        def fill(text: str) -> str:
            held = _SECTION.sub(lambda section: section["text"] if fields[section["name"]] else "", text)
            return _PLACE.sub(lambda place: fields[place[1]], held).strip()

        return Message(role="system", content=fill(self.system)), Message(role="user", content=fill(self.user))


def _listed(fields: Iterable[str]) -> str:
    return ", ".join(sorted(fields)) or "none"


@cache
def shipped_prompts() -> Mapping[str, Path]:
    """Return the shipped prompt files by task name, sorted. Raises `ValueError` if two tasks have the same name."""
    found: dict[str, Path] = {}
    for folder in sorted(PACKAGE.rglob("prompts")):
        for name, path in prompts_in(folder).items():
            if name in found:
                raise ValueError(f"task {name!r} has two prompts, {found[name]} and {path}: rename one")
            found[name] = path
    return dict(sorted(found.items()))


def prompts_in(folder: Path) -> dict[str, Path]:
    """Return the prompt files of a folder by task name, sorted."""
    return {path.stem: path for path in sorted(folder.glob("*.md"))}


def prompt_of(task: Task[object]) -> Prompt:
    """Return the prompt of a task."""
    return read_prompt(task.prompt_file)


@cache
def read_prompt(path: Path) -> Prompt:
    """Return the prompt in a file, named after the file."""
    name, text = path.stem, path.read_text(encoding="utf-8")
    parts = _PARTS.match(_ALONE.sub(r"\1", text))
    if parts is None:
        raise ValueError(f"prompt {name!r} has to be a comment, then # System, then # User")
    for part in (parts["system"], parts["user"]):
        if loose := _END.search(_SECTION.sub(lambda section: section["text"], part)):
            raise ValueError(f"prompt {name!r} has {loose[0]} without its other end in the same part")
    return Prompt(
        name=name,
        purpose=" ".join(parts["purpose"].split()),
        system=parts["system"].strip(),
        user=parts["user"].strip(),
        version=hashlib.sha256(text.encode()).hexdigest()[:12],
        fields=frozenset(_PLACE.findall(parts["system"] + parts["user"])),
        file=path,
    )


def quoted(text: str) -> str:
    """Return `text` with the `<` of every delimiter tag replaced by `‹` and NULs removed."""
    return _OURS.sub("‹", text.replace("\0", ""))


def flag(value: object) -> str:
    """Return what stands for a text that a prompt holds or leaves out: "yes", or nothing."""
    return "yes" if value else ""


class PromptTask:
    """A task whose prompt is the file of its name in the folder `prompts` beside its module.

    Tasks are frozen dataclasses, with `name` and `reply_type` in the body. A field whose type is `Annotated` with a
    function is shown: the function writes its value at the placeholder of the field's name, or of a name that follows.
    """

    name: ClassVar[str] = ""
    prompt_file: ClassVar[Path]
    shown: ClassVar[Mapping[str, tuple[str, Callable[[Any], str]]]]  # by placeholder: the field, and what writes it

    def __init_subclass__(cls) -> None:
        """Find the prompt of a task, and what it shows."""
        cls.prompt_file = Path(inspect.getfile(cls)).parent / "prompts" / f"{cls.name}.md"
        hints = get_type_hints(cls, include_extras=True).items()
        marked = {field: hint.__metadata__ for field, hint in hints if get_origin(hint) is Annotated}
        cls.shown = {marks[1] if marks[1:] else field: (field, marks[0]) for field, marks in marked.items()}

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders."""
        return {name: show(getattr(self, field)) for name, (field, show) in self.shown.items()}


Quoted: TypeAlias = Annotated[str, quoted]

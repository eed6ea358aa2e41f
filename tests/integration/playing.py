"""A model behind a real server: identifies tasks by their requests and replies from the script or from a test.

    with WireServer(playing({"evolve": ["", None]})) as server:
        ...

The first `evolve` gets an empty reply, the second and all others the replies of `letters.Wanting`.
"""

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import TypeAlias

from letters import Wanting, whole
from pydantic import BaseModel
from wire import Answer, Answered, Asked, Said

from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.models.prompts import TAGS, read_prompt, shipped_prompts
from hgmem.retrieval.clues import CluesReply

Told: TypeAlias = Answered | BaseModel | str | None  # None: the script's reply
Telling: TypeAlias = Callable[[Asked, int], Told]  # from the request, and its number among those of this task, from 1
Always: TypeAlias = Answered | BaseModel | str
Play: TypeAlias = Mapping[str, Telling | Sequence[Told] | Always]  # a list has the first replies

READY = '{"ready": true}'
ANSWER = "Anna sold it [1]."
_POINT = re.compile(r"^\((\d+)\) ", re.MULTILINE)
_SECTION = re.compile(r"\{\{#(\w+)\}\}(.*?)\{\{/\1\}\}", re.DOTALL)
_TAG = re.compile(rf"<\s*/?\s*(?:{'|'.join(TAGS)})\b", re.IGNORECASE)


@cache
def beginnings() -> Mapping[str, str]:
    """Return the beginning of each task's system prompt, up to the first placeholder."""
    return {name: read_prompt(path).system.partition("{{")[0] for name, path in shipped_prompts().items()}


def task_of(asked: Asked) -> str:
    """Return a request's task, by the name of its schema or by its system prompt; a probe has none."""
    named = (asked.body.get("response_format") or {}).get("json_schema", {}).get("name")
    if named:
        return str(named)
    if not asked.system:
        assert "ready" in asked.user
        return "probe"
    found = {name: begins for name, begins in beginnings().items() if asked.system.startswith(begins)}
    return max(found, key=lambda name: len(found[name]))


def fenced(asked: Asked, tag: str) -> str:
    """Return the text between the first two tags of this name."""
    return asked.user.partition(f"<{tag}>\n")[2].partition(f"\n</{tag}>")[0]


def points_in(asked: Asked) -> list[int]:
    """Return the numbers of the memory points in a prompt."""
    return [int(number) for number in _POINT.findall(fenced(asked, "memory"))]


def fences(text: str) -> list[str]:
    """Return the beginnings of all tags with our names, in order, including those in data."""
    return [tag[0] for tag in _TAG.finditer(text)]


def check_fences(asked: Asked) -> None:
    """Check that a prompt has exactly the delimiter tags of its template, in the same order."""
    task = task_of(asked)
    if task == "probe":
        return
    system, user, *_ = [str(message["content"]) for message in asked.messages]
    prompt = read_prompt(shipped_prompts()[task])
    assert fences(system) == fences(prompt.system)
    assert fences(user) == fences(_SECTION.sub(lambda part: _held(part, user), prompt.user))


def _held(section: re.Match[str], user: str) -> str:
    """Return the text of a prompt that stands only where its field has something, if it stands here."""
    held = fences(section[2])
    return section[2] if not held or held[0] in user else ""


def playing(replies: Play | None = None) -> Answer:
    """Return a server's replies to a question on the letters: from the script, except for `replies` by task."""
    return _Playing(replies=dict(replies or {})).answer


@dataclass
class _Playing:
    replies: Play
    script: Wanting = field(default_factory=Wanting)
    counts: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, asked: Asked) -> Answered:
        task = task_of(asked)
        with self.lock:
            self.counts[task] = self.counts.get(task, 0) + 1
            told = self.told(task, asked, self.counts[task])
            if told is None:
                told = self.scripted(task, asked)
        if isinstance(told, BaseModel):
            told = told.model_dump_json(exclude_unset=bool(told.model_fields_set))
        return Said(told) if isinstance(told, str) else told

    def told(self, task: str, asked: Asked, number: int) -> Told:
        reply = self.replies.get(task)
        if callable(reply):
            return reply(asked, number)
        if isinstance(reply, Sequence) and not isinstance(reply, str):
            return reply[number - 1] if number <= len(reply) else None
        return reply

    def scripted(self, task: str, asked: Asked) -> Told:
        if task in ("probe", "answer"):
            return READY if task == "probe" else ANSWER
        if task in ("extract", "glean"):
            return extraction(fenced(asked, "text"))
        if task == "describe":
            return Extraction()
        if task == "clues":
            return CluesReply(spans=())
        numbers = points_in(asked)
        memory = SimpleNamespace(points=numbers, numbers=numbers)
        shown = SimpleNamespace(memory=memory, merging='"merge"' in asked.system)
        parts = {name: getattr(self.script, name) for name in ("evolve", "merge", "plan", "subqueries")}
        return whole(parts, shown) if task == "step" else parts[task](shown)


def extraction(text: str) -> Extraction:
    """Return the capitalised words of a text as entities, and a relation between the first two."""
    names = list(dict.fromkeys(re.findall(r"\b[A-Z][a-z]+\b", text)))
    relations = (ExtractedRelation(source=names[0], target=names[1], description="Tied."),) if names[1:] else ()
    entities = tuple(ExtractedEntity(name=name, type="person", description=f"{name} is named.") for name in names)
    return Extraction(entities=entities, relations=relations)


def by_task(requests: Sequence[Asked], task: str) -> list[Asked]:
    """Return the requests of one task, in order."""
    return [asked for asked in requests if task_of(asked) == task]


def tasks(requests: Sequence[Asked]) -> list[str]:
    """Return the tasks of the requests, in order."""
    return [task_of(asked) for asked in requests]

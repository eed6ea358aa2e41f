"""One question of a run: asked, measured, and turned into a row of the results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import Any, TypeVar

from hgmem.client import HGMem
from hgmem.evaluation.entries import Entry
from hgmem.evaluation.recall import (
    FIGURES,
    Found,
    Sought,
    View,
    asked_of,
    built_of,
    measure,
    read_of,
    statements_of,
)
from hgmem.evaluation.results import Row
from hgmem.evaluation.shelf import Shelf
from hgmem.evaluation.wording import plain, stands
from hgmem.models.prompts import prompt_of
from hgmem.values.events import Watcher
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Answer
from hgmem.values.task import Task

CHARACTERS = (5_000, 10_000, 20_000, 40_000)
CHUNKS = (5, 10, 20, 40)


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The share of evidence found among so many characters, and among so many chunks."""

    characters: dict[int, float]
    chunks: dict[int, float]


def wanted(held: Shelf) -> int:
    """Return how many chunks fill the longest curve."""
    mean = sum(held.lengths.values()) / max(1, len(held.lengths))
    return max(*CHUNKS, ceil(1.5 * CHARACTERS[-1] / max(1.0, mean)))


def curves(sought: Sequence[Sought], ranked: Sequence[Chunk]) -> Curves | None:
    """Return the curves of a ranking, the best chunk first, or None for a question without evidence."""
    if not sought:
        return None
    return Curves(
        characters={most: _recall(sought, list(_within(ranked, most))) for most in CHARACTERS},
        chunks={most: _recall(sought, [(one.uid, one.text) for one in ranked[:most]]) for most in CHUNKS},
    )


def _within(ranked: Sequence[Chunk], most: int) -> Iterator[tuple[str, str]]:
    """Yield the first chunks of so many characters, the last one cut and without its uid."""
    for chunk in ranked:
        if len(chunk.text) >= most:
            yield "", chunk.text[:most]
            return
        most -= len(chunk.text)
        yield chunk.uid, chunk.text


def _recall(sought: Sequence[Sought], held: Sequence[tuple[str, str]]) -> float:
    uids, texts = {uid for uid, _ in held}, [plain(text) for _, text in held]
    return sum(_among(one, uids, texts) for one in sought) / len(sought)


def _among(sought: Sought, uids: set[str], texts: Sequence[str]) -> bool:
    if any(uids.issuperset(place.chunks) for place in sought.places):
        return True
    quote = plain(sought.evidence.text)
    return any(stands(quote, text) for text in texts)


ANSWER = "answer"  # the task that writes the answer, the same for all systems

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The text of one prompt, as a chat model sends it."""

    task: str
    text: str

    @property
    def characters(self) -> int:
        """The length of the prompt."""
        return len(self.text)


@dataclass(slots=True)
class Prompts(Watcher):
    """Records the prompt of each model call, also for the rule-based model, which sends none."""

    found: list[Prompt] = field(default_factory=list)

    def call(self, task: Task[Any], work: Callable[[], Done], /) -> Done:
        """Record a task's prompt, then run the call."""
        messages = prompt_of(task).filled(task.fields())
        self.found.append(Prompt(task=task.name, text="\n\n".join(message.content for message in messages)))
        return work()

    @property
    def answer(self) -> Prompt | None:
        """The prompt of the last answer, or None."""
        return next((prompt for prompt in reversed(self.found) if prompt.task == ANSWER), None)

    @property
    def characters(self) -> dict[str, int]:
        """The characters of all prompts by task."""
        counts: dict[str, int] = {}
        for prompt in self.found:
            counts[prompt.task] = counts.get(prompt.task, 0) + prompt.characters
        return counts


def asked(client: HGMem, entry: Entry, held: Shelf) -> Row:
    """Return the row of a question, asked now. Raises what `HGMem.ask` raises."""
    prompts, system = Prompts(), entry.system
    answer = client.ask(
        entry.question.question,
        corpus=held.corpus,
        system=system.name,
        recipe=system.recipe,
        settings=system.settings,
        watcher=prompts,
    )
    sought = [Sought(evidence=one, places=held.places(one)) for one in entry.question.evidence]
    found = _found(client, answer, prompts, sought=sought, held=held)
    ranked = client.passages(answer.memory, limit=wanted(held)) if sought else ()
    curve = curves(sought, [one.chunk for one in ranked])
    return {**identity(entry), **_said(answer), **_cost(answer, prompts), **_figures(found, curve), "error": None}


def failed(entry: Entry, error: BaseException) -> Row:
    """Return the row of a question that failed."""
    memory = getattr(error, "memory", None)
    return {**identity(entry), "memory": memory, "error": f"{type(error).__name__}: {error}"}


def identity(entry: Entry) -> Row:
    """Return what tells a row from others, and what judges need of its question."""
    question, system = entry.question, entry.system
    return {
        "key": entry.key,
        "data": entry.subject.data.name,
        "question": question.id,
        "kind": question.kind,
        "pair": question.pair,
        "held_back": question.held_back,
        "label": system.shown,
        "system": system.name,
        "recipe": system.recipe,
        "settings": system.settings,
        "seed": entry.seed,
        "made_with": entry.made_with,
        "asked": question.question,
        "reference": question.answer,
        "evidence": [one.text for one in question.evidence],
    }


def _found(client: HGMem, answer: Answer, prompts: Prompts, *, sought: Sequence[Sought], held: Shelf) -> Found:
    rows = list(dict.fromkeys(hit.uid for hit in built_of(answer)))
    beneath = client.chunks_beneath(rows, corpus=held.corpus)
    statements, questions = statements_of(answer, beneath), asked_of(answer)

    def view(text: str) -> View:
        return View(prompt=text, asked=questions, statements=statements)

    final = prompts.answer
    return measure(
        sought,
        views=[view(prompt.text) for prompt in prompts.found],
        answer=view(final.text) if final else None,
        held=held,
        read=read_of(answer),
    )


def _said(answer: Answer) -> Row:
    cited = [
        {name: getattr(one, name) for name in ("marker", "chunk", "document", "quote")} for one in answer.citations
    ]
    return {
        "corpus": answer.corpus,
        "memory": answer.memory,
        "model": answer.model,
        "status": answer.status,
        "answer": answer.text,
        "citations": cited,
        "notes": list(answer.notes),
        "steps": len(answer.steps),
    }


def _cost(answer: Answer, prompts: Prompts) -> Row:
    usage = answer.usage
    return {
        "calls": sum(usage.calls.get("model", {}).values()),
        "requests": usage.requests,
        "tokens": {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens},
        "characters": prompts.characters,
        "seconds": answer.seconds,
    }


def _figures(found: Found, curve: Curves | None) -> Row:
    figures: Mapping[str, Any] = {
        name: {
            "share": found.share(name),
            "all": found.all(name),
            "characters": found.characters[name],
            "found": list(found.pieces[name]),
        }
        for name in FIGURES
    }
    return {"figures": figures, "curves": _curves(curve) if curve else None, "unplaced": found.unplaced}


def _curves(curve: Curves) -> Row:
    """Return curves with the keys that JSON gives them."""
    return {axis: {str(at): value for at, value in values.items()} for axis, values in asdict(curve).items()}

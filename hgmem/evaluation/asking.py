"""One question of a run: asked, measured, and turned into a row of the results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any, TypeVar

from hgmem.client import HGMem
from hgmem.evaluation.plan import Entry
from hgmem.evaluation.quotes import CorpusChunks
from hgmem.evaluation.recall import (
    CHARACTERS,
    CHUNKS,
    FIGURES,
    EvidenceFound,
    Sought,
    View,
    asked_of,
    built_of,
    curves,
    measure,
    retrieved_of,
    statements_of,
)
from hgmem.evaluation.results import Row
from hgmem.models.prompts import prompt_of
from hgmem.values.events import Watcher
from hgmem.values.records import Answer
from hgmem.values.task import Task

ANSWER = "answer"  # the task that writes the answer, the same for all systems

Done = TypeVar("Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """The text of one prompt, as a chat model sends it."""

    task: str
    text: str


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
            counts[prompt.task] = counts.get(prompt.task, 0) + len(prompt.text)
        return counts


def asked(client: HGMem, entry: Entry, corpus: CorpusChunks) -> Row:
    """Return the row of a question, asked now. Raises what `HGMem.ask` raises."""
    prompts, system = Prompts(), entry.system
    answer = client.ask(
        entry.question.question,
        corpus=corpus.corpus,
        system=system.name,
        recipe=system.recipe,
        settings=system.settings,
        watcher=prompts,
    )
    sought = [Sought(evidence=evidence, places=corpus.places(evidence)) for evidence in entry.question.evidence]
    found = _found(client, answer, prompts, sought=sought, corpus=corpus)
    mean = sum(corpus.lengths.values()) / max(1, len(corpus.lengths))
    longest = max(*CHUNKS, ceil(1.5 * CHARACTERS[-1] / max(1.0, mean)))  # chunks of the longest curve
    ranked = client.passages(answer.memory, limit=longest) if sought else ()
    curve = curves(sought, [passage.chunk for passage in ranked])
    return {**identity(entry), **_answer(answer), **_cost(answer, prompts), **_figures(found, curve), "error": None}


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
        "label": system.title,
        "system": system.name,
        "recipe": system.recipe,
        "settings": system.settings,
        "seed": entry.seed,
        "made_with": entry.made_with,
        "asked": question.question,
        "reference": question.answer,
        "evidence": [evidence.text for evidence in question.evidence],
    }


def _found(
    client: HGMem, answer: Answer, prompts: Prompts, *, sought: Sequence[Sought], corpus: CorpusChunks
) -> EvidenceFound:
    rows = list(dict.fromkeys(hit.uid for hit in built_of(answer)))
    beneath = client.chunks_beneath(rows, corpus=corpus.corpus)
    statements, questions = statements_of(answer, beneath), asked_of(answer)

    def view(prompt: Prompt) -> View:
        return View(prompt=prompt.text, asked=questions, statements=statements)

    return measure(
        sought,
        views=[view(prompt) for prompt in prompts.found],
        answer=view(prompts.answer) if prompts.answer else None,
        corpus=corpus,
        retrieved=retrieved_of(answer),
    )


def _answer(answer: Answer) -> Row:
    fields = ("marker", "chunk", "document", "quote")
    return {
        "corpus": answer.corpus,
        "memory": answer.memory,
        "model": answer.model,
        "status": answer.status,
        "answer": answer.text,
        "citations": [{name: getattr(citation, name) for name in fields} for citation in answer.citations],
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


def _figures(found: EvidenceFound, curve: Mapping[str, Mapping[int, float]] | None) -> Row:
    figures = {
        name: {
            "share": found.share(name),
            "all": found.all(name),
            "characters": found.characters[name],
            "found": list(found.pieces[name]),
        }
        for name in FIGURES
    }
    # Keys as in JSON.
    by_text = {axis: {str(at): share for at, share in shares.items()} for axis, shares in (curve or {}).items()}
    return {"figures": figures, "curves": by_text or None, "unplaced": found.unplaced}

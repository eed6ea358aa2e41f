"""One question of a run: asked, measured, and turned into a row of the results."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Any, TypeVar

from hgmem.client import HGMem
from hgmem.evaluation.plan import Entry
from hgmem.evaluation.quotes import CorpusChunks
from hgmem.evaluation.recall import (
    CHARACTERS,
    CHUNKS,
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


@dataclass(slots=True)
class Prompts(Watcher):
    """Records task and text of the prompt of each model call, also for the rule-based model, which sends none."""

    found: list[tuple[str, str]] = field(default_factory=list)

    def call(self, task: Task[Any], work: Callable[[], Done], /) -> Done:
        """Record a task's prompt, as a chat model sends it, then run the call."""
        messages = prompt_of(task).filled(task.fields())
        self.found.append((task.name, "\n\n".join(message.content for message in messages)))
        return work()


def asked(client: HGMem, entry: Entry, corpus: CorpusChunks) -> Row:
    """Return the row of a question, asked now. Raises what `HGMem.ask` raises."""
    prompts = Prompts()
    answer = client.ask(entry.question.question, corpus=corpus.corpus, watcher=prompts, **entry.system.asking)
    sought = [Sought(evidence=evidence, places=corpus.places(evidence)) for evidence in entry.question.evidence]
    beneath = client.chunks_beneath(list(dict.fromkeys(hit.uid for hit in built_of(answer))), corpus=corpus.corpus)
    statements, questions = statements_of(answer, beneath), asked_of(answer)
    views = [View(prompt=text, asked=questions, statements=statements) for _, text in prompts.found]
    answers = [view for view, (task, _) in zip(views, prompts.found, strict=True) if task == ANSWER]
    figures = measure(
        sought,
        views=views,
        answer=answers[-1] if answers else None,
        corpus=corpus,
        retrieved=retrieved_of(answer),
    )
    mean = sum(corpus.lengths.values()) / max(1, len(corpus.lengths))
    longest = max(*CHUNKS, ceil(1.5 * CHARACTERS[-1] / max(1.0, mean)))  # chunks of the longest curve
    ranked = client.passages(answer.memory, limit=longest) if sought else ()
    return {
        **identity(entry),
        **_answer(answer),
        **_cost(answer, prompts),
        "figures": figures,
        "curves": curves(sought, [passage.chunk for passage in ranked]),
        "unplaced": sum(not piece.places for piece in sought),
        "error": None,
    }


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
    characters: Counter[str] = Counter()
    for task, text in prompts.found:
        characters[task] += len(text)
    return {
        "calls": sum(usage.calls.get("model", {}).values()),
        "requests": usage.requests,
        "tokens": {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens},
        "characters": dict(characters),
        "seconds": answer.seconds,
    }

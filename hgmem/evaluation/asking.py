"""One question of a run: asked, measured, and turned into a row of the results."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hgmem.client import HGMem
from hgmem.evaluation.curves import Curves, curves, wanted
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
from hgmem.evaluation.shown import Prompts
from hgmem.values.records import Answer


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

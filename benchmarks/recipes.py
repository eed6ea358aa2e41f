"""Count the cost of each recipe: calls and prompt characters, with scripted replies of equal length, on one graph."""

import argparse
import json
import statistics
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from measures import prompt_characters
from running import QUESTIONS, access, read_questions, running

from hgmem import Answer, HGMem
from hgmem.extraction.replies import Extraction
from hgmem.local import Server
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.hgmem.replies import (
    Concern,
    EvolveReply,
    Inquiry,
    Insertion,
    Joining,
    MergeReply,
    PlanReply,
    Revision,
    StepReply,
    SubqueriesReply,
)
from hgmem.values.evidence import Evidence

RECIPES = ("paper", "default", "code")
STEPS = 3
MOST = 90_000  # characters of all prompts of a question by the default recipe


class Script:
    """A model that answers at once: three points a step, one of them revised later, one merge, three sub-queries.

    Its replies are the same under every recipe, so that prompts differ only by the recipe's own parts.
    """

    name = "scripted"

    def __init__(self) -> None:
        self.sent: dict[str, list[int]] = defaultdict(list)
        self._told: list[tuple[str, ...]] = []
        self._lock = threading.Lock()

    def reply(self, task: Any) -> Any:
        """Return the task's reply, and record the characters of its prompt."""
        with self._lock:
            self.sent[task.name].append(prompt_characters(task))
            made: Any = getattr(self, f"_{task.name}")(task)
            return made

    def _evolve(self, task: Any) -> EvolveReply:
        merge = self._joining(_numbers(task)) if task.merging else ()
        return EvolveReply(update=self._update(task), insert=self._insert(task.evidence), merge=merge)

    def _merge(self, task: Any) -> MergeReply:
        return MergeReply(merge=self._joining(_numbers(task)))

    def _plan(self, task: Any) -> PlanReply:
        concerns = tuple(Concern(text=one.text, points=one.points) for one in self._inquiries(_numbers(task)))
        return PlanReply(judgement="local", concerns=concerns)

    def _subqueries(self, _: Any) -> SubqueriesReply:
        return SubqueriesReply(subqueries=tuple(one.subquery for one in self._inquiries(())))

    def _clues(self, task: Any) -> CluesReply:
        told = task.question.split()[: task.most]
        return CluesReply(
            spans=tuple(f"What the documents say of {word}, in a sentence of their own." for word in told)
        )

    def _step(self, task: Any) -> StepReply:
        held = _numbers(task)
        merge = self._joining(held) if task.merging else ()
        update, insert = self._update(task), self._insert(task.evidence)
        inserted = range(len(task.memory.numbered), len(task.memory.numbered) + len(insert))
        concerns = self._inquiries((*held, *inserted))
        return StepReply(update=update, insert=insert, merge=merge, judgement="local", concerns=concerns)

    def _describe(self, _: Any) -> Extraction:
        return Extraction()

    def _answer(self, _: Any) -> AnswerReply:
        return AnswerReply(text=f"{'It was so. ' * 40}[1]")

    def _insert(self, evidence: Evidence) -> tuple[Insertion, ...]:
        names = [entity.name for entity in evidence.entities] or ["Barsoom"]
        self._told.append(tuple(names))
        return tuple(
            Insertion(
                entities=tuple(names[(3 * at + each) % len(names)] for each in range(3)),
                description=f"Finding {len(self._told)}.{at}: {'what the evidence says of these three ' * 5}",
                chunks=tuple(range(min(2, len(evidence.chunks)))),
            )
            for at in range(3)
        )

    def _update(self, task: Any) -> tuple[Revision, ...]:
        if not task.memory.points:
            return ()
        better = f"Better {len(self._told)}: {'said more precisely than before ' * 6}"
        return (Revision(point=_numbers(task)[0], description=better),)

    def _joining(self, held: tuple[int, ...]) -> tuple[Joining, ...]:
        together = f"Together: {'both belong to one matter ' * 9}"
        return (Joining(points=held[1:3], description=together),) if len(held) > 2 else ()

    def _inquiries(self, held: tuple[int, ...]) -> tuple[Inquiry, ...]:
        names = self._told[-1]
        return tuple(
            Inquiry(
                text=f"What became of {names[at % len(names)]} and why it matters to the question as a whole.",
                subquery=f"{names[at % len(names)]} and what followed, {len(self._told)}.{at}",
                points=held[at % len(held) :][:1] if held else (at,),
            )
            for at in range(3)
        )


def _numbers(task: Any) -> tuple[int, ...]:
    """Return the numbers of the points that a prompt shows. They have gaps after merges."""
    memory = task.memory
    found: tuple[int, ...] = memory.numbers_of(range(len(memory.points)))
    return found


def main() -> None:
    """Print the figures as JSON; exit with 1 if the default recipe costs more than allowed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightrag", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=QUESTIONS, help="questions, one per line")
    parser.add_argument("--most", type=int, default=25, help="ask the first N questions")
    options = parser.parse_args()
    with running() as (server, _):
        found = figures(server, options.lightrag, read_questions(options.questions)[: options.most])
    print(json.dumps(found, indent=2))
    if found["default"]["prompt_characters"]["question"] > MOST:
        raise SystemExit(f"the default recipe's prompts have more than {MOST:,} characters")


def figures(server: Server, directory: Path, questions: list[str]) -> dict[str, Any]:
    """Return the figures of each recipe. The recipes take turns at every question."""
    with HGMem.open("novel", **access(server)) as client:
        client.import_lightrag(directory)
        runs: dict[str, list[tuple[Answer, Script, float]]] = defaultdict(list)
        client.ask(questions[0], steps=1)  # load weights and plan statements
        for question in questions:
            for recipe in RECIPES:
                client.model = script = Script()
                began = time.perf_counter()
                answer = client.ask(question, recipe=recipe, steps=STEPS)
                runs[recipe].append((answer, script, time.perf_counter() - began))
    counted = {recipe: counts(found) for recipe, found in runs.items()}
    paper = counted["paper"]["prompt_characters"]["question"]
    for found in counted.values():
        found["prompt_characters"]["of_the_papers"] = round(found["prompt_characters"]["question"] / paper, 3)
    return counted


def counts(runs: list[tuple[Answer, Script, float]]) -> dict[str, Any]:
    """Return medians over the questions that took all steps."""
    whole = [run for run in runs if len(run[0].steps) == STEPS]
    tasks = sorted({task for _, script, _ in whole for task in script.sent})
    a_step = [sum(step.usage.calls["model"].values()) for step in whole[0][0].steps]
    return {
        "questions": len(whole),
        "calls": {
            "a_step": a_step,
            "answer": 1,
            "question": median(sum(map(len, script.sent.values())) for _, script, _ in whole),
            "by_task": {task: median(len(script.sent[task]) for _, script, _ in whole) for task in tasks},
        },
        "prompt_characters": {
            "by_task": {task: median(sum(script.sent[task]) for _, script, _ in whole) for task in tasks},
            "question": median(sum(map(sum, script.sent.values())) for _, script, _ in whole),
        },
        "seconds": {
            "question": round(statistics.median(seconds for _, _, seconds in whole), 3),
            **{
                kind: round(statistics.median(sum(one.usage.seconds.get(kind, {}).values()) for one, _, _ in whole), 3)
                for kind in ("neo4j", "embedding", "model")
            },
        },
    }


def median(values: Any) -> int:
    """Return the median as a whole number."""
    return round(statistics.median(values))


if __name__ == "__main__":
    main()

"""Measure what the trails of ReMindRAG save: model calls and characters of prompts, from asking to asking.

A scripted model goes where the rule-based one would. It knows the evidence of the questions, and that alone: for
whether it was found, and which passages were of use. Each question of a novel is asked four times (`same`), then
paraphrased (`similar`), then another one over the same passages (`different`), with and without learning.
"""

import argparse
import json
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measures import prompt_characters

from hgmem import HGMem
from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.reply import TextReply
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.remindrag.tasks import EnoughReply, MoveReply, NextReply, UsefulReply
from hgmem.text.segmentation import words
from hgmem.values.records import Answer

HERE = Path(__file__).parent
_FOUND = 0.8  # of the word triples of a piece of evidence


@dataclass
class GuidedModel:
    """The rule-based model's moves, with the judgement of somebody who knows the evidence."""

    name = "guided"
    evidence: Sequence[str] = ()
    calls: int = 0
    characters: int = 0
    vectors: CheckedEmbedder | None = None
    tasks: list[str] = field(default_factory=list)

    def reply(self, task: Any, /) -> Any:
        """Return the reply to a task, and count what it takes."""
        self.calls += 1
        self.tasks.append(task.name)
        self.characters += prompt_characters(task)
        return getattr(self, f"_{task.name}")(task)

    def _anchor_title(self, task: Any) -> TextReply:
        return task.extractive(self.vectors)

    def _move(self, task: Any) -> MoveReply:
        self.last = (*task.known, *task.fresh)
        texts = [seen.text for seen in self.last]
        enough = self.found(texts) == len(self.evidence)
        going = task.extractive(self.vectors)
        fallback = 0 if task.options else None
        return MoveReply(
            found=f"{len(texts)} texts",
            enough=enough,
            next=fallback if going.next is None else going.next,
            also=going.also,
            missing=going.missing,
            why=going.why,
        )

    def _enough(self, task: Any) -> EnoughReply:
        return EnoughReply(enough=self.found([seen.text for seen in task.known]) == len(self.evidence))

    def _next_node(self, task: Any) -> NextReply:
        return task.extractive(self.vectors)

    def _passage_summary(self, task: Any) -> TextReply:
        held = [piece for piece in self.evidence if self.found([task.text], [piece])]
        return TextReply(text=" ".join([*held, task.extractive(self.vectors).text]))

    def _useful(self, task: Any) -> UsefulReply:
        return UsefulReply(useful=task.cited)

    def _clues(self, task: Any) -> CluesReply:
        return task.extractive(self.vectors)

    def _answer(self, task: Any) -> AnswerReply:
        """Cite the passages that hold evidence. A tentative answer needs all of it."""
        if task.tentative and self.found([passage.text for passage in task.passages]) < len(self.evidence):
            return AnswerReply(text="NOT ENOUGH")
        numbers = [
            number for number, passage in enumerate(task.passages, start=1) if self.found([passage.text], least=0.3)
        ]
        return AnswerReply(text=" ".join(f"It says so [{number}]." for number in numbers) or "Nothing was found.")

    def found(self, texts: Sequence[str], pieces: Sequence[str] | None = None, *, least: float = _FOUND) -> int:
        """Return how many pieces of evidence the texts hold together."""
        held = {triple for text in texts for triple in _triples(text)}
        wanted = [_triples(piece) for piece in (self.evidence if pieces is None else pieces)]
        return sum(len(held.intersection(one)) >= least * len(one) for one in wanted)


def _triples(text: str) -> set[tuple[str, ...]]:
    every = words(text)
    return {tuple(every[at : at + 3]) for at in range(max(1, len(every) - 2))}


@dataclass
class Asked:
    """One asking: calls and characters without the learning, whether the walk found enough, and its ways."""

    calls: int
    characters: int
    enough: bool
    ways: frozenset[tuple[str, str]]


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How questions are asked."""

    client: HGMem
    model: GuidedModel
    recipe: str
    recall: str
    jumps: int


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lightrag", type=Path, required=True, help="the novel's LightRAG directory")
    parser.add_argument("--corpus", default="trails", help="what was learnt of it is taken back")
    parser.add_argument("--recipe", default="default")
    parser.add_argument("--recall", choices=("touches", "vector"), default="touches")
    parser.add_argument("--jumps", type=int, default=10, help="max_jumps; a model that walks as rules do needs many")
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    with opened(options.lightrag, options.corpus) as (client, model, questions):
        asking = Asking(client=client, model=model, recipe=options.recipe, recall=options.recall, jumps=options.jumps)
        chosen = questions[: options.limit]
        for learn in (True, False):
            print(json.dumps({"learning": learn, **each_alone(asking, chosen, learn=learn)}, indent=1))
        for order in ("alternating", "shuffled", "with different"):
            print(json.dumps({"order": order, **together(asking, chosen, order=order)}, indent=1))
    return 0


@contextmanager
def opened(lightrag: Path, corpus: str) -> Iterator[tuple[HGMem, GuidedModel, list[dict[str, Any]]]]:
    """Yield a client on the novel with its build, its model, and the questions with their evidence and variants."""
    model = GuidedModel()
    with HGMem.open(corpus, model=model) as client:
        model.vectors = client.embedder
        if corpus not in {one["corpus"] for one in client.corpora()}:
            client.import_lightrag(lightrag)
        client.build("remindrag")
        client.remindrag.unlearn(everything=True) if client.remindrag.learnings() else None
        documents = json.loads((lightrag / "kv_store_full_docs.json").read_text(encoding="utf-8"))
        (novel,) = (one["content"] for one in documents.values())
        yield client, model, list(_questions(novel))


def _questions(novel: str) -> Iterator[dict[str, Any]]:
    variants = {one["id"]: one for one in _lines("gods_of_mars_variants.jsonl")}
    for one in _lines("gods_of_mars.jsonl"):
        evidence = [novel[place["start"] : place["end"]] for place in one["evidence"]]
        yield {**variants[one["id"]], "same": one["question"], "evidence": evidence}


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


def each_alone(asking: Asking, questions: Sequence[dict[str, Any]], *, learn: bool) -> dict[str, Any]:
    """Ask each question in all settings, and forget what it taught before the next one."""
    rows: dict[str, list[Asked]] = {}
    for question in questions:
        for number in range(1, 5):
            rows.setdefault(f"same {number}", []).append(ask(asking, question, "same", learn=learn))
        for setting in ("similar", "different"):
            rows.setdefault(setting, []).append(ask(asking, question, setting, learn=False))
        if learn and asking.client.remindrag.learnings():
            asking.client.remindrag.unlearn(everything=True)
    first = rows["same 1"]
    told: dict[str, Any] = {name: summary(found) for name, found in rows.items()}
    enough = [at for at, one in enumerate(first) if one.enough]
    told["second asking of at most 2 calls where the first found enough"] = (
        f"{sum(rows['same 2'][at].calls <= 2 for at in enough)} of {len(enough)}"
    )
    told["overlap of ways, first and second"] = round(statistics.mean(map(overlap, first, rows["same 2"])), 3)
    told["overlap of ways, first and similar"] = round(statistics.mean(map(overlap, first, rows["similar"])), 3)
    return told


def together(asking: Asking, questions: Sequence[dict[str, Any]], *, order: str) -> dict[str, Any]:
    """Learn from all questions, in turns, shuffled, or each before a different one, then ask all in all settings."""
    turns = [question for _ in range(2) for question in questions]
    if order == "shuffled":
        random.Random(27).shuffle(turns)  # noqa: S311
    for question in turns:
        ask(asking, question, "same", learn=True)
        if order == "with different":
            ask(asking, question, "different", learn=True)
    settings = ("same", "similar", "different")
    told = {setting: summary([ask(asking, one, setting, learn=False) for one in questions]) for setting in settings}
    asking.client.remindrag.unlearn(everything=True)
    return told


def ask(asking: Asking, question: dict[str, Any], setting: str, *, learn: bool) -> Asked:
    """Ask one question, and learn its walk afterwards."""
    client, model = asking.client, asking.model
    model.evidence = question["evidence"]
    model.calls = model.characters = 0
    limits = {"max_jumps": asking.jumps, "max_calls": 3 * asking.jumps, "evidence_tokens": 600 * asking.jumps}
    answer = client.ask(
        question[setting],
        system="remindrag",
        recipe=asking.recipe,
        settings={"learn": False, "recall": asking.recall, **limits},
    )
    calls, characters = model.calls, model.characters
    if learn and any(step.strategy in ("first look", "walk") for step in answer.steps):
        client.remindrag.learn(memory=answer.memory)
    enough = any(step.judgement == "sufficient" for step in answer.steps)
    return Asked(calls=calls, characters=characters, enough=enough, ways=ways(answer))


def ways(answer: Answer) -> frozenset[tuple[str, str]]:
    """Return the ways of a walk, in either direction the same."""
    hits = (hit for step in answer.steps for one in step.retrieved for hit in one.built if hit.source)
    return frozenset((min(hit.uid, hit.source), max(hit.uid, hit.source)) for hit in hits)


def overlap(one: Asked, other: Asked) -> float:
    """Return the Jaccard index of two walks' ways (paper, appendix E.1: path consistency)."""
    return len(one.ways & other.ways) / max(1, len(one.ways | other.ways))


def summary(found: Sequence[Asked]) -> dict[str, Any]:
    """Return means over questions."""
    return {
        "calls": round(statistics.mean(one.calls for one in found), 2),
        "characters": round(statistics.mean(one.characters for one in found)),
        "enough": sum(one.enough for one in found),
    }


if __name__ == "__main__":
    sys.exit(main())

"""What memory doesn't cover of the question, and where to look for it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Annotated

import numpy as np

from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.extractive.entity_recognition import Aspect, aspects, leads
from hgmem.models.extractive.key_phrases import stems
from hgmem.models.prompts import PromptTask
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import PromptMemory, Text
from hgmem.systems.hgmem.replies import Concern, PlanReply, Where
from hgmem.text.segmentation import collapse
from hgmem.values.graph_elements import Entity

_MEANT = 0.5
_TARGETS = 2
_BRIDGES = 2  # concerns of a plan that follow a name which memory brought
_RARE = 3  # points that hold such a name at most: a name that is everywhere leads nowhere
_OPEN = 2  # what is asked of such a name: so many aspects
# How near the best point has to be, and how much of the question it has to hold, at first and later.
_FIRST_REST = (0.65, 1.0)
_LATER_REST = (0.55, 0.6)


@dataclass(frozen=True, kw_only=True)
class Planning(PromptTask):
    """A task that goes on from the question, memory, what was asked before, and `hints`, entities beside memory."""

    question: Text
    memory: Annotated[PromptMemory, rendering.memory]
    previous: Annotated[tuple[str, ...], rendering.listed] = ()
    hints: tuple[Entity, ...] = ()


def plan(task: Planning, *, concerns: int, by_concern: bool, vectors: CheckedEmbedder) -> PlanReply:
    """Return "sufficient", or what is missing: names beyond memory, the rest around the points nearest to it.

    A name of the question that no point holds is looked for beyond memory (global), other gaps around the points that
    hold its names (local). What is covered, but by no point near the question, is dug into once more around those
    points, then beyond memory. Nothing is asked twice. `by_concern` is whether each concern says where to look, and not
    the plan as a whole.
    """
    view = _View(task, vectors, by_concern=by_concern)
    missing = view.missing()
    if not missing and view.rests():
        return PlanReply(judgement="sufficient")
    bridges = list(islice(view.bridges(), min(_BRIDGES, concerns)))
    others = list(islice(view.concerns(missing or view.weakest(), missing), concerns))
    chosen = (*bridges, *others)[:concerns]
    if not chosen:
        return PlanReply(judgement="sufficient")
    numbered = [each.model_copy(update={"points": task.memory.numbers_of(each.points)}) for each in chosen]
    if by_concern:
        return PlanReply(judgement="open", concerns=tuple(numbered))
    whole: Where = "local" if bridges else view.direction(missing)
    alone = [concern.model_copy(update={"strategy": None}) for concern in numbered]
    return PlanReply(judgement=whole, concerns=tuple(alone))


class _View:
    """Memory as the question sees it: which point covers which aspect, and how near each point is."""

    def __init__(self, task: Planning, vectors: CheckedEmbedder, *, by_concern: bool) -> None:
        self._task = task
        self._by_concern = by_concern
        question = task.question
        self._wanted = aspects(question) or [Aspect(question, frozenset(stems(question)), False)]
        earlier = [text for text in task.previous if text.casefold() != question.casefold()]
        self._previous = [frozenset(stems(text)) for text in earlier]
        points = task.memory.points
        texts = [point.description for point in points]
        queries = [question, *(each.text for each in self._wanted)]
        near = vectors.of(queries, kind="query") @ vectors.of(texts).T
        self._near = near[0]
        self._covered = np.zeros((len(self._wanted), len(texts)), dtype=np.bool_)
        for at, point in enumerate(points):
            known = frozenset(stems(f"{point.description} {' '.join(entity.name for entity in point.entities)}"))
            for row, each in enumerate(self._wanted):
                meant = not each.name and float(near[row + 1, at]) > _MEANT
                self._covered[row, at] = meant or each.covered_by(known)

    def missing(self) -> list[Aspect]:
        """Return the aspects that no point covers and no earlier sub-query asked for."""
        return [
            each
            for each, covered in zip(self._wanted, self._covered, strict=True)
            if not covered.any() and not any(each.stems <= previous for previous in self._previous)
        ]

    def rests(self) -> bool:
        """Whether a point near the question holds most of its aspects."""
        if not len(self._near):
            return False
        near, together = _LATER_REST if self._previous else _FIRST_REST
        best = float(self._near.max())
        return best >= near and float(self._covered.mean(axis=0)[self._near >= best - 0.1].max()) >= together

    def direction(self, missing: Sequence[Aspect]) -> Where:
        """Return where to look: around points that hold a name of the question, else beyond memory."""
        if any(each.name for each in missing) or not self._anchored():
            return "global"
        return "local" if missing or not self._previous else "global"

    def weakest(self) -> list[Aspect]:
        """Return the aspects, those that the fewest points hold first."""
        counts = self._covered.sum(axis=1)
        order = sorted(range(len(self._wanted)), key=lambda row: (int(counts[row]), row))
        return [self._wanted[row] for row in order]

    def concerns(self, wanted: Sequence[Aspect], missing: Sequence[Aspect]) -> Iterator[Concern]:
        """Yield concerns, none of them asked for yet: each wanted aspect with another one, then with a hint."""
        taken = set(self._previous)
        whole = self.direction(missing)
        for words, aspect in [*self._with_aspects(wanted), *self._with_hints(wanted)]:
            key = frozenset(stems(words))
            if key and key not in taken:
                taken.add(key)
                alone = [aspect] if aspect in missing else []
                strategy = self.direction(alone) if self._by_concern else whole
                targets = self._targets(aspect) if strategy == "local" else ()
                yield Concern(text=words, strategy=strategy, points=tuple(targets))

    def bridges(self) -> Iterator[Concern]:
        """Yield concerns about names that points of the question's matter brought and the question lacks.

        What is asked of may be told elsewhere, of something that only memory names: of a film's director, say, where
        the question describes the film. The points that hold most of the question go first, and in each the names
        that fewest others hold; a name that shares a word with the question is a likeness, no bridge.
        """
        points = self._task.memory.points
        holding = Counter(frozenset(stems(entity.name)) for point in points for entity in point.entities)
        known = frozenset[str]().union(*(each.stems for each in self._wanted))
        for at in self._closest():
            brought = {frozenset(stems(entity.name)): entity.name for entity in points[at].entities}
            for key in sorted(brought, key=lambda key: holding[key]):
                fresh = key and not key & known and not any(key <= earlier for earlier in self._previous)
                if fresh and holding[key] <= _RARE and leads(brought[key], points[at].description):
                    text = ", ".join([brought[key], *self._open(at)])
                    yield Concern(text=text, strategy="local", points=(at,))

    def _closest(self) -> list[int]:
        """Return the points that hold some of the question, first those that are nearest to it and hold most."""
        worth = self._near + self._covered.mean(axis=0)
        touching = (at for at in range(len(self._near)) if self._covered[:, at].any())
        return sorted(touching, key=lambda at: (-float(worth[at]), at))

    def _open(self, at: int) -> list[str]:
        """Return the aspects that a point does not cover, or all that are not names if it covers all."""
        every = list(zip(self._wanted, self._covered[:, at], strict=True))
        left = [each for each, covered in every if not covered] or [each for each, _ in every if not each.name]
        return [each.text for each in left[:_OPEN]]

    def _anchored(self) -> bool:
        rows = [row for row, each in enumerate(self._wanted) if each.name]
        return bool(self._covered[rows].any()) if rows else len(self._near) > 0

    def _with_aspects(self, wanted: Sequence[Aspect]) -> Iterator[tuple[str, Aspect]]:
        for aspect in wanted:
            others = [each for each in self._wanted if each is not aspect]
            partners = sorted(others, key=lambda each: each.name == aspect.name)
            yield ", ".join([aspect.text, *(each.text for each in partners[:1])]), aspect

    def _with_hints(self, wanted: Sequence[Aspect]) -> Iterator[tuple[str, Aspect]]:
        """Yield the aspects with the entities beside memory whose description shares most words with the question."""
        stems_wanted = frozenset[str]().union(*(each.stems for each in self._wanted))
        shared = [(len(stems_wanted.intersection(stems(hint.description))), hint.name) for hint in self._task.hints]
        for words, name in sorted(shared, key=lambda row: -row[0]):
            for aspect in wanted[:1] if words else ():
                yield f"{aspect.text}, {name}", aspect

    def _targets(self, aspect: Aspect) -> list[int]:
        """Return the points to dig into: near the question, the ones that hold the aspect before others."""
        row = self._covered[self._wanted.index(aspect)]
        score = self._near + 0.1 * self._covered.mean(axis=0) + 0.1 * row
        return sorted(sorted(range(len(score)), key=lambda at: (-float(score[at]), at))[:_TARGETS])


def subqueries(task: Planning, concerns: Iterable[Concern]) -> tuple[str, ...]:
    """Return a sub-query a concern: the concern itself, told apart from the earlier ones by more names."""
    taken = {text.casefold() for text in (*task.previous, task.question)}
    found = []
    for concern in concerns:
        text = next(each for each in _wordings(task, concern) if each.casefold() not in taken)
        taken.add(text.casefold())
        found.append(text)
    return tuple(found)


def _wordings(task: Planning, concern: Concern) -> Iterator[str]:
    """Yield the concern's text, then with names of its points, hints and the question, then numbered."""
    text = collapse(concern.text) or collapse(task.question)
    yield text
    numbered = task.memory.numbered
    points = [numbered[at] for at in concern.points if 0 <= at < len(numbered)]
    named = [entity.name for point in points if point is not None for entity in point.entities]
    for name in dict.fromkeys([*named, *(hint.name for hint in task.hints), collapse(task.question)]):
        yield f"{text}, {name}"
    yield from (f"{text} ({number})" for number in count(2))

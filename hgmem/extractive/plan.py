"""What memory doesn't cover of the question, and where to look for it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hgmem.embed import Vectors
from hgmem.extractive.aspects import Aspect, aspects
from hgmem.extractive.phrases import stem, stems
from hgmem.extractive.vectors import VectorCache
from hgmem.model import Entity, MemoryPoint
from hgmem.plan import Concern, Plan, PlanReply
from hgmem.text import words

_MEANT = 0.5
_NEAR = 0.5
_VERY_NEAR = 0.65
_TOGETHER = 0.6
_TARGETS = 2
_HINTS = 2


def plan(task: Plan, vectors: VectorCache) -> PlanReply:
    """Return "sufficient", or what is missing: by name beyond memory, else around the nearest points."""
    view = _View(task, vectors)
    if not task.points:
        return _global(view.concerns(view.wanted), task)
    missing = [each for each, covered in zip(view.wanted, view.held(), strict=True) if not covered]
    fresh = [each for each in missing if not view.asked(each)]
    names = [each for each in fresh if each.name]
    if not missing and view.rests():
        return PlanReply(judgement="sufficient")
    if names or (fresh and not view.anchored()):
        return _global(view.concerns(names or fresh), task)
    if fresh:
        return _local(view.digging(fresh), task)
    return _further(view, task)


def _global(concerns: Sequence[Concern], task: Plan) -> PlanReply:
    concerns = concerns or [Concern(text=task.question)]
    return PlanReply(judgement="global", concerns=tuple(concerns[: task.concerns]))


def _local(concerns: Sequence[Concern], task: Plan) -> PlanReply:
    return PlanReply(judgement="local", concerns=tuple(concerns[: task.concerns]))


def _further(view: "_View", task: Plan) -> PlanReply:
    """Return where to look when nothing new is missing: around the nearest points once, then nowhere."""
    if view.rounds == 0:
        return _local(view.digging(view.weakest()), task)
    return PlanReply(judgement="sufficient")


@dataclass(slots=True)
class _View:
    """Memory as the question sees it: which point covers which aspect, and how near each point is."""

    task: Plan
    wanted: list[Aspect]
    covered: np.ndarray[tuple[int, int], np.dtype[np.bool_]]
    near: Vectors
    rounds: int
    _previous: list[frozenset[str]]

    def __init__(self, task: Plan, vectors: VectorCache) -> None:
        self.task = task
        self.wanted = aspects(task.question) or [Aspect(task.question, frozenset(stems(task.question)), False)]
        earlier = [text for text in task.previous if text.casefold() != task.question.casefold()]
        self.rounds = len(earlier)
        self._previous = [frozenset(stems(text)) for text in earlier]
        texts = [point.description for point in task.points]
        found = vectors.of(texts)
        asked = vectors.of([task.question, *(each.text for each in self.wanted)], kind="query") @ found.T
        self.near = asked[0]
        self.covered = np.array(
            [
                [
                    each.covered_by(said) or (not each.name and float(asked[row + 1, at]) > _MEANT)
                    for at, said in enumerate(map(_said, task.points))
                ]
                for row, each in enumerate(self.wanted)
            ],
            dtype=np.bool_,
        ).reshape(len(self.wanted), len(texts))

    def held(self) -> list[bool]:
        """Return for each aspect whether a point covers it."""
        return [bool(row.any()) for row in self.covered]

    def asked(self, aspect: Aspect) -> bool:
        """Whether an earlier sub-query asked for nothing but this."""
        return any(aspect.stems and aspect.stems <= previous for previous in self._previous)

    def rests(self) -> bool:
        """Whether the points near the question hold most of its aspects together."""
        best = float(self.near.max())
        together = float(self.covered.mean(axis=0)[self.near >= best - 0.1].max())
        least = _NEAR if self.rounds else _VERY_NEAR
        return best >= least and together >= (_TOGETHER if self.rounds else 1.0)

    def anchored(self) -> bool:
        """Whether memory holds a name of the question, to start from."""
        rows = [row for row, each in enumerate(self.wanted) if each.name]
        return bool(self.covered[rows].any()) if rows else bool(self.near.max() >= _NEAR)

    def weakest(self) -> list[Aspect]:
        """Return the aspects that the fewest points hold, fewest first."""
        counts = self.covered.sum(axis=1)
        order = sorted(range(len(self.wanted)), key=lambda row: (int(counts[row]), row))
        return [self.wanted[row] for row in order]

    def concerns(self, missing: Sequence[Aspect]) -> list[Concern]:
        """Return a concern for each missing aspect, with the rest of the question as what it is wanted for."""
        return [Concern(text=self._worded(each, [])) for each in missing]

    def digging(self, missing: Sequence[Aspect]) -> list[Concern]:
        """Return a concern for each aspect, aimed at the points nearest to the question that touch it."""
        concerns = []
        for each in missing:
            targets = self._targets(each)
            around = [entity.name for at in targets for entity in self.task.points[at].entities]
            extra = [hint.name for hint in self._hints()] + around
            concerns.append(Concern(text=self._worded(each, extra), points=tuple(targets)))
        return concerns

    def _targets(self, aspect: Aspect) -> list[int]:
        score = self.near + 0.1 * self.covered.mean(axis=0) + 0.1 * self.covered[self.wanted.index(aspect)]
        order = sorted(range(len(self.near)), key=lambda at: (-float(score[at]), at))
        return sorted(order[:_TARGETS])

    def _hints(self) -> list[Entity]:
        """Return the entities beside memory whose description shares words with the question."""
        wanted = frozenset(word for each in self.wanted for word in each.stems)
        shared = [(len(wanted & set(stems(hint.description))), hint) for hint in self.task.hints]
        return [hint for count, hint in sorted(shared, key=lambda row: -row[0]) if count][:_HINTS]

    def _worded(self, aspect: Aspect, extra: Sequence[str]) -> str:
        others = [each.text for each in self.wanted if each is not aspect][:3]
        fresh = [name for name in dict.fromkeys(extra) if not set(map(stem, words(name))) & aspect.stems][:2]
        context = list(dict.fromkeys([*others, *fresh]))
        return f"{aspect.text}: {', '.join(context)}" if context else aspect.text


def _said(point: MemoryPoint) -> frozenset[str]:
    return frozenset(stems(f"{point.description} {' '.join(entity.name for entity in point.entities)}"))

"""The model that is no language model: text methods and an embedder answer every task."""

from typing import Any, TypeVar, cast

from hgmem.answer import AnswerQuestion
from hgmem.combined import MergeAndPlan, WholeStep
from hgmem.contributions import join
from hgmem.embed import Embedder
from hgmem.errors import ModelError
from hgmem.extract import Condense, CondensedText, Extract, Extraction, Glean
from hgmem.extractive.answering import answer
from hgmem.extractive.combined import merge_and_plan, whole_step
from hgmem.extractive.evolve import evolve
from hgmem.extractive.extraction import extract
from hgmem.extractive.merge import merge
from hgmem.extractive.plan import plan
from hgmem.extractive.subqueries import subqueries
from hgmem.extractive.vectors import VectorCache
from hgmem.memory import Describe, Evolve, Merge
from hgmem.model import Task
from hgmem.plan import Plan, Subqueries

Reply = TypeVar("Reply")


class ExtractiveModel:
    """Answers tasks from their fields alone: nothing is invented, every sentence is the evidence's own.

    The same task gets the same reply. Safe between threads; sentence vectors are kept across tasks.
    """

    name = "extractive"

    def __init__(self, embedder: Embedder) -> None:
        self._vectors = VectorCache(embedder)

    def reply(self, task: Task[Reply], /) -> Reply:
        """Return the reply to `task`; `ModelError` for a task of a type unknown here."""
        return cast(Reply, self._reply(task))

    def _reply(self, task: Any) -> object:
        match task:
            case Extract() | Glean() | Condense() | Describe():
                return _described(task)
            case Evolve():
                return evolve(task, self._vectors)
            case Merge():
                return merge(task, self._vectors)
            case Plan():
                return plan(task, self._vectors)
            case Subqueries():
                return subqueries(task)
            case MergeAndPlan():
                return merge_and_plan(task, self._vectors)
            case WholeStep():
                return whole_step(task, self._vectors)
            case AnswerQuestion():
                return answer(task, self._vectors)
        raise ModelError(f"the extractive model has no way to answer the task {task.name!r}: give a language model")


def _described(task: Extract | Glean | Condense | Describe) -> Extraction | CondensedText:
    match task:
        case Extract():
            return extract(task)
        case Condense():
            return CondensedText(text=join(task.descriptions, limit=task.limit))
        case Glean():
            return Extraction()  # nothing is missed that these methods could find
        case Describe():
            return Extraction()  # what the point says of a new name stands for it

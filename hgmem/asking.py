"""What a caller may say of a question beside its text, and how it is then answered."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypedDict

from hgmem.arguments import STEP, Argument, check, count, flag, named, text
from hgmem.budget import spending
from hgmem.errors import UsageError
from hgmem.events import Event, Watcher
from hgmem.filtering import normal
from hgmem.inputs import Filters, Question
from hgmem.model import Answer
from hgmem.services import Services
from hgmem.systems import Recipe, system


class Asking(TypedDict, total=False):
    """What `ask` and `stream` take by name.

    `recipe` is a name or an `HGMemConfig`, `settings` single fields of it by name (`{"retrieval.hops": 2}`), `steps`
    the most new steps. `filters` choose the documents that are searched, by `source`, `title`, `document` (uid) or
    their metadata (`{"year": 2020, "author": ["Doyle", "Poe"]}`): every name has to fit, one of its values will do,
    and `*` in a text stands for anything. `memory` is the uid of a memory that goes on, `at_step` a step of it to
    answer at without a new one. `max_calls` and `max_tokens` are what may be spent on a language model behind a
    server, or of LangChain's; calls of an object of one's own are not counted. `answer=False` leaves the question
    unanswered once its memory is whole: asked on with `memory`, it gets the answer. A `watcher` is there while the
    question is worked on.
    """

    corpus: str | None
    system: str
    recipe: Recipe
    settings: Mapping[str, object]
    steps: int | None
    filters: Filters | None
    memory: str | None
    at_step: int | None
    max_calls: int | None
    max_tokens: int | None
    answer: bool
    watcher: Watcher | None


_LIMIT = Argument(count, "allows nothing, or is no number: give 1 or more, or leave it out")
ARGUMENTS: Mapping[str, Argument] = {
    "corpus": Argument(text, "is no name of a corpus: give it as text, or leave it out"),
    "system": Argument(text, "is no name of a system: give it as text, or leave it out", optional=False),
    "settings": Argument(named, 'is not settings= as it has to be: map names to values, as in {"retrieval.hops": 2}'),
    "steps": Argument(count, "is too few steps, or no number: ask for 1 or more, or leave it out"),
    "memory": Argument(text, "is no uid of a memory: give one, such as answer.memory, or leave it out"),
    "at_step": STEP,
    "max_calls": _LIMIT,
    "max_tokens": _LIMIT,
    "answer": Argument(flag, "says neither yes nor no: give False to leave the answer out, or True", optional=False),
    "watcher": Argument(
        lambda one: isinstance(one, Watcher), "is no watcher: give an hgmem.events.Watcher, or leave it out"
    ),
}
"""What values have to be; those of `recipe` and `filters` are looked at where they are read."""


def fitting(
    given: Mapping[Any, object], *, more: Mapping[str, Argument] | None = None, without: Collection[str] = ()
) -> None:
    """Raise `UsageError` for what no question is asked with, by name, and for values that don't fit.

    `more` is what the caller takes beside, `without` what it does not take of it.
    """
    known = [name for name in (*(more or ()), *Asking.__annotations__) if name not in without]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is nothing that a question is asked with: there are {', '.join(known)}")
    check(given, {**ARGUMENTS, **(more or {})})


def answered(services: Services, text: str, asking: Asking) -> Answer:
    """Return the answer to a question; `asking` is `fitting`."""
    steps, at_step, memory = asking.get("steps"), asking.get("at_step"), asking.get("memory")
    if at_step is not None and steps is not None:
        raise UsageError("an answer at a step takes no new steps: leave steps= (--steps) out")
    if at_step is not None and memory is None:
        raise UsageError("an answer at a step needs the memory that the step is of: give memory= (--continue) as well")
    if at_step is not None and asking.get("filters"):
        raise UsageError("an answer at a step searches nothing anew: leave filters= (--where) out")
    if at_step is not None and not asking.get("answer", True):
        raise UsageError("an answer at a step is all that at_step= asks for: leave answer=False out")
    changes = {**(asking.get("settings") or {}), **({"steps": steps} if steps is not None else {})}
    chosen = system(asking.get("system", "hgmem"), recipe=asking.get("recipe"), changes=changes)
    asked = Question(
        text=text, memory=memory, at_step=at_step, filters=_filters(asking), answer=asking.get("answer", True)
    )
    watcher = asking.get("watcher")
    with limited(max_calls=asking.get("max_calls"), max_tokens=asking.get("max_tokens")):
        if watcher is None:
            return chosen.answer(services, asked)
        watched = _watched(services, watcher)
        return watcher.question(lambda: chosen.answer(watched, asked))


def checked(text: object, *, most: int) -> str:
    """Return the text of a question as it can be stored, or say what is wrong with it."""
    if not isinstance(text, str):
        raise UsageError(f"a question is text, not {type(text).__name__}")
    if not text.strip():
        raise UsageError("the question is empty: ask something")
    if len(text) > most:
        raise UsageError(f"the question has {len(text)} characters, the limit is {most}: shorten it")
    return text.strip().encode("utf-8", "replace").decode()  # half a surrogate pair can't be stored


def limited(**limits: int | None) -> AbstractContextManager[object]:
    """Return a context that spends so much at most; without limits, one that leaves the caller's budget in place."""
    check(limits, ARGUMENTS)
    return nullcontext() if set(limits.values()) == {None} else spending(**limits)


def _watched(services: Services, watcher: Watcher) -> Services:
    """Return services whose watcher hears of every event first."""
    told = services.listener.tell

    def tell(event: Event) -> None:
        watcher.hear(event)
        told(event)

    return replace(services, watcher=watcher, listener=replace(services.listener, tell=tell))


def _filters(asking: Asking) -> dict[str, tuple[str, ...]] | None:
    filters = asking.get("filters")
    return None if filters is None else normal(filters)

"""What a caller may say of a question beside its text, and how it is then answered."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TypedDict

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


def answered(services: Services, text: str, asking: Asking) -> Answer:
    """Return the answer to a question."""
    unknown = asking.keys() - Asking.__annotations__.keys()
    if unknown:
        known = ", ".join(Asking.__annotations__)
        raise UsageError(f"{min(unknown)!r} is nothing that a question is asked with: there are {known}")
    steps, at_step, memory = asking.get("steps"), asking.get("at_step"), asking.get("memory")
    if not _positive(steps):
        raise UsageError(f"{steps!r} steps are too few, or no number: ask for 1 or more")
    if not _positive(at_step):
        raise UsageError(f"{at_step!r} is no step: the first one is 1")
    if at_step is not None and steps is not None:
        raise UsageError("an answer at a step takes no new steps: leave steps= (--steps) out")
    if at_step is not None and memory is None:
        raise UsageError("an answer at a step needs the memory that the step is of: give memory= (--continue) as well")
    if at_step is not None and asking.get("filters"):
        raise UsageError("an answer at a step searches nothing anew: leave filters= (--where) out")
    if at_step is not None and not asking.get("answer", True):
        raise UsageError("an answer at a step is all that at_step= asks for: leave answer=False out")
    if not isinstance(asking.get("settings") or {}, Mapping):
        raise UsageError('settings= maps names to values, such as {"retrieval.hops": 2}')
    changes = {**(asking.get("settings") or {}), **({"steps": steps} if steps is not None else {})}
    chosen = system(asking.get("system", "hgmem"), recipe=asking.get("recipe"), changes=changes)
    asked = Question(
        text=text, memory=memory, at_step=at_step, filters=_filters(asking), answer=bool(asking.get("answer", True))
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
    for name, limit in limits.items():
        if limit is not None and (not isinstance(limit, int) or limit < 1):
            raise UsageError(f"{name}={limit!r} allows nothing, or is no number: give 1 or more, or leave it out")
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


def _positive(number: object) -> bool:
    return number is None or (isinstance(number, int) and number >= 1)

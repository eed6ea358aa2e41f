"""Options of a question, and the call that answers it."""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, TypedDict

from hgmem.errors import UsageError
from hgmem.models.metering import spending
from hgmem.retrieval.document_filters import normal
from hgmem.services import Services
from hgmem.systems.registry import Asked, answer
from hgmem.systems.registry import Recipe as Recipe
from hgmem.values.arguments import OWNER, STEP, Argument, check, count, flag, named, text
from hgmem.values.events import Event, Watcher
from hgmem.values.inputs import Filters, Question
from hgmem.values.records import Answer


class Asking(TypedDict, total=False):
    """Options of `ask` and `stream`, by name.

    - `system`: a name of `HGMem.systems()`. The default is the system of `memory`, else `HGMEM_SYSTEM`.
    - `recipe`: a name, or a config of the system such as an `HGMemConfig`. `settings` override single fields of it, as
      in `{"retrieval.hops": 2}`.
    - `steps`: maximum of new steps.
    - `filters`: select the documents to search by `source`, `title`, `document` (uid) or metadata, as in `{"year":
      2020, "author": ["Doyle", "Poe"]}`. All names must match, with any one value each. `*` in a text matches anything.
    - `owner`: whose memory it is. Only that owner and callers without an owner see it, and only the owner's own and
      everybody's memories can be continued. The default is the client's owner, else everybody.
    - `memory`: uid of the memory to continue. `at_step` answers from that memory as of a step, without new steps.
    - `max_calls`, `max_tokens`: limits on calls and tokens of language models that hgmem calls over HTTP or through
      LangChain. Calls of a custom model object are not counted.
    - `answer=False`: build the memory without an answer. Continue it with `memory` to get one.
    - `learn=True`: learn from the question once it is answered, in a system that can.
    - `watcher`: tracing hooks, called while the question is answered.
    """

    corpus: str | None
    system: str
    recipe: Recipe
    settings: Mapping[str, object]
    steps: int | None
    filters: Filters | None
    owner: str | None
    memory: str | None
    at_step: int | None
    max_calls: int | None
    max_tokens: int | None
    answer: bool
    learn: bool
    watcher: Watcher | None


AskOptions = Asking

_LIMIT = Argument(count, "must be an integer of at least 1, or omitted")
ARGUMENTS: Mapping[str, Argument] = {
    "corpus": Argument(text, "is not a corpus name: pass a string, or omit it"),
    "system": Argument(text, "is not a system name: pass a string, or omit it", optional=False),
    "settings": Argument(named, 'must map option names to values, such as {"retrieval.hops": 2}'),
    "steps": Argument(count, "must be an integer of at least 1, or omitted"),
    "owner": OWNER,
    "memory": Argument(text, "is not a memory uid: pass one, such as answer.memory, or omit it"),
    "at_step": STEP,
    "max_calls": _LIMIT,
    "max_tokens": _LIMIT,
    "answer": Argument(flag, "must be True or False", optional=False),
    "learn": Argument(flag, "must be True or False", optional=False),
    "watcher": Argument(
        lambda one: isinstance(one, Watcher), "is not a tracing hook: pass an hgmem.values.events.Watcher, or omit it"
    ),
}
"""Checks of the option values. Those of `recipe` and `filters` are checked where they are used."""


def check_ask_options(
    given: Mapping[Any, object], *, more: Mapping[str, Argument] | None = None, without: Collection[str] = ()
) -> None:
    """Check ask options.

    `more` are arguments that the caller accepts in addition, `without` the names that it rejects. Raises `UsageError`
    for an unknown name or an invalid value.
    """
    known = [name for name in (*(more or ()), *Asking.__annotations__) if name not in without]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a valid argument: choose from {', '.join(known)}")
    check(given, {**ARGUMENTS, **(more or {})})


def answer_question(services: Services, text: str, asking: Asking) -> Answer:
    """Answer a question with options that `check_ask_options` has checked."""
    steps, at_step, memory = asking.get("steps"), asking.get("at_step"), asking.get("memory")
    if at_step is not None and steps is not None:
        raise UsageError("at_step= (--at-step) and steps= (--steps) cannot be combined: drop one")
    if at_step is not None and memory is None:
        raise UsageError("at_step= (--at-step) needs a memory: pass memory= (--continue) as well")
    if at_step is not None and asking.get("filters"):
        raise UsageError("at_step= (--at-step) and filters= (--where) cannot be combined: drop one")
    if at_step is not None and not asking.get("answer", True):
        raise UsageError("at_step= and answer=False cannot be combined: drop one")
    changes = {**(asking.get("settings") or {}), **({"steps": steps} if steps is not None else {})}
    chosen = Asked(
        system=asking.get("system"),
        recipe=asking.get("recipe"),
        changes=changes,
        learn=asking.get("learn", False),
    )
    query = Question(
        text=text, memory=memory, at_step=at_step, filters=_filters(asking), answer=asking.get("answer", True)
    )
    watcher = asking.get("watcher")
    with limited(max_calls=asking.get("max_calls"), max_tokens=asking.get("max_tokens")):
        if watcher is None:
            return answer(services, query, chosen)
        services_with_watcher = _with_watcher(services, watcher)
        return watcher.question(lambda: answer(services_with_watcher, query, chosen))


def checked(text: object, *, most: int) -> str:
    """Return the text of a question in storable form.

    Raises `UsageError` if it is not text, empty or too long.
    """
    if not isinstance(text, str):
        raise UsageError(f"the question must be a string, not {type(text).__name__}")
    if not text.strip():
        raise UsageError("the question is empty: enter a question")
    if len(text) > most:
        raise UsageError(f"the question has {len(text)} characters, more than the limit of {most}: shorten it")
    return text.strip().encode("utf-8", "replace").decode()  # unpaired surrogates can't be stored


class Limits(TypedDict, total=False):
    """Limits of a run: requests to a language model, and its tokens."""

    max_calls: int | None
    max_tokens: int | None


def limited(*, max_calls: int | None = None, max_tokens: int | None = None) -> AbstractContextManager[object]:
    """Return a context that limits calls and tokens. Without limits, it leaves the caller's budget in place."""
    limits = {"max_calls": max_calls, "max_tokens": max_tokens}
    check(limits, ARGUMENTS)
    return nullcontext() if set(limits.values()) == {None} else spending(**limits)


def _with_watcher(services: Services, watcher: Watcher) -> Services:
    """Return services that emit every event to the watcher first."""
    emit_next = services.listener.emit

    def emit(event: Event) -> None:
        watcher.hear(event)
        emit_next(event)

    return replace(services, watcher=watcher, listener=replace(services.listener, emit=emit))


def _filters(asking: Asking) -> dict[str, tuple[str, ...]] | None:
    filters = asking.get("filters")
    return None if filters is None else normal(filters)

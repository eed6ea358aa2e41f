"""Ask a question with checked options: its text, the corpus of a continued memory, budget and tracing hooks."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from hgmem.errors import UsageError
from hgmem.graph.memory import corpus_of
from hgmem.models.metering import limited
from hgmem.services import Services
from hgmem.systems.answering import answer
from hgmem.values.arguments import AskOptions, check_at_step
from hgmem.values.events import Answered, Both, Event, Watcher
from hgmem.values.records import Answer


def answer_question(services: Services, text: str, options: AskOptions) -> Answer:
    """Answer a question with options that `check_ask_options` has checked.

    With a memory to continue and no text, its latest question is resumed.
    """
    check_at_step(options)
    if (memory := options.get("memory")) is not None:
        services = with_corpus_of(services, memory, corpus=options.get("corpus"))
    resumed = memory and text in ("", None)
    text = "" if resumed else checked_text(text, most=services.settings.max_question_characters)
    if (watcher := options.get("watcher")) is not None:
        services = replace(services, watcher=Both(services.watcher, watcher))
    with limited(max_calls=options.get("max_calls"), max_tokens=options.get("max_tokens")):
        if type(services.watcher) is Watcher:
            return answer(services, text, options)
        watched = _heard(services)
        return services.watcher.question(lambda: answer(watched, text, options))


async def answer_among(events: AsyncGenerator[Event, None]) -> Answer:
    """Return the last answer among the events of a question, and close them."""
    answer: Answer | None = None
    async with aclosing(events):
        async for event in events:
            answer = event.answer if isinstance(event, Answered) else answer
    if answer is None:
        raise AssertionError("a question ends with an answer or with an error")
    return answer


def with_corpus_of(services: Services, memory: str, *, corpus: str | None) -> Services:
    """Return services for the corpus of a memory (uid), which must be `corpus` if that is given."""
    stored_in, uid = corpus_of(services.database, uid=memory, owner=services.owner)
    if uid != memory:
        raise UsageError(f"{memory!r} is a point or an answer of memory {uid!r}: pass memory={uid!r}")
    if corpus not in (None, stored_in):
        raise UsageError(f"corpus {corpus!r} has no memory {memory!r}: it belongs to corpus {stored_in!r}")
    return replace(services, corpus=stored_in)


def checked_text(text: object, *, most: int) -> str:
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


def _heard(services: Services) -> Services:
    """Return services that emit every event to their watcher first."""
    watcher, emit_next = services.watcher, services.listener.emit

    def emit(event: Event) -> None:
        watcher.hear(event)
        emit_next(event)

    return replace(services, listener=replace(services.listener, emit=emit))

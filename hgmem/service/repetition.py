"""Requests that are sent again with the same Idempotency-Key: what they make is made once."""

import hashlib
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Header

from hgmem.client.asking import checked_text
from hgmem.errors import ConflictError
from hgmem.service.callers import Caller
from hgmem.values.access import Job
from hgmem.values.arguments import AskOptions
from hgmem.values.events import QuestionAccepted
from hgmem.values.inputs import ONCE, Repeatable
from hgmem.values.records import RUNNING, Answer

# What comes again with a question that goes on: its memory has the rest, but of a further question.
LIMITS = ("max_calls", "max_tokens", "answer")
FURTHER = (*LIMITS, "recipe", "settings", "steps", "at_step")
Repeat = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=200, description="The same text with each repetition of a request."),
]


def digest_of(*parts: object) -> str:
    """Return what stands for a request: the same request gives the same, in every process."""
    digest = hashlib.sha256()
    for part in parts:
        text = part if isinstance(part, bytes) else repr(part).encode("utf-8", "backslashreplace")
        digest.update(b"%d:%b," % (len(text), text))
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Asking:
    """What to ask for a request, or the answer that it was `given` before.

    `job` is the record (uid) that keeps how a question that may be repeated is accepted; none for one that goes on.
    """

    text: str
    options: AskOptions
    once: Repeatable = ONCE
    job: str = ""
    given: Answer | None = None


def asking_now(caller: Caller, text: str, options: AskOptions, *, repeat: str) -> Asking:
    """Return what to ask for a request that was or may be sent again.

    A question goes on with its memory. One of a system that continues no memory is asked anew.
    """
    asked, corpus = digest_of("question", text, sorted(options.items(), key=str)), options.get("corpus") or ""
    name = "" if options.get("memory") else name_of(caller, repeat, asked)
    job, fresh, before = remembered(caller, repeat, digest=asked, corpus=corpus)
    if before is None and caller.store.named(name, caller.key):  # its process was killed before it could keep this
        made = QuestionAccepted(question=checked_text(text, most=len(text)), corpus=corpus, memory=name)
        caller.store.keep_question(job, made)
        job, fresh, before = remembered(caller, repeat, digest=asked, corpus=corpus)
    if before is None:
        if not fresh:
            raise ConflictError("this question was sent a moment ago, and has no memory yet: repeat it in a minute")
        return Asking(text, options, Repeatable(memory=name), job)
    memory, given = caller.store.answered_before(caller.key, before)
    if given is not None:
        return Asking(text, options, given=given)
    if not caller.client.system(memory.system).continues:
        if memory.status == RUNNING:
            raise ConflictError(f"memory {memory.uid!r} is in use: send the question again once it is answered")
        return Asking(text, options, job=job)
    more = {name: value for name, value in options.items() if name in (FURTHER if options.get("memory") else LIMITS)}
    if "steps" in more:
        more["steps"] = max(1, (options.get("steps") or 1) - (len(memory.steps) - before.steps))
    again = text if "at_step" in more else ""  # without a text, it is that step's question
    more |= {"memory": memory.uid, "corpus": memory.corpus}
    return Asking(again, cast(AskOptions, more), Repeatable(answers=len(memory.answers)))


def name_of(caller: Caller, repeat: str, digest: str) -> str:
    """Return the uid of a memory that a request makes which may be repeated."""
    return f"m{digest_of(caller.key.uid, repeat, digest)[:16]}"


def remembered(
    caller: Caller, repeat: str, *, digest: str, corpus: str = ""
) -> tuple[str, bool, QuestionAccepted | None]:
    """Return the record (uid) of a request that may be repeated, whether it is fresh, and the question it had accepted.

    Raises `ConflictError` if another request was sent with the same `repeat`.
    """
    job = Job(
        uid=f"j{digest_of(caller.key.uid, repeat)[:32]}",
        kind="question",
        corpus=corpus,
        key=caller.key.uid,
        owner=caller.key.owner,
        state="asked",
    )
    return (job.uid, *caller.store.make_job(job, digest=digest))

"""Corpora and memories: listed, shown, replayed, deleted."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, TypeVar

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response

from hgmem.errors import NotFoundError
from hgmem.service.callers import Asker, Caller, Reader
from hgmem.service.questions import json_of
from hgmem.service.repetition import Repeat, digest_of, name_of, remembered
from hgmem.service.shapes import DIFF, LINEAGE, MEMORY, PASSAGES, STATUS, SUMMARIES, Corpus, Page
from hgmem.values.records import MemorySummary

T = TypeVar("T")
Step = Annotated[int | None, Query(ge=1, description="The step at whose end the memory is taken, by default its last.")]
Limit = Annotated[int, Query(ge=1, le=500, description="The most items of a page.")]
After = Annotated[str | None, Query(description="`next` of the page before.")]
# A page has scripts of its own: in a sandbox they reach neither the network nor what else this host serves.
SANDBOX = {"Content-Security-Policy": "sandbox allow-scripts; default-src 'unsafe-inline' data: blob:"}

router = APIRouter()


def page(items: Sequence[T], name: Callable[[T], str], *, after: str | None, limit: int) -> Response:
    """Return a page of the items: those after the one of this name, and the name to go on after, or null."""
    names = [name(item) for item in items]
    if after is not None and after not in names:
        raise NotFoundError(f"there is no item {after!r} to go on after: begin again without after=")
    first = 0 if after is None else names.index(after) + 1
    last = first + limit
    return json_of({"items": items[first:last], "next": names[last - 1] if last < len(items) else None})


@router.get("/corpora", tags=["corpora"], response_model=Page[Corpus])
def corpora(caller: Reader, limit: Limit = 100, after: After = None) -> Response:
    """List the corpora that the key reaches."""
    found = [one for one in caller.client.corpora() if caller.key.reaches(one["corpus"])]
    return page(found, lambda one: one["corpus"], after=after, limit=limit)


@router.get("/corpora/{corpus}", tags=["corpora"], response_model=STATUS)
def status(caller: Reader, corpus: str) -> Response:
    """Show what a corpus holds, with its builds and failures. `memories` counts those that the caller sees."""
    counts = caller.client.status(corpus=caller.corpus(corpus))
    return json_of(counts if caller.sees is None else replace(counts, memories=len(_seen(caller, corpus))))


@router.get("/corpora/{corpus}/memories", tags=["memories"], response_model=SUMMARIES)
def memories(caller: Reader, corpus: str, limit: Limit = 100, after: After = None) -> Response:
    """List the caller's memories of a corpus, newest first.

    An admin's list has those of all owners.
    """
    return page(_seen(caller, corpus), lambda one: one.uid, after=after, limit=limit)


def _seen(caller: Caller, corpus: str) -> list[MemorySummary]:
    """Return the memories of a corpus that the caller sees, newest first."""
    found = caller.client.memories(corpus=caller.corpus(corpus), owner=caller.sees)
    return [one for one in found if caller.sees in (None, one.owner)]


@router.get("/memories/{memory}", tags=["memories"], response_model=MEMORY)
def memory(caller: Reader, memory: str, step: Step = None) -> Response:
    """Show a memory: its steps, active points and answers, as of the end of a step."""
    return json_of(caller.client.memory(caller.memory(memory)[1], step=step, owner=caller.sees))


@router.get("/memories/{memory}/diff", tags=["memories"], response_model=DIFF)
def diff(caller: Reader, memory: str, other: str | None = None, step: Step = None, other_step: Step = None) -> Response:
    """Compare a memory with another one, or with itself at another step.

    Points, evidence and answers are those of the memory (before) and of the other one (after).
    """
    uids = [caller.memory(named)[1] for named in (memory, memory if other is None else other)]
    names = (uids[0], None if other is None else uids[1])
    return json_of(caller.client.diff(*names, step=step, other_step=other_step, owner=caller.sees))


@router.post("/memories/{memory}/fork", tags=["memories"], status_code=201, response_model=MEMORY)
def fork(caller: Asker, memory: str, step: Step = None, repeat: Repeat = None) -> Response:
    """Make a new memory that begins as this one was at the end of a step. It counts as a question."""
    name = ""
    if repeat:
        digest = digest_of("fork", memory, step)
        remembered(caller, repeat, digest=digest)
        name = name_of(caller, repeat, digest)
    return json_of(caller.store.fork_within(caller.key, memory, step=step, name=name), 201)


@router.get("/memories/{memory}/passages", tags=["memories"], response_model=PASSAGES)
def passages(caller: Reader, memory: str, limit: Limit = 10) -> Response:
    """Return the passages that support a memory, best first."""
    return json_of({"items": caller.client.passages(caller.memory(memory)[1], limit=limit, owner=caller.sees)})


@router.get("/memories/{memory}/replay", tags=["memories"], response_class=HTMLResponse)
def replay(caller: Reader, memory: str) -> Response:
    """Return the page that replays a memory step by step, offline."""
    return HTMLResponse(caller.client.replay(caller.memory(memory)[1], owner=caller.sees), headers=SANDBOX)


@router.get("/points/{point}/lineage", tags=["memories"], response_model=LINEAGE)
def lineage(caller: Reader, point: str) -> Response:
    """Return a memory point with the points that were revised or merged into it."""
    caller.memory(point)
    return json_of(caller.client.lineage(point, owner=caller.sees))


@router.delete("/memories/{memory}", tags=["memories"], status_code=204)
def delete_memory(caller: Asker, memory: str) -> Response:
    """Delete a memory."""
    caller.client.delete(memory=caller.memory(memory)[1], owner=caller.sees)
    return Response(status_code=204)

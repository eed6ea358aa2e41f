"""What a corpus holds, part by part, and what the page draws of a memory."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from hgmem.client.inspection import builds
from hgmem.service.callers import Reader
from hgmem.service.memories import Limit
from hgmem.service.questions import json_of
from hgmem.service.shapes import Items, Page, shape
from hgmem.values.graph_elements import Chunk
from hgmem.values.holdings import BuiltRow, ShownThing, Thing
from hgmem.values.systems import SystemInfo

From = Annotated[int, Query(alias="after", ge=0, le=1_000_000_000, description="`next` of the page before.")]

router = APIRouter()


def _page(found: Sequence[object], skip: int, limit: int) -> Response:
    """Return a page of at most `limit` items, of which one more was asked for."""
    return json_of({"items": found[:limit], "next": str(skip + limit) if len(found) > limit else None})


@router.get("/systems", tags=["corpora"], response_model=Items[shape(SystemInfo, default=Any)])  # type: ignore[misc]
def systems(caller: Reader) -> Response:
    """List the systems and builds, with their recipes and what they can do."""
    return json_of({"items": (*caller.client.systems(), *builds())})


@router.get("/corpora/{corpus}/entities", tags=["corpora"], response_model=Page[shape(Thing)])  # type: ignore[misc]
def entities(caller: Reader, corpus: str, about: str = "", limit: Limit = 50, skip: From = 0) -> Response:
    """List what entities name, those with the words `about` in a name, the most mentioned first."""
    found = caller.client.things(about, skip=skip, limit=limit + 1, corpus=caller.corpus(corpus))
    return _page(found, skip, limit)


@router.get("/corpora/{corpus}/entities/{entity}", tags=["corpora"], response_model=shape(ShownThing))
def entity(caller: Reader, corpus: str, entity: str) -> Response:
    """Show what an entity names: its names, passages that mention it, what ties it to others."""
    return json_of(caller.client.thing(entity, corpus=caller.corpus(corpus)))


@router.get("/corpora/{corpus}/text", tags=["documents"], response_model=Page[shape(Chunk)])  # type: ignore[misc]
def text(
    caller: Reader, corpus: str, document: str, chunk: str | None = None, limit: Limit = 20, skip: From = 0
) -> Response:
    """Read a document (uid or id) chunk by chunk, from shortly before `chunk` on if that is given."""
    found = caller.client.text(document, chunk=chunk, skip=skip, limit=limit + 1, corpus=caller.corpus(corpus))
    return _page(found, skip, limit)


@router.get("/corpora/{corpus}/built/{system}", tags=["corpora"], response_model=Page[shape(BuiltRow)])  # type: ignore[misc]
def built(caller: Reader, corpus: str, system: str, kind: str = "", limit: Limit = 50, skip: From = 0) -> Response:
    """List rows of a system's build: those of a kind, or those on which no other row rests."""
    found = caller.client.built(system, kind=kind, skip=skip, limit=limit + 1, corpus=caller.corpus(corpus))
    return _page(found, skip, limit)


@router.get("/corpora/{corpus}/parts/{row}", tags=["corpora"], response_model=Page[shape(BuiltRow)])  # type: ignore[misc]
def parts(caller: Reader, corpus: str, row: str, limit: Limit = 50, skip: From = 0) -> Response:
    """List what a built row rests on directly: rows, then chunks."""
    found = caller.client.built_parts(row, skip=skip, limit=limit + 1, corpus=caller.corpus(corpus))
    return _page(found, skip, limit)


@router.get("/corpora/{corpus}/verbs/{system}/{verb}", tags=["corpora"], response_model=dict[str, Any])
def look(request: Request, caller: Reader, corpus: str, system: str, verb: str) -> Response:
    """Return what a verb that only reads gives as `value`, with `notes`. Its arguments are those of the query."""
    given = {name: value for name, value in request.query_params.items() if value}
    value, notes = caller.store.look(caller.key, f"{system}/{verb}", given, corpus=caller.corpus(corpus))
    return json_of({"value": value, "notes": notes})


@router.get("/memories/{memory}/scene", tags=["memories"], response_model=dict[str, Any])
def scene(caller: Reader, memory: str) -> Response:
    """Return a memory as the page draws it: every point that ever was, steps, answers.

    Its form may change between versions.
    """
    return json_of(caller.client.scene(caller.memory(memory)[1], owner=caller.sees))

"""What a corpus holds and what a page draws of a memory, read part by part for people."""

from typing import Any

from hgmem.corpus.deletion import named_documents
from hgmem.errors import NotFoundError
from hgmem.graph.database import Row
from hgmem.graph.documents import chunks_of_documents
from hgmem.graph.retrieval import find_chunks, to_entity
from hgmem.memory.replay.page import scene
from hgmem.memory.stored_memories import load_history
from hgmem.services import Services, known_corpus
from hgmem.systems.registry import names
from hgmem.text.segmentation import clipped
from hgmem.values.arguments import LIMIT, SKIP, check
from hgmem.values.built import OWN_PROPERTIES, is_property
from hgmem.values.graph_elements import Chunk
from hgmem.values.holdings import BuiltRow, ShownThing, Thing, ThingTie

PAGE = {"skip": SKIP, "limit": LIMIT}
MOST = 50  # passages and relations of a thing
BEFORE = 2  # chunks that are shown before the one that is looked for
TIMES = ("begins", "said_at")  # properties of rows that tell when something was
CLIPPED = 1_500  # characters of a built row's text


def things(services: Services, words: str, *, skip: int, limit: int) -> list[Thing]:
    """Return things whose names have these words, the most mentioned first."""
    check({"skip": skip, "limit": limit}, PAGE)
    corpus, wanted = known_corpus(services).corpus, words.strip().lower()
    rows = services.database.run("list_things", corpus=corpus, words=wanted, skip=skip, most=limit)
    return [_thing(row) for row in rows]


def thing(services: Services, uid: str) -> ShownThing:
    """Return what an entity (uid) names. Raises `NotFoundError` for an unknown one."""
    corpus = known_corpus(services).corpus
    rows = services.database.run("show_thing", corpus=corpus, uid=uid, most=MOST)
    if not rows:
        raise NotFoundError(f"entity {uid!r} not found: list the entities of corpus {corpus!r}")
    found = find_chunks(services.database, corpus=corpus, uids=rows[0]["chunks"])
    return ShownThing(
        uid=uid,
        entities=tuple(map(to_entity, rows[0]["members"])),
        passages=tuple(found[one] for one in rows[0]["chunks"] if one in found),
        ties=tuple(ThingTie(**row) for row in rows[0]["ties"]),
    )


def text_of(services: Services, document: str, *, chunk: str | None, skip: int, limit: int) -> list[Chunk]:
    """Return chunks of a document (uid or id) in order: from one that stands near `chunk` (uid) on, if that is given.

    Raises `NotFoundError` if the document has no such chunk.
    """
    check({"skip": skip, "limit": limit}, PAGE)
    corpus = known_corpus(services).corpus
    named = [state.uid for state in named_documents(services, document)]
    chunks = chunks_of_documents(services.database, corpus=corpus, documents=named)
    uids = [uid for of_one in chunks.values() for uid in of_one]
    if chunk is not None:
        if chunk not in uids:
            raise NotFoundError(f"chunk {chunk!r} is not in document {document!r}: it was deleted, or its text changed")
        skip += max(0, uids.index(chunk) - BEFORE)
    found = find_chunks(services.database, corpus=corpus, uids=uids[skip : skip + limit])
    return [found[uid] for uid in uids[skip : skip + limit] if uid in found]


def built(services: Services, system: str, *, kind: str, skip: int, limit: int) -> list[BuiltRow]:
    """Return rows of a build: those of a kind, or those on which no other row rests.

    Raises `NotFoundError` for an unknown system that has no rows here.
    """
    check({"skip": skip, "limit": limit}, PAGE)
    corpus = known_corpus(services).corpus
    rows = services.database.run(
        "list_built", corpus=corpus, system=system, kind=kind, times=TIMES, skip=skip, most=limit
    )
    if not rows and system not in names():
        raise NotFoundError(f"system {system!r} not found: `hgmem systems` lists them")
    return [_row(row) for row in rows]


def parts(services: Services, uid: str, *, skip: int, limit: int) -> list[BuiltRow]:
    """Return what a built row (uid) rests on directly: rows, then chunks. Raises `NotFoundError` for an unknown one."""
    check({"skip": skip, "limit": limit}, PAGE)
    corpus = known_corpus(services).corpus
    rows = services.database.run("list_parts", corpus=corpus, uid=uid, times=TIMES, skip=skip, most=limit)
    if not rows:
        raise NotFoundError(f"row {uid!r} not found: list the rows of the builds of corpus {corpus!r}")
    return [_row(row) for row in rows[0]["parts"]]


def scene_of(services: Services, uid: str) -> dict[str, Any]:
    """Return what a page draws of a memory of any corpus."""
    return scene(load_history(services, uid), texts=False)


def _thing(row: Row) -> Thing:
    entity = to_entity(row["entity"])
    return Thing(
        uid=entity.uid,
        name=entity.shown,
        names=entity.names,
        type=entity.type,
        description=entity.description,
        chunks=row["chunks"],
    )


def _row(found: Row) -> BuiltRow:
    row: Row = found["row"]
    own = {name: value for name, value in row.items() if name not in OWN_PROPERTIES and is_property(value)}
    return BuiltRow(
        uid=row["uid"],
        kind=row["kind"],
        text=clipped(row["text"], CLIPPED),
        document=row.get("document") or "",
        parts=found["parts"],
        properties=own,
    )

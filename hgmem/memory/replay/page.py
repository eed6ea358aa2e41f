"""The replay page: a memory's data as JSON, in one HTML file with style and scripts inline and a strict policy."""

import base64
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Set
from html import escape
from operator import attrgetter
from typing import Any, TypeAlias

from hgmem.errors import UsageError
from hgmem.memory.stored_memories import History
from hgmem.settings import ENTITY_TYPES
from hgmem.text.resources import PACKAGE
from hgmem.text.segmentation import clipped
from hgmem.values.evidence import Retrieved
from hgmem.values.graph_elements import Entity
from hgmem.values.records import Citation, Step

Scene: TypeAlias = dict[str, Any]

FOUND = 8  # names of a sub-query's hits that are listed
COLOURS = 7  # of types of entities, as `COOL` in pages/shared/picture.js has them
PASSAGE = 1_200  # characters of a chunk that are shown
_MEMORY = ("corpus", "system", "model", "status", "forked_from", "forked_at")
_POINT = ("uid", "description", "inferred", "born", "died", "retired", "chunks")
_ENTITY = ("name", "type", "description", "provisional")
_STEP = ("number", "question", "strategy", "judgement", "premise", "open", "seconds", "filters", "notes")
_SUBQUERY = ("text", "concern", "strategy", "targets")
_OPERATION = ("kind", "point", "parts", "reason")
_PLACE = ("uid", "kind", "source", "score")
_ANSWER = ("question", "text", "status", "step", "model", "notes")
_COST = ("requests", "prompt_tokens", "completion_tokens")
_CITATION = ("marker", "chunk", "document", "quote", "start", "end", "withdrawn")

PAGES = PACKAGE / "pages"  # of this page and of the service's, and what both share
FOLDER = PAGES / "library"  # filled by builds
LIBRARY = PAGES / "library.json"  # name and version of the graph library, and the digests of its files
# The program's modules in the order in which they begin, without what only a browser's loader needs.
SHARED = ("address", "memory", "elements", "walk", "picture", "layout", "captions", "telling", "controls", "frame")
PROGRAM = (*(f"shared/{name}.js" for name in SHARED), "replay/beginning.js")
_MODULE = re.compile(r"^(import .*\n|export )", re.MULTILINE)


def scene(history: History, *, texts: bool = True) -> Scene:
    """Return a memory's history in the page's form. Entities and chunks appear once, by uid.

    Without `texts`, chunks have only their titles and documents (uids).
    """
    memory = history.memory
    # Chunks are shown with the points that they support, or else with the sub-queries that found them.
    known = set() if history.points else {chunk.uid for chunk in history.chunks}
    kinds = {op.point: op.kind for step in memory.steps for op in step.operations if op.point}
    return {
        **_fields(memory, _MEMORY),
        "memory": memory.uid,
        "question": history.question,
        "created": memory.created_at,
        "points": [
            {
                **_fields(stored.point, _POINT),
                "kind": kinds.get(stored.point.uid, "insert"),
                "parts": [*stored.revises, *stored.merges],
                "entities": [entity.uid for entity in stored.point.entities],
                "deleted": len(stored.point.deleted_chunks),
            }
            for stored in history.points
        ],
        "entities": _entities(entity for stored in history.points for entity in stored.point.entities),
        "chunks": {
            chunk.uid: {
                "title": chunk.title or chunk.document,
                **({"text": clipped(chunk.text, PASSAGE)} if texts else {"document": chunk.document}),
            }
            for chunk in history.chunks
        },
        "steps": [_step(step, known) for step in memory.steps],
        "walk": _walk(memory.steps),
        "answers": [
            {
                **_fields(answer, _ANSWER),
                "cost": _fields(answer.usage, _COST),
                "citations": [_citation(one) for one in answer.citations],
            }
            for answer in memory.answers
        ],
    }


def _fields(record: object, names: tuple[str, ...]) -> Scene:
    return dict(zip(names, attrgetter(*names)(record), strict=True))


def _entities(entities: Iterable[Entity]) -> dict[str, Scene]:
    """Return each entity by uid. `colour` is that of its type, or 0 without one.

    The usual types have the same in every memory. Others get what these leave, the most frequent first.
    """
    once = {entity.uid: entity for entity in entities}
    types = [type_ for type_, _ in Counter(entity.type for entity in once.values() if entity.type).most_common()]
    given = {type_: place for place, type_ in enumerate(ENTITY_TYPES, start=1) if type_ in types}
    left = (colour for colour in range(COLOURS, 0, -1) if colour not in given.values())
    given |= dict(zip([type_ for type_ in types if type_ not in given], left, strict=False))
    return {uid: {**_fields(entity, _ENTITY), "colour": given.get(entity.type, 0)} for uid, entity in once.items()}


def _walk(steps: Iterable[Step]) -> list[Scene]:
    """Return the places that a system walked through, in order, none for a system that does not walk."""
    hits = [(step.number, one, hit) for step in steps for one in step.retrieved for hit in one.built]
    if not any(hit.source for _, _, hit in hits):
        return []
    return [
        {**_fields(hit, _PLACE), "step": number, "strategy": one.subquery.strategy, "text": clipped(hit.text, PASSAGE)}
        for number, one, hit in hits
    ]


def _step(step: Step, known: Set[str]) -> Scene:
    return {
        **_fields(step, _STEP),
        "cost": _fields(step.usage, _COST),
        "subqueries": [_retrieved(one, known) for one in step.retrieved],
        "operations": [_fields(one, _OPERATION) for one in step.operations],
        "planned": [_fields(one, _SUBQUERY) for one in step.planned],
    }


def _citation(one: Citation) -> Scene:
    return {
        **_fields(one, _CITATION),
        "title": one.title or one.document,
        "said": one.attribution,
        "status": one.quote_status,
    }


def _retrieved(one: Retrieved, known: Set[str]) -> Scene:
    return {
        **_fields(one.subquery, _SUBQUERY),
        "entities": [hit.name for hit in one.entities[:FOUND]],
        "built": [{"kind": hit.kind, "text": clipped(hit.text, PASSAGE)} for hit in one.built[:FOUND]],
        "chunks": [hit.uid for hit in one.chunks if hit.uid in known][:FOUND],
        "found": {name: len(getattr(one, name)) for name in ("entities", "relations", "chunks", "built")},
    }


def library() -> tuple[str, str]:
    """Return the library's source and its licence. Raises `UsageError`, with the remedy, if it is missing."""
    wanted = json.loads(LIBRARY.read_text(encoding="utf-8"))
    called = f"{wanted['name']} {wanted['version']}"
    found: dict[str, str] = {}
    for name, digest in wanted["files"].items():
        try:
            data = (FOLDER / name).read_bytes()
        except OSError:
            raise UsageError(
                f"{called}, which the page needs, is missing from {str(FOLDER)!r}: install hgmem again where npm or "
                "Maven is at hand, or run `python replay_library.py` in a checkout; wheels include it"
            ) from None
        if hashlib.sha256(data).hexdigest() != digest:
            raise UsageError(f"{str(FOLDER / name)!r} does not match {called}: delete it, then fetch it again")
        found[name] = data.decode()
    text, licence = found.values()
    return text, licence


def page(scene: Scene) -> str:
    """Return the page of a memory. Document text is embedded as JSON and rendered as text, never as markup."""
    text, licence = library()
    files = "\n".join(_MODULE.sub("", _asset(name)) for name in PROGRAM)
    program = f'"use strict";\n(() => {{\n{files}}})();\n'  # one program in its own scope
    parts = {
        "title": escape(f"{scene['question']} · hgmem"),
        "policy": _policy(text, program),
        "style": _asset("shared/look.css"),
        "licence": licence.replace("--", "- -"),
        "library": text,
        "program": program,
        "data": _data(scene),
    }
    before, *pieces = _asset("replay/replay.html").split("{{")
    for piece in pieces:
        name, rest = piece.split("}}", 1)
        before += parts[name] + rest
    return before


def _asset(name: str) -> str:
    return (PAGES / name).read_text(encoding="utf-8")


def _data(scene: Scene) -> str:
    """Return JSON that can't close its HTML element or open a comment or another element."""
    text = json.dumps(scene, ensure_ascii=False, separators=(",", ":"))
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _policy(*scripts: str) -> str:
    """Return a content security policy that allows these scripts only, and no requests."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )

"""The stage of model calls: a reply for each chunk, kept as it arrives, and a part of them once all have ended.

A reply counts for the text that it was asked about. Failed calls are rows with an error, and are made again by the next
run; replies that are stored are never asked for again, also those of parts that the input no longer has.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from hgmem.corpus.indexing import Extracted, extracted
from hgmem.corpus.parallel_calls import Calls, Ended
from hgmem.errors import ModelError
from hgmem.extraction.replies import Extraction
from hgmem.extraction.tasks import Extract
from hgmem.graph.database import Row
from hgmem.graph.documents import OpenChunk
from hgmem.models.llm.task_routing import serving
from hgmem.models.prompts import read_prompt
from hgmem.services import Services
from hgmem.stages.files import Folder
from hgmem.stages.reading import chunks_in
from hgmem.text.identity import text_hash

Asked: TypeAlias = tuple[str, OpenChunk]  # the part, and the chunk
Answered: TypeAlias = tuple[str, str]  # the chunk (uid), and the hash of the text that a reply is about
REPLIES = "replies"


@dataclass(slots=True)
class _Open:
    """A part whose replies are being asked for: its chunks by uid, in order, and the rows that are there."""

    chunks: Mapping[str, OpenChunk]
    rows: dict[str, Row] = field(default_factory=dict)


def reply_part(folder: Folder, services: Services, part: str) -> dict[str, int]:
    """Ask for what replies of a part are missing, and return how many calls ended, and how many failed."""
    counts = {"asked": 0, "failed": 0}

    def count(row: Row) -> None:
        counts["asked"] += 1
        counts["failed"] += row["reply"] is None

    ask(folder, services, [part], arrived=count)
    return counts


def ask(
    folder: Folder,
    services: Services,
    parts: Iterable[str],
    *,
    arrived: Callable[[Row], object] = lambda _: None,
    whole: Callable[[str], object] = lambda _: None,
) -> None:
    """Ask for the missing replies of parts, in parallel across them.

    `arrived` receives each new row, and `whole` each part once all its replies are there. Raises what stopped the
    calls; what had ended is kept.
    """
    begun: dict[str, _Open] = {}

    def finish(name: str) -> None:
        _compact(folder, name, begun.pop(name))
        whole(name)

    def waiting() -> Iterator[Asked]:
        for name in parts:
            begun[name] = _opened(folder, name)
            missing = [chunk for uid, chunk in begun[name].chunks.items() if uid not in begun[name].rows]
            yield from ((name, chunk) for chunk in missing)
            if not missing:
                finish(name)

    def keep(ended: Sequence[Ended[Asked, Row]]) -> None:
        for call in ended:
            name, chunk = call.item
            row = call.result or _row(services, chunk, None, error=str(call.error))
            begun[name].rows[chunk.uid] = row
            arrived(row)
            if len(begun[name].rows) == len(begun[name].chunks):
                finish(name)

    with Calls(partial(_replied, folder, services), workers=services.settings.workers) as calls:
        calls.run(waiting(), keep)
    if calls.stop:
        raise calls.stop


def _opened(folder: Folder, name: str) -> _Open:
    """Return a part with the good replies to its chunks' texts that are there."""
    chunks = {chunk.uid: chunk for chunk in chunks_in(folder, name)}
    texts = {uid: text_hash(chunk.text) for uid, chunk in chunks.items()}
    found = _Open(chunks=chunks)
    for row in _rows(folder, name):
        if row["reply"] is not None and texts.get(row["chunk"]) == row["text_sha256"]:
            found.rows[row["chunk"]] = row
    return found


def _replied(folder: Folder, services: Services, asked: Asked) -> Row:
    """Ask the model about a chunk, and keep the reply before anything else happens."""
    name, chunk = asked
    row = _row(services, chunk, extracted(services, chunk))
    folder.note(_journal(name), chunk.uid, row)
    return row


def _row(services: Services, chunk: OpenChunk, found: Extracted | None, *, error: str = "") -> Row:
    return {
        "chunk": chunk.uid,
        "model": serving(services.model, Extract.name).name,
        "prompt": read_prompt(Extract.prompt_file).version,
        "text_sha256": text_hash(chunk.text),
        "reply": found.extraction.model_dump_json() if found else None,
        "error": (found.error if found else error) or None,
    }


def _compact(folder: Folder, name: str, part: _Open) -> None:
    """Write the replies of a part, unless they are listed as they are, and drop their journal."""
    rows = [part.rows[uid] for uid in part.chunks]
    listed = folder.part(REPLIES, name)
    if listed is None or folder.rows(REPLIES, listed) != rows:
        folder.put(REPLIES, name, [rows], failed=sum(row["reply"] is None for row in rows))
    folder.close_journal(_journal(name))


def _journal(name: str) -> str:
    return f"{REPLIES}/journal/{name}"


def holders(folder: Folder) -> dict[Answered, str]:
    """Return by chunk and text the part of the folder, or the journal of one, that has a good reply about it."""
    names = folder.parts(REPLIES).keys() | set(folder.journals(REPLIES))
    rows = ((name, row) for name in sorted(names) for row in _rows(folder, name, ["chunk", "text_sha256", "reply"]))
    return {(row["chunk"], row["text_sha256"]): name for name, row in rows if row["reply"] is not None}


def take_over(folder: Folder, name: str, held: Mapping[Answered, str]) -> None:
    """Keep for a part without replies what other parts (`holders`) have of them."""
    found = (held.get((chunk.uid, text_hash(chunk.text))) for chunk in chunks_in(folder, name))
    others = {other for other in found if other} - {name}
    if others and folder.part(REPLIES, name) is None:
        keep_replies(folder, name, (row for other in sorted(others) for row in _rows(folder, other)))


def keep_replies(folder: Folder, name: str, rows: Iterable[Row]) -> None:
    """Note the good replies among those that are known which answer the texts of a part's chunks."""
    known = {(row["chunk"], row["text_sha256"]): row for row in rows if row["reply"] is not None}
    for chunk in chunks_in(folder, name):
        row = known.get((chunk.uid, text_hash(chunk.text)))
        if row:
            folder.note(_journal(name), chunk.uid, row)


def _rows(folder: Folder, name: str, columns: Sequence[str] | None = None) -> list[Row]:
    """Return what is there of a part: its listed replies, then those of its journal."""
    listed = folder.part(REPLIES, name)
    return [*(folder.rows(REPLIES, listed, columns) if listed else ()), *folder.noted(_journal(name)).values()]


@dataclass(frozen=True, slots=True)
class Stored:
    """Replies of parts as an extractor of ordinary indexing: each is taken once."""

    rows: dict[str, Row] = field(default_factory=dict)

    def add(self, folder: Folder, part: str) -> None:
        """Take in the replies of a part."""
        self.rows.update({row["chunk"]: row for row in folder.rows(REPLIES, part)})

    def __call__(self, chunk: OpenChunk) -> Extracted:
        """Return the stored extraction of a chunk. Raises `ModelError` if its call failed, or none is stored."""
        row = self.rows.pop(chunk.uid, None)
        if row is None or row["text_sha256"] != text_hash(chunk.text):
            raise ModelError("no reply is stored for the chunk's text: index the document again")
        if row["reply"] is None:
            raise ModelError(row["error"])
        return Extracted(extraction=Extraction.model_validate_json(row["reply"]), error=row["error"] or "")

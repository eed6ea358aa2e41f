"""Write stage folders as files of Neo4j's importer: a CSV file for each label and relationship type.

CSV, as the importer reads no empty text from Parquet. Of CSV it reads no empty list: `finish_loading` writes those.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from hgmem.errors import UsageError
from hgmem.graph.corpus import LOADING, SCHEMA_VERSION
from hgmem.graph.values import to_json
from hgmem.stages.files import Folder, Header
from hgmem.stages.replies import REPLIES

BETWEEN = "\x1f"  # elements of a list
ARGUMENTS = ("--array-delimiter=U+001F", "--multiline-fields=true", "--path-pattern-style=none")
CHUNK_SETTINGS = ("chunk_tokens", "chunk_overlap", "chunk_restart")
MADE_OF = ("documents", "chunks", REPLIES, "vectors")  # the stages of a part of documents
DOCUMENT = ("id", "title", "stems", "date", "type", "source", "sha256", "metadata", "chunking")
CHUNK = ("document", "text", "stems", "source_id", "messages", "layer_key")
_HEADERS = {
    "Corpus": ":ID(k) name status embedding_model dimensions:long settings schema_version:long language "
    "created_at:datetime",
    "Document": f"uid:ID(e) corpus {' '.join(DOCUMENT)} message_number:long status indexed_at:datetime",
    "Chunk": f"uid:ID(e) corpus {' '.join(CHUNK)} position:long tokens:long start:long end:long status attempts:long "
    "extraction error embedding:float[]",
    "Entity": "uid:ID(e) corpus memory key name type description condensed cut:boolean embedding:float[]",
    "FROM_DOCUMENT": ":START_ID(e) :END_ID(e)",
    "NEXT_CHUNK": ":START_ID(e) :END_ID(e)",
    "FROM_CHUNK": ":START_ID(e) :END_ID(e)",
    "RELATES": ":START_ID(e) :END_ID(e) uid corpus memory description keywords:string[] weight:double chunks:string[] "
    "condensed cut:boolean embedding:float[]",
}
LABELS = ("Corpus", "Document", "Chunk", "Entity")


def arguments(folder: Path) -> list[str]:
    """Return what the importer is told after the name of the database, for the files of a folder."""
    options = {name: "nodes" if name in LABELS else "relationships" for name in _HEADERS}
    return [*ARGUMENTS, *(f"--{option}={name}={_file(folder, name)}" for name, option in options.items())]


def write_files(
    addresses: Sequence[str], folder: Path, *, report: Callable[[str], None] = lambda _: None
) -> dict[str, int]:
    """Write the last complete runs of stage folders, each of a corpus, and return the rows of each file.

    Raises `UsageError` for a stage folder that is incomplete or damaged, and for a second one of a corpus.
    """
    opened = [_opened(Folder(address)) for address in addresses]
    corpora = [header.corpus for _, header, _ in opened]
    if twice := next((name for name in corpora if corpora.count(name) > 1), None):
        raise UsageError(f"two of the stage folders are of corpus {twice!r}: pass one of them")
    rows = dict.fromkeys(_HEADERS, 0)
    with ExitStack() as stack:
        sinks = {name: stack.enter_context(pa.OSFile(str(_file(folder, name)), "wb")) for name in _HEADERS}
        for name, columns in _HEADERS.items():
            sinks[name].write(f"{','.join(columns.split())}\n".encode())
        for stages, header, current in opened:
            report(f"writing the importer's files of corpus {header.corpus!r}")
            for name, table in _tables(stages, header, current):
                pa_csv.write_csv(table, sinks[name], pa_csv.WriteOptions(include_header=False))
                rows[name] += len(table)
    return rows


def _file(folder: Path, name: str) -> Path:
    return folder / f"{name.lower()}.csv"


def _opened(folder: Folder) -> tuple[Folder, Header, dict[str, Any]]:
    header, current = folder.header(), folder.current()
    if header is None or current is None:
        raise UsageError(
            f"{folder.address!r} holds no complete stages: name a folder that `hgmem index … --stages` has finished"
        )
    return folder, header, current


def _tables(folder: Folder, header: Header, current: dict[str, Any]) -> Iterator[tuple[str, pa.Table]]:
    """Yield the rows of each file, a part at a time, with the columns of its header."""
    yield "Corpus", _corpus(header)
    for part in current["documents"]:
        documents, chunks, replies, vectors = (folder.table(stage, part) for stage in MADE_OF)
        yield from _documents(folder, header, (documents, chunks, replies, vectors))
    for part in current["graph"]:
        vectors = folder.table("vectors", part)
        entities, relations = (folder.table(f"graph/{kind}", part) for kind in ("entities", "relations"))
        yield "Entity", _described(folder, header, entities, vectors)
        chunks = entities["chunks"].combine_chunks()
        yield "FROM_CHUNK", _columns(pc.take(entities["uid"], pc.list_parent_indices(chunks)), pc.list_flatten(chunks))
        yield "RELATES", _described(folder, header, relations, vectors)


def _corpus(header: Header) -> pa.Table:
    settings = dict(zip(CHUNK_SETTINGS, map(int, header.chunking.split("/")), strict=True))
    settings["description_characters"] = header.description_characters
    embedder = [header.embedder, header.dimensions]
    row = [header.corpus, header.corpus, LOADING, *embedder, to_json(settings), SCHEMA_VERSION, header.language, _now()]
    return _columns(*([value] for value in row))


def _documents(folder: Folder, header: Header, stages: Sequence[pa.Table]) -> Iterator[tuple[str, pa.Table]]:
    """Yield a part's documents and chunks as ordinary indexing leaves them, those of failed calls included."""
    documents, chunks, replies, vectors = stages
    at = _places(folder, chunks["uid"], replies["chunk"])
    reply, error = replies["reply"].take(at), replies["error"].take(at)
    whole = reply.is_valid()
    open_ = pc.is_in(documents["uid"], value_set=chunks["document"].filter(pc.invert(whole)).combine_chunks())
    yield (
        "Document",
        _columns(
            documents["uid"],
            _all(header.corpus, documents),
            *documents.select(DOCUMENT).columns,
            documents["messages"],
            pc.if_else(open_, "pending", "done"),
            pc.if_else(open_, None, _now()),
        ),
    )
    embedding = pc.if_else(whole, _texts(_vectors(folder, header, chunks, vectors)), None)
    yield (
        "Chunk",
        _columns(
            chunks["uid"],
            _all(header.corpus, chunks),
            *chunks.select([*CHUNK, "position", "tokens", "start", "end"]).columns,
            pc.if_else(whole, "done", "failed"),
            _all(1, chunks),
            reply,
            pc.if_else(whole, None, error),
            embedding,
        ),
    )
    uids, of = chunks["uid"].combine_chunks(), chunks["document"].combine_chunks()
    yield "FROM_DOCUMENT", _columns(uids, of)
    follows = pc.equal(of[:-1], of[1:])
    yield "NEXT_CHUNK", _columns(uids[:-1].filter(follows), uids[1:].filter(follows))


def _described(folder: Folder, header: Header, rows: pa.Table, vectors: pa.Table) -> pa.Table:
    """Return the columns of entities, or of relations."""
    given = [_all(header.corpus, rows), _all("", rows)]
    more = [rows["condensed"], rows["cut"], _texts(_vectors(folder, header, rows, vectors))]
    if "key" in rows.column_names:
        return _columns(rows["uid"], *given, *rows.select(["key", "name", "type", "description"]).columns, *more)
    keywords, chunks = _texts(rows["keywords"]), _texts(rows["chunks"])
    ends = rows.select(["source", "target", "uid"]).columns
    return _columns(*ends, *given, rows["description"], keywords, rows["weight"], chunks, *more)


def _vectors(folder: Folder, header: Header, rows: pa.Table, vectors: pa.Table) -> pa.ChunkedArray:
    """Return the vectors of rows, in their order."""
    found = vectors["vector"].take(_places(folder, rows["uid"], vectors["uid"]))
    if len(found) and pc.unique(pc.list_value_length(found)).to_pylist() != [header.dimensions]:
        raise UsageError(
            f"stage folder {folder.address!r} has vectors without the {header.dimensions} dimensions of "
            f"{header.embedder!r}: make it anew"
        )
    return found


def _places(folder: Folder, wanted: pa.ChunkedArray, among: pa.ChunkedArray) -> pa.ChunkedArray:
    places = pc.index_in(wanted, value_set=among.combine_chunks())
    if places.null_count:
        uid = wanted.filter(places.is_null())[0].as_py()
        raise UsageError(
            f"stage folder {folder.address!r} lacks the reply or the vector of {uid!r}: run `hgmem index … --stages` "
            "again"
        )
    return places


def _texts(lists: pa.ChunkedArray) -> pa.Array:
    """Return lists as the importer reads them. Numbers have as many digits as tell them apart."""
    of = lists.combine_chunks()
    values = of.flatten()
    if pa.types.is_string(values.type):
        if pc.any(pc.match_substring(values, BETWEEN)).as_py():
            raise UsageError("a keyword contains the control character U+001F: remove it from the document")
    else:
        values = values.cast(pa.string())
    lengths = pc.fill_null(pc.list_value_length(of), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int64()), pc.cumulative_sum(lengths.cast(pa.int64()))])
    return pc.binary_join(pa.LargeListArray.from_arrays(offsets, values), BETWEEN)


def _columns(*columns: Any) -> pa.Table:
    return pa.table(list(columns), names=[str(number) for number in range(len(columns))])


def _all(value: Any, rows: pa.Table) -> pa.Array:
    return pa.repeat(pa.scalar(value), len(rows))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")

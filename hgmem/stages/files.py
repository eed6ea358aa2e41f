"""A stage folder: Parquet files on a disk or an object store, and a manifest that says which of them count.

A part is written under a name of its own, and then listed in the manifest by one small file. Readers take listed parts
whose size is the listed one; whatever a killed run or a lost file left is made again. Of one part, the newest listing
counts.
"""

import io
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from hashlib import sha256
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
from fsspec.implementations.local import LocalFileSystem

from hgmem.errors import UsageError
from hgmem.graph.database import Row
from hgmem.stages.schemas import SCHEMAS

FORMAT = 1
HEADER, CURRENT, MANIFEST = "stages.json", "manifest/current.json", "manifest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a folder was made for and with. A run with another value of one of these fields is refused.

    `language` is that of the corpus, and `dimensions` those of the embedder's vectors.
    """

    format: int = FORMAT
    corpus: str
    embedder: str
    dimensions: int
    model: str
    prompts: Mapping[str, str]
    chunking: str
    entity_types: tuple[str, ...]
    gleaning: int
    condense: bool
    description_characters: int
    language: str


FIRST_RUN = ("dimensions", "language")  # a later run takes these from the folder
REMEDIES = {
    "format": "use the version of hgmem that wrote it",
    "corpus": "pass that corpus",
    "embedder": "set HGMEM_EMBEDDING_MODEL to it",
    "model": "set HGMEM_EXTRACTION_MODEL to it",
    "prompts": "use the version of hgmem that wrote it",
    "chunking": "set HGMEM_CHUNK_TOKENS, _OVERLAP and _RESTART to it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A listed part of a stage: its file, its rows and bytes, and what else its stage noted."""

    name: str
    file: str
    rows: int
    bytes: int
    noted: Mapping[str, Any] = field(default_factory=dict)


class Folder:
    """A stage folder at an address: a path, or any other that fsspec knows. It can be pickled."""

    def __init__(self, address: str) -> None:
        self.address = address
        try:
            self.fs, root = fsspec.core.url_to_fs(address, use_listings_cache=False)
        except (ValueError, ImportError, OSError) as error:
            raise UsageError(f"stage folder {address!r} cannot be opened ({error}): correct the address") from error
        self.root = root.rstrip("/")
        self._local = isinstance(self.fs, LocalFileSystem)

    def __reduce__(self) -> Any:
        """Return how to open the folder in another process."""
        return Folder, (self.address,)

    # The header ---------------------------------------------------------------------------------------------------

    def header(self) -> Header | None:
        """Return the folder's header, or None if it has none yet."""
        found = self.read_json(HEADER)
        if found is None:
            return None
        if found.get("format") != FORMAT:
            raise UsageError(
                f"stage folder {self.address!r} has format {found.get('format')!r}, but this hgmem reads {FORMAT}: "
                f"{REMEDIES['format']}, or use another folder"
            )
        known = {each.name for each in fields(Header)}
        missing = sorted(known ^ found.keys())
        if missing:
            raise UsageError(f"stage folder {self.address!r} has a bad {HEADER} ({missing[0]!r}): use another folder")
        return Header(**{**found, "entity_types": tuple(found["entity_types"])})

    def begun(self) -> Header:
        """Return the folder's header, which a run has written."""
        found = self.header()
        if found is None:
            raise UsageError(f"stage folder {self.address!r} has no {HEADER}: all workers have to see the same folder")
        return found

    def begin(self, wanted: Header) -> Header:
        """Return the header of the folder, written now if it is new. Raises `UsageError` if it is another one."""
        found = self.header()
        if found is None:
            if self._listed_names("documents"):
                raise UsageError(f"stage folder {self.address!r} has parts but no {HEADER}: use another folder")
            self.write_json(HEADER, asdict(wanted))
            return wanted
        check_header(self.address, found, wanted)
        return found

    # Parts --------------------------------------------------------------------------------------------------------

    def put(self, stage: str, name: str, groups: Sequence[Sequence[Row]], **noted: Any) -> Part:
        """Write a part as one row group for each list of rows, list it, and return it."""
        schema = SCHEMAS[stage]
        buffer = io.BytesIO()
        with pq.ParquetWriter(buffer, schema, compression="zstd", write_page_checksum=True) as writer:
            for rows in groups:
                writer.write_table(pa.Table.from_pylist(list(rows), schema=schema))
        data = buffer.getvalue()
        before = self.part(stage, name)
        file = f"{stage}/{name}-{sha256(data).hexdigest()[:8]}.parquet"
        part = Part(name=name, file=file, rows=sum(map(len, groups)), bytes=len(data), noted=noted)
        self._write(file, data)
        self.write_json(f"{MANIFEST}/{stage}/{name}.json", asdict(part))
        if before and before.file != file:
            self.remove(before.file)
        return part

    def part(self, stage: str, name: str) -> Part | None:
        """Return a listed part whose file is whole, or None."""
        part = _part(self.read_json(f"{MANIFEST}/{stage}/{name}.json"))
        return part if part and self._size(part.file) == part.bytes else None

    def parts(self, stage: str) -> dict[str, Part]:
        """Return all listed parts of a stage whose files are whole, by name."""
        sizes = {os.path.basename(row["name"]): row["size"] for row in self._ls(stage)}
        listed = (_part(self.read_json(f"{MANIFEST}/{stage}/{name}.json")) for name in self._listed_names(stage))
        return {part.name: part for part in listed if part and sizes.get(part.file.rpartition("/")[2]) == part.bytes}

    def table(self, stage: str, part: Part | str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a listed part, or some columns of it. One that is damaged is no longer listed, and raises an error."""
        found = part if isinstance(part, Part) else self._known(stage, part)
        with self._undamaged(stage, found):
            return self._parquet(found).read(columns=list(columns) if columns else None)

    def rows(self, stage: str, part: Part | str, columns: Sequence[str] | None = None) -> list[Row]:
        """Return the rows of a listed part."""
        found: list[Row] = self.table(stage, part, columns).to_pylist()
        return found

    def group(self, stage: str, part: Part, number: int) -> list[Row]:
        """Return the rows of one row group of a part."""
        with self._undamaged(stage, part):
            found: list[Row] = self._parquet(part).read_row_group(number).to_pylist()
        return found

    def vectors(self, name: str) -> dict[tuple[str, str], Any]:
        """Return the vectors of a listed part by uid and the hash of the text that each embeds."""
        table = self.table("vectors", name)
        if not len(table):
            return {}
        values = table["vector"].combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)
        return dict(
            zip(zip(table["uid"].to_pylist(), table["text_sha256"].to_pylist(), strict=True), values, strict=True)
        )

    def unlist(self, stage: str, name: str) -> None:
        """Take a part out of the manifest, so that it is made again."""
        self.remove(f"{MANIFEST}/{stage}/{name}.json")

    def drop(self, stage: str, name: str) -> None:
        """Delete a part."""
        part = _part(self.read_json(f"{MANIFEST}/{stage}/{name}.json"))
        self.unlist(stage, name)
        if part:
            self.remove(part.file)

    def _known(self, stage: str, name: str) -> Part:
        part = self.part(stage, name)
        if part is None:
            raise UsageError(
                f"stage folder {self.address!r} lacks part {name!r} of stage {stage!r}, or a piece of it: run "
                "`hgmem index … --stages` again, which makes it anew"
            )
        return part

    def _parquet(self, part: Part) -> pq.ParquetFile:
        with self._told():
            if self._local:  # reads what is needed of the file
                return pq.ParquetFile(self._path(part.file), page_checksum_verification=True)
            return pq.ParquetFile(io.BytesIO(self.fs.cat_file(self._path(part.file))), page_checksum_verification=True)

    @contextmanager
    def _undamaged(self, stage: str, part: Part) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError) as error:
            self.unlist(stage, part.name)
            raise UsageError(
                f"part {part.name!r} of stage {stage!r} in {self.address!r} is damaged ({_line(error)}): run the same "
                "command again, which makes it anew"
            ) from error

    # The journal, and small files ---------------------------------------------------------------------------------

    def note(self, journal: str, name: str, value: Mapping[str, Any]) -> None:
        """Keep one result, under a name in a journal, until its part is written."""
        self.write_json(f"{journal}/{name}.json", value)

    def noted(self, journal: str) -> dict[str, Row]:
        """Return the results in a journal by name, without those that were cut off."""
        names = [os.path.basename(row["name"]) for row in self._ls(journal)]
        found = {name[: -len(".json")]: self.read_json(f"{journal}/{name}") for name in names if name.endswith(".json")}
        return {name: value for name, value in found.items() if value is not None}

    def journals(self, stage: str) -> list[str]:
        """Return the names of a stage's journals."""
        return sorted(os.path.basename(row["name"].rstrip("/")) for row in self._ls(f"{stage}/journal"))

    def close_journal(self, journal: str) -> None:
        """Delete a journal whose part is listed."""
        with self._told():
            if self.fs.exists(self._path(journal)):
                self.fs.rm(self._path(journal), recursive=True)

    def current(self) -> dict[str, Any] | None:
        """Return what the last complete run's input consists of: the names of parts by stage."""
        return self.read_json(CURRENT)

    def write_json(self, file: str, value: Mapping[str, Any], *, new: bool = False) -> bool:
        """Write a small file, and return whether that was done: `new` ones only where there is none."""
        return self._write(file, json.dumps(value, ensure_ascii=False).encode(), new=new)

    def read_json(self, file: str) -> dict[str, Any] | None:
        """Return what a small file holds, or None if it is missing or cut off."""
        with self._told():
            try:
                found = json.loads(self.fs.cat_file(self._path(file)))
            except (FileNotFoundError, ValueError):
                return None
        return found if isinstance(found, dict) else None

    def remove(self, file: str) -> None:
        """Delete a file, if it is there."""
        with self._told(), suppress(FileNotFoundError):
            self.fs.rm_file(self._path(file))

    # The file system ----------------------------------------------------------------------------------------------

    def _path(self, file: str) -> str:
        return f"{self.root}/{file}"

    def _write(self, file: str, data: bytes, *, new: bool = False) -> bool:
        path = self._path(file)
        with self._told():
            if self._local:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            if new:
                try:
                    self.fs.pipe_file(path, data, mode="create")
                except FileExistsError:
                    return False
            elif self._local:
                temporary = f"{file}.{secrets.token_hex(4)}.tmp"
                try:
                    self.fs.pipe_file(self._path(temporary), data)
                    os.replace(self._path(temporary), path)
                except BaseException:
                    self.remove(temporary)
                    raise
            else:
                self.fs.pipe_file(path, data)
        return True

    def _ls(self, folder: str) -> list[Row]:
        with self._told():
            try:
                return list(self.fs.ls(self._path(folder), detail=True))
            except FileNotFoundError:
                return []

    def _listed_names(self, stage: str) -> list[str]:
        names = (os.path.basename(row["name"]) for row in self._ls(f"{MANIFEST}/{stage}"))
        return sorted(name[: -len(".json")] for name in names if name.endswith(".json"))

    def _size(self, file: str) -> int | None:
        with self._told():
            try:
                return int(self.fs.info(self._path(file))["size"])
            except FileNotFoundError:
                return None

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Raise what the file system says as an error in one line."""
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"stage folder {self.address!r}: {_line(error)}: correct that, and run the same command again"
            ) from error


def check_header(address: str, found: Header, wanted: Header) -> None:
    """Raise `UsageError` if a folder was made for something else, or with something else."""
    same = replace(wanted, **{name: getattr(found, name) for name in FIRST_RUN})
    for each in fields(Header):
        is_, run = getattr(found, each.name), getattr(same, each.name)
        if is_ != run:
            remedy = REMEDIES.get(each.name, f"set HGMEM_{each.name.upper()} to it")
            raise UsageError(
                f"stage folder {address!r} was made with {each.name} {is_!r}, and this run has {run!r}: {remedy}, or "
                "use another folder"
            )


def _part(found: Mapping[str, Any] | None) -> Part | None:
    if found is None or found.keys() != {each.name for each in fields(Part)}:
        return None
    return Part(**found)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__

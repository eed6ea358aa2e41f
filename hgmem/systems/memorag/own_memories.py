"""Memories of other packages: formed of a corpus's documents by a build, kept on disk, and asked for clues.

A package registers the class of one by an entry point in the group `hgmem.memories`. The entry point's name is the
value of the option `memory` that chooses it.
"""

import json
import os
import reprlib
import secrets
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from hgmem.builds.chunk_runs import joined_text
from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, Stage
from hgmem.builds.units import Made, Output, Unit
from hgmem.errors import HGMemError, ModelError, UsageError
from hgmem.graph.builds import StoredUnit, units_of_stage
from hgmem.graph.documents import document_states
from hgmem.retrieval.clues import ClueKind
from hgmem.services import Services, build_files
from hgmem.systems.memorag.recipes import MemoRAGConfig, registered
from hgmem.text.identity import text_hash

SYSTEM, FORMED = "memorag", "memory"  # the system, and the stage of the build that forms such a memory
_RECORD = "formed.json"  # beside the folders of memories: which is the present one, and what it was formed of
_CLUES = TypeAdapter(dict[str, list[str]])


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDocument:
    """A document as a memory reads it, with its date (YYYY-MM-DD or YYYY-MM) and type, if they are known."""

    uid: str
    title: str
    text: str
    date: str = ""
    type: str = ""


class DocumentMemory(Protocol):
    """A memory of documents. Its class is called without arguments.

    A build loads it if it was saved, forms it and saves it. A question loads it and asks for clues, and several may at
    once. Where the class has a `version`, another one than before forms the memory from the beginning.
    """

    def form(self, documents: Sequence[MemoryDocument], *, gone: Collection[str]) -> None:
        """Read the documents that are new or not as they were before, and forget those that are gone (uids)."""

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into a folder, which is there and empty."""

    def load(self, folder: Path) -> None:
        """Read what `save` wrote."""

    def clues(
        self, question: str, kinds: Sequence[ClueKind], *, documents: Collection[str] | None
    ) -> Mapping[str, Sequence[str]]:
        """Return clues by kind, drawn from these documents (uids) alone. None stands for all."""


def formed(reading: Reading, config: MemoRAGConfig) -> Iterator[Unit]:
    """List the memory of another package as one unit that reads all chunks, none where the config has another."""
    name, chunks = config.memory, reading.chunks()
    if not config.own or not chunks:
        return
    left = _left(_units(reading.services).get(name))
    lost = bool(left) and left["digest"] != _digest(_record(_folder(reading.services, name)))
    version = str(getattr(_class(name), "version", ""))
    # One that is lost is another unit than before, and stays that unit.
    yield Unit(key=name, chunks=chunks, values={"version": version, "times": left.get("times", 0) + lost})


def form(services: Services, config: MemoRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Let the memory read what has changed since it was saved, and save it. The output says what it was formed of.

    It is saved beside the present one, which questions read until the record names the new one.
    """
    name, folder = config.memory, _folder(services, config.memory)
    documents = {uid: list(chunks) for uid, chunks in groupby(unit.chunks, key=lambda chunk: chunk.document)}
    read = {
        uid: MemoryDocument(uid=uid, title=one.title, text=joined_text(chunks), date=one.date, type=one.type)
        for uid, chunks in documents.items()
        for one in chunks[:1]
    }
    hashes = {uid: text_hash(json.dumps(asdict(document))) for uid, document in read.items()}
    old, new = _record(folder), folder / secrets.token_hex(8)
    with _writing(services, name):
        _clear(folder, but=old)
        new.mkdir(parents=True)
    with _naming(name):
        memory, known = _begun(folder, old, name=name, version=unit.values["version"])
        changed = [document for uid, document in read.items() if known.get(uid) != hashes[uid]]
        memory.form(changed, gone=sorted(known.keys() - read.keys()))
    with _naming(name, remedy=f"check that {str(new)!r} can be written, or report this to its authors"):
        memory.save(new)
    record = {
        "version": unit.values["version"],
        "folder": new.name,
        "files": {path.relative_to(new).as_posix(): path.stat().st_size for path in new.rglob("*") if path.is_file()},
        "documents": hashes,
        "messages": any(chunk.messages for chunk in unit.chunks),
        "before": _digest(old),  # what the build still names until this one is written to it
    }
    with _writing(services, name):
        draft = folder / f"{_RECORD}.draft"
        draft.write_text(json.dumps(record), encoding="utf-8")
        os.replace(draft, folder / _RECORD)
        _clear(folder, but=record)
    return Made(output={"digest": _digest(record), "times": unit.values["times"]})


def drop_others(services: Services) -> None:
    """Delete the files of memories that the build does not have."""
    units = _units(services)
    for folder in build_files(services, SYSTEM).glob("*"):
        if folder.name not in units:
            shutil.rmtree(folder, ignore_errors=True)


def build_command(services: Services, name: str) -> str:
    """Return the command that builds a memory of this name."""
    return f"`hgmem build memorag --corpus {services.corpus} --set memory={name}`"


def remembered(services: Services, name: str) -> DocumentMemory | None:
    """Return the memory as the corpus's build last formed it, or None if texts that it holds may be deleted.

    Raises `UsageError` if it was never formed, or is not on this machine as the build left it.
    """
    corpus, folder, command = services.corpus, _folder(services, name), build_command(services, name)
    unit, record = _units(services).get(name), _record(folder)
    if unit is None:
        raise UsageError(f"corpus {corpus!r} has no memory {name!r}: form it with {command}")
    if unit.status == "failed" and not (unit.output or record):
        raise UsageError(
            f"memory {name!r} of corpus {corpus!r} failed to form: {command[:-1]} --retry-failed` says why, and tries "
            "again"
        )
    if not unit.output and record and _may_hold_deleted(services, record):
        return None
    if not record or (unit.output and _left(unit)["digest"] not in (_digest(record), record["before"])):
        raise UsageError(
            f"memory {name!r} of corpus {corpus!r} is not in {str(folder)!r} as its build left it: form it again with "
            f"{command}"
        )
    try:
        return _loaded(name, folder / record["folder"], f"delete {str(folder)!r}, then form it again with {command}")
    except ModelError:
        if _record(folder) == record:
            raise
        return remembered(services, name)  # a build has replaced it meanwhile


def asked(
    memory: DocumentMemory, question: str, *, name: str, kinds: Sequence[ClueKind], documents: Collection[str] | None
) -> dict[str, tuple[str, ...]]:
    """Return the clues that a memory of this name writes, by kind, those of the kinds asked for.

    Raises `ModelError` for clues that are not lists of text by kind.
    """
    with _naming(name):
        given = memory.clues(question, kinds, documents=documents)
        try:
            found = _CLUES.validate_python(given)
        except ValidationError as error:
            first = error.errors()[0]
            place = "".join(f"[{part!r}]" for part in first["loc"])
            raise TypeError(f"its clues{place}: {first['msg']}, got {reprlib.repr(first['input'])}") from None
        json.dumps(found, ensure_ascii=False).encode()  # refuses lone surrogates
    return {kind: tuple(found.get(kind, ())) for kind in kinds}


@lru_cache(maxsize=2)
def _loaded(name: str, folder: Path, remedy: str) -> DocumentMemory:
    with _naming(name, remedy=remedy):
        memory = _class(name)()
        memory.load(folder)
    return memory


def _begun(
    folder: Path, record: Mapping[str, Any], *, name: str, version: str
) -> tuple[DocumentMemory, dict[str, str]]:
    """Return a memory as it was saved, with the hashes of its documents, or a new one: of another version, or lost."""
    if record.get("version") == version:
        with suppress(Exception, SystemExit):
            memory = _class(name)()
            memory.load(folder / record["folder"])
            return memory, record["documents"]
    return _class(name)(), {}


def _class(name: str) -> Callable[[], DocumentMemory]:
    try:
        found: Callable[[], DocumentMemory] = registered()[name].load()
    except Exception as error:  # another package's code
        raise UsageError(
            f"memory {name!r} cannot be loaded ({type(error).__name__}: {error}): reinstall or uninstall its package"
        ) from error
    return found


def _units(services: Services) -> dict[str, StoredUnit]:
    return units_of_stage(services.database, corpus=services.corpus, system=SYSTEM, stage=FORMED)


def _left(unit: StoredUnit | None) -> dict[str, Any]:
    """Return what forming a memory left in the build: nothing if it never was, or since its texts have changed."""
    return json.loads(unit.output) if unit and unit.output else {}


def _may_hold_deleted(services: Services, record: Mapping[str, Any]) -> bool:
    """Whether a document of the memory is gone. Messages of a conversation may be forgotten, so that one counts."""
    found = document_states(services.database, corpus=services.corpus, uids=list(record["documents"]))
    return record["messages"] or sum(bool(state.sha256) for state in found.values()) < len(record["documents"])


def _folder(services: Services, name: str) -> Path:
    return build_files(services, SYSTEM) / name


def _record(folder: Path) -> dict[str, Any]:
    """Return what the memory in a folder was formed of. Nothing, unless its files are there as they were saved."""
    with suppress(OSError, ValueError):
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        inner = folder / record["folder"]
        if inner.is_dir() and all((inner / path).stat().st_size == size for path, size in record["files"].items()):
            return record
    return {}


def _clear(folder: Path, *, but: Mapping[str, Any]) -> None:
    """Delete the memories in a folder but that of a record."""
    for path in folder.glob("*/"):
        if path.name != but.get("folder"):
            shutil.rmtree(path)


def _digest(record: Mapping[str, Any]) -> str:
    return text_hash(json.dumps(record, sort_keys=True))


@contextmanager
def _writing(services: Services, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"memory {name!r} cannot be kept ({error}): let HGMEM_DATA, which is {str(services.settings.data)!r}, name "
            "a folder that can be written"
        ) from error


@contextmanager
def _naming(name: str, *, remedy: str = "report this to its authors") -> Iterator[None]:
    """Raise `ModelError` where another package's memory raises anything."""
    try:
        yield
    except HGMemError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"memory {name!r} raised {type(error).__name__}: {error}: {remedy}") from error


BUILD: Build[MemoRAGConfig] = Build(
    kinds=(),
    finish=drop_others,
    stages=[
        Stage(
            name=FORMED,
            units=formed,
            make=form,
            settings=["memory"],
            most_units=lambda _, config: int(config.own),
        )
    ],
)

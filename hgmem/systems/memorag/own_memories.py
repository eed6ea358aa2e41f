"""Memories of other packages: formed of a corpus's documents by a build, kept on disk, and asked for clues.

A package registers the class of one by an entry point in the group `hgmem.memories`. The entry point's name is the
value of the option `memory` that chooses it.
"""

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

from hgmem.builds.chunk_runs import joined_text
from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Unit
from hgmem.errors import HGMemError, ModelError, UsageError
from hgmem.graph.builds import units_of_stage
from hgmem.services import Services
from hgmem.systems.memorag.recipes import ClueKind, MemoRAGConfig, registered
from hgmem.text.identity import text_hash

FORMED = "memory"  # the stage of the build that forms such a memory
_RECORD = "formed.json"  # written last: what the memory beside it was formed of


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDocument:
    """A document as a memory reads it."""

    uid: str
    title: str
    text: str


class DocumentMemory(Protocol):
    """A memory of documents. Its class is called without arguments.

    A build loads it if it was saved, forms it and saves it. A question loads it and asks for clues, and several may at
    once. Where the class has a `version`, another one than before forms the memory from the beginning.
    """

    def form(self, documents: Sequence[MemoryDocument], *, gone: Collection[str]) -> None:
        """Read the documents that are new or have another text than before, and forget those that are gone (uids)."""

    def save(self, folder: Path) -> None:
        """Write all that `load` needs into a folder, which is there."""

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
    output = reading.outputs(FORMED).get(name)
    lost = output is not None and output.value["digest"] != _digest(_record(_folder(reading.services, name)))
    version = str(getattr(_class(name), "version", ""))
    yield Unit(key=name, chunks=chunks, values={"version": version, "lost": lost})


def form(services: Services, config: MemoRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Let the memory read what has changed since it was saved, and save it. The output says what it was formed of."""
    name, folder = config.memory, _folder(services, config.memory)
    documents = {uid: list(chunks) for uid, chunks in groupby(unit.chunks, key=lambda chunk: chunk.document)}
    texts = {uid: joined_text(chunks) for uid, chunks in documents.items()}
    hashes = {uid: text_hash(f"{documents[uid][0].title}\n{text}") for uid, text in texts.items()}
    known = _record(folder)
    with _naming(name):
        memory = _class(name)()
        if known.get("version") == unit.values["version"]:
            memory.load(folder)
        else:
            known = {"documents": {}}
        changed = [
            MemoryDocument(uid=uid, title=documents[uid][0].title, text=text)
            for uid, text in texts.items()
            if known["documents"].get(uid) != hashes[uid]
        ]
        memory.form(changed, gone=sorted(known["documents"].keys() - texts.keys()))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        memory.save(folder)
    record = {"version": unit.values["version"], "documents": hashes}
    (folder / _RECORD).write_text(json.dumps(record), encoding="utf-8")
    return Made(output={"digest": _digest(record)})


def remembered(services: Services, name: str) -> DocumentMemory | None:
    """Return the memory that the corpus's build has formed, or None if texts that it holds were deleted since.

    Raises `UsageError` if it was never formed, or is not on this machine as the build left it.
    """
    corpus, folder = services.corpus, _folder(services, name)
    unit = units_of_stage(services.database, corpus=corpus, system="memorag", stage=FORMED).get(name)
    command = f"`hgmem build memorag --corpus {corpus} --set memory={name}`"
    if unit is None:
        raise UsageError(f"corpus {corpus!r} has no memory {name!r}: form it with {command}")
    if unit.output is None:
        return None
    digest = json.loads(unit.output)["digest"]
    if _digest(_record(folder)) != digest:
        raise UsageError(
            f"memory {name!r} of corpus {corpus!r} is not in {str(folder)!r} as its build left it: form it again with "
            f"{command}"
        )
    return _loaded(name, folder, digest)


def asked(
    memory: DocumentMemory, question: str, *, name: str, kinds: Sequence[ClueKind], documents: Collection[str] | None
) -> dict[str, tuple[str, ...]]:
    """Return the clues that a memory of this name writes, by kind, those of the kinds asked for."""
    with _naming(name):
        found = memory.clues(question, kinds, documents=documents)
        return {kind: tuple(map(str, found.get(kind, ()))) for kind in kinds}


@lru_cache(maxsize=2)
def _loaded(name: str, folder: Path, digest: str) -> DocumentMemory:
    with _naming(name):
        memory = _class(name)()
        memory.load(folder)
    return memory


def _class(name: str) -> Callable[[], DocumentMemory]:
    try:
        found: Callable[[], DocumentMemory] = registered()[name].load()
    except Exception as error:  # another package's code
        raise UsageError(
            f"memory {name!r} cannot be loaded ({type(error).__name__}: {error}): reinstall or uninstall its package"
        ) from error
    return found


def _folder(services: Services, name: str) -> Path:
    return services.settings.data / "memories" / services.corpus / name


def _record(folder: Path) -> dict[str, Any]:
    """Return what the memory in a folder was formed of. Without one, or after an interruption, that is nothing."""
    with suppress(OSError, ValueError):
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        return record
    return {"documents": {}}


def _digest(record: Mapping[str, Any]) -> str:
    return text_hash(json.dumps(record, sort_keys=True))


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Raise `ModelError` where another package's memory raises anything."""
    try:
        yield
    except HGMemError:
        raise
    except Exception as error:
        raise ModelError(
            f"memory {name!r} raised {type(error).__name__}: {error}: report this to its authors"
        ) from error

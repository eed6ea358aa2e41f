"""What the stages of a build list their units from: chunks, rows and outputs, as they are stored now."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from hgmem.builds.units import Output, StoredRow
from hgmem.errors import UsageError
from hgmem.graph.builds import READY, BuildRow, StoredUnit, built_rows, chunks_to_build, find_build, units_of_stage
from hgmem.graph.database import Row
from hgmem.services import Services
from hgmem.text.identity import built_uid
from hgmem.values.built import OWN_PROPERTIES, is_scalar
from hgmem.values.graph_elements import Chunk


@dataclass(slots=True, kw_only=True)
class Reading:
    """Reads a corpus and a system's build. `services` serve what a system reads with statements of its own."""

    services: Services
    system: str
    _chunks: list[Chunk] | None = field(default=None, repr=False)

    def chunks(self) -> Sequence[Chunk]:
        """Return all chunks by document title, document and position. They are read once a run."""
        if self._chunks is None:
            self._chunks = chunks_to_build(self.services.database, corpus=self.services.corpus)
        return self._chunks

    def rows(self, kind: str, *, vectors: bool = False) -> list[StoredRow]:
        """Return the rows of one kind by key, with their vectors if asked."""
        rows = built_rows(
            self.services.database, corpus=self.services.corpus, system=self.system, kind=kind, vectors=vectors
        )
        return [stored_row(row) for row in rows]

    def outputs(self, stage: str) -> dict[str, Output]:
        """Return by key what the units of a stage left. Units without an output are absent."""
        units = units_of_stage(self.services.database, corpus=self.services.corpus, system=self.system, stage=stage)
        return {key: output for key, unit in units.items() if (output := stored_output(unit)) is not None}

    def uid(self, kind: str, key: str) -> str:
        """Return the uid of a row, whether or not it exists."""
        return built_uid(self.services.corpus, self.system, kind=kind, key=key)


def stored_row(row: Row) -> StoredRow:
    """Return the row of a node's properties."""
    return StoredRow(
        uid=row["uid"],
        kind=row["kind"],
        key=row["key"],
        text=row["text"],
        document=row["document"],
        properties={name: row[name] for name in sorted(row.keys() - OWN_PROPERTIES)},
        embedding=row.get("embedding"),
        own_embedding=row.get("own_embedding"),
        vector=row.get("vector"),
    )


def stored_output(unit: StoredUnit) -> Output | None:
    """Return what a unit left, or None if it has no output or has to be made anew."""
    if unit.status != "done" or unit.output is None:
        return None
    return Output(uid=unit.uid, key=unit.key, value=json.loads(unit.output), document=unit.document)


def check_built(
    services: Services,
    system: str,
    *,
    required: bool = True,
    asked: Mapping[str, object] | None = None,
    options: Mapping[str, object] | None = None,
) -> tuple[str, ...]:
    """Return notes for an answer from a build. Raises `UsageError` if it was never made and is `required`.

    The error names a command with these `options`. `asked` are the build's own options that a question gives, by name:
    a note names each that the build differs in.
    """
    corpus = services.corpus
    command = f"`hgmem build {system} --corpus {corpus}`"
    row = find_build(services.database, corpus=corpus, system=system)
    if row is None or row.finished_at is None:
        if not required:
            return ()
        what = "no" if row is None else "an unfinished"
        given = "".join(f" --set {name}={_typed(value)}" for name, value in (options or {}).items() if is_scalar(value))
        raise UsageError(f"corpus {corpus!r} has {what} build {system!r}: make it with {command[:-1]}{given}`")
    state: tuple[str, ...] = ()
    if row.change:
        state = (f"the build {system!r} is stale ({row.change}): {command} makes anew what has changed",)
    elif row.status != READY:
        state = (f"the build {system!r} is not whole (status {row.status}): {command} makes what is missing",)
    return (*state, *_unlike(row, asked or {}, corpus=corpus))


def _unlike(row: BuildRow, asked: Mapping[str, object], *, corpus: str) -> Iterator[str]:
    """Yield a note for each option that the build was not made with."""
    stored = json.loads(row.settings)
    for name, value in asked.items():
        made = reduce(lambda place, part: place.get(part, {}), name.split("."), stored)
        if made != json.loads(json.dumps(value)):
            yield (
                f"{name}={_typed(value)} is read when building, and the build has {name}={_typed(made)}: `hgmem build "
                f"{row.system} --corpus {corpus} --set {name}={_typed(value)}` makes it anew"
            )


def _typed(value: object) -> str:
    """Return an option's value as it is typed."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)

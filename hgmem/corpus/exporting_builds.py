"""Exporting what systems have built: stored rows as records, without what no import would take."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hgmem.corpus.archive.fields import pack
from hgmem.corpus.archive.own_names import OURS
from hgmem.graph.builds import BUILDING, UNFINISHED
from hgmem.graph.database import Row
from hgmem.graph.embeddings import held_builds
from hgmem.graph.exporting import read_builds, read_built, read_own_relationships
from hgmem.graph.values import Runner
from hgmem.services import Services
from hgmem.values.built import OF_RELATIONSHIPS, OWN_PROPERTIES, Installed, is_property, is_property_name, is_scalar

READ = frozenset(("unit", "replaced_vectors"))  # what `read_built` adds to a row's own properties


@dataclass(slots=True, kw_only=True)
class BuildsReader:
    """Reads builds for an archive, and keeps what is left out."""

    services: Services
    installed: Installed
    live: list[str] = field(default_factory=list)
    unknown: set[str] = field(default_factory=set)
    foreign: set[str] = field(default_factory=set)
    _states: list[Row] = field(default_factory=list)

    def builds(self) -> list[Row]:
        """Return the builds. One that is being made is unfinished in the archive."""
        database, corpus = self.services.database, self.services.corpus
        self.live = held_builds(database, corpus=corpus, timeout=self.services.settings.claim_timeout)
        self._states = read_builds(database, corpus=corpus)
        return [{**row, "status": UNFINISHED if row["status"] == BUILDING else row["status"]} for row in self._states]

    def rows(self, database: Runner, *, corpus: str, uids: list[str], embeddings: bool) -> Iterator[Row]:
        """Yield built rows as records, without those of kinds that the installed system no longer has."""
        for row in read_built(database, corpus=corpus, uids=uids, embeddings=embeddings):
            known = self.installed(row["system"])
            if row["kind"] in OURS or (known and row["kind"] not in known.kinds):
                self.foreign.add(f"rows of kind {row['kind']!r} of system {row['system']!r}")
                continue
            own = {name: row.pop(name) for name in row.keys() - OWN_PROPERTIES - READ}
            for name in ("own_embedding", "vector"):
                row[name] = None if row.get(name) is None else pack(row[name])
            properties = self._kept(row["kind"], own, is_property)
            yield {**_without(row, "kind", "layer_key"), "label": row["kind"], "own_properties": properties}

    def relationships(self, database: Runner, *, corpus: str, uids: list[str]) -> Iterator[Row]:
        """Yield relationships of systems' own types as records, without those that others wrote."""
        for row in _in_order(read_own_relationships(database, corpus=corpus, uids=uids)):
            known = self.installed(row["system"])
            if row["type"] in OURS or (known and row["type"] not in known.relationships):
                self.foreign.add(f"relationships of type {row['type']!r} from rows of system {row['system']!r}")
                continue
            own = {name: value for name, value in row.pop("properties").items() if name not in OF_RELATIONSHIPS}
            yield {**row, "own_properties": self._kept(row["type"], own, is_scalar)}

    def notes(self) -> list[str]:
        """Return a line for each build that was being made, and for what is left out."""
        now = read_builds(self.services.database, corpus=self.services.corpus)
        before, after = ({row["system"]: _state(row) for row in rows} for rows in (self._states, now))
        changed = sorted(system for system in before.keys() | after.keys() if before.get(system) != after.get(system))
        return [
            *(f"the build of system {system!r} is being made: it is unfinished in the archive" for system in self.live),
            *(
                f"the build of system {system!r} changed during the export: export again when nothing writes to it"
                for system in changed
                if system not in self.live
            ),
            *(f"skipped {what}, which that system does not have" for what in sorted(self.foreign)),
        ]

    def _kept(self, where: str, properties: Row, fits: Any) -> Row:
        """Return the properties that an archive can hold, sorted by name."""
        kept = {name: properties[name] for name in sorted(properties) if is_property_name(name)}
        kept = {name: value for name, value in kept.items() if fits(value)}
        self.unknown |= {f"{where}.{name}" for name in properties.keys() - kept.keys()}
        return kept


def _state(row: Row) -> Row:
    return _without(row, "heartbeat")


def _without(row: Row, *names: str) -> Row:
    return {name: value for name, value in row.items() if name not in names}


def _in_order(rows: Iterable[Row]) -> list[Row]:
    """Return the rows in an order that is the same for the same relationships."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))

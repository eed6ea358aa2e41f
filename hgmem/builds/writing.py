"""Check what units made and write it, each unit whole or not at all, and delete units that have no inputs any more."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.builds.stages import Build
from hgmem.builds.units import Made, Output, Row, Tie, Unit
from hgmem.corpus.guarded_writes import GuardedWriter, check_embedder
from hgmem.corpus.paging import batches
from hgmem.errors import UsageError
from hgmem.graph import built as graph
from hgmem.graph.builds import BuildLease, renew_build
from hgmem.graph.database import Transaction
from hgmem.graph.values import Runner, to_json
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.text.identity import built_uid, layer_key
from hgmem.text.stems import stored_stems
from hgmem.values.built import OF_RELATIONSHIPS, OWN_PROPERTIES, is_property, is_property_name
from hgmem.values.graph_elements import Chunk

_DELETED = 500  # units deleted in one transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a unit made, as rows of statements. `needed` are the uids of its inputs."""

    unit: Mapping[str, Any]
    rows: Sequence[Mapping[str, Any]]
    ties: Sequence[Mapping[str, Any]]
    vectors: Mapping[str, Vectors]
    plain: Mapping[str, Any]
    rests_on: Mapping[str, Sequence[str]]
    needed: Sequence[str]


def _documents(unit: Unit, before: Sequence[Output]) -> dict[str, str]:
    """Return the uids of a unit's inputs, each with the document that it comes from, or an empty text for several."""
    found = {chunk.uid: chunk.document for chunk in unit.chunks}
    found |= {row.uid: row.document for row in unit.rows}
    found |= {output.uid: output.document for output in (*unit.outputs, *before)}
    behind = {one.uid if isinstance(one, Chunk) else one: one for one in unit.sources}
    return {**{uid: one.document if isinstance(one, Chunk) else "" for uid, one in behind.items()}, **found}


def _listed(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) or value is None else list(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes the units of one run, under its lease, and refuses what a build may not write."""

    services: Services
    build: Build[Any]
    lease: BuildLease
    language: str

    def result(self, unit: Unit, made: Made, *, properties: Mapping[str, Any], before: Sequence[Output]) -> Result:
        """Return the rows to write. `properties` are those of the unit's node. Raises `UsageError`."""
        inputs = _documents(unit, before)
        own = {self._uid(row): row for row in made.rows}
        if len(own) < len(made.rows):
            raise self._wrong(properties, "made two rows of one kind and key")
        rests_on = {uid: tuple(dict.fromkeys(row.rests_on or inputs)) for uid, row in own.items()}
        for uids in rests_on.values():
            self._known(properties, uids, inputs, what="a row that rests on")
        unit_uid = properties["uid"]
        if of_unit := self._of_unit(made, properties, inputs):
            rests_on[unit_uid] = of_unit
        documents = set(inputs.values())
        return Result(
            unit={
                **properties,
                "output": None if made.output is None else to_json(made.output),
                "document": documents.pop() if len(documents) == 1 else "",
                "inputs": len(inputs),
            },
            rows=[self._row(uid, row, unit_uid, {inputs[one] for one in rests_on[uid]}) for uid, row in own.items()],
            ties=[self._tie(tie, properties, {*inputs, *own}) for tie in made.ties],
            vectors=self._vectors(made, unit, properties),
            plain={uid: row.vector for uid, row in own.items()},
            rests_on=rests_on,
            needed=tuple(inputs),
        )

    def _of_unit(self, made: Made, properties: Mapping[str, Any], inputs: Mapping[str, str]) -> tuple[str, ...]:
        """Return what the unit itself rests on: the inputs of its output, of its ties, and of the vectors it gives."""
        if made.ties or made.vectors or (made.output is not None and made.output_rests_on is None):
            return tuple(inputs)
        if made.output is None or made.output_rests_on is None:
            return ()
        if inputs and not made.output_rests_on:
            raise self._wrong(properties, "made an output that rests on none of its inputs")
        self._known(properties, made.output_rests_on, inputs, what="an output that rests on")
        return tuple(dict.fromkeys(made.output_rests_on))

    def _uid(self, row: Row) -> str:
        self.build.kind(row.kind)
        return built_uid(self.lease.corpus, self.lease.system, kind=row.kind, key=row.key)

    def _row(self, uid: str, row: Row, unit: str, documents: set[str]) -> dict[str, Any]:
        own = self._properties(row.properties, OWN_PROPERTIES, f"a row of kind {row.kind!r}")
        return {
            "uid": uid,
            "unit": unit,
            "label": row.kind,
            "own": self.build.kind(row.kind).replaced_vectors,
            "properties": {
                **own,
                "system": self.lease.system,
                "kind": row.kind,
                "key": row.key,
                "text": row.text,
                "stems": stored_stems(row.text, self.language),
                "document": documents.pop() if len(documents) == 1 else "",
                "layer_key": layer_key(self.lease.corpus, self.lease.system, row.kind),
            },
        }

    def _tie(self, tie: Tie, properties: Mapping[str, Any], near: set[str]) -> dict[str, Any]:
        source, target = (self._uid(end) if isinstance(end, Row) else end for end in (tie.source, tie.target))
        if tie.type not in self.build.relationships:
            raise self._wrong(properties, f"made a relationship of type {tie.type!r}, which its spec does not list")
        if source not in near:
            raise self._wrong(properties, f"made a relationship from {source!r}, which is none of its inputs and rows")
        return {
            "unit": properties["uid"],
            "source": source,
            "type": tie.type,
            "target": target,
            "properties": self._properties(tie.properties, OF_RELATIONSHIPS, f"a relationship {tie.type!r}"),
        }

    def _properties(self, given: Mapping[str, Any], ours: Iterable[str], what: str) -> dict[str, Any]:
        """Return properties as they are stored. Raises `UsageError` for one that an archive could not hold."""
        properties = {name: _listed(value) for name, value in given.items()}
        said = f"system {self.lease.system!r} gave {what} the property"
        for name, value in properties.items():
            if name in ours or not is_property_name(name):
                raise UsageError(
                    f"{said} {name!r}: use lowercase letters, digits and "
                    f"underscores, and none of {', '.join(sorted(ours))}"
                )
            if value is not None and not is_property(value):
                raise UsageError(
                    f"{said} {name!r} with the value {str(value)[:80]!r}: "
                    "use a text, a boolean, a finite number, or a list of one of these"
                )
        return properties

    def _vectors(self, made: Made, unit: Unit, properties: Mapping[str, Any]) -> Mapping[str, Vectors]:
        inputs = {row.uid: row for row in unit.rows}
        if made.vectors and not self.build.stage(properties["stage"]).vectors:
            raise self._wrong(properties, "gave vectors, though its stage says `vectors=False`")
        for uid in made.vectors:
            if uid not in inputs or not self.build.kind(inputs[uid].kind).replaced_vectors:
                raise self._wrong(properties, f"gave a vector to {uid!r}, which is no input of a kind that takes one")
        return made.vectors

    def _known(
        self, properties: Mapping[str, Any], uids: Iterable[str], inputs: Mapping[str, str], *, what: str
    ) -> None:
        for uid in uids:
            if uid not in inputs:
                raise self._wrong(properties, f"made {what} {uid!r}, which is none of its inputs")

    def _wrong(self, properties: Mapping[str, Any], what: str) -> UsageError:
        return UsageError(
            f"system {self.lease.system!r}, stage {properties['stage']!r}, unit {properties['key']!r} {what}: "
            "report this to the system's authors"
        )

    def units(self, results: Sequence[Result]) -> set[str]:
        """Write what units made in one transaction, and return the uids of those that were written.

        A unit whose inputs have been deleted meanwhile is left out. Raises `ConflictError` if the lease is lost.
        """
        texts = {one["uid"]: one["properties"]["text"] for each in results for one in each.rows}
        stored = graph.made_by(
            self.services.database, corpus=self.services.corpus, uids=[each.unit["uid"] for each in results]
        )
        kept = {row["uid"] for row in stored if row["text"] is not None and row["text"] == texts.get(row["uid"])}
        fresh = {uid: text for uid, text in texts.items() if text and uid not in kept}
        made = self.services.embed(list(fresh.values()), kind="document") if fresh else ()
        vectors = dict(zip(fresh, made, strict=True))
        return self.services.database.write(_write_units, self, results, vectors)

    def failed(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Record why units were not made."""
        self._guarded.run(
            "fail_units",
            corpus=self.lease.corpus,
            system=self.lease.system,
            build=self.lease.build,
            rows=[dict(row) for row in rows],
        )

    def finish(self) -> None:
        """Remove support that was inherited, as all units are made from their present inputs."""
        self._guarded.run("drop_inherited", corpus=self.lease.corpus, build=self.lease.build)

    @property
    def _guarded(self) -> GuardedWriter:
        return GuardedWriter(database=self.services.database, check=lambda at: _locked(at, self))

    def delete(self, uids: Iterable[str]) -> None:
        """Delete units with their rows, and what rests on them."""
        for some in batches(uids, size=_DELETED):
            self.services.database.write(_delete_units, self, some)


def _write_units(
    transaction: Transaction, writer: Writer, results: Sequence[Result], vectors: Mapping[str, Vectors]
) -> set[str]:
    corpus = _locked(transaction, writer)
    needed = [{*each.needed, *(tie["target"] for tie in each.ties)} for each in results]
    found = graph.standing(transaction, corpus=corpus, uids=set().union(*needed))
    found |= {row["uid"] for each in results for row in each.rows}
    whole = [each for each, uids in zip(results, needed, strict=True) if found >= uids]
    if whole:
        _replace(transaction, writer.lease, whole)
        transaction.run(
            "put_units",
            corpus=corpus,
            system=writer.lease.system,
            build=writer.lease.build,
            rows=[dict(each.unit) for each in whole],
        )
        _put_rows(transaction, corpus, whole, vectors)
        _put_extensions(transaction, corpus, whole)
    return {each.unit["uid"] for each in whole}


def _locked(transaction: Runner, writer: Writer) -> str:
    """Lock the corpus, check the lease, and return the corpus's name."""
    corpus = writer.services.corpus
    check_embedder(transaction, writer.services)
    renew_build(transaction, writer.lease)
    return corpus


def _replace(transaction: Transaction, lease: BuildLease, results: Sequence[Result]) -> None:
    """Delete rows that the units do not make again, and release what the others no longer rest on."""
    corpus = lease.corpus
    units = [each.unit["uid"] for each in results]
    rests_on = {uid: list(uids) for each in results for uid, uids in each.rests_on.items()}
    stored = [row["uid"] for row in graph.made_by(transaction, corpus=corpus, uids=units)]
    if gone := [uid for uid in stored if uid not in rests_on]:
        graph.drop_dependents(transaction, corpus=corpus, uids=gone)
        graph.delete_built(transaction, corpus=corpus, uids=gone)
    graph.release_extensions(transaction, corpus=corpus, units=units)
    released = [
        {"uid": uid, "rests_on": rests_on.get(uid, [])} for uid in (*units, *set(stored).intersection(rests_on))
    ]
    transaction.run("release_support", corpus=corpus, system=lease.system, build=lease.build, rows=released)


def _put_rows(transaction: Transaction, corpus: str, results: Sequence[Result], vectors: Mapping[str, Vectors]) -> None:
    rows = [row for each in results for row in each.rows]
    if rows:
        graph.withdraw_quotes(transaction, corpus=corpus, texts={row["uid"]: row["properties"]["text"] for row in rows})
        transaction.run("put_built", corpus=corpus, rows=[dict(row) for row in rows])
    if embedded := [row for row in rows if row["uid"] in vectors]:
        plain = [{"uid": row["uid"], "own": row["own"]} for row in embedded]
        graph.put_built_vectors(
            transaction, corpus=corpus, rows=plain, vectors=[vectors[row["uid"]] for row in embedded]
        )
    if bare := [row["uid"] for row in rows if not row["properties"]["text"]]:
        transaction.run("clear_text_vectors", corpus=corpus, uids=bare)
    own = {uid: value for each in results for uid, value in each.plain.items()}
    if given := {uid: value for uid, value in own.items() if value is not None}:
        graph.put_plain_vectors(
            transaction, corpus=corpus, rows=[{"uid": uid} for uid in given], vectors=given.values()
        )
    if none := [uid for uid in own if uid not in given]:
        graph.clear_plain_vectors(transaction, corpus=corpus, uids=none)
    support = [{"uid": uid, "rests_on": list(on)} for each in results for uid, on in each.rests_on.items()]
    if support:
        transaction.run("put_support", corpus=corpus, rows=support)


def _put_extensions(transaction: Transaction, corpus: str, results: Sequence[Result]) -> None:
    """Write ties and vectors that units give to rows, of other units too."""
    extended = []
    for each in results:
        tied = {tie["source"] for tie in each.ties} - {row["uid"] for row in each.rows}
        extended += [
            {"unit": each.unit["uid"], "uid": uid, "vector": each.vectors.get(uid)}
            for uid in sorted({*tied, *each.vectors})
        ]
    if extended:
        graph.put_extensions(transaction, corpus=corpus, rows=extended)
    if ties := [dict(tie) for each in results for tie in each.ties]:
        transaction.run("put_ties", corpus=corpus, rows=ties)


def _delete_units(transaction: Transaction, writer: Writer, uids: Sequence[str]) -> None:
    corpus = _locked(transaction, writer)
    rows = [row["uid"] for row in graph.made_by(transaction, corpus=corpus, uids=uids)]
    graph.drop_dependents(transaction, corpus=corpus, uids=[*uids, *rows])
    graph.release_extensions(transaction, corpus=corpus, units=uids)
    graph.delete_built(transaction, corpus=corpus, uids=rows)
    transaction.run("delete_units", corpus=corpus, uids=uids)

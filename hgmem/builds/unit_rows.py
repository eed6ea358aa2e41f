"""What a unit made, as rows of statements: checked against what a build may write."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.builds.stages import Build
from hgmem.builds.units import Made, Output, Row, Tie, Unit
from hgmem.errors import UsageError
from hgmem.graph.values import to_json
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.text.identity import built_uid, layer_key
from hgmem.values.built import OF_RELATIONSHIPS, OWN_PROPERTIES, is_property, is_property_name
from hgmem.values.graph_elements import Chunk


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


class Checked:
    """Turns what a unit of a system made into rows, and refuses what a build may not write."""

    def __init__(self, services: Services, system: str, build: Build[Any]) -> None:
        self._corpus = services.corpus
        self._system = system
        self._build = build

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
        self._build.kind(row.kind)
        return built_uid(self._corpus, self._system, kind=row.kind, key=row.key)

    def _row(self, uid: str, row: Row, unit: str, documents: set[str]) -> dict[str, Any]:
        own = self._properties(row.properties, OWN_PROPERTIES, f"a row of kind {row.kind!r}")
        return {
            "uid": uid,
            "unit": unit,
            "label": row.kind,
            "own": self._build.kind(row.kind).replaced_vectors,
            "properties": {
                **own,
                "system": self._system,
                "kind": row.kind,
                "key": row.key,
                "text": row.text,
                "document": documents.pop() if len(documents) == 1 else "",
                "layer_key": layer_key(self._corpus, self._system, row.kind),
            },
        }

    def _tie(self, tie: Tie, properties: Mapping[str, Any], near: set[str]) -> dict[str, Any]:
        source, target = (self._uid(end) if isinstance(end, Row) else end for end in (tie.source, tie.target))
        if tie.type not in self._build.relationships:
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
        for name, value in properties.items():
            if name in ours or not is_property_name(name):
                raise UsageError(
                    f"system {self._system!r} gave {what} the property {name!r}: use lowercase letters, digits and "
                    f"underscores, and none of {', '.join(sorted(ours))}"
                )
            if value is not None and not is_property(value):
                raise UsageError(
                    f"system {self._system!r} gave {what} the property {name!r} with the value {str(value)[:80]!r}: "
                    "use a text, a boolean, a finite number, or a list of one of these"
                )
        return properties

    def _vectors(self, made: Made, unit: Unit, properties: Mapping[str, Any]) -> Mapping[str, Vectors]:
        inputs = {row.uid: row for row in unit.rows}
        if made.vectors and not self._build.stage(properties["stage"]).vectors:
            raise self._wrong(properties, "gave vectors, though its stage says `vectors=False`")
        for uid in made.vectors:
            if uid not in inputs or not self._build.kind(inputs[uid].kind).replaced_vectors:
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
            f"system {self._system!r}, stage {properties['stage']!r}, unit {properties['key']!r} {what}: "
            "report this to the system's authors"
        )


def _documents(unit: Unit, before: Sequence[Output]) -> dict[str, str]:
    """Return the uids of a unit's inputs, each with the document that it comes from, or an empty text for several."""
    found = {chunk.uid: chunk.document for chunk in unit.chunks}
    found |= {row.uid: row.document for row in unit.rows}
    found |= {output.uid: output.document for output in (*unit.outputs, *before)}
    behind = {one.uid if isinstance(one, Chunk) else one: one for one in unit.sources}
    return {**{uid: one.document if isinstance(one, Chunk) else "" for uid, one in behind.items()}, **found}


def _listed(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) or value is None else list(value)

"""Record types: values are stored by their description, and read back the same."""

from dataclasses import fields, replace
from typing import Any

import pytest

from hgmem.graph.record_types import RECORD_TYPES
from hgmem.graph.values import from_properties, to_properties
from hgmem.values.evidence import Retrieved, Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.records import Answer, Citation, MemoryPoint, Operation, Step
from hgmem.values.usage import Usage

# Attributes that are no fields: relationships, and what is known only to the one who reads.
ELSEWHERE = {
    MemoryPoint: {"entities", "chunks"},
    Step: {"retrieved"},
    Citation: {"quote_status"},
    Answer: {"corpus", "system", "citations", "points", "steps"},
}
ENTITY = Entity(uid="0" * 32, name="Ada")
FULL: list[Any] = [
    MemoryPoint(uid="m-1-1", description="d", entities=(ENTITY,), born=1, died=2, deleted_chunks=("c",)),
    Step(
        number=1,
        question="Who?",
        strategy="local",
        judgement="global",
        filters={"page": ("1", "2")},
        operations=(Operation(kind="merge", point="p", parts=("a", "b")), Operation(kind="drop", reason="why")),
        planned=(Subquery(text="t", concern="c", strategy="local", targets=("p",)),),
        notes=("n",),
        seconds=0.5,
        usage=Usage(calls={"model": {"plan": 1}}, seconds={"model": {"plan": 0.5}}, tokens={"plan": {"prompt": 3}}),
    ),
    Citation(
        marker=1, chunk="c", document="d", title="t", quote="q", start=0, end=1, source_id="s", built="b",
        behind=("c", "d"), message="m", speaker="Ada", time="2023-02-04", withdrawn=True,
    ),
    Answer(
        uid="m-answer", question="Who?", text="Ada.", status="answered", corpus="c", system="s", memory="m",
        model="none", step=2, notes=("n",), seconds=1.5,
    ),
]  # fmt: skip


@pytest.mark.parametrize("value", FULL, ids=lambda value: type(value).__name__)
def test_a_value_is_read_as_it_was_written(value: Any) -> None:
    more = {name: getattr(value, name) for name in ELSEWHERE[type(value)]}
    assert from_properties(type(value), to_properties(value), **more) == value


@pytest.mark.parametrize("kind", ELSEWHERE, ids=lambda kind: kind.__name__)
def test_every_attribute_has_a_field(kind: type) -> None:
    described = {field.name for field in RECORD_TYPES[kind.__name__].kept}
    attributes = {field.name for field in fields(kind)}
    assert attributes - described == ELSEWHERE[kind]


def test_what_is_optional_and_empty_is_not_stored() -> None:
    [point, step, citation, _] = FULL
    assert to_properties(replace(point, died=None, deleted_chunks=()))["deleted_chunks"] is None
    assert to_properties(replace(step, planned=(), filters={}))["planned"] is None
    assert to_properties(replace(citation, start=0, built=""))["start"] == 0
    assert to_properties(replace(citation, start=0, built=""))["built"] is None
    assert to_properties(ENTITY, "Provisional") == {"uid": ENTITY.uid, "name": "Ada", "type": "", "description": ""}


def test_a_sub_query_is_stored_with_what_it_found() -> None:
    found = Retrieved(subquery=Subquery(text="t", targets=("p",)))
    assert to_properties(found.subquery) == {"text": "t", "concern": None, "strategy": "global"}


def test_every_reference_names_fields_of_the_record() -> None:
    for of_type in RECORD_TYPES.values():
        names = {field.name for field in of_type.archived}
        wanted = {name for reference in of_type.references for _, fields in reference for name in fields}
        assert wanted <= names, of_type.name
        assert {name for reference in of_type.references for name, _ in reference} <= RECORD_TYPES.keys()

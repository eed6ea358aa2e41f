"""Archives with what systems have built: labels, types, uids and properties that an import refuses, by line."""

from pathlib import Path
from typing import Any

import pytest
from test_archive_files import ADA, BOUNDS, CHUNK, CORPUS, HEADER, VECTOR, assert_matches, lines, packed, records

from hgmem.corpus.archive.field_types import pack
from hgmem.corpus.archive.files import Reader, opened
from hgmem.corpus.archive.records import MOST_NAMES, MOST_PROPERTIES
from hgmem.errors import DocumentError
from hgmem.graph.schema import OURS, TYPES
from hgmem.text.identity import build_uid, built_uid, unit_uid
from hgmem.values.built import OwnNames

SYSTEM = "some"
UNIT = unit_uid(CORPUS, SYSTEM, stage="gists", key="u")
SPEC = OwnNames(kinds=frozenset(("Gist",)), relationships=frozenset(("SUMS_UP",)))


def row(label: str = "Gist", key: str = "k") -> dict[str, Any]:
    """Return a built row with the uid that follows from label and key."""
    said = {"uid": built_uid(CORPUS, SYSTEM, kind=label, key=key), "system": SYSTEM, "label": label, "key": key}
    return {"kind": "Built", **said, "unit": UNIT, "document": "", "text": "Ada.", "own_properties": {}}


def relationship(type_: str = "SUMS_UP") -> dict[str, Any]:
    ends = {"source": row()["uid"], "target": CHUNK}
    return {"kind": "RELATIONSHIP", "system": SYSTEM, "type": type_, **ends, "unit": UNIT, "own_properties": {}}


def builds(**changed: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the records of a build, on lines 7 to 12; `changed` replaces fields of a kind."""
    build = {"uid": build_uid(CORPUS, SYSTEM), "system": SYSTEM, "status": "ready", "settings": "{}", "model": "none"}
    unit = {"uid": UNIT, "system": SYSTEM, "stage": "gists", "key": "u", "status": "done", "attempts": 1}
    said = [
        {"kind": "Build", **build, "created_at": "2026-01-02T03:04:05Z"},
        {"kind": "Unit", **unit, "output": "{}"},
        {**row(), "own_properties": {"words": ["a"], "weight": 0.5}, "vector": pack([0.0, 0.5, 1.0])},
        {"kind": "RESTS_ON", "source": row()["uid"], "target": CHUNK},
        {"kind": "EXTENDS", "system": SYSTEM, "source": UNIT, "target": row()["uid"], "vector": True},
        {**relationship(), "own_properties": {"place": 1}},
    ]
    return [
        {name: value for name, value in {**each, **changed.get(each["kind"], {})}.items() if value != ...}
        for each in said
    ]


def whole(*more: dict[str, Any]) -> list[dict[str, Any]]:
    """Return an archive without its last line. `more` begins on line 7."""
    return [HEADER, *records()[1:6], *more]


def read(path: Path, said: list[dict[str, Any]], *, installed: OwnNames | None = None) -> Reader:
    path.write_bytes(packed(lines(said)))
    with opened(path) as raw:
        reader = Reader(raw, bounds=BOUNDS, schema_version=1, installed=lambda _: installed)
        assert len(list(reader.lines())) == len(said) + 1
    return reader


def refusal(path: Path, said: list[dict[str, Any]], *, installed: OwnNames | None = None) -> str:
    with pytest.raises(DocumentError) as raised:
        read(path, said, installed=installed)
    return str(raised.value)


def test_rows_of_systems_that_are_not_installed_are_read_and_counted(tmp_path: Path) -> None:
    reader = read(tmp_path / "some", whole(*builds(), row(key="other")))
    assert reader.records.own_names.kept == {SYSTEM: 2}
    reader = read(tmp_path / "some", whole(*builds()), installed=SPEC)
    assert not +reader.records.own_names.kept


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"Build": {"uid": "0" * 32}}, "line 7: build '0+' does not belong to corpus"),
        ({"Build": {"settings": "[]"}}, "line 7: field 'settings': expected object"),
        ({"Build": {"run": "r"}}, "line 7: unknown field 'run'"),
        ({"Unit": {"uid": "0" * 32}}, "line 8: unit '0+' does not belong to corpus"),
        ({"Unit": {"output": "{"}}, "line 8: field 'output': expected JSON"),
        ({"Built": {"uid": ADA}}, f"line 9: built '{ADA}' does not belong to corpus"),
        ({"Built": {"label": "Gist`) DETACH DELETE n //"}}, "line 9: field 'label': expected label or type of at most"),
        ({"Built": {"label": "G" * 41}}, "line 9: field 'label': expected label or type of at most 40 letters"),
        ({"Built": {"label": ""}}, "line 9: field 'label'"),
        ({"Built": {"label": "Gist\n"}}, "line 9: field 'label'"),
        ({"Built": {"unit": "0" * 32}}, f"line 9: refers to Unit '{SYSTEM}/0+', which no earlier line defines"),
        ({"Built": {"unit": ADA}}, "line 9: refers to Unit"),
        ({"Built": {"layer_key": "x"}}, "line 9: unknown field 'layer_key'"),
        ({"Built": {"own_properties": {"corpus": "other"}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_properties": {"learnt": True}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_properties": {"a b": 1}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_properties": {"a": {"b": 1}}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_properties": {"a": [1, "b"]}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_properties": {"a": [[1]]}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_properties": {"a": None}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_properties": {"a": 2**63}}}, "line 9: field 'own_properties': expected properties"),
        ({"Built": {"own_embedding": pack([1.0])}}, "line 9: field 'own_embedding': expected 2 dimensions, got 1"),
        ({"Built": {"vector": ""}}, "line 9: field 'vector': the vector is empty or not finite"),
        ({"Built": {"vector": "%"}}, "line 9: field 'vector': expected base64"),
        ({"RESTS_ON": {"target": ADA}}, "line 10: refers to Chunk"),
        ({"RESTS_ON": {"source": CHUNK}}, "line 10: refers to Built"),
        ({"EXTENDS": {"target": CHUNK}}, "line 11: refers to Built"),
        ({"EXTENDS": {"system": "other"}}, "line 11: refers to Unit 'other/"),
        ({"RELATIONSHIP": {"source": CHUNK}}, "line 12: refers to Built"),
        ({"RELATIONSHIP": {"source": ADA}}, "line 12: refers to Built"),
        ({"RELATIONSHIP": {"system": "other"}}, "line 12: refers to Built 'other/"),
        ({"RELATIONSHIP": {"target": "0" * 32}}, "line 12: refers to Built"),
        ({"RELATIONSHIP": {"unit": "0" * 32}}, "line 12: refers to Unit"),
        ({"RELATIONSHIP": {"type": "A]->(x) DELETE x //"}}, "line 12: field 'type': expected label or type"),
        ({"RELATIONSHIP": {"type": "RESTS_ON"}}, "line 12: hgmem uses the relationship type 'RESTS_ON' itself"),
        ({"RELATIONSHIP": {"own_properties": {"unit": "x"}}}, "line 12: field 'own_properties': expected properties"),
        ({"RELATIONSHIP": {"own_properties": {"a": [1]}}}, "line 12: field 'own_properties': expected properties"),
    ],
)
def test_what_no_build_writes_is_refused_by_line(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    assert_matches(said, refusal(tmp_path / "hostile", whole(*builds(**changed))))


@pytest.mark.parametrize("label", sorted(OURS - TYPES))
def test_a_label_of_ours_is_refused(tmp_path: Path, label: str) -> None:
    said = refusal(tmp_path / "ours", whole(*builds()[:2], row(label)))
    assert_matches(f"line 9: hgmem uses the label '{label}' itself", said)


@pytest.mark.parametrize("type_", sorted(TYPES))
def test_a_relationship_type_of_ours_is_refused(tmp_path: Path, type_: str) -> None:
    said = refusal(tmp_path / "ours", whole(*builds()[:3], relationship(type_)))
    assert_matches(f"line 10: hgmem uses the relationship type '{type_}' itself", said)


def test_an_installed_system_has_only_the_names_of_its_spec(tmp_path: Path) -> None:
    said = refusal(tmp_path / "some", whole(*builds()[:2], row("Other")), installed=SPEC)
    assert_matches("line 9: system 'some' has no label 'Other': install the version of its package that wrote", said)
    said = refusal(tmp_path / "some", whole(*builds()[:3], relationship("OTHER")), installed=SPEC)
    assert_matches("line 10: system 'some' has no relationship type 'OTHER'", said)


def test_there_is_a_limit_for_names_that_no_installed_system_has(tmp_path: Path) -> None:
    names = [f"L{chr(65 + number // 26)}{chr(65 + number % 26)}" for number in range(MOST_NAMES)]
    most = [row(name) for name in names[:-1]]
    read(tmp_path / "some", whole(*builds()[:3], *most))
    said = refusal(tmp_path / "some", whole(*builds()[:3], *most, relationship()))
    assert_matches(f"line {9 + MOST_NAMES}: systems that are not installed have more than 50 labels and types", said)


def test_there_is_a_limit_for_names_of_properties(tmp_path: Path) -> None:
    rows = [row(key=f"k{at}") | {"own_properties": {f"p{at}_{n}": n for n in range(100)}} for at in range(11)]
    said = refusal(tmp_path / "some", whole(*builds()[:2], *rows))
    assert_matches(f"line 19: systems have more than {MOST_PROPERTIES:,} different properties", said)


def test_a_vector_of_a_text_is_refused_where_the_header_says_that_there_are_none(tmp_path: Path) -> None:
    bare = [{name: value for name, value in each.items() if name != "embedding"} for each in whole(*builds())]
    bare[0] = {**bare[0], "embeddings": False}
    read(tmp_path / "bare", bare)
    bare[8] = {**bare[8], "own_embedding": VECTOR}
    assert_matches("line 9: the record has a vector", refusal(tmp_path / "bare", bare))

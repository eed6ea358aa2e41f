from pathlib import Path

import pytest

from hgmem.client import diagnosis as doctor
from hgmem.client.diagnosis import Check, diagnose
from hgmem.errors import GraphError, ModelError, UsageError
from hgmem.graph.database import Address
from hgmem.graph.schema import creating
from hgmem.local.java import Java
from hgmem.settings import Settings, load

URI = "bolt://127.0.0.1:7687"


class FakeDatabase:
    """A server with the whole schema."""

    version = "2026.09.0"
    edition = "community"

    def close(self) -> None:
        pass

    def explain(self, name: str) -> list[str]:
        return []


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with neither Java nor Maven nor Docker."""

    def no_java(settings: Settings) -> Java:
        raise UsageError("no Java")

    monkeypatch.setattr(doctor.java, "find", no_java)
    monkeypatch.setattr(doctor.java, "runtimes", lambda settings: iter(()))
    monkeypatch.setattr(doctor.java, "maven", lambda: None)
    monkeypatch.setattr(doctor.java, "cached_jars", lambda settings: None)
    monkeypatch.setattr(doctor.docker, "engine", lambda: None)
    monkeypatch.setattr(doctor.docker, "has_compose", lambda: True)
    monkeypatch.setattr(doctor, "find_database", lambda settings: FakeDatabase())
    monkeypatch.setattr(doctor, "show_indexes", lambda database: {})
    monkeypatch.setattr(doctor, "missing", lambda indexes: [])
    monkeypatch.setattr(doctor, "differing", lambda indexes: [])
    monkeypatch.setattr(doctor, "find_address", lambda settings: Address(uri=URI))
    return monkeypatch


def examined() -> dict[str, Check]:
    _, checks = diagnose(load(embedding_model="deterministic"))
    return {check.name: check for check in checks}


def failures() -> list[str]:
    return [name for name, check in examined().items() if check.failed]


@pytest.fixture
def alone(bare: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Such a machine without a server."""
    bare.setattr(doctor, "find_address", lambda settings: None)
    return bare


def with_java(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Java(home=Path("/java"), version=25, vectors=False)
    monkeypatch.setattr(doctor.java, "find", lambda settings: found)


@pytest.mark.usefixtures("alone")
def test_every_check_is_there_once_and_is_one_line() -> None:
    _, checks = diagnose(load(embedding_model="deterministic"))
    names = ["python", "java", "maven", "docker", "server", "schema", "model", "embedder", "reranker", "systems"]
    assert [check.name for check in checks] == names
    assert not any("\n" in check.line for check in checks)


def test_with_a_server_nothing_on_this_machine_is_required() -> None:
    assert failures() == []


@pytest.mark.usefixtures("alone")
def test_without_a_server_and_docker_java_and_maven_are() -> None:
    assert failures() == ["java", "maven", "server"]


def test_docker_stands_in_for_java_and_maven(alone: pytest.MonkeyPatch) -> None:
    alone.setattr(doctor.docker, "engine", lambda: "28.0")
    assert failures() == ["server"]


def test_docker_without_compose_stands_in_for_nothing(alone: pytest.MonkeyPatch) -> None:
    alone.setattr(doctor.docker, "engine", lambda: "28.0")
    alone.setattr(doctor.docker, "has_compose", lambda: False)
    assert failures() == ["java", "maven", "server"]


def test_cached_jars_stand_in_for_maven(alone: pytest.MonkeyPatch) -> None:
    with_java(alone)
    alone.setattr(doctor.java, "cached_jars", lambda settings: Path("/cache/lib"))
    assert failures() == ["server"]


def test_a_java_that_is_too_old_is_named(bare: pytest.MonkeyPatch) -> None:
    old = Java(home=Path("/java"), version=17, vectors=False)
    bare.setattr(doctor.java, "runtimes", lambda settings: iter((old,)))
    check = doctor.check_java(Settings(), required=True)
    assert check.line.startswith("missing java")
    assert "17, too old" in check.line
    assert "hgmem[embedded]" in check.line


def test_a_server_that_is_down_fails_with_its_own_message_and_the_schema_is_unknown(bare: pytest.MonkeyPatch) -> None:
    def down(settings: Settings) -> FakeDatabase:
        raise GraphError("'bolt://x' does not answer: start it")

    def never(database: object) -> dict[str, object]:
        raise AssertionError("asked a server that is down")

    bare.setattr(doctor, "find_database", down)
    bare.setattr(doctor, "show_indexes", never)
    checks = examined()
    assert "does not answer: start it" in checks["server"].line
    assert checks["server"].failed
    assert not checks["schema"].failed


def test_what_the_schema_lacks_is_named(bare: pytest.MonkeyPatch) -> None:
    assert examined()["schema"].line == "ok      schema    complete"
    bare.setattr(doctor, "missing", lambda indexes: ["entity_embedding"])
    assert len(creating()) > 1
    check = examined()["schema"]
    assert check.failed
    assert "entity_embedding" in check.line


def test_a_model_that_is_not_usable_fails_with_its_own_message() -> None:
    def broken() -> str:
        raise ModelError("no key: set OPENAI_API_KEY")

    check = doctor.attempted("model", broken)
    assert check.failed
    assert "set OPENAI_API_KEY" in check.line


def test_a_remedy_is_told_only_where_something_is_missing() -> None:
    assert "do this" not in Check(name="x", ok=True, detail="there", remedy="do this").line
    assert "do this" in Check(name="x", ok=False, detail="gone", remedy="do this", required=False).line

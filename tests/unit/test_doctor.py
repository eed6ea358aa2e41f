from collections.abc import Sequence
from pathlib import Path

import pytest

from hgmem.errors import GraphError, ModelError, UsageError
from hgmem.local import doctor
from hgmem.local.doctor import Check, Probes, examine
from hgmem.local.java import Java
from hgmem.settings import Settings

URI = "bolt://127.0.0.1:7687"


def fine_server() -> tuple[str, str]:
    return "2026.09.0", "community"


def fine_schema() -> Sequence[str]:
    return ()


PROBES = Probes(
    server=fine_server,
    schema=fine_schema,
    model=lambda: "extractive",
    embedder=lambda: "MiniLM, 384",
    systems=lambda _: "naive",
)


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
    return monkeypatch


def failures(*, uri: str | None = URI, probes: Probes = PROBES) -> list[str]:
    return [check.name for check in examine(Settings(), uri=uri, probes=probes) if check.failed]


def with_java(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Java(home=Path("/java"), version=25, vectors=False)
    monkeypatch.setattr(doctor.java, "find", lambda settings: found)


def test_every_check_is_there_once_and_is_one_line() -> None:
    checks = examine(Settings(), uri=None, probes=PROBES)
    names = ["python", "java", "maven", "docker", "server", "schema", "model", "embedder", "systems"]
    assert [check.name for check in checks] == names
    assert not any("\n" in check.line for check in checks)


def test_with_a_server_nothing_on_this_machine_is_required() -> None:
    assert failures() == []


def test_without_a_server_and_docker_java_and_maven_are() -> None:
    assert failures(uri=None) == ["java", "maven", "server"]


def test_docker_stands_in_for_java_and_maven(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(doctor.docker, "engine", lambda: "28.0")
    assert failures(uri=None) == ["server"]


def test_docker_without_compose_stands_in_for_nothing(bare: pytest.MonkeyPatch) -> None:
    bare.setattr(doctor.docker, "engine", lambda: "28.0")
    bare.setattr(doctor.docker, "has_compose", lambda: False)
    assert failures(uri=None) == ["java", "maven", "server"]


def test_cached_jars_stand_in_for_maven(bare: pytest.MonkeyPatch) -> None:
    with_java(bare)
    bare.setattr(doctor.java, "cached_jars", lambda settings: Path("/cache/lib"))
    assert failures(uri=None) == ["server"]


def test_a_java_that_is_too_old_is_named(bare: pytest.MonkeyPatch) -> None:
    old = Java(home=Path("/java"), version=17, vectors=False)
    bare.setattr(doctor.java, "runtimes", lambda settings: iter((old,)))
    check = doctor.check_java(Settings(), required=True)
    assert check.line.startswith("missing java")
    assert "17, too old" in check.line
    assert "hgmem[embedded]" in check.line


def test_a_server_that_is_down_fails_with_its_own_message_and_the_schema_is_unknown() -> None:
    def down() -> tuple[str, str]:
        raise GraphError("'bolt://x' does not answer: start it")

    def never() -> Sequence[str]:
        raise AssertionError("asked a server that is down")

    probes = Probes(server=down, schema=never, model=PROBES.model, embedder=PROBES.embedder, systems=PROBES.systems)
    checks = {check.name: check for check in examine(Settings(), uri=URI, probes=probes)}
    assert "does not answer: start it" in checks["server"].line
    assert checks["server"].failed
    assert not checks["schema"].failed


def test_what_the_schema_lacks_is_named() -> None:
    check = doctor.check_schema(lambda: ["entity_embedding"], reachable=True)
    assert check.failed
    assert "entity_embedding" in check.line


def test_a_model_that_is_not_usable_fails_with_its_own_message() -> None:
    def broken() -> str:
        raise ModelError("no key: set OPENAI_API_KEY")

    check = doctor.check_answer("model", broken)
    assert check.failed
    assert "set OPENAI_API_KEY" in check.line


def test_a_remedy_is_told_only_where_something_is_missing() -> None:
    assert "do this" not in Check(name="x", ok=True, detail="there", remedy="do this").line
    assert "do this" in Check(name="x", ok=False, detail="gone", remedy="do this", required=False).line

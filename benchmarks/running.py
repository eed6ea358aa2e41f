"""Servers and scripts of a run: each server has its own data directory, each script its own process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

from hgmem.local import Server, down, up
from hgmem.settings import load

HERE = Path(__file__).resolve().parent
QUESTIONS = HERE / "questions.txt"
LAST = 600  # characters of a failed script's last output


@contextmanager
def running(*, heap: str | None = None, pagecache: str | None = None) -> Iterator[tuple[Server, Path]]:
    """Run a new server and yield it with its data folder; stop it and delete the folder at the end."""
    with TemporaryDirectory(prefix="hgmem-bench.") as folder:
        data = Path(folder) / "neo4j"
        settings = load(data=data)
        server = up(settings, heap=heap, pagecache=pagecache)
        try:
            yield server, data
        finally:
            down(settings)


def access(server: Server) -> dict[str, Any]:
    """Return the connection arguments of a client."""
    return {"uri": server.uri, "username": server.username, "password": server.password}


def read_questions(path: Path = QUESTIONS) -> list[str]:
    """Return the questions of a file, one per line or JSON Lines. Default: those on the novel."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [json.loads(line)["question"] if line.startswith("{") else line for line in lines]


def place(server: Server, name: str) -> dict[str, str]:
    """Return a system's connection to the server, and its folder for files."""
    password = server.password.get_secret_value()
    return {"uri": server.uri, "username": server.username, "password": password, "folder": name}


def scripted(script: str, *arguments: str | Path) -> dict[str, Any]:
    """Run a script of this folder and return its JSON, plus `failed` if it missed a target.

    If it printed no JSON, return `lacking` with the reason.
    """
    command = [sys.executable, str(HERE / f"{script}.py"), *map(str, arguments)]
    with TemporaryFile("w+", encoding="utf-8") as out:  # an unread pipe would fill up
        with subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE, text=True, encoding="utf-8") as process:
            said: list[str] = []
            for heard in process.stderr or ():
                said.append(heard)
                print(f"          {script}: {heard}", end="", file=sys.stderr, flush=True)
        out.seek(0)
        printed = out.read()
    last = "".join(said).strip()[-LAST:]
    try:
        found: dict[str, Any] = json.loads(printed)
    except ValueError:
        return {"lacking": f"{script}.py ended with {process.returncode}: {last}"}
    return found | ({"failed": last.splitlines()[-1] if last else "yes"} if process.returncode else {})

"""Servers and scripts of a run: each server on a data directory of its own, each script in a process of its own."""

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
LAST = 600  # characters of what a script said before it failed


@contextmanager
def running(*, heap: str, pagecache: str) -> Iterator[tuple[Server, Path]]:
    """Run a server of its own, and yield it with the folder of its data; both go."""
    with TemporaryDirectory(prefix="hgmem-bench.") as folder:
        data = Path(folder) / "neo4j"
        settings = load(data=data)
        server = up(settings, heap=heap, pagecache=pagecache)
        try:
            yield server, data
        finally:
            down(settings)


def access(server: Server) -> dict[str, Any]:
    """Return how a client reaches the server."""
    return {"uri": server.uri, "username": server.username, "password": server.password}


def place(server: Server, name: str) -> dict[str, str]:
    """Return how a system reaches the server, and where it may write."""
    password = server.password.get_secret_value()
    return {"uri": server.uri, "username": server.username, "password": password, "folder": name}


def scripted(script: str, *arguments: str | Path) -> dict[str, Any]:
    """Return what a script of this folder prints as JSON; `failed`: it missed a mark; `lacking`: it printed nothing."""
    command = [sys.executable, str(HERE / f"{script}.py"), *map(str, arguments)]
    with TemporaryFile("w+", encoding="utf-8") as out:  # a pipe that nobody reads yet would fill
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

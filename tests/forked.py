"""Python in processes of their own that start at once: forks of one that has imported hgmem's command line already.

They differ from a new interpreter in nothing that a command sees: arguments, environment, working directory, both
outputs, exit code, and the packages of `PYTHONPATH`. What is about signals, terminals or imports starts a real one.
"""

import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

PRELOADED = ("hgmem.cli", "hgmem.client", "hgmem.evaluation", "neo4j", "numpy", "openai", "rich.console", "rich.table")
SECONDS = 120  # after which a command is ended


def run_hgmem(*arguments: str | Path, env: Mapping[str, str], cwd: str | Path | None = None) -> CompletedProcess[str]:
    """Run `python -m hgmem` with these arguments."""
    return run_python("-m", "hgmem", *arguments, env=env, cwd=cwd)


def run_python(*words: str | Path, env: Mapping[str, str], cwd: str | Path | None = None) -> CompletedProcess[str]:
    """Run `python` with these words: `-m hgmem`, `-c` and code, or the path of a script, and their arguments."""
    with tempfile.TemporaryDirectory(prefix="hgmem-command.") as folder:
        wanted = {"words": [str(word) for word in words], "env": dict(env), "cwd": str(cwd or Path.cwd())}
        server = _server()
        assert server.stdin
        assert server.stdout
        server.stdin.write(json.dumps({**wanted, "folder": folder}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        out, err = (Path(folder, name).read_text(encoding="utf-8") for name in ("out", "err"))
    return CompletedProcess(wanted["words"], code, out, err)


@cache
def _server() -> "subprocess.Popen[str]":
    """Start the process that is forked; it ends with this one."""
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, __file__], stdin=pipe, stdout=pipe, text=True)


def _serve() -> None:
    """Fork a process for each line that is read, and write its exit code."""
    for module in PRELOADED:
        importlib.import_module(module)
    for line in sys.stdin:
        wanted = json.loads(line)
        if pid := os.fork():
            sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])}\n")
            sys.stdout.flush()
        else:
            os._exit(_child(**wanted))


def _child(*, words: list[str], env: dict[str, str], cwd: str, folder: str) -> int:
    """Become the process that is wanted, and return its exit code."""
    signal.alarm(SECONDS)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    for number, name in ((0, os.devnull), (1, f"{folder}/out"), (2, f"{folder}/err")):
        opened = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(opened, number)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    first = [str(Path(words[0]).parent)] if words[0].endswith(".py") else [cwd]
    sys.path[0:1] = [*first, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep))]
    try:
        _run(words)
        code: Any = 0
    except SystemExit as end:
        code = end.code
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


def _run(words: list[str]) -> None:
    if words[:2] == ["-m", "hgmem"]:
        from hgmem.cli import main

        sys.argv = ["hgmem", *words[2:]]
        main()
    elif words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        exec(compile(words[1], "<string>", "exec"), {"__name__": "__main__"})
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    _serve()

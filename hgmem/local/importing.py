"""Fill a new data directory with Neo4j's importer. The directory appears complete, or not at all."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hgmem.errors import GraphError, UsageError
from hgmem.local import java, renewed
from hgmem.local.machine import Sizes
from hgmem.local.process import (
    ADMIN,
    ENVIRONMENT,
    OPTIONS,
    JavaEngine,
    arguments_file,
    meaningful,
    pid_file,
    quoted,
    set_password,
)
from hgmem.local.state import Home, Report, locked, write_secret
from hgmem.settings import Settings

LOCK = "load.lock"
OFF_HEAP = "--max-off-heap-memory=50%"  # of the free memory; the importer would take 90


@contextmanager
def new_home(settings: Settings, data: Path, *, report: Report) -> Iterator[Home]:
    """Yield a home beside the data directory, which becomes the data directory at the end of the block.

    If the block fails, the home is deleted. One that a killed process left is deleted before. The block has to stop the
    server that it starts. Raises `UsageError` if the data directory is not new or empty.
    """
    target = Home.at(data)
    draft = Home(target.path.with_name(f".{target.path.name}.loading"))
    _check_new(target)
    try:
        draft.path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"data directory {str(data)!r}: {error.strerror}; choose another") from error
    with locked(draft.path / LOCK, waiting=lambda: report(f"waiting for another load into {target.path}")):
        _check_new(target)
        JavaEngine(settings).stop(draft)
        _clear(draft.path)
        draft.lock.touch(mode=0o600)  # marks the directory as ours
        draft.claim()
        try:
            yield draft
            os.replace(draft.path, target.path)
            (target.path / LOCK).unlink()
        except BaseException:
            shutil.rmtree(draft.path, ignore_errors=True)
            raise


def run_importer(settings: Settings, home: Home, arguments: Sequence[str], *, sizes: Sizes, report: Report) -> None:
    """Import files into a new home, and write the state and the password that its first start needs.

    Raises `GraphError` with what the importer complained about.
    """
    runtime = java.find(settings)
    lib = java.fetch_jars(settings, java=runtime, report=report)
    (home.path / "conf" / "neo4j.conf").touch()
    record = renewed(None, JavaEngine.kind)
    home.save(record)
    set_password(home, record.password, runtime=runtime, lib=lib)
    command = [f"-Xmx{sizes.heap}", *OPTIONS, "-cp", f"{lib}/*", ADMIN, "database", "import", "full", "neo4j", OFF_HEAP]
    write_secret(arguments_file(home), quoted([*command, *arguments]))
    log = home.path / "logs" / "import.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(runtime.executable), f"@{arguments_file(home)}"],
            env={**ENVIRONMENT, "NEO4J_HOME": str(home.path), "NEO4J_CONF": str(home.path / "conf")},
            cwd=home.path,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    pid_file(home).write_text(str(process.pid))  # so that the next load stops it if this one is killed
    try:
        failed = process.wait()
    except BaseException:
        process.kill()
        process.wait()
        raise
    if failed:
        why = meaningful(log.read_text(errors="replace").splitlines())
        raise GraphError(f"Neo4j's importer failed: {why[:300]}; nothing was loaded")


def _check_new(home: Home) -> None:
    if home.path.exists() and (not home.path.is_dir() or any(home.path.iterdir())):
        raise UsageError(f"{str(home.path)!r} exists: a load fills a new home, so name another data directory")


def _clear(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name != LOCK:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

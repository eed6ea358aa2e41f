"""One run at a time works on a stage folder: a lock file with a heartbeat."""

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hgmem.errors import ConflictError, HGMemError
from hgmem.graph.database import Row
from hgmem.settings import Settings
from hgmem.stages.files import Folder

LOCK = "lock.json"


@contextmanager
def held(folder: Folder, settings: Settings) -> Iterator[None]:
    """Hold the folder's lock for the block. Raises `ConflictError` if another run holds it.

    A lock counts until it is silent for `claim_timeout` seconds, or its process is seen to be gone. A run that lost it
    does no harm: parts have names by what they hold.
    """
    run = secrets.token_hex(8)
    if not _taken(folder, settings, run):
        holder = folder.read_json(LOCK) or {}
        raise ConflictError(
            f"stage folder {folder.address!r} is in use by process {holder.get('pid')} on {holder.get('host')!r}: wait "
            f"until that run ends; if it crashed, retry {settings.claim_timeout:g} s after its last heartbeat"
        )
    stopped = threading.Event()

    def beat() -> None:
        while not stopped.wait(settings.heartbeat):
            try:
                if (folder.read_json(LOCK) or {}).get("run") != run:
                    return
                folder.write_json(LOCK, _lock(run))
            except HGMemError:
                continue

    thread = threading.Thread(target=beat, name="hgmem-stages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join(timeout=1)
        if (folder.read_json(LOCK) or {}).get("run") == run:
            folder.remove(LOCK)


def _taken(folder: Folder, settings: Settings, run: str) -> bool:
    """Return whether this run has the lock now."""
    if folder.write_json(LOCK, _lock(run), new=True):
        return True
    holder = folder.read_json(LOCK)
    if holder is not None and not _is_gone(holder, settings.claim_timeout):
        return False
    folder.remove(LOCK)
    return folder.write_json(LOCK, _lock(run), new=True)


def _lock(run: str) -> Row:
    return {"run": run, "host": socket.gethostname(), "pid": os.getpid(), "beat": time.time()}


def _is_gone(holder: Row, timeout: float) -> bool:
    """Return whether a lock's run has been silent for too long, or was a process of this machine that has ended."""
    if time.time() - float(holder.get("beat", 0)) > timeout:
        return True
    if os.name != "posix" or holder.get("host") != socket.gethostname():
        return False
    try:
        os.kill(int(holder["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError):
        return False
    return False

"""What is kept about a local server: its data directory, its record in `server.json`, the lock over both."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import SecretStr

from hgmem.errors import ConflictError, UsageError
from hgmem.graph.server import link
from hgmem.local.machine import HOST

EngineKind: TypeAlias = Literal["maven", "docker"]
Report: TypeAlias = Callable[[str], None]

USERNAME = "neo4j"
DYING_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running local server and its address. `pid` is None if Docker runs it."""

    uri: str
    http: str
    username: str
    password: SecretStr
    pid: int | None
    kind: EngineKind
    data: Path
    version: str

    @property
    def browser(self) -> str:
        """The address that opens Neo4j Browser with server and user filled in, but not the password."""
        return link(f"{self.http}/browser/", uri=self.uri, username=self.username)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What `server.json` holds: all that a later process needs to reach the server or start it again."""

    password: str = field(repr=False)
    bolt: int
    http: int
    kind: EngineKind
    version: str

    @property
    def uri(self) -> str:
        """The address of the driver."""
        return f"bolt://{HOST}:{self.bolt}"

    def server(self, home: "Home", *, pid: int | None) -> Server:
        """Return the server that runs with this record."""
        return Server(
            uri=self.uri,
            http=f"http://{HOST}:{self.http}",
            username=USERNAME,
            password=SecretStr(self.password),
            pid=pid,
            kind=self.kind,
            data=home.path,
            version=self.version,
        )


@dataclass(frozen=True, slots=True)
class Home:
    """A data directory: Neo4j's home with `conf`, `data`, `logs`, and our own files beside them."""

    path: Path

    @classmethod
    def at(cls, path: Path) -> "Home":
        """Return the home at `path`, which always reads the same however it was written."""
        return cls(path.expanduser().resolve())

    @property
    def record(self) -> Path:
        """The file of the record: readable by its owner alone, as it holds the password."""
        return self.path / "server.json"

    @property
    def lock(self) -> Path:
        """The file that whoever starts or stops the server holds."""
        return self.path / "up.lock"

    @property
    def log(self) -> Path:
        """What the server says on its way up and down."""
        return self.path / "logs" / "server.log"

    @property
    def store(self) -> Path:
        """What Neo4j keeps."""
        return self.path / "data"

    def has_databases(self) -> bool:
        """Whether a server has started here before."""
        # Not Path.exists, which raises where a container's user owns the store.
        return os.path.exists(self.store / "databases")

    def claim(self) -> None:
        """Take the directory for hgmem alone, or raise if it contains other files."""
        try:
            known = self.record.exists() or self.lock.exists()
            if self.path.is_dir() and any(self.path.iterdir()) and not known:
                raise UsageError(f"{str(self.path)!r} holds other files: name a new or empty data directory")
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.lock.touch(mode=0o600)  # before all else, as it marks the directory as ours
            self.path.chmod(0o700)
            for name in ("conf", "run", "logs"):
                (self.path / name).mkdir(exist_ok=True)
        except OSError as error:
            why = error.strerror
            raise UsageError(f"data directory {str(self.path)!r}: {why}; choose another") from error

    def load(self) -> Record | None:
        """Return the record, or None where there is none that can be read as one."""
        try:
            return Record(**json.loads(self.record.read_text()))
        except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return None
        except OSError as error:
            raise UsageError(f"{str(self.record)!r}: {error.strerror}; it belongs to another user") from error

    def save(self, record: Record) -> None:
        """Write the record, whole or not at all."""
        write_secret(self.record, json.dumps(asdict(record)))

    @contextmanager
    def locked(self, report: Report) -> Iterator[None]:
        """Hold the directory against every other `up` and `down`, waiting for the one that holds it now."""
        with locked(self.lock, waiting=lambda: report(f"waiting for another start or stop in {self.path}")):
            yield

    def check_unused(self) -> None:
        """Raise `ConflictError` where a process that we know nothing of holds the store.

        A server that was killed holds it for some seconds more, until the system has taken its memory back.
        """
        given_up = time.monotonic() + DYING_SECONDS
        while _is_locked(self.store / "databases" / "store_lock"):
            if time.monotonic() < given_up:
                time.sleep(0.1)
                continue
            name = str(self.path)
            raise ConflictError(f"data directory {name!r} is in use by another Neo4j: stop that, or choose another")


def write_secret(path: Path, text: str) -> None:
    """Write a file that only its owner ever could read, whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def locked(path: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file at `path`, calling `waiting` while another process holds it."""
    import fcntl  # absent on Windows, where this module must still import

    try:
        handle = path.open("a")
    except OSError as error:
        raise UsageError(f"lock {str(path)!r}: {error.strerror}; name a directory of your own") from error
    with handle as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_locked(path: Path) -> bool:
    import fcntl

    try:
        file = path.open("r+b")
    except OSError:  # none there, or a container's: the start itself will tell
        return False
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # as Java locks, so the two see each other
        except OSError:
            return True
    return False

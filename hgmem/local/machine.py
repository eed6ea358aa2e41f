"""What this machine offers a server: free ports and memory."""

import re
import socket
from dataclasses import dataclass
from pathlib import Path

import psutil

from hgmem.errors import UsageError

HOST = "127.0.0.1"
GIB = 1 << 30
UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
SMALLEST_HEAP = 256 * UNITS["m"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The memory that a server may use, as Java and Neo4j spell it: `2g`, `512m`."""

    heap: str
    pagecache: str


def sizes(*, heap: str | None, pagecache: str | None) -> Sizes:
    """Return what was asked for, else a quarter of the memory but at least 1 GB, and 512 MB of page cache."""
    if heap is not None and in_bytes(heap, name="heap") < SMALLEST_HEAP:
        raise UsageError(f"heap {heap!r} is too small for Neo4j: give it 256m or more")
    if pagecache is not None:
        in_bytes(pagecache, name="pagecache")
    usual = f"{max(GIB, memory() // 4) // UNITS['m']}m"
    return Sizes(heap=heap or usual, pagecache=pagecache or "512m")


def in_bytes(size: str, *, name: str) -> int:
    """Return the bytes that `size` stands for. Errors call it `name`."""
    match = re.fullmatch(r"([1-9][0-9]*)([kmg])", size.lower())
    if match is None:
        raise UsageError(f"{name} {size!r} is not a size: write a number with k, m or g, such as 512m or 2g")
    return int(match[1]) * UNITS[match[2]]


def memory(limit: Path = Path("/sys/fs/cgroup/memory.max")) -> int:
    """Return the bytes of memory that this process may count on: a container's limit, else the machine's."""
    physical = psutil.virtual_memory().total
    try:
        return min(physical, int(limit.read_text()))
    except (OSError, ValueError):  # no such file outside Linux, and "max" where nothing is limited
        return physical


def port(*wanted: int | None, taken: int | None = None) -> int:
    """Return the first free port of those wanted, else one that the system chooses, but never `taken`."""
    for number in wanted:
        if number and number != taken and is_free(number):
            return number
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        chosen = int(probe.getsockname()[1])
    return chosen if chosen != taken else port(taken=taken)


def is_free(number: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        # As servers do: connections of the last server that still linger don't count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, number))
        except OSError:
            return False
    return True

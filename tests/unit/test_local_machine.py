import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hgmem.errors import UsageError
from hgmem.local import machine
from hgmem.local.machine import HOST, in_bytes, is_free, memory, port, sizes


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_port_that_somebody_listens_on_is_not_free(taken: int) -> None:
    assert not is_free(taken)


def test_the_first_free_port_of_those_wanted_is_taken(taken: int) -> None:
    free = port()
    assert port(None, taken, free) == free


def test_where_all_wanted_ports_are_taken_the_system_chooses(taken: int) -> None:
    chosen = port(taken)
    assert chosen != taken
    assert is_free(chosen)


def test_two_uses_never_share_a_port() -> None:
    free = port()
    assert port(free, taken=free) != free


@pytest.mark.parametrize(("gigabytes", "heap"), [(2, "1024m"), (4, "1024m"), (24, "6144m")])
def test_the_usual_heap_is_a_quarter_of_the_memory_but_at_least_a_gigabyte(
    monkeypatch: pytest.MonkeyPatch, gigabytes: int, heap: str
) -> None:
    monkeypatch.setattr(machine, "memory", lambda: gigabytes * machine.GIB)
    assert sizes(heap=None, pagecache=None) == machine.Sizes(heap=heap, pagecache="512m")


def test_a_container_has_the_memory_of_its_limit(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text(f"{1 << 20}\n")
    assert memory(limit) == 1 << 20


def test_without_a_limit_the_memory_is_the_machines(tmp_path: Path) -> None:
    limit = tmp_path / "memory.max"
    limit.write_text("max\n")
    assert memory(limit) == memory(tmp_path / "absent") > 1 << 20


@pytest.mark.parametrize("size", ["", "2", "0g", "-1g", "2gb", "2 g", "1.5g", "g", "2g -XX:+Evil"])
def test_what_is_no_size_is_refused_by_name(size: str) -> None:
    with pytest.raises(UsageError, match="pagecache"):
        sizes(heap=None, pagecache=size)


def test_a_heap_that_no_server_can_live_in_is_refused() -> None:
    with pytest.raises(UsageError, match="256m or more"):
        sizes(heap="100m", pagecache=None)


def test_sizes_are_read_as_java_reads_them() -> None:
    assert [in_bytes(size, name="heap") for size in ("1k", "2M", "3g")] == [1 << 10, 2 << 20, 3 << 30]

"""A Ray cluster: one that answers at an address, or one that is started on this machine."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError

from hgmem.errors import HGMemError, UsageError
from hgmem.settings import quiet_ray

LOCAL, AUTO = "local", "auto"
STORE = 100_000_000  # bytes of a local cluster's object store: actors are told names, not contents
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # HTTP/2's, with empty settings
_HEAD, _SETTINGS = 9, 4  # bytes of a frame's head, and the type of the one that a server sends first


@contextmanager
def connected(address: str, *, seconds: float) -> Iterator[None]:
    """Connect to the cluster at an address for the block, or use the one that the caller is connected to.

    Raises `UsageError` if nobody answers within so many seconds.
    """
    _quiet_data()
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    encrypted = quiet_ray()
    if address == LOCAL:
        start = partial(ray.init, address=LOCAL, include_dashboard=False, object_store_memory=STORE, **quiet)
    else:
        _check(address, seconds, probing=not encrypted)
        start = partial(ray.init, address=address, **quiet)
    try:
        _started(address, start)
        yield
    except RayError as error:
        raise _told(address, error) from error
    finally:
        ray.shutdown()


def capacity() -> tuple[float, float]:
    """Return how many CPUs and GPUs the cluster has."""
    resources: Any = ray.cluster_resources
    found: dict[str, float] = resources()
    return found.get("CPU", 0.0), found.get("GPU", 0.0)


def _started(address: str, start: Callable[[], Any]) -> None:
    try:
        start()
    except (Exception, SystemExit) as error:  # of many classes
        raise _told(address, error) from error


def _quiet_data() -> None:
    context: Any = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = 4 * 1024 * 1024


def _check(address: str, seconds: float, *, probing: bool) -> None:
    """Raise `UsageError` if no server of Ray answers: Ray itself would try for minutes, and end this process."""
    if address == AUTO:
        return
    host, _, port = address.rpartition(":")
    if "://" in address or not host or not port.isdecimal():
        raise UsageError(
            f"invalid --ray {address!r}: use local, auto, or HOST:PORT of the cluster's head (port 6379 by default); "
            "from outside of the cluster, submit the command as a job"
        )
    try:
        with socket.create_connection((host, int(port)), timeout=seconds) as connection:
            connection.settimeout(seconds)
            if not probing:
                return
            connection.sendall(_PREFACE)
            head = connection.recv(_HEAD, socket.MSG_WAITALL)
    except (OSError, OverflowError) as error:
        raise UsageError(f"no Ray cluster answers at {address!r} ({error}): start one, or use --ray local") from error
    if len(head) < _HEAD or head[3] != _SETTINGS:
        raise UsageError(f"the server at {address!r} is no Ray cluster: use the address of its head (port 6379)")


def _told(address: str, error: BaseException) -> HGMemError:
    reason = " ".join(str(error).split())
    cause = f"{error.__cause__ or ''} {error.__context__ or ''}"
    if "InvalidAuthToken" in cause:
        reason = "it wants its token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
    return UsageError(f"Ray at {address!r} failed: {reason}")

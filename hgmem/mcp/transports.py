"""How a server is reached: over the standard streams of its process, or by HTTP."""

import logging
import socket
import threading
from collections.abc import Sequence
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from hgmem.client.serving import KnownKeys
from hgmem.errors import UsageError
from hgmem.mcp.callers import Keyed
from hgmem.mcp.server import Server

PATH = "/mcp"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_GRACE = 3  # seconds that open calls get when the server is stopped


def serve_stdio(server: Server) -> None:
    """Serve one client over stdin and stdout until it closes them.

    The thread that waits for a line of stdin cannot be interrupted. It belongs to a daemon, so that Ctrl-C ends the
    process though the client stays.
    """
    failed: list[BaseException] = []

    def work() -> None:
        try:
            server.run("stdio")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, name="hgmem-mcp", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def listening(host: str, port: int, *, keyed: bool) -> socket.socket:
    """Return a socket that listens, without keys on this machine alone.

    Raises `UsageError` for another host without keys, or a port in use.
    """
    if host not in LOOPBACK and not keyed:
        raise UsageError(f"host {host!r} is not this machine, and the server asks nobody for a key: add --keys")
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        why = str(getattr(error, "strerror", None) or error).partition(" (while ")[0]
        raise UsageError(f"cannot listen on port {port} of {host!r} ({why}): pass another --port") from error


def serve_http(
    server: Server, opened: socket.socket, *, known: KnownKeys | None = None, hosts: Sequence[str] = ()
) -> None:
    """Serve clients by streamable HTTP at the path /mcp until the process is told to end.

    With `known` keys, whoever calls needs one. `hosts` are names that callers may use for this host beside those of
    this machine.
    """
    named = [name for host in ("127.0.0.1", "localhost", "[::1]", *hosts) for name in (host, f"{host}:*")]
    own = [f"{scheme}://{name}" for scheme in ("http", "https") for name in named]
    security = TransportSecuritySettings(allowed_hosts=named, allowed_origins=own)
    app: Any = server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
    if known is not None:
        app = Keyed(app, known, server.log)
    config = uvicorn.Config(app, log_config=None, log_level=logging.WARNING, timeout_graceful_shutdown=_GRACE)
    uvicorn.Server(config).run(sockets=[opened])

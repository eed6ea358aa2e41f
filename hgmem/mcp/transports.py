"""How a server is reached: over the standard streams of its process, or by HTTP from this machine."""

import logging
import socket
import threading

import uvicorn

from hgmem.errors import UsageError
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


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens on this machine alone. Raises `UsageError` for another host, or a port in use."""
    if host not in LOOPBACK:
        raise UsageError(
            f"host {host!r} is not this machine, and the server asks nobody for a key: use 127.0.0.1, or reach it "
            "through a tunnel or a proxy that authenticates"
        )
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen on port {port} of {host}: {error}: choose another with --port") from error


def serve_http(server: Server, opened: socket.socket) -> None:
    """Serve clients by streamable HTTP at the path /mcp until the process is told to end."""
    app = server.streamable_http_app(streamable_http_path=PATH, host="127.0.0.1")
    config = uvicorn.Config(app, log_config=None, log_level=logging.WARNING, timeout_graceful_shutdown=_GRACE)
    uvicorn.Server(config).run(sockets=[opened])

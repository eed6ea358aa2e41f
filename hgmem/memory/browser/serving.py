"""A small loopback HTTP server for Neo4j Browser, which loads guides and styles by URL."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from hgmem.errors import UsageError

HOST = "localhost"  # the host name that Browser's whitelist contains
_BINDING = "127.0.0.1"
_USUAL = 80  # the default port, which clients omit


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A text to serve and its media type."""

    content: str
    type: str


@contextmanager
def serving(texts: Callable[[str], Mapping[str, Text]], *, origins: frozenset[str], port: int = 0) -> Iterator[str]:
    """Serve texts until the block ends, and yield their base URL. `texts` is called with that URL.

    Only pages of `origins` can read them. Raises `UsageError` if the port is in use.
    """
    try:
        server = ThreadingHTTPServer((_BINDING, port), BaseHTTPRequestHandler)
    except OSError as error:
        raise UsageError(f"port {port} cannot be used ({error.strerror}): choose another with --port") from error
    address = f"http://{HOST}:{server.server_address[1]}"
    server.RequestHandlerClass = _handler(texts(address), origins=origins, port=int(server.server_address[1]))
    thread = Thread(target=server.serve_forever, name="hgmem-browser", daemon=True)
    thread.start()
    try:
        yield address
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(texts: Mapping[str, Text], *, origins: frozenset[str], port: int) -> type[BaseHTTPRequestHandler]:
    hosts = {f"{name}:{port}" for name in (HOST, _BINDING)} | ({HOST, _BINDING} if port == _USUAL else set())

    class Handler(BaseHTTPRequestHandler):
        """Serves exactly these texts, and only under this machine's expected host name."""

        def do_GET(self) -> None:
            found = texts.get(self.path.partition("?")[0].removeprefix("/"))
            if self.headers.get("Host") not in hosts or found is None:
                self.send_error(404)
                return
            body = found.content.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{found.type}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_OPTIONS(self) -> None:
            self.send_response(204)
            self.send_header("Access-Control-Allow-Methods", "GET, OPTIONS")
            self.send_header("Access-Control-Allow-Headers", self.headers.get("Access-Control-Request-Headers", ""))
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def end_headers(self) -> None:
            """Allow Browser's pages to read the response, and no others."""
            origin = self.headers.get("Origin", "") if hasattr(self, "headers") else ""
            if origin in origins:
                self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Vary", "Origin")
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

        def log_message(self, *_: Any) -> None:
            """Log nothing."""

    return Handler

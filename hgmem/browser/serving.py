"""A small server on the loopback that hands a few texts to Neo4j Browser: it takes guides and styles by address."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from hgmem.errors import UsageError

HOST = "localhost"  # the name that Browser's whitelist has
_BINDING = "127.0.0.1"
_USUAL = 80  # the port that clients leave out


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What is at an address."""

    content: str
    type: str


@contextmanager
def serving(texts: Callable[[str], Mapping[str, Text]], *, origins: frozenset[str], port: int = 0) -> Iterator[str]:
    """Yield the address under which the texts are, by name, until the block ends; `texts` is given that address.

    Only pages of `origins` can read them. Raises `UsageError` where the port is taken.
    """
    try:
        server = ThreadingHTTPServer((_BINDING, port), BaseHTTPRequestHandler)
    except OSError as error:
        raise UsageError(f"port {port} can't be used ({error.strerror}): choose another --port") from error
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
        """Answers for exactly these texts, and for nobody who calls this machine by another name."""

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
            """Let the pages of Browser read what is sent, and no others."""
            origin = self.headers.get("Origin", "") if hasattr(self, "headers") else ""
            if origin in origins:
                self.send_header("Access-Control-Allow-Origin", origin)
            self.send_header("Vary", "Origin")
            self.send_header("Cache-Control", "no-store")
            super().end_headers()

        def log_message(self, *_: Any) -> None:
            """Keep quiet."""

    return Handler

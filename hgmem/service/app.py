"""The application, and the server that runs it."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from hgmem import __version__
from hgmem.client import HGMem
from hgmem.client.access_log import FOLDER, AccessLog
from hgmem.client.serving import KnownKeys, ServiceStore
from hgmem.errors import HGMemError, NotFoundError, UsageError
from hgmem.service import archives, chat, documents, holdings, memories, pages, problems, questions, sessions
from hgmem.service.callers import COOKIE, Admin, Keys
from hgmem.service.guard import Guard, Rules
from hgmem.service.log import say
from hgmem.service.shapes import Problem, State
from hgmem.service.worker import Worker

PROBLEM = {
    "description": "What is wrong, and what to do.",
    "content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}
STATUSES = (400, 401, 403, 404, 408, 409, 413, 421, 422, 429, 500, 502, 503)  # of problems: generators want each
GRACE = 20  # seconds that requests may still take after the process was told to end

DESCRIPTION = """Ask questions of documents, with a memory in Neo4j that can be inspected and continued.

Send a key as `Authorization: Bearer hgm_…`. Errors are problem details (RFC 9457): `detail` says what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the service listens, whom it lets in, the most bytes of an upload, and where it logs accesses."""

    host: str = "127.0.0.1"
    port: int = 8000
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    upload: int = 20_000_000
    log: Path | None = None
    log_days: int = 30

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it, and not through a proxy either, which has a name of its own."""
        return not self.hosts and self.host in ("127.0.0.1", "localhost", "::1")


def application(client: HGMem, worker: Worker, *, alone: bool, metrics: Callable[[], bytes] | None = None) -> FastAPI:
    """Return the application on a client, which stays open, and the worker that does its jobs.

    If it is `alone`, callers need no key while there is none. `metrics` returns those of the process.
    """
    app = FastAPI(
        title="hgmem",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
        responses=dict.fromkeys(STATUSES, PROBLEM),
    )
    app.state.client, app.state.keys, app.state.worker = client, Keys(KnownKeys(ServiceStore(client)), alone), worker
    for room in (pages, sessions, memories, holdings, questions, documents, archives, chat):
        app.include_router(room.router)
    app.add_exception_handler(HGMemError, problems.of_ours)
    app.add_exception_handler(RequestValidationError, problems.of_request)
    app.add_exception_handler(HTTPException, problems.of_http)
    app.add_exception_handler(Exception, problems.of_ours)

    @app.get("/health", tags=["operation"])
    def health() -> State:
        """Say that the process runs."""
        return State(status="ok")

    @app.get("/ready", tags=["operation"])
    def ready() -> State:
        """Say that the process reaches its database, or answer 503."""
        client.corpora()
        return State(status="ready")

    @app.get("/metrics", tags=["operation"], response_class=PlainTextResponse)
    def measured(caller: Admin) -> Response:
        """Return the metrics of this process in the text form of Prometheus."""
        if metrics is None:
            raise NotFoundError("this process counts no metrics: pip install 'hgmem[otel]', and start it again")
        return PlainTextResponse(metrics(), media_type="text/plain; version=0.0.4")

    _describe(app)
    return app


def _describe(app: FastAPI) -> None:
    """Add to the description of the service what its routes do not tell: problems, keys and sessions."""
    described = app.openapi()
    described["components"]["schemas"]["Problem"] = Problem.model_json_schema()
    described["components"]["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer"},
        "session": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    }
    described["security"] = [{"key": []}, {"session": []}]


def serve(client: HGMem, place: Place, *, metrics: Callable[[], bytes] | None = None) -> None:
    """Serve the client's database until the process is told to end, and the text that `metrics` returns.

    Raises `UsageError` if the address is taken, or if others could reach it without a key.
    """
    store = ServiceStore(client)
    keys = [key for key in store.service_keys() if key.state == "active"]
    if not (keys or place.is_loopback):
        raise UsageError(
            f"without keys, everybody who reaches {place.host} could read all: make one with `hgmem keys make`, or "
            "omit --host and --allow-host"
        )
    hosts = (place.host.lower(), *(host.lower() for host in place.hosts))
    worker = Worker(client)
    with _listening(place) as listener:
        app = application(client, worker, alone=place.is_loopback, metrics=metrics)
        if place.origins:
            named = ("Authorization", "Content-Type", "Idempotency-Key", "X-Hgmem-Corpus")
            app.add_middleware(CORSMiddleware, allow_origins=place.origins, allow_methods=("*",), allow_headers=named)
        log = AccessLog(place.log or FOLDER, days=place.log_days)
        guarded = Guard(app, Rules(hosts=hosts, origins=place.origins, upload=place.upload), log)
        config = uvicorn.Config(
            guarded, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=GRACE
        )
        host, port = listener.getsockname()[:2]
        say(event="serving", address=f"http://{host}:{port}", keys=len(keys), database=client.server[0])
        worker.start()
        try:
            _Server(config, worker).run(sockets=[listener])
        except KeyboardInterrupt:
            pass  # all requests have ended, and the server sends itself the signal again
        finally:
            whole = worker.stop(seconds=GRACE)
    say(event="stopped")
    if not whole:  # a call of a job has not returned: its thread would keep the process until the model answers
        os._exit(0)


class _Server(uvicorn.Server):
    """A server whose worker ends as soon as the process is told to, and not only when all requests have ended."""

    def __init__(self, config: uvicorn.Config, worker: Worker) -> None:
        super().__init__(config)
        self._worker = worker

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the worker, then the server."""
        self._worker.end()
        super().handle_exit(sig, frame)


@contextmanager
def _listening(place: Place) -> Iterator[socket.socket]:
    """Yield a socket that listens at the place."""
    try:
        family = socket.AF_INET6 if ":" in place.host else socket.AF_INET
        with socket.create_server((place.host, place.port), family=family, backlog=256) as listener:
            yield listener
    except OSError as error:
        why = str(error.strerror or error).partition(" (while ")[0]
        raise UsageError(
            f"cannot listen at port {place.port} of {place.host!r} ({why}): pass another --port or --host"
        ) from None

"""Errors as problem details (RFC 9457), in the words of the library's errors."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from hgmem.errors import (
    BudgetError,
    ConflictError,
    DocumentError,
    GraphError,
    HGMemError,
    KeyRefusedError,
    LimitError,
    ModelError,
    NotFoundError,
    ScopeError,
    UnreachableError,
    UsageError,
)
from hgmem.service.log import say, say_error

MEDIA_TYPE = "application/problem+json"
WAIT = 5  # seconds after which to try again what fails for a while
HIDDEN = {
    True: "the database or a model does not answer at present: try again in some seconds",
    False: "the request failed within the service: its operator finds the reason in the log",
}
# The first that fits.
STATUS: tuple[tuple[type[HGMemError], int], ...] = (
    (NotFoundError, 404),
    (KeyRefusedError, 401),
    (ScopeError, 403),
    (ConflictError, 409),
    (DocumentError, 422),
    (UsageError, 400),
    (UnreachableError, 503),
    (GraphError, 500),
    (BudgetError, 429),
    (ModelError, 502),
)


class RefusedError(HGMemError):
    """The service refuses a request: a page of others, a body that is too large or too slow."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def problem(status: int, detail: str, *, wait: int | None = None, **more: object) -> JSONResponse:
    """Return a problem as a response. `wait` are the seconds after which to try again."""
    headers = {} if wait is None else {"Retry-After": str(wait)}
    if status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail, **more}
    return JSONResponse(body, status, headers, media_type=MEDIA_TYPE)


def problem_of(error: Exception, *, admin: bool = False) -> JSONResponse:
    """Return the problem that an error is.

    What is wrong within the service is told to admins alone, and to the log: it may name servers.
    """
    if isinstance(error, RefusedError):
        return problem(error.status, str(error))
    if isinstance(error, LimitError):
        return problem(429, str(error), wait=error.wait)
    if not isinstance(error, HGMemError):
        say_error(error)
        return problem(500, HIDDEN[False])
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    if status >= 500 and error.retryable:
        status = 503
    detail = str(error)
    if status >= 500:
        say(event="failed", error=detail)
        detail = detail if admin else HIDDEN[status == 503]
    more: Mapping[str, Any] = {"memory": error.memory} if error.memory else {}
    return problem(status, detail, wait=WAIT if status == 503 else None, **more)


async def of_ours(request: Request, error: Exception) -> JSONResponse:
    """Answer an error of the library."""
    key = getattr(request.state, "key", None)
    return _for(request, problem_of(error, admin=bool(key and key.is_admin)))


async def of_request(request: Request, error: Exception) -> JSONResponse:
    """Answer a request whose parameters or body are wrong, by its first fault."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part != "body") or "the body"
    if first["type"] == "json_invalid":
        where = f"the body is no JSON, at character {where}"
    return _for(request, problem(422, f"{where}: {first['msg']} (/openapi.json describes the request)"))


def _for(request: Request, found: JSONResponse) -> JSONResponse:
    """Return a problem, at `/v1` with what OpenAI's clients show of an error."""
    if not request.url.path.startswith("/v1/"):
        return found
    body = json.loads(bytes(found.body))
    headers = {name: value for name, value in found.headers.items() if name in ("retry-after", "www-authenticate")}
    body["error"] = {"message": body["detail"], "type": body["title"]}
    return JSONResponse(body, found.status_code, headers, media_type=found.media_type)


async def of_http(request: Request, error: Exception) -> JSONResponse:
    """Answer an unknown path or method, or a body that could not be read."""
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, RefusedError):
        return _for(request, problem_of(error.__cause__))
    if error.status_code == HTTPStatus.BAD_REQUEST:
        return _for(request, problem(400, "the body cannot be read: send JSON as /openapi.json describes it"))
    asked = f"{request.method} {request.url.path[:200]!r}"
    return _for(request, problem(error.status_code, f"{asked}: {error.detail} (/openapi.json lists what there is)"))

"""Who calls: the key that a request by HTTP is sent with, where keys are asked for."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.mcpserver import Context
from mcp_types import INTERNAL_ERROR, INVALID_REQUEST

from hgmem.client.access_log import AccessLog
from hgmem.client.serving import KnownKeys
from hgmem.errors import HGMemError, KeyRefusedError
from hgmem.values.access import Key

KEY: ContextVar[Key | None] = ContextVar("key", default=None)
"""The key of the call, or None where none is asked for."""


@contextmanager
def calling(context: Context[Any, Any] | None) -> Iterator[Key | None]:
    """Make the key of a request the key of the call, inside the block."""
    key = None
    with suppress(AttributeError, KeyError, ValueError):  # over stdio there is no request, and without --keys no user
        key = context.request_context.request.scope["user"].access_token.claims["key"]  # type: ignore[union-attr]
    before = KEY.set(key)
    try:
        yield key
    finally:
        KEY.reset(before)


@dataclass(frozen=True, slots=True)
class Keyed:
    """Middleware: it lets nobody in without a key, and logs who tried. The SDK binds a session to its first key."""

    app: Any
    known: KnownKeys
    log: AccessLog | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass a request on with its key, or refuse it."""
        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            kind, _, token = sent.partition(" ")
            try:
                if kind.lower() != "bearer" or not token.strip():
                    raise KeyRefusedError("a key is missing: send it as Authorization: Bearer hgm_…")
                key = await asyncio.to_thread(self.known.find, token.strip())
            except HGMemError as error:
                status = 401 if isinstance(error, KeyRefusedError) else 503
                if self.log:
                    client = (scope.get("client") or ("",))[0]
                    self.log.write(status=status, done=False, key="", owner="", client=client)
                away = "the database does not answer at present: try again in some seconds"
                await _refuse(send, status, str(error) if status == 401 else away)
                return
            access = AccessToken(
                token="", client_id=key.uid, scopes=list(key.scopes), subject=key.owner, claims={"key": key}
            )
            scope["user"] = AuthenticatedUser(access)
        await self.app(scope, receive, send)


async def _refuse(send: Any, status: int, said: str) -> None:
    """Refuse a request. Clients show the message of an error of JSON-RPC, and of others only that there is one."""
    error = {"code": INVALID_REQUEST if status == 401 else INTERNAL_ERROR, "message": said}
    body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    more = (b"www-authenticate", b"Bearer") if status == 401 else (b"retry-after", b"5")
    await send({"type": "http.response.start", "status": status, "headers": [*headers, more]})
    await send({"type": "http.response.body", "body": body})

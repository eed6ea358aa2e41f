"""What every request passes first: hosts, origins and sizes, and the access log."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hgmem.service.log import AccessLog
from hgmem.service.problems import RefusedError, problem

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

BODY = 1_000_000  # bytes of a body that is not an upload
SLOWEST = 30.0  # seconds without a byte of a body
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which names of hosts and which origins of pages are let in, and how many bytes an upload may have."""

    hosts: Collection[str] = ()
    origins: Collection[str] = ()
    upload: int = BODY


@dataclass(slots=True)
class Guard:
    """Middleware. It refuses other hosts and origins, limits bodies, and writes the access log."""

    app: App
    rules: Rules
    log: AccessLog | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Let a request pass, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.monotonic(), [0]
        scope.setdefault("state", {})

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                status[0] = message["status"]
                message["headers"] = [*message.get("headers", []), (b"x-content-type-options", b"nosniff")]
            await send(message)

        try:
            await self._passed(scope, receive, sent)
        finally:
            self._logged(scope, status[0], round(time.monotonic() - began, 3))

    async def _passed(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        most = self.rules.upload if scope["path"].endswith("/documents") else BODY
        length = headers.get(b"content-length", "0")
        refusal = None
        if _name(host) not in (*LOOPBACK, *self.rules.hosts):
            refusal = problem(421, f"host {host[:200]!r} is not served here: allow it with `hgmem serve --allow-host`")
        elif origin is not None and origin not in self.rules.origins:
            refusal = problem(403, f"pages of {origin[:200]!r} may not ask: allow it with `hgmem serve --allow-origin`")
        elif not length.isdecimal() or int(length) > most:
            refusal = problem(413, f"the body has {length[:20]} bytes, more than the limit of {most:,}: send less")
        if refusal:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _limited(receive, most), send)

    def _logged(self, scope: Message, status: int, seconds: float) -> None:
        if self.log is None:
            return
        key, route = scope["state"].get("key"), scope.get("route")
        self.log.write(
            method=scope["method"],
            route=getattr(route, "path", ""),
            **{name: str(value)[:200] for name, value in scope.get("path_params", {}).items()},
            status=status,
            seconds=seconds,
            key=key.uid if key else "",
            owner=key.owner if key else "",
            client=(scope.get("client") or ("",))[0],
        )


def _name(host: str) -> str:
    """Return the name of a host without its port."""
    return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0].lower()


def _limited(receive: Receive, most: int) -> Receive:
    """Return what receives a body of at most so many bytes, none of which may take too long."""
    got, ended = [0], [False]

    async def received() -> Message:
        if ended[0]:
            return await receive()  # what comes after the body: that the caller has gone
        try:
            message = await asyncio.wait_for(receive(), SLOWEST)
        except TimeoutError:
            raise RefusedError(408, f"the body stopped for {SLOWEST:g} seconds: send it again") from None
        got[0] += len(message.get("body", b""))
        ended[0] = not message.get("more_body", False)
        if got[0] > most:
            raise RefusedError(413, f"the body has more than {most:,} bytes: send less")
        return message

    return received

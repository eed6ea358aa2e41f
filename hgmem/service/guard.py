"""What every request passes first: hosts, origins and sizes, and the access log."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from hgmem.client.access_log import AccessLog
from hgmem.service.problems import RefusedError, problem

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

BODY = 1_000_000  # bytes of a body that is not an upload
OTHERS = ("cross-site", "same-site")  # where a page may be that is not this host's own
SLOWEST = 30.0  # seconds without a byte of a body
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
READING = ("GET", "HEAD", "OPTIONS")
UPLOADS = ("/documents", "/archive")  # ends of the paths that take files


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
    log: AccessLog

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
                given = message.get("headers", [])
                kept = [] if b"cache-control" in dict(given) else [(b"cache-control", b"no-store")]
                message["headers"] = [*given, *kept, (b"x-content-type-options", b"nosniff")]
            await send(message)

        try:
            await self._passed(scope, receive, sent)
        finally:
            self._logged(scope, status[0], round(time.monotonic() - began, 3))

    async def _passed(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get("host", ""), headers.get("origin")
        most = self.rules.upload if scope["path"].endswith(UPLOADS) else BODY
        length = headers.get("content-length", "0")
        refusal = None
        if _name(host) not in (*LOOPBACK, *self.rules.hosts):
            refusal = problem(421, f"host {host[:200]!r} is not served here: allow it with `hgmem serve --allow-host`")
        elif origin is not None and origin not in self.rules.origins and not is_own_page(headers):
            refusal = problem(403, f"pages of {origin[:200]!r} may not ask: allow it with `hgmem serve --allow-origin`")
        elif origin is None and scope["method"] not in READING and headers.get("sec-fetch-site") in OTHERS:
            refusal = problem(403, "pages of other hosts may not write here: open the page of this host")
        elif not length.isdecimal() or int(length[:20]) > most:
            refusal = problem(413, f"the body has {length[:20]} bytes, more than the limit of {most:,}: send less")
        if refusal:
            await refusal(scope, receive, send)
            return
        await self.app(scope, _limited(receive, most), send)

    def _logged(self, scope: Message, status: int, seconds: float) -> None:
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


def is_own_page(headers: Mapping[str, str]) -> bool:
    """Whether the browser says that a page of this host sends the request."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin", "")
    own = origin.partition("://")[2].lower() == headers.get("host", "").lower() != ""
    return own if site is None else site == "same-origin" and (own or not origin)


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

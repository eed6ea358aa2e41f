"""A proxy between the driver and Neo4j that cuts or freezes connections on command or at a phase of a request.

    with Proxy("bolt://127.0.0.1:7687") as line:
        line.at("write_step", "unanswered")

In this example the server commits the next step, but the driver gets no reply. A statement is identified by the name
in its transaction's metadata.
"""

import re
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self, TypeAlias
from urllib.parse import urlsplit

Moment: TypeAlias = Literal["asked", "uncommitted", "unanswered"]
Fault: TypeAlias = Callable[[], object]

COMMIT = b"\x00\x02\xb0\x12\x00\x00"  # Bolt's message: a chunk of two bytes, a structure without fields
PATIENCE = rb"(connection\.recv_timeout_seconds)[\x01-\x7f]"  # Neo4j's timeout hint to drivers, in seconds
SIZE = 1 << 16
LONGEST = 100  # bytes of metadata that may be split between two parts


@dataclass(slots=True, kw_only=True)
class Rule:
    """A fault when a statement is sent, before its commit arrives, or before the reply to the commit."""

    metadata: bytes
    moment: Moment
    number: int  # number of the transaction with this statement, from 1
    fault: Fault


class Proxy:
    """The proxy, without faults by default. It listens from its construction to the end of the `with` block."""

    def __init__(self, uri: str) -> None:
        at = urlsplit(uri)
        self.target = (at.hostname, at.port)
        self.patience: int | None = None  # silence timeout of a new connection in seconds; None: Neo4j's own hint
        self.rules: list[Rule] = []
        self.commits = 0  # received by the server
        self.flowing = threading.Event()
        self.flowing.set()
        self.refusing = False
        self._lines: set[_Line] = set()
        self._lock = threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._socket.close()
        self.flowing.set()
        self.cut()

    def at(self, statement: str, moment: Moment, *, number: int = 1, fault: Fault | None = None) -> None:
        """Trigger `fault`, by default `cut`, when a transaction with this statement reaches this phase."""
        metadata = packed("statement") + packed(statement)
        self.rules.append(Rule(metadata=metadata, moment=moment, number=number, fault=fault or self.cut))

    def cut(self) -> None:
        """Cut all connections; accept new ones."""
        with self._lock:
            lines, self._lines = self._lines, set()
        for line in lines:
            line.close()

    def cut_for_good(self) -> None:
        """Cut all connections; new ones are cut too, until `mend`."""
        self.refusing = True
        self.cut()

    def freeze(self) -> None:
        """Forward nothing in either direction, without cutting connections, until `mend`."""
        self.flowing.clear()

    def mend(self) -> None:
        """Forward everything again; cut connections that were opened while the proxy was frozen."""
        self.rules.clear()
        self.refusing = False
        if not self.flowing.is_set():
            self.cut()
            self.flowing.set()

    def passing(self, sent: bytes) -> tuple[bool, Rule | None]:
        """Return whether a rule applies to the message, and the rule that is due."""
        with self._lock:
            about = [rule for rule in self.rules if rule.metadata in sent]
            for rule in about:
                rule.number -= 1
            come = next((rule for rule in about if not rule.number), None)
            self.rules = [rule for rule in self.rules if rule is not come]
        return bool(about), come

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:  # closed
                return
            if self.refusing:
                client.close()
                continue
            line = _Line(self, client, socket.create_connection(self.target))
            with self._lock:
                self._lines.add(line)
            line.start()


def packed(text: str) -> bytes:
    """Return a short text as Bolt sends it."""
    data = text.encode()
    return bytes([0x80 + len(data)] if len(data) < 16 else [0xD0, len(data)]) + data


class _Line:
    """One connection, with the rule that applies to its request."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self.proxy, self.client, self.server = proxy, client, server
        self.rule: Rule | None = None
        self.committing = False
        self.seen = b""

    def start(self) -> None:
        for work in (self.requests, self.replies):
            threading.Thread(target=self.guarded, args=(work,), daemon=True).start()

    def close(self) -> None:
        for one in (self.client, self.server):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:  # already closed
                continue

    def guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except OSError:  # one side closed: close the other
            pass
        finally:
            self.close()

    def requests(self) -> None:
        while data := self.client.recv(SIZE):
            known, rule = self.proxy.passing(self.seen + data)
            self.seen = b"" if known else (self.seen + data)[-LONGEST:]
            self.rule = rule or self.rule
            if rule and rule.moment == "asked":
                self.fault()
            commit = data.endswith(COMMIT)
            if commit and self.rule and self.rule.moment == "uncommitted":
                self.fault()
            self.committing = commit
            self.proxy.flowing.wait()
            self.server.sendall(data)
            self.proxy.commits += commit

    def replies(self) -> None:
        while data := self.server.recv(SIZE):
            if self.committing and self.rule and self.rule.moment == "unanswered":
                self.fault()
            self.proxy.flowing.wait()
            if self.proxy.patience is not None:
                data = re.sub(PATIENCE, rb"\1" + bytes([self.proxy.patience]), data)
            self.client.sendall(data)

    def fault(self) -> None:
        """Trigger the rule's fault and remove the rule from this connection."""
        rule, self.rule = self.rule, None
        assert rule
        rule.fault()

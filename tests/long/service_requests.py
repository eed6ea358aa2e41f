"""Requests by rules to a process of the service: from its own description by Schemathesis, and hostile ones.

    HGMEM_DATA=… python tests/long/service_requests.py [--described 5000] [--hostile 2000] [--seed 1]

It uses the Neo4j of the settings, makes two corpora and keys of its own there, and removes them. None of the described
requests may end in a 5xx or depart from the description, and each operation must succeed at least `LEAST` times. No
hostile request may show anything of another owner or a traceback, change anything of another's, or end in a 5xx.
"""

import argparse
import gzip
import json
import random
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from hgmem import Answer, Document, HGMem

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "integration")]
from letters import LETTERS, QUESTION
from serving import Service, serving

from hgmem.client.serving import ServiceStore

LEAST = 20
ROUND = 520  # described requests after which the statuses are printed
MINE, OTHER = "requests-mine", "requests-other"
SECRET = "Zanzibar Quillfeather"  # stands in the other corpus and in the questions of another owner
CHECKS = [
    *(not_a_server_error, checks.status_code_conformance),
    *(checks.content_type_conformance, checks.response_schema_conformance),
]
PLAIN = {"question": QUESTION, "system": "naive"}


@dataclass
class World:
    """A process of the service on two corpora, and what there is to ask for."""

    service: Service
    client: HGMem
    tokens: dict[str, str]
    places: dict[str, str]
    others: list[str]
    archive: bytes
    spare: dict[str, list[str]] = field(default_factory=dict)

    def state(self) -> object:
        """Return what no request may change: memories of others, and another corpus."""
        memories = [one for corpus in (MINE, OTHER) for one in self.client.memories(corpus=corpus)]
        return sorted((one.uid, one.steps, one.owner) for one in memories if one.uid in self.others), str(
            self.client.status(corpus=OTHER)
        )


@contextmanager
def world(client: HGMem) -> Iterator[World]:
    """Yield a process of the service with all that requests may name."""
    store = ServiceStore(client)
    given: dict[str, dict[str, Any]] = {
        "admin": {"scopes": ["admin"], "corpora": [MINE]},
        "anna": {"scopes": ["read", "ask", "write"], "corpora": [MINE]},
    }
    keys = {owner: store.make_key(owner, **options) for owner, options in given.items()}
    for corpus in (MINE, OTHER):
        client.add_graph(LETTERS, corpus=corpus)
    client.add(Document(id="secret", text=f"{SECRET} keeps the lamps of the pier."), corpus=OTHER, graph=False)
    own = client.ask(QUESTION, steps=1, owner="anna", corpus=MINE)
    bens = client.ask(f"What does {SECRET} keep?", steps=1, owner="ben", corpus=MINE)
    far = client.ask(f"What does {SECRET} keep?", steps=1, owner="anna", corpus=OTHER)
    others = [bens.memory, far.memory, bens.uid, *(point.uid for point in (*bens.points, *far.points)[:4])]
    try:
        with serving(client) as service, service.http(keys["admin"][0]) as http:
            archive = http.get(f"/corpora/{MINE}/archive", params={"memories": False}).content
            tokens = {owner: token for owner, (token, _) in keys.items()}
            yield World(service, client, tokens, _places(client, own), others, archive)
    finally:
        for _, key in keys.values():
            store.revoke_key(key.uid)
        for corpus in (MINE, OTHER):
            client.delete(corpus=corpus)


def _places(client: HGMem, own: Answer) -> dict[str, str]:
    """Return what the parameters of paths name: each is there, so that a request may succeed."""
    client.build("gists", corpus=MINE)
    [entity, *_], [row, *_] = client.things(corpus=MINE), client.built("gists", corpus=MINE)
    built = {"entity": entity.uid, "row": row.uid, "system": "gists", "verb": "levels"}
    return {"corpus": MINE, "memory": own.memory, "point": own.points[0].uid, "document": "spare-0", **built}


# From the description ---------------------------------------------------------------------------------------------


def described(w: World, number: int, *, seed: int) -> Counter[tuple[str, int]]:
    """Send requests that follow the description, or depart from it, and return their statuses by operation."""
    with w.service.http() as http:
        schema = schemathesis.openapi.from_dict(http.get("/openapi.json").json())
    operations = [found.ok() for found in schema.get_all_operations()]
    each = -(-number // len(operations))
    w.spare = {
        "delete_memory": [
            w.client.ask(QUESTION, system="naive", owner="x", corpus=MINE).memory for _ in range(each // 2)
        ],
        "delete_document": [f"spare-{n}" for n in range(each // 2)],
    }
    spares = [Document(id=name, text=f"Ann keeps bee number {name}.") for name in w.spare["delete_document"]]
    w.client.add(spares, corpus=MINE, graph=False)
    with w.service.http(w.tokens["admin"]) as http:
        job = http.post(f"/corpora/{MINE}/jobs", json={"kind": "retry"}).json()["uid"]
    found: Counter[tuple[str, int]] = Counter()
    for operation in operations:
        name = operation.definition.raw["operationId"]
        places = {**w.places, "job": job}
        for mode, count in (("seeded", each // 2), ("positive", each // 4), ("negative", each - each // 2 - each // 4)):
            _send(w, operation, found, _Way(name, mode, places, count, seed))
    return found


@dataclass(frozen=True)
class _Way:
    name: str
    mode: str
    places: dict[str, str]
    count: int
    seed: int


def _send(w: World, operation: Any, found: Counter[tuple[str, int]], way: _Way) -> None:
    sent = Counter[str]()
    wanted = {one.name for one in operation.path_parameters}
    mode = GenerationMode.NEGATIVE if way.mode == "negative" else GenerationMode.POSITIVE
    kept = "memory" if way.name == "delete_memory" else ""  # what others ask for later
    places = {
        name: value
        for name, value in way.places.items()
        if name in wanted and (way.mode == "seeded" or (way.mode == "positive" and name != kept))
    }
    try:
        strategy = operation.as_strategy(mode, path_parameters=places or None)
        strategy.example  # noqa: B018
    except Exception:  # nothing of this operation can be wrong
        strategy = operation.as_strategy(path_parameters=places or None)

    @seeded(way.seed)
    @settings(
        max_examples=way.count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(strategy)
    def send(case: Any) -> None:
        if sent["all"] >= way.count:
            return
        sent["all"] += 1
        if way.mode == "seeded":
            _make_good(w, way.name, case)
        _bound(case)
        response = case.call(
            base_url=w.service.address, headers={"Authorization": f"Bearer {w.tokens['admin']}"}, timeout=120
        )
        found[way.name, response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    while sent["all"] < way.count:  # Hypothesis ends early where there are few examples
        before = sent["all"]
        send()
        if sent["all"] == before:
            break


GOOD: dict[str, Any] = {
    "ask": PLAIN,
    "search": {"question": QUESTION, "limit": 2},
    "begin_job": {"kind": "retry"},
    "complete": {"model": "naive", "messages": [{"role": "user", "content": QUESTION}]},
    "upload": b"Ann keeps bees.",
}
QUERIES: dict[str, dict[str, Any]] = {
    "diff": {"step": 1},
    "text": {"document": "letters"},
    "upload": {"name": "seeded.txt", "graph": "false"},
}


def _make_good(w: World, name: str, case: Any) -> None:
    """Make a request one that should succeed."""
    case.headers, case.cookies = {}, {}
    if name == "begin_session":
        case.body = {"key": w.tokens["admin"]}
    elif name == "import_archive":
        case.body = w.archive
    elif name in GOOD:
        case.body = GOOD[name]
    case.query = QUERIES.get(name, {})
    if w.spare.get(name):
        case.path_parameters = {**case.path_parameters, name.removeprefix("delete_"): w.spare[name].pop()}


def _bound(case: Any) -> None:
    """Keep a question short in time: the test is of the service, not of long investigations."""
    if isinstance(case.body, dict) and isinstance(case.body.get("steps"), int):
        case.body["steps"] = min(case.body["steps"], 2)


# Hostile ------------------------------------------------------------------------------------------------------------

ROUTES = (
    *(("GET", "/memories/{uid}"), ("GET", "/memories/{uid}/passages"), ("GET", "/memories/{uid}/replay")),
    *(
        ("DELETE", "/memories/{uid}"),
        ("GET", "/points/{uid}/lineage"),
        ("GET", "/memories/{uid}/diff?step=1"),
        ("POST", "/memories/{uid}/fork"),
        ("GET", "/memories/{uid}/scene"),
        ("POST", "/memories/{uid}/stop"),
        ("GET", "/jobs/{uid}"),
        ("DELETE", "/jobs/{uid}"),
    ),
    *(("GET", "/corpora/{corpus}"), ("GET", "/corpora/{corpus}/memories"), ("GET", "/corpora/{corpus}/documents")),
    *(("GET", "/corpora/{corpus}/jobs"), ("GET", "/corpora/{corpus}/archive"), ("POST", "/corpora/{corpus}/evidence")),
    *(("POST", "/corpora/{corpus}/questions"), ("DELETE", "/corpora/{corpus}/documents/secret")),
    *(("POST", "/corpora/{corpus}/documents?name=a.txt"), ("POST", "/corpora/{corpus}/archive")),
    *(("GET", "/corpora/{corpus}/entities"), ("GET", "/corpora/{corpus}/entities/{uid}")),
    *(("GET", "/corpora/{corpus}/text?document=secret"), ("GET", "/corpora/{corpus}/built/gists")),
    *(("GET", "/corpora/{corpus}/parts/{uid}"), ("GET", "/corpora/{corpus}/verbs/gists/levels")),
)
ODD_TEXTS = (
    *("..", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "%00", "a%0d%0aSet-Cookie:%20x=1", "%ff%fe", "x" * 9_000, "'", '"', "`"),
    *(
        "%25%7Bn%7D",
        "${7*7}",
        "{{7*7}}",
        "<script>",
        "' OR 1=1 --",
        "MATCH%20(n)%20DETACH%20DELETE%20n",
        "%f0%9f%92%a9",
    ),
    *("%ed%a0%80", "null", "-1", "1e999", "*", "%E2%80%AE", "CON", "//", ";", "%2525"),
)
ODD_HEADERS = (
    *(("Host", "evil.example"), ("Host", ""), ("Host", "127.0.0.1@evil.example"), ("Origin", "https://evil.example")),
    *(("Origin", "null"), ("Authorization", "Bearer " + "a" * 30_000), ("Authorization", "Basic YTpi")),
    *(
        ("Authorization", "Bearer"),
        ("Authorization", "Bearer hgm_\xff"),
        ("Cookie", "hgmem_session=x; hgmem_session=y"),
    ),
    *(("Cookie", "hgmem_session=" + "y" * 3_000), ("Idempotency-Key", "k" * 201), ("Content-Length", "-5")),
    *(("Content-Length", "9" * 5_000), ("Content-Length", "1e3"), ("Transfer-Encoding", "chunked, chunked")),
    *(("Content-Type", "application/json; charset=utf-7"), ("Content-Type", "text/plain"), ("Accept", "\x01")),
    *(
        ("X-Forwarded-For", "1.2.3.4"),
        ("X-Forwarded-Proto", "gopher"),
        ("X-Hgmem-Corpus", OTHER),
        ("Range", "bytes=0-1"),
    ),
    *(("X-" + "n" * 9_000, "1"), ("Expect", "100-continue"), ("Connection", "upgrade"), ("Upgrade", "h2c")),
)


def _bodies(random_: random.Random) -> bytes:
    """Return the body of a JSON request that is odd in one way."""
    deep = random_.choice((1_000, 60_000, 400_000))
    many = b",".join(b'"k%d":1' % n for n in range(60_000))
    odd = random_.choice(
        (b"NaN", b"-Infinity", b"1e999999", b"9" * 4_400, b"null", b"[]", b"{}", b'"\\ud800"', b'"\\u0000"')
    )
    return random_.choice(
        (
            *(
                b"",
                b"{",
                b"[" * deep,
                b'{"question":' * (deep // 12),
                b"{" + many + b"}",
                b"\xff\xfe\x00",
                b"\x1f\x8b\x08",
            ),
            *(
                b'{"question": %b}' % odd,
                b'{"question": "x", "settings": %b}' % odd,
                b'{"question": "x", "steps": %b}' % odd,
            ),
            *(b'{"question": "x", "filters": {"title": %b}}' % odd, b'{"question": "x", "memory": %b}' % odd),
            *(b'{"question": "x", "question": "y"}', b'{"question": "' + b"q" * 1_200_000 + b'"}'),
            *(b'{"question": "x", "filters": {"a": {"$ne": 1}}}', b'{"question": "x", "system": "../../etc"}'),
            *(b'{"question": "x", "settings": {"__class__": "x"}}', b'{"question": "x", "max_calls": -1}'),
        )
    )


def _path(random_: random.Random, _: World) -> tuple[str, str, dict[str, str], bytes]:
    method, route = random_.choice(ROUTES)
    odd = random_.choice(ODD_TEXTS)
    path = re.sub(r"\{\w+\}", lambda _: odd, route)
    return (
        random_.choice((method, "PUT", "PATCH", "TRACE", "OPTIONS")),
        random_.choice((path, f"/{odd}", path + "/" + odd)),
        {},
        b"",
    )


def _header(random_: random.Random, _: World) -> tuple[str, str, dict[str, str], bytes]:
    name, value = random_.choice(ODD_HEADERS)
    sent = {"Content-Type": "application/json", name: value}
    return "POST", f"/corpora/{MINE}/evidence", sent, json.dumps({"question": QUESTION}).encode()


def _body(random_: random.Random, _: World) -> tuple[str, str, dict[str, str], bytes]:
    path = random_.choice((f"/corpora/{MINE}/questions", f"/corpora/{MINE}/evidence", f"/corpora/{MINE}/jobs"))
    path = random_.choice((path, "/v1/chat/completions", "/session"))
    return "POST", path, {"Content-Type": "application/json"}, _bodies(random_)


def _upload(random_: random.Random, _: World) -> tuple[str, str, dict[str, str], bytes]:
    name = random_.choice(
        ("a.docx", "a.pdf", "a.json", "a.csv", "a.html", "..%2fa.txt", "a.txt%00.exe", "%2fetc%2fpasswd")
    )
    bomb = gzip.compress(b"0" * 5_000_000)
    data = random_.choice((b"", bomb, b"PK\x03\x04" + bytes(100), b"%PDF-1.7\n" * 50, b"[" * 200_000, b"\x00" * 1_000))
    return "POST", f"/corpora/{MINE}/documents?graph=false&name={name}", {}, data


def _foreign(random_: random.Random, w: World) -> tuple[str, str, dict[str, str], bytes]:
    method, route = random_.choice(ROUTES)
    uid = random_.choice(w.others)
    path = route.format(uid=uid, corpus=OTHER)
    body = json.dumps({"question": "What is kept?"}).encode()
    if random_.random() < 0.3:
        path = f"/corpora/{random_.choice((MINE, OTHER))}/questions"
        method, body = "POST", json.dumps({"question": "And?", "memory": uid}).encode()
    return method, path, {"Content-Type": "application/json"}, body


RULES: tuple[Callable[[random.Random, World], tuple[str, str, dict[str, str], bytes]], ...] = (
    *(_path, _header, _body, _upload, _foreign),
)


def hostile(w: World, number: int, *, seed: int, slow: int = 10) -> Counter[tuple[str, int]]:
    """Send hostile requests, some of them slowly, and return their statuses by rule."""
    random_, before = random.Random(seed), w.state()
    found: Counter[tuple[str, int]] = Counter()
    late: list[bytes] = []
    waiting = [threading.Thread(target=lambda: late.append(_slowly(w)), daemon=True) for _ in range(slow)]
    for thread in waiting:
        thread.start()
    for _ in range(number - slow):
        rule = random_.choice(RULES)
        method, path, headers, body = rule(random_, w)
        head, text = _raw(w, method, path, {"Authorization": f"Bearer {w.tokens['anna']}", **headers}, body)
        found[rule.__name__[1:], _judged(rule.__name__, path, head, text)] += 1
    for thread in waiting:
        thread.join(60)
        assert not thread.is_alive(), "a body that stopped is still waited for"
    for said in late:
        assert said.startswith(b"HTTP/1.1 408 "), said
        found["slow", 408] += 1
    with w.service.http() as http:
        assert http.get("/ready").status_code == 200
    assert w.state() == before, "something of another owner was changed"
    return found


def _slowly(w: World) -> bytes:
    """Begin a body, stop, and return how the service answers."""
    with socket.create_connection(_address(w), timeout=55) as line:
        head = (
            f"POST /corpora/{MINE}/evidence HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {w.tokens['anna']}\r\n"
        )
        line.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
        return line.recv(65_536)


def _raw(w: World, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[str, str]:
    """Return the head and the body of the answer to a request whose bytes are as given."""
    named = {"host": "127.0.0.1", "connection": "close", "content-length": str(len(body))}
    lines = [f"{name}: {value}" for name, value in {**named, **{n.lower(): v for n, v in headers.items()}}.items()]
    request = f"{method} {path.replace(' ', '%20')} HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n"
    got = b""
    with socket.create_connection(_address(w), timeout=120) as line:
        with suppress(OSError):  # the service has answered and hung up
            line.sendall(request.encode("latin-1", "replace") + body)
        with suppress(OSError):
            while piece := line.recv(65_536):
                got += piece
    head, _, text = got.partition(b"\r\n\r\n")
    return head.decode("latin-1"), text.decode("utf-8", "replace")


def _address(w: World) -> tuple[str, int]:
    url = httpx.URL(w.service.address)
    return url.host, url.port or 80


def _judged(rule: str, path: str, head: str, text: str) -> int:
    """Return the status of an answer. Raises `AssertionError` for what no answer may hold."""
    if not head:  # the connection was cut while a body that is too large was sent
        return 0
    status = int(head.split()[1])
    told = f"{rule} {path[:200]}: {head[:300]} {text[:600]}"
    assert status < 500, told
    assert SECRET not in text, told
    assert "Traceback" not in text, told
    assert 'File "' not in text, told
    assert "\nset-cookie: x=" not in head.lower(), told
    if status >= 400 and "application/problem+json" in head:
        assert "\n" not in json.loads(text)["detail"], told
    return status


def main() -> None:
    """Send what the command line says, and print the statuses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--described", type=int, default=5_000)
    parser.add_argument("--hostile", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with HGMem.open(MINE) as client, world(client) as w:
        service = w.service
        if options.hostile:
            _report("hostile", hostile(w, options.hostile, seed=options.seed))
        found: Counter[tuple[str, int]] = Counter()
        while sum(found.values()) < options.described:
            options.seed += 1
            found += described(w, min(ROUND, options.described), seed=options.seed)
            _report("described", found)
        if options.described:
            check_successes(found, min(LEAST, options.described // 60))
    unexpected = [line for line in service.lines if line["event"] == "unexpected"]
    assert not unexpected, unexpected[:3]
    print("nothing was wrong")


def _report(name: str, found: Counter[tuple[str, int]]) -> None:
    print(f"{name}: {sum(found.values()):,} requests")
    for (what, status), times in sorted(found.items()):
        print(f"  {what:<18}{status:>4}{times:>7}", flush=True)


def check_successes(found: Counter[tuple[str, int]], least: int) -> None:
    """Raise `AssertionError` if an operation succeeded too seldom."""
    good: Counter[str] = Counter()
    for (name, status), times in found.items():
        good[name] += times if status < 300 else 0
    assert not (few := {name: times for name, times in good.items() if times < least}), few


if __name__ == "__main__":
    main()

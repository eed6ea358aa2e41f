"""Sessions of pages, and archives by HTTP, with two processes of the service on one database."""

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest
from letters import LETTERS, QUESTION
from serving import Service, events_of, serving

from hgmem import HGMem, Settings
from hgmem.client.serving import ServiceStore
from hgmem.values.access import Key

CORPUS = "service-sessions"
ASKED = f"/corpora/{CORPUS}/questions"
BODY = {"question": QUESTION, "steps": 1}


@dataclass
class Pair:
    """Two processes, a client of their database, and keys with their tokens by owner."""

    one: Service
    two: Service
    client: HGMem
    keys: dict[str, tuple[str, Key]]

    @contextmanager
    def logged_in(self, owner: str) -> Iterator[httpx.Client]:
        with self.one.http() as http:
            done = http.post("/session", json={"key": self.keys[owner][0]})
            assert done.status_code == 200, done.text
            http.headers["Origin"] = self.one.address
            yield http


@pytest.fixture(scope="module")
def pair(settings: Settings) -> Iterator[Pair]:
    with HGMem.open(CORPUS, **settings.model_dump(exclude_none=True)) as client:
        client.add_graph(LETTERS)
        store = ServiceStore(client)
        keys = {owner: store.make_key(owner, corpora=[CORPUS]) for owner in ("anna", "ben")}
        keys["root"] = store.make_key("root", scopes=["admin"], corpora=[CORPUS, "none"])
        with serving(client) as one, serving(client) as two:
            yield Pair(one, two, client, keys)
        for _, key in keys.values():
            store.revoke_key(key.uid)
        client.delete()


def test_a_page_asks_with_a_cookie_that_scripts_cannot_read_and_logs_out(pair: Pair) -> None:
    with pair.logged_in("anna") as http:
        cookie = http.cookies["hgmem_session"]
        assert pair.keys["anna"][0] not in cookie
        assert http.get("/session").json() == {"owner": "anna", "scopes": ["read", "ask"], "corpora": [CORPUS]}
        assert http.post(ASKED, json=BODY).json()["answer"]
        with http.stream("POST", ASKED, json=BODY, headers={"Accept": "text/event-stream"}) as response:
            assert [name for name, _ in events_of(response)][-1] == "Answered"
        with pair.two.http() as there:  # the other process knows the session too
            assert there.get("/session", cookies={"hgmem_session": cookie}).json()["owner"] == "anna"
        assert http.delete("/session").status_code == 204
        assert "hgmem_session" not in http.cookies
        over = http.get("/session", cookies={"hgmem_session": cookie})
        assert (over.status_code, over.json()["detail"]) == (401, "this session is over: log in again")
    with pair.one.http() as http:
        refused = http.post("/session", json={"key": cookie})
        assert (refused.status_code, "this key is not known" in refused.json()["detail"]) == (401, True)


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
def test_the_cookie_stays_with_this_host_and_by_https_with_https(pair: Pair, scheme: str, secure: bool) -> None:
    with pair.one.http() as http:
        done = http.post("/session", json={"key": pair.keys["anna"][0]}, headers={"X-Forwarded-Proto": scheme})
    said = {part.strip().lower() for part in done.headers["set-cookie"].split(";")[1:]}
    assert said == {"httponly", "samesite=strict", "path=/", "max-age=28800", *(["secure"] if secure else [])}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": ""}, 403),  # nothing says that it is a page of this host
        ({"Origin": "", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
def test_other_pages_cannot_write_with_a_session(pair: Pair, headers: dict[str, str], status: int) -> None:
    with pair.logged_in("anna") as http:
        for name, value in headers.items():
            if value:
                http.headers[name] = value
            else:
                del http.headers[name]
        before = len(pair.client.memories())
        done = http.post(ASKED, json=BODY)
        assert done.status_code == status, done.text
        assert len(pair.client.memories()) == before + (status == 200)


def test_a_session_ends_with_its_key_within_five_seconds(pair: Pair) -> None:
    store = ServiceStore(pair.client)
    pair.keys["carl"] = store.make_key("carl")
    with pair.logged_in("carl") as http:
        assert http.get("/corpora").status_code == 200
        store.revoke_key(pair.keys["carl"][1].uid)
        until = time.monotonic() + 5
        while http.get("/corpora").status_code == 200:
            assert time.monotonic() < until
            time.sleep(0.2)
        assert "this key is revoked" in http.get("/corpora").json()["detail"]


def test_a_corpus_goes_out_as_an_archive_and_comes_back_by_a_job(pair: Pair) -> None:
    path = f"/corpora/{CORPUS}/archive"
    memory = pair.client.ask(QUESTION, steps=1, owner="anna").memory
    with pair.one.http(pair.keys["root"][0]) as root, pair.one.http(pair.keys["anna"][0]) as anna:
        for method in ("GET", "POST"):
            refused = anna.request(method, path)
            assert (refused.status_code, "lacks the scope 'admin'" in refused.json()["detail"]) == (403, True)
        archive = root.get(path)
        assert archive.headers["content-disposition"] == f'attachment; filename="{CORPUS}.jsonl.gz"'
        assert memory in gzip.decompress(archive.content).decode()
        assert memory not in gzip.decompress(root.get(path, params={"memories": False}).content).decode()
        assert root.get("/corpora/none/archive").status_code == 404
        pair.client.delete()
        wrong = _ended(root, root.post("/corpora/none/archive", content=archive.content))
        assert wrong["error"] == f"the archive is of corpus {CORPUS!r}, not 'none': import it there"
        damaged = _ended(root, root.post(path, content=archive.content[:-100]))
        assert (damaged["state"], "/tmp" in str(damaged["error"])) == ("failed", False)
        headers = {"Idempotency-Key": "once"}
        first, second = (root.post(path, content=archive.content, headers=headers).json() for _ in range(2))
        assert first["uid"] == second["uid"]
        done = _ended(root, root.post(path, content=archive.content, headers=headers))
        assert (done["state"], done["kind"], done["attempts"]) == ("done", "import", 1), done
        assert root.get(f"/memories/{memory}").json()["owner"] == "anna"


def _ended(http: httpx.Client, begun: httpx.Response) -> dict[str, object]:
    assert begun.status_code == 202, begun.text
    until = time.monotonic() + 120
    while (found := http.get(f"/jobs/{begun.json()['uid']}").json())["state"] in ("waiting", "running"):
        assert time.monotonic() < until, found
        time.sleep(0.2)
    return dict(found)

"""The service over HTTP: who may do what, questions, memories, errors, and a database that goes away."""

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from letters import LETTERS, QUESTION
from proxy import Proxy
from serving import Service, events_of, serving
from typer.testing import CliRunner

from hgmem import HGMem, Settings
from hgmem.cli import app
from hgmem.client.serving import KnownKeys, ServiceStore
from hgmem.errors import KeyRefusedError
from hgmem.service.callers import ANYBODY, Keys
from hgmem.values.as_json import written

CORPUS, OTHER = "service-letters", "service-other"


@dataclass
class House:
    """A process of the service on two corpora, with a client of the same database, and tokens by name."""

    service: Service
    client: HGMem
    tokens: dict[str, str]

    def http(self, name: str) -> httpx.Client:
        return self.service.http(self.tokens[name])


@pytest.fixture(scope="module")
def house(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    log = tmp_path_factory.mktemp("access")
    with HGMem.open(CORPUS, **settings.model_dump(exclude_none=True)) as client:
        for corpus in (CORPUS, OTHER):
            client.add_graph(LETTERS, corpus=corpus)
        kinds = {
            "anna": {"scopes": ["read", "ask"], "corpora": [CORPUS]},
            "ben": {"scopes": ["read", "ask"], "corpora": [CORPUS]},
            "reader": {"scopes": ["read"]},
            "admin": {"scopes": ["admin"]},
        }
        made = {name: ServiceStore(client).make_key(name, **kind) for name, kind in kinds.items()}  # type: ignore[arg-type]
        with serving(client, "--access-log", str(log), "--allow-origin", "https://chat.example") as service:
            yield House(service, client, {name: token for name, (token, _) in made.items()})
        for _, key in made.values():
            ServiceStore(client).revoke_key(key.uid)
        for corpus in (CORPUS, OTHER):
            client.delete(corpus=corpus)
        accesses = "\n".join(path.read_text() for path in log.iterdir())
        assert '"route": "/corpora/{corpus}/questions", "corpus": "service-letters", "status": 200' in accesses
        assert not any(text in accesses for text in (QUESTION, *(token for token, _ in made.values())))


def asked(http: httpx.Client, **more: object) -> dict[str, object]:
    response = http.post(f"/corpora/{CORPUS}/questions", json={"question": QUESTION, "steps": 1, **more})
    assert response.status_code == 200, response.text
    found: dict[str, object] = response.json()
    return found


def detail(response: httpx.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert (found["status"], found["type"]) == (status, "about:blank")
    assert "\n" not in found["detail"]
    return str(found["detail"])


def test_a_question_is_answered_as_by_the_library_and_its_memory_is_the_owners(house: House) -> None:
    with house.http("anna") as http:
        answer = asked(http)
        memory = http.get(f"/memories/{answer['memory']}").json()
    assert answer["answer"]
    assert memory["owner"] == "anna"
    assert memory == json.loads(json.dumps(memory))
    assert house.client.memory(str(answer["memory"])).answers[0].text == answer["answer"]


def test_events_are_those_of_stream_and_the_last_is_the_answer(house: House) -> None:
    body = {"question": QUESTION, "steps": 1}
    accept = {"Accept": "text/event-stream"}
    with (
        house.http("anna") as http,
        http.stream("POST", f"/corpora/{CORPUS}/questions", json=body, headers=accept) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        events = list(events_of(response))
    names = [name for name, _ in events]
    expected = [type(event).__name__ for event in house.client.stream(QUESTION, steps=1)]
    assert names == expected
    assert events[-1][1]["answer"]["memory"] == events[0][1]["memory"]
    refused = http_post(house, "anna", f"/corpora/{CORPUS}/questions", {"question": ""}, headers=accept)
    assert "the question is empty" in detail(refused, 400)


def http_post(house: House, name: str, path: str, body: object, **more: object) -> httpx.Response:
    with house.http(name) as http:
        return http.post(path, json=body, **more)  # type: ignore[arg-type]


def test_a_memory_is_continued_by_its_owner_alone(house: House) -> None:
    path = f"/corpora/{CORPUS}/questions"
    with house.http("anna") as anna, house.http("ben") as ben, house.http("admin") as admin:
        memory = asked(anna)["memory"]
        body = {"question": "And who burned it?", "memory": memory, "steps": 1}
        assert "not found" in detail(ben.post(path, json=body), 404)
        assert [len(asked(one, **body)["steps"]) > 0 for one in (anna, admin)] == [True, True]  # type: ignore[arg-type]
        assert anna.get(f"/memories/{memory}").json()["owner"] == "anna"


def test_others_memories_and_everybodys_are_not_found_but_by_admins(house: House) -> None:
    with house.http("anna") as http:
        hers = asked(http)
    nobodys = house.client.ask(QUESTION, steps=1).memory
    point = hers["points"][0]["uid"]  # type: ignore[index]
    with house.http("ben") as ben, house.http("admin") as admin:
        for uid in (hers["memory"], hers["uid"], nobodys):
            for path in (f"/memories/{uid}", f"/memories/{uid}/passages", f"/memories/{uid}/replay"):
                said = detail(ben.get(path), 404)
                assert said == detail(ben.get(path.replace(str(uid), "m0")), 404).replace("m0", str(uid))
        assert "not found" in detail(ben.get(f"/points/{point}/lineage"), 404)
        assert "not found" in detail(ben.delete(f"/memories/{hers['memory']}"), 404)
        listed = {row["uid"] for row in ben.get(f"/corpora/{CORPUS}/memories").json()["items"]}
        assert not {hers["memory"], nobodys} & listed
        assert ben.get(f"/corpora/{CORPUS}").json()["memories"] == len(listed)
        assert {hers["memory"], nobodys} <= {
            row["uid"] for row in admin.get(f"/corpora/{CORPUS}/memories?limit=500").json()["items"]
        }
        assert admin.get(f"/corpora/{CORPUS}").json()["memories"] == len(house.client.memories(corpus=CORPUS))
        assert admin.get(f"/points/{point}/lineage").json()["uid"] == point
        assert admin.delete(f"/memories/{nobodys}").status_code == 204
        assert "not found" in detail(admin.get(f"/memories/{nobodys}"), 404)
    with house.http("anna") as http:
        assert http.delete(f"/memories/{hers['memory']}").status_code == 204


def test_a_memory_is_compared_and_forked_by_whoever_sees_it(house: House) -> None:
    with house.http("anna") as anna, house.http("ben") as ben, house.http("reader") as reader:
        memory, his = asked(anna, steps=2)["memory"], asked(ben)["memory"]
        steps = anna.get(f"/memories/{memory}/diff", params={"step": 1})
        assert (steps.json()["before"]["step"], steps.json()["after"]["step"]) == (1, 2)
        assert steps.json() == json.loads(written(house.client.diff(str(memory), step=1)))
        for path in (f"/memories/{his}/diff?other={memory}", f"/memories/{memory}/diff?other={his}"):
            for http, other in ((anna, his), (ben, memory)):
                said = detail(http.get(path), 404)
                assert said == detail(http.get(path.replace(str(other), "m0")), 404).replace("m0", str(other))
        assert "name another memory, or a step" in detail(anna.get(f"/memories/{memory}/diff"), 400)
        assert "has no step 9: choose 1 to 2" in detail(anna.get(f"/memories/{memory}/diff?step=9"), 400)

        path, repeated = f"/memories/{memory}/fork", {"Idempotency-Key": "once"}
        forks = [anna.post(path, params={"step": 1}, headers=repeated) for _ in range(2)]
        assert [one.status_code for one in forks] == [201, 201]
        fork = forks[0].json()
        assert forks[1].json() == fork
        assert (fork["forked_from"], fork["forked_at"], fork["owner"]) == (memory, 1, "anna")
        for more in ({"step": 2}, {}):
            assert "with another request" in detail(anna.post(path, params=more, headers=repeated), 409)
        assert anna.post(path).json()["memory"] not in (memory, fork["memory"])
        assert asked(anna, question="", memory=fork["memory"])["memory"] == fork["memory"]
        assert "not found" in detail(ben.post(path), 404)
        assert "lacks the scope 'ask'" in detail(reader.post(path), 403)
        assert "has no step 3" in detail(anna.post(path, params={"step": 3}), 400)
        listed = anna.get(f"/corpora/{CORPUS}/memories?limit=500").json()["items"]
        assert {row["uid"]: row["forked_from"] for row in listed}[fork["memory"]] == memory


def test_a_fork_is_given_again_once_its_original_is_deleted(house: House) -> None:
    with house.http("anna") as http:
        memory = asked(http)["memory"]
        path, repeated = f"/memories/{memory}/fork", {"Idempotency-Key": "kept"}
        fork = http.post(path, headers=repeated).json()
        assert http.delete(f"/memories/{memory}").status_code == 204
        again = http.post(path, headers=repeated)
        assert (again.status_code, again.json()) == (201, fork)
        assert "not found" in detail(http.post(path, headers={"Idempotency-Key": "late"}), 404)


def test_a_fork_counts_as_a_question_once_it_is_made(house: House) -> None:
    token, key = ServiceStore(house.client).make_key("dora", scopes=["read", "ask"], questions_per_minute=2)
    if (second := time.time() % 60) > 45:
        time.sleep(60 - second)  # limits are those of a minute
    try:
        with house.service.http(token) as http:
            path = f"/memories/{asked(http)['memory']}/fork"
            assert "has no step 9" in detail(http.post(path, params={"step": 9}), 400)
            assert http.post(path).status_code == 201
            assert "limited to 2 questions a minute" in detail(http.post(path), 429)
    finally:
        ServiceStore(house.client).revoke_key(key.uid)


def test_the_replay_page_is_in_a_sandbox(house: House) -> None:
    with house.http("anna") as http:
        memory = asked(http)["memory"]
        page = http.get(f"/memories/{memory}/replay")
    assert page.text == house.client.replay(str(memory))
    assert page.headers["content-security-policy"].startswith("sandbox allow-scripts;")


def test_evidence_is_that_of_search_and_leaves_no_memory(house: House) -> None:
    before = len(house.client.memories())
    response = http_post(house, "reader", f"/corpora/{CORPUS}/evidence", {"question": QUESTION, "limit": 2})
    found = [item["chunk"]["uid"] for item in response.json()["items"]]
    assert found == [passage.chunk.uid for passage in house.client.search(QUESTION, limit=2)]
    assert len(found) == 2
    assert len(house.client.memories()) == before


def test_lists_have_pages(house: House) -> None:
    with house.http("anna") as http:
        for _ in range(2):
            asked(http)
        whole = [row["uid"] for row in http.get(f"/corpora/{CORPUS}/memories?limit=500").json()["items"]]
        seen, after = [], ""
        while after is not None:
            page = http.get(f"/corpora/{CORPUS}/memories", params={"limit": 1, **({"after": after} if after else {})})
            seen += [row["uid"] for row in page.json()["items"]]
            after = page.json()["next"]
        assert seen == whole
        assert len(seen) >= 2
        assert "begin again" in detail(http.get(f"/corpora/{CORPUS}/memories?after=m0"), 404)


def test_a_key_reaches_its_corpora_and_does_what_it_is_made_for(house: House) -> None:
    with house.http("anna") as anna, house.http("reader") as reader:
        assert [row["corpus"] for row in anna.get("/corpora").json()["items"]] == [CORPUS]
        assert {CORPUS, OTHER} <= {row["corpus"] for row in reader.get("/corpora").json()["items"]}
        assert anna.get(f"/corpora/{CORPUS}").json()["chunks"] > 0
        assert "does not reach corpus 'service-other'" in detail(anna.get(f"/corpora/{OTHER}"), 403)
        refused = reader.post(f"/corpora/{CORPUS}/questions", json={"question": QUESTION})
        assert detail(refused, 403) == "this key lacks the scope 'ask' (it has read): use another key"
    with house.service.http() as nobody, house.service.http("hgm_wrong") as wrong:
        missing = nobody.get("/corpora")
        assert detail(missing, 401) == "a key is missing: send it as Authorization: Bearer hgm_…"
        assert missing.headers["www-authenticate"] == "Bearer"
        assert "not known" in detail(wrong.get("/corpora"), 401)
        assert [nobody.get(path).status_code for path in ("/health", "/ready", "/openapi.json")] == [200, 200, 200]


def test_every_operation_but_those_of_health_and_sessions_refuses_who_has_no_key(house: House) -> None:
    with house.service.http() as http:
        paths = http.get("/openapi.json").json()["paths"]
        operations = [(method.upper(), path) for path, methods in paths.items() for method in methods]
        open_to_all = {("GET", "/health"), ("GET", "/ready"), ("POST", "/session"), ("DELETE", "/session")}
        assert open_to_all < set(operations)
        for method, path in sorted({*operations} - open_to_all):
            assert "a key is missing" in detail(http.request(method, path.replace("{", "").replace("}", "")), 401), path


def test_a_revoked_key_fails_within_five_seconds_in_every_process(house: House) -> None:
    token, key = ServiceStore(house.client).make_key("carl")
    with serving(house.client) as second, second.http(token) as there, house.service.http(token) as here:
        assert [http.get("/corpora").status_code for http in (here, there)] == [200, 200]
        ServiceStore(house.client).revoke_key(key.uid)
        began = time.monotonic()
        left = [here, there]
        while left:
            assert time.monotonic() - began < 5
            left = [http for http in left if http.get("/corpora").status_code == 200]
            time.sleep(0.2)
        assert "this key is revoked" in detail(here.get("/corpora"), 401)
    assert second.process.returncode == 0
    assert second.lines[-1]["event"] == "stopped"


@pytest.mark.parametrize(
    ("path", "body", "status", "said"),
    [
        ("/corpora/none/questions", {"question": "Who?"}, 404, "corpus 'none' not found"),
        ("/corpora/a b/questions", {"question": "Who?"}, 400, "invalid corpus name 'a b'"),
        (f"/corpora/{CORPUS}/questions", {"question": "Who?", "system": "none"}, 400, "'none'"),
        (f"/corpora/{CORPUS}/questions", {"question": "Who?", "steps": 0}, 422, "steps: Input should be greater"),
        (f"/corpora/{CORPUS}/questions", {"question": "Who?", "owner": "ben"}, 422, "owner: Extra inputs"),
        (f"/corpora/{CORPUS}/questions", {"question": "x" * 9_000}, 400, "more than the limit of 8000"),
        (f"/corpora/{CORPUS}/questions", {"question": "x" * 1_100_000}, 413, "more than the limit of 1,000,000"),
        (f"/corpora/{CORPUS}/questions", [], 422, "the body: Input should be"),
        ("/none", {}, 404, "Not Found"),
    ],
)
def test_a_wrong_request_is_one_line(house: House, path: str, body: object, status: int, said: str) -> None:
    assert said in detail(http_post(house, "admin", path, body), status)


def test_hostile_bodies_and_pages_of_others_are_refused(house: House) -> None:
    path, headers = f"/corpora/{CORPUS}/questions", {"Content-Type": "application/json"}
    with house.http("anna") as http:
        for body in (b"{", b"[" * 400_000, b'{"question": "\\ud83d"}', b"\xff\xfe"):
            assert http.post(path, content=body, headers=headers).status_code in (200, 400, 422)
        assert "pages of 'https://evil.example' may not ask" in detail(
            http.get("/corpora", headers={"Origin": "https://evil.example"}), 403
        )
        assert "host 'evil.example' is not served here" in detail(
            http.get("/corpora", headers={"Host": "evil.example"}), 421
        )
        allowed = http.get("/corpora", headers={"Origin": "https://chat.example"})
        assert allowed.headers["access-control-allow-origin"] == "https://chat.example"
        preflight = {"Origin": "https://chat.example", "Access-Control-Request-Method": "POST"}
        assert http.options("/corpora", headers=preflight).status_code == 200


def test_serve_refuses_a_taken_port_and_all_addresses_without_keys(house: House, environment: dict[str, str]) -> None:
    def refused(*words: str) -> str:
        done = CliRunner().invoke(app, ["serve", *words], env=environment)
        assert done.exit_code == 1, done.output
        return done.stderr

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert f"error: cannot listen at port {port} of '127.0.0.1' (" in refused("--port", port)


def test_serve_refuses_all_addresses_while_there_are_no_keys(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServiceStore, "service_keys", lambda _: [])
    for words in (["--host", "0.0.0.0"], ["--allow-host", "rag.example"]):
        done = CliRunner().invoke(app, ["serve", "--port", "0", *words], env=environment)
        assert done.exit_code == 1
        assert "error: without keys, everybody who reaches " in done.stderr


def test_only_a_process_that_is_alone_needs_no_key_once_all_are_revoked(
    client: HGMem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServiceStore, "service_keys", lambda _: [])
    assert Keys(KnownKeys(ServiceStore(client)), alone=True).find("") is ANYBODY
    with pytest.raises(KeyRefusedError, match="a key is missing"):
        Keys(KnownKeys(ServiceStore(client)), alone=False).find("")


def test_while_the_database_is_away_requests_get_503_and_then_go_on(house: House, settings: Settings) -> None:
    with (
        Proxy(settings.neo4j_uri or "") as line,
        serving(house.client, NEO4J_URI=line.uri) as service,
        service.http(house.tokens["anna"]) as http,
    ):
        assert http.get("/ready").status_code == 200
        line.refusing = True
        line.cut()
        gone = http.get("/corpora")
        assert detail(gone, 503) == "the database or a model does not answer at present: try again in some seconds"
        assert gone.headers["retry-after"] == "5"
        assert [http.get(path).status_code for path in ("/ready", "/health")] == [503, 200]
        line.refusing = False
        assert http.get("/corpora").status_code == 200
    assert any("cannot be reached" in str(said.get("error")) for said in service.lines)


def test_the_description_has_an_example_for_what_is_sent(house: House) -> None:
    with house.service.http() as http:
        described = http.get("/openapi.json").json()
    schemas = described["components"]["schemas"]
    assert schemas["Asked"]["examples"]
    assert "/corpora/{corpus}/questions" in described["paths"]

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hgmem import local
from hgmem.errors import GraphError, UsageError
from hgmem.local import docker, machine
from hgmem.local.machine import Sizes
from hgmem.local.process import JavaEngine
from hgmem.local.state import EngineKind, Home, Record, Report
from hgmem.settings import Settings

SIZES = Sizes(heap="1g", pagecache="64m")
KEPT = Record(password="n-kept", bolt=17687, http=17474, kind="maven", version="2026.09.0")


@dataclass
class FakeEngine:
    """Launches nothing. Each start takes the next result of `ways`: None for success, else the server's last output."""

    ways: list[str | None]
    kind: EngineKind = "maven"
    alive: bool = False
    records: list[Record] = field(default_factory=list)
    stopped: int = 0

    def prepare(self, report: Report) -> None:
        report("prepared")

    def launch(self, home: Home, *, record: Record, sizes: Sizes) -> None:
        self.records.append(record)
        self.words = self.ways.pop(0)
        self.alive = self.words is None

    def pid(self, home: Home) -> int | None:
        return 42 if self.alive else None

    def running(self, home: Home) -> bool:
        return self.alive

    def stop(self, home: Home) -> bool:
        self.stopped += 1
        return self.alive

    def last_words(self, home: Home) -> str:
        return self.words or ""

    def log(self, home: Home) -> str:
        return "server.log"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    home.claim()
    return home


def begin(home: Home, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch) -> local.Server:
    monkeypatch.setattr(local, "choose", lambda settings, kept, report: engine)
    monkeypatch.setattr(local, "ping", lambda uri, **rest: "2026.09.0")
    return local.start(Settings(), home=home, sizes=SIZES, report=lambda line: None)


def test_a_port_lost_between_look_and_start_is_chosen_again(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(["Caused by: java.net.BindException: Address already in use", None])
    server = begin(home, engine, monkeypatch)
    assert (len(engine.records), server.pid) == (2, 42)
    assert engine.records[0].password == engine.records[1].password == server.password.get_secret_value()


def test_ports_that_are_never_to_be_had_end_in_the_last_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(["Address already in use"] * local.ATTEMPTS)
    with pytest.raises(GraphError, match="already in use"):
        begin(home, engine, monkeypatch)


def test_a_server_that_ends_while_starting_leaves_its_last_words(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = FakeEngine(["the store is broken"])
    with pytest.raises(GraphError, match=r"the store is broken; see its log server\.log"):
        begin(home, engine, monkeypatch)
    assert engine.stopped == 1


def test_an_interrupted_start_stops_what_it_started(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(uri: str, **rest: object) -> None:
        raise KeyboardInterrupt

    engine = FakeEngine([None])
    monkeypatch.setattr(local, "choose", lambda settings, kept, report: engine)
    monkeypatch.setattr(local, "ping", interrupted)
    with pytest.raises(KeyboardInterrupt):
        local.start(Settings(), home=home, sizes=SIZES, report=lambda line: None)
    assert engine.stopped == 1


def test_a_server_that_never_answers_is_given_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "START_SECONDS", 0.2)
    monkeypatch.setattr(local, "ping", lambda uri, **rest: None)
    with pytest.raises(GraphError, match="does not respond: run `hgmem down`"):
        local.ready(FakeEngine([], alive=True), home, record=KEPT)


def test_a_password_that_stays_refused_is_an_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(uri: str, **rest: object) -> None:
        raise GraphError("refuses the password")

    monkeypatch.setattr(local, "ping", refuse)
    monkeypatch.setattr(local, "REFUSED_SECONDS", 0.05)
    monkeypatch.setattr(local, "REFUSED_PAUSE", 0.1)
    with pytest.raises(GraphError, match="refuses the password"):
        local.ready(FakeEngine([], alive=True), home, record=KEPT)


def test_a_store_without_its_password_is_refused(home: Home) -> None:
    (home.store / "databases").mkdir(parents=True)
    with pytest.raises(UsageError, match=r"server\.json.*missing or damaged"):
        local.start(Settings(), home=home, sizes=SIZES, report=lambda line: None)


def test_ports_and_password_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "is_free", lambda number: True)
    assert local.renewed(KEPT, "maven") == KEPT


def test_a_remembered_port_that_is_taken_now_is_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "is_free", lambda number: number != KEPT.bolt)
    again = local.renewed(KEPT, "maven")
    assert (again.bolt, again.http) == (local.BOLT, KEPT.http)


def test_passwords_differ_and_never_look_like_an_option() -> None:
    passwords = {local.renewed(None, "maven").password for _ in range(100)}
    assert len(passwords) == 100
    assert all(password[0].isalpha() and len(password) >= 32 for password in passwords)


@pytest.mark.parametrize(
    ("kept", "engine", "compose", "chosen"),
    [
        (None, "28.0", True, docker.DockerEngine),
        (None, None, True, JavaEngine),
        (None, "28.0", False, JavaEngine),
        (KEPT, "28.0", True, JavaEngine),
    ],
)
def test_docker_runs_it_where_it_can_but_a_store_begun_without_it_stays_without(
    monkeypatch: pytest.MonkeyPatch,
    kept: Record | None,
    engine: str | None,
    compose: bool,
    chosen: type,
) -> None:
    monkeypatch.setattr(docker, "engine", lambda: engine)
    monkeypatch.setattr(docker, "has_compose", lambda: compose)
    assert type(local.choose(Settings(), kept=kept, report=lambda line: None)) is chosen


def test_nothing_is_found_or_stopped_where_nothing_was_started(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path / "absent")
    assert local.find(settings) is None
    assert local.down(settings) is False
    assert not settings.data.exists()


def test_down_leaves_a_foreign_directory_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    assert local.down(Settings(), data=tmp_path) is False
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]

import json
import stat
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from hgmem.errors import UsageError
from hgmem.local.state import Home, Record, write_secret

RECORD = Record(password="n-secret", bolt=7687, http=7474, kind="maven", version="2026.09.0")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.at(tmp_path / "home")
    home.claim()
    return home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_only_the_owner_reads_the_directory_and_the_record(home: Home) -> None:
    home.save(RECORD)
    assert (mode(home.path), mode(home.record)) == (0o700, 0o600)


def test_a_saved_record_is_loaded_again(home: Home) -> None:
    home.save(RECORD)
    assert home.load() == RECORD


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"password": "x", "surprise": 1}', "null"])
def test_a_broken_record_reads_as_none(home: Home, text: str) -> None:
    home.record.write_text(text)
    assert home.load() is None


def test_neither_record_nor_server_shows_the_password(home: Home) -> None:
    server = RECORD.server(home, pid=1)
    assert "n-secret" not in repr(RECORD) + repr(server) + str(server)
    assert server.password.get_secret_value() == "n-secret"


def test_the_browser_address_names_server_and_user(home: Home) -> None:
    server = RECORD.server(home, pid=1)
    assert server.browser == "http://127.0.0.1:7474/browser/?dbms=bolt://neo4j@127.0.0.1:7687"
    other = replace(server, username="ann@corp").browser
    assert parse_qs(urlsplit(other).query) == {"dbms": ["bolt://ann%40corp@127.0.0.1:7687"]}


def test_a_directory_of_other_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds other files"):
        Home.at(tmp_path).claim()
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_directory_that_was_claimed_is_claimed_again(home: Home) -> None:
    (home.path / "leftover").write_text("of a killed start")
    home.claim()
    assert home.lock.exists()


def test_a_file_in_the_place_of_the_directory_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="choose another"):
        Home.at(tmp_path / "file").claim()


def test_the_second_holder_waits_for_the_first(home: Home) -> None:
    import threading

    order: list[str] = []
    held, said = threading.Event(), threading.Event()

    def second() -> None:
        held.wait(10)
        with home.locked(lambda line: said.set()):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with home.locked(lambda line: None):
        held.set()
        assert said.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_an_interrupted_write_leaves_the_old_record(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.save(RECORD)
    monkeypatch.setattr("hgmem.local.state.os.fsync", lambda number: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_secret(home.record, json.dumps({}))
    assert home.load() == RECORD

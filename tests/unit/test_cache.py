"""Replies and texts that are cached between runs."""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field

from hgmem.errors import ModelError
from hgmem.models.cache_file import Store
from hgmem.models.llm.chat_model import ChatModel
from hgmem.models.metering import measuring
from hgmem.models.reply import Reply, TextReply

pytestmark = pytest.mark.filterwarnings("ignore:responses are not cached")  # tested in test_connecting.py


class Names(Reply):
    names: list[str] = Field(min_length=1)


class Text(TextReply):
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    of: str
    name: ClassVar[str] = "name"
    reply_type: ClassVar[type[Names]] = Names

    def fields(self) -> Mapping[str, str]:
        return {"of": self.of}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell(Name):
    name: ClassVar[str] = "tell"
    reply_type: ClassVar[type[Text]] = Text


class NoChat:
    """A chat that nobody asks."""

    name = "fake"
    endpoint = "http://fake"
    formats = ("text",)


class FakeModel(ChatModel):
    """A model whose replies all differ, with a cache in `store`."""

    def __init__(self, store: Store, *tasks: str, version: str = "1") -> None:
        super().__init__(NoChat(), store=store, cached=frozenset(tasks or ("name", "tell")))
        self.version = version
        self.asked = 0
        self.fails = False
        self.pieces = ["a ", "", "b"]

    def key(self, task: Name) -> str:
        return f"{self.version} {task.name} {task.of}"

    def _replied(self, asked: Name) -> Reply:
        self.asked += 1
        if self.fails:
            raise ModelError("no")
        if asked.reply_type is Text:
            return Text(text=f"text {self.asked}")
        return Names(names=[f"name {self.asked}"]).noted(["mended"])

    def _spoken(self, task: Name) -> Iterator[str]:
        self.asked += 1
        yield from self.pieces
        if self.fails:
            raise ModelError("no")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "deep" / "replies.sqlite")
    yield opened
    opened.close()


# The model ----------------------------------------------------------------------------------------------------


def test_what_was_asked_before_is_not_asked_again_and_counts_as_found(store: Store):
    model = FakeModel(store)
    with measuring() as meter:
        first, again, other = (model.reply(Name(of=of)) for of in ("x", "x", "y"))

    assert (first.names, again.names, other.names) == (["name 1"], ["name 1"], ["name 2"])
    assert model.asked == 2
    assert meter.usage().calls == {"cache": {"name": 1}}
    assert meter.usage().seconds["cache"]["name"] >= 0


def test_another_run_finds_it_too_but_not_another_key(store: Store):
    FakeModel(store).reply(Name(of="x"))
    other = Store(store.path)
    model, changed = FakeModel(other), FakeModel(other, version="2")
    model.reply(Name(of="x"))
    changed.reply(Name(of="x"))
    other.close()

    assert (model.asked, changed.asked) == (0, 1)


def test_tasks_that_are_not_named_are_asked_each_time(store: Store):
    model = FakeModel(store, "other")
    for task in (Name(of="x"), Tell(of="x")):
        assert model.reply(task) != model.reply(task)
    assert [*model.stream(Tell(of="x")), *model.stream(Tell(of="x"))] == model.pieces * 2

    assert model.asked == 6
    assert not store.path.exists()


@pytest.mark.parametrize("spoilt", ["", "prose", "{}", '{"names": []}', '{"names": 7}'])
def test_what_is_no_reply_any_longer_is_as_if_absent_and_replaced(store: Store, spoilt: str):
    model = FakeModel(store)
    store.put(model.key(Name(of="x")), spoilt)
    with measuring() as meter:
        assert model.reply(Name(of="x")).names == ["name 1"]
        assert meter.usage().calls == {}
        assert model.reply(Name(of="x")).names == ["name 1"]

    assert model.asked == 1


def test_errors_are_not_stored(store: Store):
    model = FakeModel(store)
    model.fails = True
    with pytest.raises(ModelError):
        model.reply(Name(of="x"))
    with pytest.raises(ModelError):
        list(model.stream(Tell(of="x")))
    model.fails = False

    assert model.reply(Name(of="x")).names == ["name 3"]
    assert list(model.stream(Tell(of="x"))) == ["a ", "", "b"]


def test_notes_are_not_stored(store: Store):
    model = FakeModel(store)
    assert model.reply(Name(of="x")).notes == ("mended",)
    assert model.reply(Name(of="x")).notes == ()


def test_what_is_no_text_is_given_but_not_stored(store: Store):
    model = FakeModel(store)
    half = Names(names=["\ud800"])
    model._replied = lambda task: half
    assert model.reply(Name(of="x")) is half
    assert store.get(model.key(Name(of="x"))) is None


def test_a_stream_heard_to_its_end_is_told_in_one_piece_the_next_time(store: Store):
    model = FakeModel(store)
    assert list(model.stream(Tell(of="x"))) == ["a ", "", "b"]
    with measuring() as meter:
        assert list(model.stream(Tell(of="x"))) == ["a b"]
        assert model.reply(Tell(of="x")) == Text(text="a b")

    assert model.asked == 1
    assert meter.usage().calls == {"cache": {"tell": 2}}


def test_a_stream_that_was_not_heard_to_its_end_is_not_stored(store: Store):
    model = FakeModel(store)
    stream = model.stream(Tell(of="x"))
    next(stream)
    stream.close()

    assert list(model.stream(Tell(of="x"))) == ["a ", "", "b"]


def test_a_stream_of_what_is_no_text_is_refused(store: Store):
    with pytest.raises(TypeError, match="returns Names, not text"):
        FakeModel(store).stream(Name(of="x"))


# The store ----------------------------------------------------------------------------------------------------


def test_a_text_is_kept_and_replaced(store: Store):
    assert store.get("k") is None
    store.put("k", "one ü\n")
    store.put("k", "two ü\n")
    store.put("l", "")

    assert (store.get("k"), store.get("l"), store.get("m")) == ("two ü\n", "", None)


def test_a_store_is_made_at_its_first_use(store: Store):
    assert not store.path.parent.exists()
    store.put("k", "text")
    assert store.path.is_file()


def test_a_store_that_was_closed_opens_again(store: Store):
    store.put("k", "text")
    store.close()
    assert store.get("k") == "text"


def test_a_place_that_can_not_be_written_is_no_store(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "store", tmp_path, Path("/proc/none/store")):
        store = Store(path)
        store.put("k", "text")
        assert store.get("k") is None
        store.close()


def test_a_file_that_is_something_else_is_no_store_and_is_left_alone(tmp_path: Path):
    path = tmp_path / "file"
    path.write_bytes(b"not a database " * 1000)
    store = Store(path)
    store.put("k", "text")

    assert store.get("k") is None
    assert path.read_bytes() == b"not a database " * 1000


def test_a_file_whose_pages_are_destroyed_is_no_store(store: Store):
    for at in range(200):
        store.put(str(at), "text" * 500)
    store.close()
    size = store.path.stat().st_size
    with store.path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size - 4096))

    assert store.get("7") is None
    store.put("7", "text")


def test_half_a_character_is_not_kept(store: Store):
    store.put("k", "\ud800")
    assert store.get("k") is None
    assert store.get("\ud800") is None


def test_threads_share_a_store(store: Store):
    def use(thread: int) -> list[str | None]:
        for at in range(25):
            store.put(f"{thread} {at}", f"text {thread} {at}")
        return [store.get(f"{thread} {at}") for at in range(25)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(use, range(8)))

    assert found == [[f"text {thread} {at}" for at in range(25)] for thread in range(8)]


@pytest.mark.parametrize("again", range(5))
def test_processes_share_a_store_from_its_first_use_on(store: Store, again: int):
    script = (
        "import sys; from hgmem.models.cache_file import Store\n"
        "store = Store(sys.argv[1])\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "for at in range(100): store.put(f'{sys.argv[2]} {at}', 'text')\n"
    )
    command = [sys.executable, "-c", script, str(store.path)]
    pipe = subprocess.PIPE
    running = [subprocess.Popen([*command, str(number)], stdin=pipe, stdout=pipe, text=True) for number in range(4)]
    # All at once: two processes that switch a new file to its log concurrently get an error that it is locked.
    for process in running:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate()

    assert [process.returncode for process in running] == [0] * 4
    assert [f"{n} {at}" for n in range(4) for at in range(100) if store.get(f"{n} {at}") is None] == []

"""A memory of another package: that of examples/own-memory/, formed, asked, changed, deleted, filtered and lost."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_memorag import settings_of
from wire import Answered, Asked, Said, WireServer

from hgmem import HGMem, UsageError
from hgmem.errors import ModelError
from hgmem.local import Server
from hgmem.services import build_files
from hgmem.systems.memorag.own_memories import MemoryDocument, _loaded
from hgmem.systems.memorag.recipes import found
from hgmem.text.resources import resource
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document

EXAMPLE = resource("examples", "own-memory")
MINE = {"memory": "associations", "fill": False, "hits": 1, "chunk_search": "vector"}
BELL = [f"The bell of Harrow rang in the belfry at night {at}." for at in range(3)]
FERRY = [f"The ferry crossed the lagoon with coal on day {at}." for at in range(3)]
BELFRY = {"belfry", "bell", "harrow", "night", "rang"}
FILLER = [f"Line {at} lists {at} barrels of tar." for at in range(20)]


def document(name: str, sentences: list[str]) -> Document:
    return Document(id=name, title=name, text="\n\n".join([*sentences, *FILLER]), metadata={"kind": name})


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Installs the example in this process as `pip install -e` does."""
    about = tmp_path / "associations_memory-1.0.dist-info"
    about.mkdir()
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n", encoding="utf-8")
    target = project["entry-points"]["hgmem.memories"]["associations"]
    points = {"associations": target, "broken": "nowhere:Memory", "../../esc": target, "full": target}
    lines = ["[hgmem.memories]", *(f"{name} = {target}" for name, target in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    for folder in (tmp_path, EXAMPLE):
        monkeypatch.syspath_prepend(folder)
    found.cache_clear()
    yield
    monkeypatch.undo()
    found.cache_clear()
    _loaded.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "associations_memory"]:
        del sys.modules[name]


@pytest.fixture
def told(example: None, monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], list[str]]]:
    """What the memory was told each time that it was formed: titles of changed documents, and uids of those gone."""
    from associations_memory import Associations

    calls: list[tuple[list[str], list[str]]] = []
    form = Associations.form

    def recorded(self: Any, documents: Any, *, gone: Any) -> None:
        calls.append(([one.title for one in documents], list(gone)))
        form(self, documents, gone=gone)

    monkeypatch.setattr(Associations, "form", recorded)
    return calls


@pytest.fixture
def formed(told: list[Any], open_client: Callable[..., HGMem], tmp_path: Path) -> HGMem:
    client = open_client(chunk_tokens=40, chunk_overlap=0, data=tmp_path / "data")
    texts = {"bell": BELL, "ferry": FERRY, "ledger": []}
    client.add([document(name, sentences) for name, sentences in texts.items()], graph=False)
    assert client.build("memorag", settings=MINE).made == 1
    return client


def clues(client: HGMem, question: str, **options: Any) -> list[str]:
    answer = client.ask(question, system="memorag", settings=MINE, **options)
    return [one.subquery.text for one in answer.steps[0].retrieved[1:]]


def folder_of(client: HGMem) -> Path:
    return build_files(client._services(None), "memorag") / "associations"


def saved(client: HGMem) -> list[Path]:
    return sorted(folder_of(client).glob("*/*"))


def files(client: HGMem) -> str:
    return " ".join(path.read_text(encoding="utf-8") for path in saved(client))


def test_a_question_searches_by_what_the_memory_associates_with_it(formed: HGMem) -> None:
    assert [set(clue.split()) for clue in clues(formed, "Who heard the belfry?")] == [BELFRY]
    answer = formed.ask("What of the lagoon?", system="memorag", settings=MINE)
    assert any("ferry" in one.subquery.text for one in answer.steps[0].retrieved[1:])
    assert "ferry" in answer.text
    assert answer.usage.calls["model"]["associations"] == 1
    assert formed.plan_build("memorag", settings=MINE).stages[-1].units == 0


def test_a_build_tells_the_memory_what_has_changed_and_gone(formed: HGMem, told: list[Any]) -> None:
    assert told == [(["bell", "ferry", "ledger"], [])]
    assert formed.build("memorag").made == 0
    formed.add(document("lamp", [f"The lamp of Quill burns whale oil in watch {at}." for at in range(3)]), graph=False)
    answer = formed.ask("What does the lamp burn?", system="memorag", settings=MINE)
    assert any("is stale (documents were added)" in note for note in answer.notes)
    assert formed.build("memorag").made == 1
    assert {"lamp", "whale"} < set(clues(formed, "What of Quill?")[0].split())
    formed.add(document("lamp", [f"The lantern of Quill burns tallow in watch {at}." for at in range(3)]), graph=False)
    formed.build("memorag")
    assert [changed for changed, _ in told[1:]] == [["lamp"], ["lamp"]]
    assert {"lantern", "tallow"} < set(clues(formed, "What of Quill?")[0].split())


def test_a_memory_of_deleted_texts_is_not_asked_until_it_has_forgotten_them(formed: HGMem, told: list[Any]) -> None:
    [bell] = [row["uid"] for row in formed.documents() if row["title"] == "bell"]
    formed.delete(document="bell")
    answer = formed.ask("Who heard the belfry?", system="memorag", settings=MINE)
    assert len(answer.steps[0].retrieved) == 1
    told_so = "may hold deleted texts and was not asked: .* --set memory=associations` forms it without them"
    assert any(re.search(told_so, note) for note in answer.notes)
    assert "belfry" in files(formed)
    formed.build("memorag")
    assert told[-1] == ([], [bell])
    assert "belfry" not in files(formed)
    assert clues(formed, "What of the lagoon?")
    assert formed.check().findings == ()


def test_clues_come_from_the_chosen_documents_alone(formed: HGMem) -> None:
    [found] = clues(formed, "Who heard the belfry?", filters={"kind": "bell"})
    assert set(found.split()) == BELFRY
    beside = clues(formed, "Who heard the belfry?", filters={"kind": "ferry"})
    assert beside
    assert not any("bell" in clue for clue in beside)


def test_a_memory_that_is_lost_is_named_and_formed_again(formed: HGMem, told: list[Any]) -> None:
    shutil.rmtree(folder_of(formed))
    with pytest.raises(UsageError, match=r"is not in .* as its build left it: form it again with `hgmem build memorag"):
        clues(formed, "Who heard the belfry?")
    assert formed.build("memorag").made == 1
    assert told[-1] == (["bell", "ferry", "ledger"], [])
    assert clues(formed, "Who heard the belfry?")
    assert formed.build("memorag").made == 0


def test_another_version_of_a_memory_is_formed_from_the_beginning(
    formed: HGMem, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("associations_memory.Associations.version", "2")
    assert formed.build("memorag").made == 1
    assert told[-1] == (["bell", "ferry", "ledger"], [])


def test_a_document_of_another_type_is_told_anew(formed: HGMem, told: list[Any]) -> None:
    formed.add(replace(document("bell", BELL), metadata={"type": "log"}), graph=False)
    assert formed.build("memorag").made == 1
    assert told[-1] == (["bell"], [])


def test_a_summary_asks_the_memory_of_the_build_for_key_points(formed: HGMem) -> None:
    summary = formed.memorag.summarise()
    retrieved = formed.memory(summary.memory).steps[0].retrieved
    assert {one.subquery.concern for one in retrieved} == {"key point"}
    assert any("belfry" in one.subquery.text for one in retrieved)
    assert summary.citations


def test_a_summary_asks_the_gists_where_the_memory_is_not_installed_any_more(
    formed: HGMem, monkeypatch: pytest.MonkeyPatch
) -> None:
    formed.build("gists", settings={"memory_tokens": 700})
    own = settings_of(formed, formed.memorag.summarise().memory)
    assert (own["memory"], own["hits"]) == ("associations", 1)
    monkeypatch.delitem(found(), "associations")
    gists = settings_of(formed, formed.memorag.summarise().memory)
    assert (gists["memory"], gists["memory_tokens"], gists["hits"]) == ("gists", 700, 3)


def test_what_is_wrong_with_a_memory_is_one_line(formed: HGMem, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="unknown memory 'nothing': choose one of gists, full, none, associations, "):
        formed.ask("Who?", system="memorag", settings={"memory": "nothing"})
    with pytest.raises(UsageError, match=r"memory 'broken' cannot be loaded \(ModuleNotFoundError"):
        formed.build("memorag", settings={"memory": "broken"})
    with pytest.raises(UsageError, match="has no memory 'broken': form it with `hgmem build memorag --corpus"):
        formed.ask("Who?", system="memorag", settings={"memory": "broken"})
    with pytest.raises(UsageError, match="has no build 'gists': make it with `hgmem build gists --corpus"):
        formed.ask("Who heard the belfry?", system="memorag")
    monkeypatch.setattr("associations_memory.Associations.clues", lambda *_, **__: 1 / 0)
    with pytest.raises(ModelError, match=r"'associations' raised ZeroDivisionError: .*: report this to its authors"):
        clues(formed, "Who heard the belfry?")


def test_a_memory_that_failed_says_so_and_is_tried_again(
    formed: HGMem, open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = open_client(corpus=f"{formed.corpus}-other", data=formed.settings.data)
    other.add(document("bell", BELL), graph=False)
    with monkeypatch.context() as failing:
        failing.setattr("associations_memory.Associations.form", lambda *_, **__: 1 / 0)
        assert other.build("memorag", settings=MINE).failed == 1
        with pytest.raises(UsageError, match=r"failed to form: `hgmem build memorag .* --retry-failed` says why"):
            clues(other, "Who heard the belfry?")
        formed.add(document("lamp", ["The lamp of Quill burns whale oil."]), graph=False)
        assert formed.build("memorag").failed == 1
    answer = formed.ask("Who heard the belfry?", system="memorag", settings=MINE)
    assert len(answer.steps[0].retrieved) == 2
    assert any("is not whole (status incomplete)" in note for note in answer.notes)
    other.build("memorag", retry_failed=True)
    assert clues(other, "Who heard the belfry?")


def test_a_memory_of_edited_texts_is_asked_and_its_build_is_stale(formed: HGMem) -> None:
    formed.add(document("ferry", ["The ferry was sold."]), graph=False)
    answer = formed.ask("Who heard the belfry?", system="memorag", settings=MINE)
    assert len(answer.steps[0].retrieved) == 2
    assert any("is stale (documents were changed)" in note for note in answer.notes)
    assert not any("deleted" in note for note in answer.notes)


def test_a_memory_of_forgotten_messages_is_not_asked(told: Any, open_client: Callable[..., HGMem]) -> None:
    client = open_client()
    said = [Message(id=f"m{at}", speaker="Ann", text=text) for at, text in enumerate([*BELL, *FILLER])]
    client.add([Conversation(id="chat", messages=said)], graph=False)
    client.build("memorag", settings=MINE)
    assert clues(client, "Who heard the belfry?")
    client.hypermem.forget(conversation="chat", message="m0")
    answer = client.ask("Who heard the belfry?", system="memorag", settings=MINE)
    assert any("may hold deleted texts and was not asked" in note for note in answer.notes)


def test_a_question_reads_the_former_memory_while_another_is_saved(
    formed: HGMem, monkeypatch: pytest.MonkeyPatch
) -> None:
    from associations_memory import Associations

    save, answers = Associations.save, []

    def asking(self: Any, folder: Path) -> None:
        save(self, folder)
        _loaded.cache_clear()
        answers.append(clues(formed, "Who heard the belfry?"))

    monkeypatch.setattr(Associations, "save", asking)
    formed.add(document("lamp", ["The lamp of Quill burns whale oil."]), graph=False)
    assert formed.build("memorag").made == 1
    [[clue]] = answers
    assert set(clue.split()) == BELFRY
    assert len(list(folder_of(formed).glob("*/"))) == 1


def test_a_build_that_is_killed_while_it_saves_leaves_the_former_memory(
    formed: HGMem, told: list[Any], open_client: Callable[..., HGMem], environment: dict[str, str], tmp_path: Path
) -> None:
    formed.add(document("lamp", ["The lamp of Quill burns whale oil."]), graph=False)
    script = """if True:
        import os, signal, sys
        from associations_memory import Associations
        from hgmem import HGMem
        def killed(self, folder):
            (folder / "half").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
        Associations.save = killed
        HGMem.open(sys.argv[1]).build("memorag")
    """
    path = os.pathsep.join([str(tmp_path), str(EXAMPLE)])
    env = {**environment, "PYTHONPATH": path, "HGMEM_DATA": str(formed.settings.data)}
    ended = subprocess.run([sys.executable, "-c", script, formed.corpus], env=env, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert set(clues(formed, "Who heard the belfry?")[0].split()) == BELFRY
    client = open_client(data=formed.settings.data, claim_timeout=1, heartbeat=0.2)
    time.sleep(1.1)
    assert client.build("memorag").made == 1
    assert told[-1] == (["lamp"], [])
    assert len(list(folder_of(formed).glob("*/"))) == 1


@pytest.mark.parametrize("gone", ["documents", "build", "corpus"])
def test_files_go_with_the_memory(formed: HGMem, gone: str) -> None:
    folder = folder_of(formed)
    assert folder.exists()
    if gone == "documents":
        formed.delete(document=[row["uid"] for row in formed.documents()])
        formed.build("memorag")
    else:
        formed.delete(**({"system": "memorag"} if gone == "build" else {}))
    assert not folder.exists()


def test_damaged_files_are_named_and_the_memory_is_formed_from_the_beginning(formed: HGMem, told: list[Any]) -> None:
    all_of_them = (["bell", "ferry", "ledger"], [])
    saved(formed)[0].unlink()
    with pytest.raises(UsageError, match=r"is not in .* as its build left it: form it again with `hgmem build memorag"):
        clues(formed, "Who heard the belfry?")
    assert formed.build("memorag").made == 1
    assert told[-1] == all_of_them
    path = saved(formed)[0]
    path.write_text("?" * path.stat().st_size, encoding="utf-8")
    with pytest.raises(
        ModelError, match=r"raised JSONDecodeError: .*: delete '.*associations', then form it again with"
    ):
        clues(formed, "Who heard the belfry?")
    formed.add(document("lamp", ["The lamp of Quill burns whale oil."]), graph=False)
    assert formed.build("memorag").made == 1
    assert set(told[-1][0]) == {*all_of_them[0], "lamp"}
    assert clues(formed, "Who heard the belfry?")


def test_gists_take_the_place_of_the_memory_of_a_package_that_is_gone(formed: HGMem, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "associations_memory-1.0.dist-info")
    found.cache_clear()
    said = (
        "invalid recipe option 'memory': unknown memory 'associations': choose one of gists, full, none, or install "
        "the package that has it"
    )
    with pytest.raises(UsageError) as raised:
        formed.build("memorag")
    assert str(raised.value) == said
    with pytest.raises(
        UsageError, match="makes no build of its own with these options: make what it reads with `hgmem"
    ):
        formed.build("memorag", settings={"memory": "gists"})
    assert formed.build("gists").made > 0
    assert formed.ask("Who heard the belfry?", system="memorag").citations
    formed.delete(system="memorag")
    assert not folder_of(formed).exists()


def test_names_that_are_paths_or_hgmems_own_are_ignored(formed: HGMem) -> None:
    ignored = r"ignored are '\.\./\.\./esc', 'full': names must match .* and not be hgmem's own"
    with pytest.raises(UsageError, match=ignored):
        formed.build("memorag", settings={"memory": "../../esc"})
    answer = formed.ask("Who heard the belfry?", system="memorag", recipe="full")
    assert any(
        "memory=full is hgmem's own: a package's memory of that name is ignored" in note for note in answer.notes
    )


def test_corpora_of_one_name_share_no_memory(
    formed: HGMem, told: list[Any], open_client: Callable[..., HGMem], another_server: Server, tmp_path: Path
) -> None:
    at = {"uri": another_server.uri, "username": another_server.username, "password": another_server.password}
    where = {f"neo4j_{name}": value for name, value in at.items()}
    elsewhere = open_client(chunk_tokens=40, chunk_overlap=0, data=formed.settings.data, **where)
    elsewhere.add(document("lamp", ["The lamp of Quill burns whale oil."]), graph=False)
    elsewhere.build("memorag", settings=MINE)
    assert told[-1] == (["lamp"], [])
    assert clues(formed, "Who heard the belfry?")
    remote = open_client(chunk_tokens=40, chunk_overlap=0, data=tmp_path / "remote")
    remote.delete()
    remote.add(document("bell", BELL), graph=False)
    formed.build("memorag", settings=MINE)
    assert told[-1] == (["bell"], [])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"queries": "one text"}, r"its clues\['queries'\]: Input should be a valid list, got 'one text'"),
        ({"queries": [{"text": "a"}]}, r"its clues\['queries'\]\[0\]: Input should be a valid string"),
        ({"queries": ["lone \ud800"]}, r"UnicodeEncodeError: .* surrogates not allowed"),
        (["a"], r"its clues: Input should be a valid dictionary"),
        (SystemExit(3), r"raised SystemExit: 3: report"),
    ],
)
def test_clues_that_are_not_lists_of_text_are_one_line(
    formed: HGMem, given: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replied(*_: Any, **__: Any) -> Any:
        if isinstance(given, BaseException):
            raise given
        return given

    monkeypatch.setattr("associations_memory.Associations.clues", replied)
    with pytest.raises(ModelError, match=f"memory 'associations' raised .*{said.removeprefix('raised ')}") as raised:
        clues(formed, "Who heard the belfry?")
    assert "\n" not in str(raised.value)


def test_a_question_to_a_memory_makes_the_calls_that_were_planned(
    formed: HGMem, open_client: Callable[..., HGMem]
) -> None:
    def said(_: Asked) -> Answered:
        return Said("The bell rang [1].")

    with WireServer(said) as served:
        model = {"model": "test-model", "openai_base_url": served.base_url, "openai_api_key": "secret"}
        client = open_client(data=formed.settings.data, **model)
        plan = client.plan_question(system="memorag", settings=MINE)
        client.ask("Who heard the belfry?", system="memorag", settings=MINE)
    assert plan.calls == len(served.requests) == 1


def test_a_folder_that_cannot_be_written_is_named(
    formed: HGMem, open_client: Callable[..., HGMem], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    client = open_client(data=tmp_path / "file")
    with pytest.raises(
        UsageError, match=r"memory 'associations' cannot be kept .*: let HGMEM_DATA, which is '.*file', name"
    ):
        client.build("memorag")


def test_a_memory_may_name_its_files_as_it_likes(formed: HGMem, monkeypatch: pytest.MonkeyPatch) -> None:
    def save(self: Any, folder: Path) -> None:
        assert not list(folder.iterdir())
        (folder / "formed.json").write_text("mine", encoding="utf-8")

    def load(self: Any, folder: Path) -> None:
        assert (folder / "formed.json").read_text(encoding="utf-8") == "mine"

    monkeypatch.setattr("associations_memory.Associations.version", "2")
    monkeypatch.setattr("associations_memory.Associations.save", save)
    monkeypatch.setattr("associations_memory.Associations.load", load)
    assert formed.build("memorag").made == 1
    assert clues(formed, "Who heard the belfry?") == []
    assert [path.name for path in saved(formed)] == ["formed.json"]


def test_the_pairs_of_a_sentence_are_bounded(example: None) -> None:
    from associations_memory import _MOST, Associations

    memory = Associations()
    text = " ".join(f"word{at}" for at in range(5_000))
    memory.form([MemoryDocument(uid="table", title="table", text=text)], gone=())
    assert len(memory._documents["table"].pairs) == _MOST * (_MOST - 1) // 2

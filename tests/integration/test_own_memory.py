"""A memory of another package: that of examples/own-memory/, formed, asked, changed, deleted, filtered and lost."""

import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hgmem import HGMem, UsageError
from hgmem.errors import ModelError
from hgmem.systems.memorag.own_memories import _loaded
from hgmem.systems.memorag.recipes import registered
from hgmem.text.resources import resource
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
    points = {**project["entry-points"]["hgmem.memories"], "broken": "nowhere:Memory"}
    lines = ["[hgmem.memories]", *(f"{name} = {target}" for name, target in points.items())]
    (about / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    for folder in (tmp_path, EXAMPLE):
        monkeypatch.syspath_prepend(folder)
    registered.cache_clear()
    yield
    monkeypatch.undo()
    registered.cache_clear()
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


def files(client: HGMem) -> str:
    folder = client.settings.data / "memories" / client.corpus / "associations"
    return " ".join(path.read_text(encoding="utf-8") for path in folder.iterdir())


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
    assert any("holds deleted texts and was not asked" in note for note in answer.steps[0].notes)
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
    shutil.rmtree(formed.settings.data / "memories")
    with pytest.raises(UsageError, match=r"is not in .* as its build left it: form it again with `hgmem build memorag"):
        clues(formed, "Who heard the belfry?")
    assert formed.build("memorag").made == 1
    assert told[-1] == (["bell", "ferry", "ledger"], [])
    assert clues(formed, "Who heard the belfry?")


def test_another_version_of_a_memory_is_formed_from_the_beginning(
    formed: HGMem, told: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("associations_memory.Associations.version", "2")
    assert formed.build("memorag").made == 1
    assert told[-1] == (["bell", "ferry", "ledger"], [])


def test_a_summary_asks_the_memory_of_the_build_for_key_points(formed: HGMem) -> None:
    summary = formed.memorag.summarise()
    retrieved = formed.memory(summary.memory).steps[0].retrieved
    assert {one.subquery.concern for one in retrieved} == {"key point"}
    assert any("belfry" in one.subquery.text for one in retrieved)
    assert summary.citations


def test_what_is_wrong_with_a_memory_is_one_line(formed: HGMem, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="unknown memory 'nothing': choose one of gists, full, none, associations, "):
        formed.ask("Who?", system="memorag", settings={"memory": "nothing"})
    with pytest.raises(UsageError, match=r"memory 'broken' cannot be loaded \(ModuleNotFoundError"):
        formed.build("memorag", settings={"memory": "broken"})
    with pytest.raises(UsageError, match="has no memory 'broken': form it with `hgmem build memorag --corpus"):
        formed.ask("Who?", system="memorag", settings={"memory": "broken"})
    gists = formed.ask("Who heard the belfry?", system="memorag")
    assert any("memory has no gists, so clues were guessed" in note for note in gists.steps[0].notes)
    monkeypatch.setattr("associations_memory.Associations.clues", lambda *_, **__: 1 / 0)
    with pytest.raises(ModelError, match=r"'associations' raised ZeroDivisionError: .*: report this to its authors"):
        clues(formed, "Who heard the belfry?")

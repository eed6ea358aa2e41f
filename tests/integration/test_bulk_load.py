"""Stage folders loaded in bulk by Neo4j's own importer: the graph of ordinary indexing, in a home of its own."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from dumping import Dump, driver, dump
from servers import any_ports
from typer.testing import CliRunner

from hgmem import Conversation, Document, HGMem, Message, local
from hgmem.cli import app
from hgmem.errors import GraphError, ModelError, UsageError
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.local import docker, java
from hgmem.local.machine import Sizes
from hgmem.settings import Settings
from hgmem.settings import load as load_settings
from hgmem.testing import DeterministicEmbedder, ScriptedModel

pytest.importorskip("pyarrow", reason="stage folders need pyarrow: pip install 'hgmem[stages]'")

from hgmem.client.loading import finish_load, load_stages, write_importer_files

CORPUS = "loaded"
HEAP = {"heap": "512m", "pagecache": "128m"}
ODD = 'Ann said "no,\tnever"; it\'s \\ a ‘quote’\r\n\n  and a last line 😀,'
ITEMS = [
    Document(id="odd", title='A "title", with a comma', text=f"# One\n\n{ODD}", metadata={"type": "letter", "no": 7}),
    Document(id="plain", text="The Tallow Stairs Warehouse belongs to Marian Dace.\n\nM. Dace sold it to Ann."),
    Document(id="empty", text=""),
    Document(id="failing", text="This chunk fails: the model gives no reply to it."),
    Conversation(
        id="talk",
        messages=[
            Message(id="1", speaker="Ann", text="Where is the crate?", time="2023-02-04T19:12:00"),
            Message(id="2", speaker="Bob", text='In the warehouse, "left" there.'),
        ],
    ),
]


def reply(task: Any) -> Extraction:
    if "fails" in task.text:
        raise ModelError("no reply")
    people = [ExtractedEntity(name="Ann", type="person", description=ODD), ExtractedEntity(name="Marian Dace")]
    relations = [
        ExtractedRelation(source="Ann", target="Marian Dace", weight=0.1, description=f"They met. {task.text[:9]}"),
        ExtractedRelation(source="Ann", target="the crate", keywords=("left; there", 'a "word"'), weight=2.5),
    ]
    return Extraction(entities=tuple(people), relations=tuple(relations[: 1 + ("crate" in task.text)]))


@pytest.fixture(scope="module")
def jars() -> Iterator[None]:
    """Skips without Neo4j's jars; a load starts a server as a process, even if Docker is available."""
    try:
        found = java.find(load_settings())
        if not (java.cached_jars(load_settings()) or java.maven()):
            raise UsageError(f"Neo4j's importer needs its jars: no Maven for Java {found.version}")
    except UsageError as error:
        pytest.skip(str(error))
    with pytest.MonkeyPatch.context() as patch, any_ports():
        patch.setattr(docker, "engine", lambda: None)
        yield


@pytest.fixture(scope="module")
def made(settings: Settings, jars: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dump]:
    """A stage folder of the items, and the graph that ordinary indexing makes of them."""
    folder = tmp_path_factory.mktemp("made") / "stages"
    given = {**settings.model_dump(exclude_none=True), "model": ScriptedModel({"extract": reply})}
    with HGMem.open(CORPUS, **given) as client:
        try:
            client.add(ITEMS)
            ordinary = dump(settings, CORPUS)
            client.delete()
            client.add(ITEMS, stages=str(folder))
        finally:
            client.delete()
    return folder, ordinary


@pytest.fixture(scope="module")
def home(made: tuple[Path, Dump], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """Settings for the server on a home that the folder was loaded into."""
    data = tmp_path_factory.mktemp("load") / "a höme"
    embedder = DeterministicEmbedder.name
    done = load_stages(load_settings(embedding_model=embedder), [str(made[0])], data=data, memory=Sizes(**HEAP))
    assert done.corpora == (CORPUS,)
    assert [path.name for path in data.parent.iterdir()] == ["a höme"]
    assert {path.name for path in data.iterdir()} == {"conf", "data", "logs", "run", "server.json", "up.lock"}
    server = local.up(load_settings(data=data), **HEAP)
    try:
        yield load_settings(data=data, neo4j_uri=server.uri, neo4j_password=server.password, embedding_model=embedder)
    finally:
        local.down(load_settings(data=data))


def opened(home: Settings, **more: Any) -> HGMem:
    return HGMem.open(CORPUS, **{**home.model_dump(exclude_none=True), **more})


def test_the_loaded_graph_is_that_of_ordinary_indexing(made: tuple[Path, Dump], home: Settings) -> None:
    found, ordinary = dump(home, CORPUS), made[1]
    assert found.nodes == ordinary.nodes
    assert found.relationships == ordinary.relationships
    assert any(one["keywords"] == [] for _, _, one in found.joined("RELATES"))
    with driver(home) as connected:
        [row] = connected.execute_query(
            "MATCH (d:Document {id: 'plain'})<-[:FROM_DOCUMENT]-(c) "
            "RETURN valueType(d.indexed_at) AS time, valueType(c.attempts) AS attempts"
        ).records
    assert row.data() == {"time": "ZONED DATETIME NOT NULL", "attempts": "INTEGER NOT NULL"}


def test_a_loaded_corpus_is_checked_asked_and_not_indexed_again(home: Settings) -> None:
    model = ScriptedModel({"extract": reply})
    with opened(home) as client:
        assert client.check().ok
        assert client.ask("Who owns the Tallow Stairs Warehouse?").text
    with opened(home, model=model) as client:
        before = dump(home, CORPUS, times=True)
        done = client.add([item for item in ITEMS if item.id != "failing"])
    assert (done.documents, done.unchanged, model.tasks) == (0, 4, [])
    assert dump(home, CORPUS, times=True) == before


def test_a_home_that_exists_is_refused(made: tuple[Path, Dump], home: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists: a load fills a new home"):
        load_stages(home, [str(made[0])], data=home.data)
    (tmp_path / "notes.txt").write_text("mine")
    result = run("load", str(made[0]), "--data", str(tmp_path))
    assert (result.exit_code, "exists" in result.stderr, result.stderr.count("\n")) == (1, True, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def cut(folder: Path) -> None:
    next(folder.glob("vectors/*.parquet")).unlink()


def spoil(folder: Path) -> None:
    path = next(folder.glob("chunks/*.parquet"))
    data = bytearray(path.read_bytes())
    middle = slice(len(data) // 4, len(data) // 2)
    data[middle] = bytes(len(data[middle]))
    path.write_bytes(data)


def unfinish(folder: Path) -> None:
    (folder / "manifest" / "current.json").unlink()


def shorten(folder: Path) -> None:
    header = json.loads((folder / "stages.json").read_text())
    (folder / "stages.json").write_text(json.dumps({**header, "dimensions": 3}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (cut, "lacks part"),
        (spoil, "damaged"),
        (unfinish, "no complete stages"),
        (shorten, "without the 3 dimensions"),
        (lambda folder: shutil.rmtree(folder), "no complete stages"),
    ],
)
def test_a_damaged_folder_leaves_nothing(
    made: tuple[Path, Dump], tmp_path: Path, damage: Callable[[Path], None], said: str
) -> None:
    folder = tmp_path / "stages"
    shutil.copytree(made[0], folder)
    damage(folder)
    with pytest.raises(UsageError, match=said):
        load_stages(load_settings(), [str(folder)], data=tmp_path / "home")
    assert {path.name for path in tmp_path.iterdir()} <= {"stages"}


def test_two_folders_of_one_corpus_and_a_failing_importer_leave_nothing(
    made: tuple[Path, Dump], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=f"two of the stage folders are of corpus '{CORPUS}'"):
        load_stages(load_settings(), [str(made[0]), str(made[0])], data=tmp_path / "home")
    monkeypatch.setattr("hgmem.stages.importer_files.ARGUMENTS", ("--nodes=Nothing=absent.csv",))
    with pytest.raises(GraphError, match="importer failed"):
        load_stages(load_settings(), [str(made[0])], data=tmp_path / "home")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_load_left_is_cleared_away(made: tuple[Path, Dump], tmp_path: Path) -> None:
    draft = tmp_path / ".home.loading"
    (draft / "data").mkdir(parents=True)
    (draft / "server.json").write_text("{")
    with pytest.raises(UsageError, match="two of"):
        load_stages(load_settings(), [str(made[0]), str(made[0])], data=tmp_path / "home")
    assert list(tmp_path.iterdir()) == []


def test_files_for_a_server_of_ones_own(made: tuple[Path, Dump], home: Settings, tmp_path: Path) -> None:
    command = write_importer_files([str(made[0])], tmp_path / "out")
    assert command.startswith("neo4j-admin database import full neo4j ")
    assert f"--nodes=Chunk={tmp_path}/out/chunk.csv" in command
    with pytest.raises(UsageError, match="exists: name a new folder"):
        write_importer_files([str(made[0])], tmp_path / "out")
    with pytest.raises(UsageError, match="no corpus to finish"):
        finish_load(home)
    result = run("load", "--finish", str(made[0]))
    assert (result.exit_code, "stage folders" in result.stderr) == (2, True)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))

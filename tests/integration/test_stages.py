"""Indexing in stages that are kept as files: the same graph, nothing paid twice, and whatever is lost made again."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from dumping import Dump, dump
from troubled import environment as variables
from typer.testing import CliRunner
from wire import Asked, Said, WireServer

from hgmem import HGMem
from hgmem.cli import app
from hgmem.errors import BudgetError, ConflictError, ModelError, UsageError
from hgmem.extraction.replies import CondensedText, Extraction
from hgmem.extraction.tasks import extract
from hgmem.settings import ENTITY_TYPES, Settings
from hgmem.testing import DeterministicEmbedder, ScriptedModel
from hgmem.values.conversations import Conversation, Message
from hgmem.values.inputs import Document

pytest.importorskip("pyarrow", reason="pyarrow is not installed")
from hgmem.stages import folding, replies
from hgmem.stages.files import Folder

Open = Callable[..., HGMem]
AFFAIR = Path(__file__).parents[2] / "examples" / "affair"
ADA = Document(id="ada", title="Ada", text="Ada Marsh sold the Tallow Mill to Bo Finch in Ravensund.")
BO = Document(
    id="bo", title="Bo", text="Bo Finch wrote to Clara Dace about the price of the Tallow Mill.", source="b.txt"
)
CLARA = Document(id="clara", title="Clara", text="Clara Dace keeps the ledger of Ravensund Harbour in a box.")
EMPTY = Document(id="empty", title="Nothing", text=" ")
TALK = Conversation(
    id="talk",
    title="A talk",
    messages=(
        Message(speaker="Ann", text="Bo Finch has bought the Tallow Mill.", time="2023-02-04T19:12:00"),
        Message(speaker="Ben", text="From Ada Marsh of Ravensund?", time="2023-02-04T19:13:00"),
    ),
)
ALL = [ADA, BO, CLARA, EMPTY, TALK]


def extracting(*, failing: Sequence[str] = ()) -> ScriptedModel:
    """A model that extracts by rules, fails for chunks with certain words, and summarizes."""

    def reply(task: Any) -> Extraction:
        if any(word in task.text for word in failing):
            raise ModelError("the model is confused")
        return extract(task.text, entity_types=task.entity_types)

    def condensed(task: Any) -> CondensedText:
        return CondensedText(text=f"About {task.subject}."[: task.limit])

    return ScriptedModel({"extract": reply, "condense": condensed})


def asked(model: ScriptedModel) -> int:
    return len(model.tasks)


def staged(client: HGMem, items: Any, folder: Any, **options: Any) -> Any:
    return client.add(items, stages=str(folder), **options)


def both(open_client: Open, settings: Settings, items: Any, folder: Any, **given: Any) -> tuple[Dump, Dump]:
    """Index the same in the ordinary way and in stages, in one corpus after another, and return both dumps."""
    client = open_client(model=extracting(), **given)
    client.add(items)
    ordinary = dump(settings, client.corpus)
    client.delete()
    staged(client, items, folder)
    assert client.check().findings == ()
    return ordinary, dump(settings, client.corpus)


def test_the_graph_is_that_of_ordinary_indexing(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    ordinary, found = both(open_client, settings, [*ALL, AFFAIR], tmp_path)
    assert found.nodes == ordinary.nodes
    assert found.relationships == ordinary.relationships


def test_several_buckets_and_writers_make_the_same_graph(
    open_client: Open, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folding, "CHUNKS_IN_BUCKET", 4)
    client = open_client()
    client.add(AFFAIR)
    ordinary = dump(settings, client.corpus)
    for writers in (1, 4):
        client.delete()
        staged(client, AFFAIR, tmp_path, writers=writers)
        assert dump(settings, client.corpus) == ordinary
    current = Folder(str(tmp_path)).current()
    assert current
    assert len(current["graph"]) == 16


def test_a_second_run_writes_nothing_and_calls_no_model(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    model = extracting()
    client = open_client(model=model)
    first = staged(client, ALL, tmp_path)
    assert (first.documents, first.unchanged, first.failed) == (5, 0, 0)
    calls, before = asked(model), dump(settings, client.corpus, times=True)
    files = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    again = staged(client, ALL, tmp_path)
    assert (again.documents, again.unchanged, again.chunks) == (0, 5, 0)
    ordinary = client.add(ALL)
    assert (ordinary.documents, ordinary.unchanged) == (0, 5)
    elsewhere = staged(client, ALL, tmp_path / "other")
    assert (elsewhere.documents, elsewhere.unchanged) == (0, 5)
    assert not (tmp_path / "other" / "documents").exists()
    assert asked(model) == calls
    assert dump(settings, client.corpus, times=True) == before
    (tmp_path / "other" / "stages.json").unlink()
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")} == files


@pytest.mark.parametrize("address", ["memory://stages-{}", "file://{}"])
def test_a_folder_may_be_any_address_of_fsspec(
    address: str, open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    place = tmp_path if "file" in address else tmp_path.name
    ordinary, found = both(open_client, settings, ALL, address.format(place))
    assert found == ordinary


def test_failed_chunks_are_listed_and_asked_again(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    client = open_client(model=extracting())
    client.add(ALL)
    ordinary = dump(settings, client.corpus)
    client.delete()
    confused = open_client(model=(failing := extracting(failing=["ledger"])))
    done = staged(confused, ALL, tmp_path)
    assert (done.failed, len(done.errors), confused.status().failed) == (1, 1, 1)
    assert "the model is confused" in done.errors[0]
    assert confused.check().findings == ()
    calls = asked(failing)
    model = extracting()
    repaired = open_client(model=model)
    done = staged(repaired, ALL, tmp_path)
    assert (done.documents, done.failed, asked(model)) == (1, 0, 1)
    assert calls == len(ordinary.of("Chunk"))
    assert dump(settings, repaired.corpus) == ordinary
    assert repaired.check().findings == ()


def test_what_a_budget_cut_off_is_not_paid_again(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    client = open_client(model=extracting())
    client.add([AFFAIR, *ALL])
    ordinary = dump(settings, client.corpus)
    client.delete()
    spent = threading.Semaphore(20)

    def reply(task: Any) -> Extraction:
        if not spent.acquire(blocking=False):
            raise BudgetError("spent")
        return extract(task.text, entity_types=task.entity_types)

    limited = open_client(model=ScriptedModel({"extract": reply}))
    with pytest.raises(BudgetError):
        staged(limited, [AFFAIR, *ALL], tmp_path)
    model = extracting()
    staged(open_client(model=model), [AFFAIR, *ALL], tmp_path)
    assert asked(model) == len(ordinary.of("Chunk")) - 20
    assert dump(settings, client.corpus) == ordinary


def test_a_cut_or_missing_part_is_made_again(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    model = extracting()
    client = open_client(model=model)
    staged(client, ALL, tmp_path)
    before, calls = dump(settings, client.corpus), asked(model)
    parts = sorted(tmp_path.rglob("*.parquet"))
    assert len(parts) == 8
    for number, part in enumerate(parts):
        whole = part.read_bytes()
        if number % 2:
            part.unlink()
        else:
            part.write_bytes(whole[:-100])
        client.delete()
        staged(client, ALL, tmp_path)
        assert part.read_bytes() == whole
        assert dump(settings, client.corpus) == before
        paid = calls if part.parent.name == "replies" else 0
        assert (part, asked(model)) == (part, calls + paid)
        calls = asked(model)


def test_a_damaged_part_is_named_and_made_again(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    client = open_client()
    staged(client, ALL, tmp_path)
    before = dump(settings, client.corpus)
    client.delete()
    [part] = (tmp_path / "graph" / "relations").glob("*.parquet")
    whole = part.read_bytes()
    at = len(whole) // 3
    part.write_bytes(whole[:at] + bytes(each ^ 255 for each in whole[at : at + 50]) + whole[at + 50 :])
    with pytest.raises(UsageError, match=r"part .* of stage 'graph/relations' .* is damaged .*: run the same"):
        staged(client, ALL, tmp_path)
    staged(client, ALL, tmp_path)
    assert part.read_bytes() == whole
    assert dump(settings, client.corpus) == before
    assert client.check().findings == ()


def test_changed_documents_and_other_batches_ask_for_new_chunks_only(
    open_client: Open, settings: Settings, tmp_path: Path
) -> None:
    model = extracting()
    client = open_client(model=model)
    changed = Document(id="clara", title="Clara", text="Clara Dace has burnt the ledger of Ravensund Harbour.")
    talk = Conversation(id="talk", title="A talk", messages=(*TALK.messages, Message(speaker="Ann", text="From her.")))
    client.add(ALL)
    client.add([ADA, changed, talk])
    ordinary = dump(settings, client.corpus)
    client.delete()
    staged(client, ALL, tmp_path)
    calls = asked(model)
    done = staged(client, [ADA, changed, talk], tmp_path)
    assert (done.documents, done.unchanged, asked(model) - calls) == (2, 1, 2)
    assert list(done.replaced) == ["clara"]
    assert dump(settings, client.corpus) == ordinary
    assert client.check().findings == ()
    client.delete()
    staged(client, [ADA, BO, changed, EMPTY, talk], tmp_path)
    assert asked(model) == calls + 2
    assert dump(settings, client.corpus) == ordinary


def test_extractions_of_the_corpus_are_not_paid_again(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    model = extracting()
    client = open_client(model=model)
    client.add([ADA, BO])
    done = staged(client, ALL, tmp_path)
    assert (done.documents, done.unchanged) == (3, 2)
    assert asked(model) == len(dump(settings, client.corpus).of("Chunk"))
    found = dump(settings, client.corpus)
    client.delete()
    client.add(ALL)
    assert dump(settings, client.corpus) == found


def test_summaries_are_the_same_and_paid_once(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    given = {"condense": True, "description_characters": 60}
    ordinary, found = both(open_client, settings, ALL, tmp_path, **given)
    assert found == ordinary
    assert any(each.get("condensed") for each in found.of("Entity").values())
    model = extracting()
    client = open_client(model=model, **given)
    client.delete()
    staged(client, ALL, tmp_path)
    assert asked(model) == 0
    assert dump(settings, client.corpus) == ordinary


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"corpus": "another"}, r"made with corpus '.*', and this run has 'another': pass that corpus"),
        ({"embedder": "deterministic2"}, r"made with embedder 'deterministic', and this run has 'deterministic2'"),
        ({"chunk_tokens": 100}, r"made with chunking '200/50/2000', and this run has '100/50/2000'"),
        ({"model": "renamed"}, r"made with model 'scripted', and this run has 'renamed'"),
        ({"gleaning": 1}, r"made with gleaning 0, and this run has 1: set HGMEM_GLEANING to it"),
    ],
)
def test_a_folder_of_something_else_is_refused(
    change: dict[str, Any], said: str, open_client: Open, tmp_path: Path
) -> None:
    staged(open_client(model=extracting()), [ADA], tmp_path)
    model, embedder = extracting(), DeterministicEmbedder()
    given = dict(change)
    if "model" in given:
        model.name = given.pop("model")
    if "embedder" in given:
        embedder.name = given.pop("embedder")
    client = open_client(model=model, embedder=embedder, **given)
    with pytest.raises(UsageError, match=said):
        staged(client, [ADA, BO], tmp_path)
    assert asked(model) == 0


def test_a_folder_of_another_format_or_half_a_header_is_refused(open_client: Open, tmp_path: Path) -> None:
    client = open_client()
    staged(client, [ADA], tmp_path)
    header = json.loads((tmp_path / "stages.json").read_text())
    (tmp_path / "stages.json").write_text(json.dumps({**header, "format": 7}))
    with pytest.raises(UsageError, match="has format 7, but this hgmem reads 1"):
        staged(client, [ADA], tmp_path)
    (tmp_path / "stages.json").write_text(json.dumps(header)[:40])
    with pytest.raises(UsageError, match=r"has parts but no stages\.json"):
        staged(client, [ADA], tmp_path)
    with pytest.raises(UsageError, match="cannot be opened"):
        staged(client, [ADA], "nowhere://folder")
    with pytest.raises(UsageError, match="stages= makes a graph"):
        client.add([ADA], stages=str(tmp_path), graph=False)


def test_stages_of_another_embedder_or_language_than_the_corpus_has_are_refused(
    open_client: Open, tmp_path: Path
) -> None:
    client = open_client()
    staged(client, [ADA], tmp_path)
    client.delete()
    embedder = DeterministicEmbedder()
    embedder.name = "deterministic2"
    other = open_client(embedder=embedder)
    other.add([BO])
    with pytest.raises(UsageError, match="was embedded with 'deterministic2', not 'deterministic'"):
        staged(client, [ADA], tmp_path)
    other.delete()
    open_client(language="de").add([BO])
    with pytest.raises(UsageError, match="were made with language 'en', and the corpus has 'de': use another folder"):
        staged(client, [ADA], tmp_path)
    assert client.status().documents == 1


def test_the_command_names_what_cannot_be_combined(client: HGMem, environment: dict[str, str], tmp_path: Path) -> None:
    folder = str(tmp_path / "stages")
    command = ["index", str(AFFAIR / "07-gate-book.txt"), "--corpus", client.corpus]
    for wrong, said in (
        (["--writers", "2"], "needs --stages DIR"),
        (["--stages", folder, "--no-graph"], "cannot be combined with --retry-failed or --no-graph"),
    ):
        done = CliRunner().invoke(app, [*command, *wrong], env=environment)
        assert (done.exit_code, said in " ".join(done.stderr.split())) == (2, True), done.stderr
    done = CliRunner().invoke(app, [*command, "--stages", folder, "--writers", "1"], env=environment)
    assert (done.exit_code, "1 document added, 0 unchanged" in done.stdout) == (0, True), done.output


def test_two_runs_do_not_share_a_folder(open_client: Open, settings: Settings, tmp_path: Path) -> None:
    entered, leave = threading.Event(), threading.Event()

    def reply(task: Any) -> Extraction:
        entered.set()
        leave.wait(30)
        return extract(task.text, entity_types=task.entity_types)

    client = open_client(model=ScriptedModel({"extract": reply}))
    running = threading.Thread(target=staged, args=(client, [ADA], tmp_path))
    running.start()
    try:
        assert entered.wait(30)
        with pytest.raises(ConflictError, match=f"is in use by process {os.getpid()} on"):
            staged(client, [ADA], tmp_path)
    finally:
        leave.set()
        running.join()
    assert client.status().documents == 1
    assert not (tmp_path / "lock.json").exists()


def test_the_lock_of_a_process_that_is_gone_is_taken_over(open_client: Open, tmp_path: Path) -> None:
    client = open_client()
    holder = {"run": "x", "host": os.uname().nodename, "pid": 2**22 + 1, "beat": 4_000_000_000.0}
    (tmp_path / "lock.json").write_text(json.dumps(holder))
    assert staged(client, [ADA], tmp_path).documents == 1
    (tmp_path / "lock.json").write_text(json.dumps({**holder, "host": "elsewhere", "beat": 0}))
    assert staged(client, [ADA], tmp_path).unchanged == 1


def test_a_write_that_failed_is_resumed(
    open_client: Open, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = extracting()
    client = open_client(model=model)
    client.add(ALL)
    ordinary = dump(settings, client.corpus)
    from hgmem.stages.parallel_writes import Writers

    run = Writers.run
    for kept in (2, 3, 4):  # documents and chunks, entities, mentions; relations are missing
        client.delete()
        left = [kept]

        def failing(self: Writers, name: str, /, *, _left: list[int] = left, **parameters: Any) -> Any:
            _left[0] -= 1
            if _left[0] < 0:
                raise UsageError("cut off")
            return run(self, name, **parameters)

        monkeypatch.setattr(Writers, "run", failing)
        with pytest.raises(UsageError, match="cut off"):
            staged(client, ALL, tmp_path, writers=1)
        monkeypatch.setattr(Writers, "run", run)
        with pytest.raises(UsageError, match="is not ready"):
            client.add(ALL)
        calls = asked(model)
        staged(client, ALL, tmp_path)
        assert asked(model) == calls
        assert dump(settings, client.corpus) == ordinary
        assert client.check().findings == ()


def test_other_input_replaces_what_an_interrupted_write_left(
    open_client: Open, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_client(model=extracting())
    client.add([ADA, BO])
    ordinary = dump(settings, client.corpus)
    client.delete()
    from hgmem.stages import writing

    def cut_off(*_: Any, **__: Any) -> None:
        raise UsageError("cut off")

    monkeypatch.setattr(writing, "tie_mentions", cut_off)
    with pytest.raises(UsageError, match="cut off"):
        staged(client, ALL, tmp_path)
    monkeypatch.undo()
    staged(client, [ADA, BO], tmp_path)
    assert dump(settings, client.corpus) == ordinary


def test_replies_are_journalled_one_by_one(open_client: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = extracting()
    client = open_client(model=model)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(replies, "_compact", killed)
    with pytest.raises(KeyboardInterrupt):
        staged(client, ALL, tmp_path)
    journals = list((tmp_path / "replies" / "journal").glob("*/*.json"))
    assert len(journals) == asked(model)
    journals[0].write_text(journals[0].read_text()[:50])
    monkeypatch.undo()
    calls = asked(model)
    staged(client, ALL, tmp_path)
    assert asked(model) == calls + 1
    assert not list((tmp_path / "replies" / "journal").iterdir())


RUN = """
import sys
from hgmem import HGMem

with HGMem.open(sys.argv[1]) as client:
    client.add(sys.argv[2], stages=sys.argv[3])
"""


@pytest.mark.slow
def test_kills_pay_again_only_for_the_calls_in_flight(
    open_client: Open, settings: Settings, environment: dict[str, str], tmp_path: Path
) -> None:
    workers, kills, draw = 4, 0, random.Random(47)

    def answer(request: Asked) -> Said:
        text = request.user.partition("<text>")[2].partition("</text>")[0].strip()
        return Said(extract(text, entity_types=ENTITY_TYPES).model_dump_json(), delay=0.3)

    with WireServer(answer) as server:
        given = {"model": "scripted", "openai_base_url": server.base_url, "workers": workers}
        client = open_client(**given, cached_tasks=frozenset())
        client.add(AFFAIR)
        ordinary, calls = dump(settings, client.corpus), len(server.requests)
        client.delete()
        server.requests.clear()
        run = [sys.executable, "-c", RUN, client.corpus, str(AFFAIR), str(tmp_path / "stages")]
        around = {**environment, **variables(given), "HGMEM_CACHED_TASKS": "[]"}
        while len(server.requests) < calls - 12:
            until = len(server.requests) + draw.randint(4, 12)
            process = subprocess.Popen(run, env=around)
            while len(server.requests) < until:
                assert process.poll() is None
                time.sleep(0.05)
            process.kill()
            process.wait()
            kills += 1
        assert subprocess.run(run, env=around, check=False).returncode == 0
        assert kills > 2
        assert len(server.requests) <= calls + kills * workers + kills  # a process asks once for the model's formats
        assert subprocess.run(run, env=around, check=False).returncode == 0
        assert dump(settings, client.corpus) == ordinary
    assert client.check().findings == ()

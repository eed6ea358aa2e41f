"""Where the documents of an evaluation come from: any files, an archive alone, or a corpus that exists."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from dumping import dump
from typer.testing import CliRunner

from hgmem import Conversation, HGMem
from hgmem.cli import app
from hgmem.evaluation.results import load
from hgmem.values.conversations import Message
from hgmem.values.inputs import Document

Run = Callable[..., tuple[int, str]]
QUESTION = {
    "id": "q1",
    "kind": "single",
    "question": "Who bought the bell?",
    "answer": "Moe bought it.",
    "evidence": [{"document": "log", "quote": "sold its bell to Moe"}],
}
TALK = Conversation(
    id="talk", title="Talk", messages=[Message("Ann", "Rhee sold its bell to Moe."), Message("Bo", "When was that?")]
)


@pytest.fixture
def run(environment: Mapping[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a plan with this data set and these systems, and returns the exit code and what it prints."""

    def running(
        data: str, *systems: str, question: Mapping[str, object] = QUESTION, options: str = ""
    ) -> tuple[int, str]:
        (tmp_path / "questions.jsonl").write_text(json.dumps(question), encoding="utf-8")
        named = "".join(f'[[systems]]\nname = "{system}"\n' for system in systems)
        plan = f'output = "out"\n[[data]]\npath = "questions.jsonl"\n{data}\n{named}'
        (tmp_path / "plan.toml").write_text(plan, encoding="utf-8")
        done = CliRunner().invoke(app, ["eval", "run", str(tmp_path / "plan.toml")], env=dict(environment))
        return done.exit_code, done.output

    return running


def figures(folder: Path) -> dict[str, float]:
    (row,) = load([folder / "out"])
    assert row["error"] is None
    return {name: figure["share"] for name, figure in row["figures"].items()}


def corpora(client: HGMem) -> set[str]:
    """Return the corpora that are named after the test's: other tests have theirs on the same server."""
    return {row["corpus"] for row in client.corpora() if client.corpus in row["corpus"]}


def test_a_folder_of_any_files_is_indexed(run: Run, client: HGMem, tmp_path: Path) -> None:
    before = corpora(client)
    folder = tmp_path / "letters" / "old"
    folder.mkdir(parents=True)
    (folder / "log.html").write_text("<title>Log</title><p>Rhee sold its bell to Moe.</p>", encoding="utf-8")
    (folder / "lamps.csv").write_text("title,text\nLamps,Eve lit the lamp.\n", encoding="utf-8")
    assert run(f'documents = "letters"\nname = "{client.corpus}"', "naive")[0] == 0
    assert figures(tmp_path)["retrieved"] == 1
    (made,) = corpora(client) - before
    assert {row["title"] for row in client.documents(corpus=made)} == {"Log", "Lamps"}
    client.delete(corpus=made)


def test_an_archive_alone_is_imported_and_asked(run: Run, client: HGMem, tmp_path: Path) -> None:
    client.add([Document(id="log", title="Log", text="Rhee sold its bell to Moe.")])
    client.export(tmp_path / "mine.jsonl.gz")
    code, printed = run('graph = "mine.jsonl.gz"', "naive")
    assert (code, client.memories()) == (1, [])
    assert f"or ask it as it is: corpus = {client.corpus!r} in the plan" in printed
    client.delete()
    assert run('graph = "mine.jsonl.gz"', "naive")[0] == 0
    assert figures(tmp_path)["retrieved"] == 1
    assert client.status().documents == 1


def test_a_corpus_that_exists_is_asked_and_stays_as_it_is(run: Run, client: HGMem, tmp_path: Path) -> None:
    client.add([Document(id="log", title="Log", text="Rhee sold its bell to Moe."), Document(id="b", text="A bell.")])
    before, names = dump(client.settings, client.corpus, times=True), corpora(client)
    code, printed = run(f'corpus = "{client.corpus}"', "naive")
    assert (code, "indexing" in printed) == (0, False)
    assert figures(tmp_path)["answer_prompt"] == 1
    after = dump(client.settings, client.corpus, times=True)
    assert [after.of("Document"), after.of("Chunk"), after.of("Entity")] == [
        before.of("Document"),
        before.of("Chunk"),
        before.of("Entity"),
    ]
    assert corpora(client) == names
    assert len(client.memories()) == 1


def test_a_build_that_a_corpus_has_is_used_as_it_is_and_a_missing_one_is_made(
    run: Run, client: HGMem, tmp_path: Path
) -> None:
    client.add([TALK])
    client.build("hypermem", recipe="paper")
    (before,) = client.builds()
    question = {**QUESTION, "evidence": [{"conversation": "talk", "message": "1"}]}
    data = f'corpus = "{client.corpus}"'
    assert run(data, "hypermem", question=question)[0] == 0
    assert client.builds() == (before,)
    assert figures(tmp_path)["retrieved"] == 1
    assert run(data, "memorag", question=question)[0] == 0
    assert {one.system for one in client.builds()} == {"hypermem", "gists"}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ('corpus = "nobody"', "plan: data.0: corpus 'nobody' not found"),
        ('corpus = "a"\ndocuments = "letters"', "plan: data.0: it has documents and corpus: name one of them"),
        ('documents = "nowhere"', "data.0.documents: "),
    ],
)
def test_documents_that_do_not_fit_are_refused_in_one_line(run: Run, data: str, told: str) -> None:
    code, printed = run(data, "naive")
    assert (code, printed.count("\n")) == (1, 1)
    assert told in printed


def test_evidence_that_a_corpus_does_not_hold_is_refused(run: Run, client: HGMem) -> None:
    client.add([Document(id="log", title="Log", text="Rhee sold its lamp to Moe.")])
    code, printed = run(f'corpus = "{client.corpus}"', "naive")
    assert (code, client.memories()) == (1, [])
    assert "questions.jsonl': line 1, field 'evidence.0': quote 'sold its bell to Moe'" in printed


def test_a_system_for_conversations_is_refused_on_documents_before_anything_is_indexed(
    run: Run, client: HGMem, tmp_path: Path
) -> None:
    before = corpora(client)
    (tmp_path / "log.txt").write_text("Rhee sold its bell to Moe.", encoding="utf-8")
    code, printed = run(f'documents = "log.txt"\nname = "{client.corpus}"', "naive", "hypermem")
    assert (code, printed.count("\n")) == (1, 1)
    assert f"systems.1: 'hypermem' answers from conversations alone, and data set {client.corpus!r} has none" in printed
    assert corpora(client) == before
    assert not (tmp_path / "out").exists()

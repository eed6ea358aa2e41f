"""`hgmem export`, `hgmem import archive` and `hgmem reembed`: output, and errors for invalid input."""

import gzip
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from forked import run_python
from letters import LETTERS, QUESTION
from moving import moved
from playing import playing
from typer.testing import CliRunner, Result
from wire import WireServer

from hgmem import HGMem
from hgmem.cli import app
from hgmem.settings import Settings

Run = Callable[..., Result]


@pytest.fixture
def hgmem(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, env: Mapping[str, str] = {}) -> Result:
        return CliRunner().invoke(app, list(arguments), env={**environment, **env})

    return run


@pytest.fixture
def letters(client: HGMem) -> HGMem:
    """A client whose corpus contains the letters and a memory."""
    client.add_graph(LETTERS)
    client.ask(QUESTION, steps=2)
    return client


def one_error(result: Result, *parts: str) -> None:
    assert (result.exit_code, result.stdout) == (1, ""), result.output
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "unexpected" not in line
    for part in parts:
        assert part in line


def test_a_corpus_goes_into_a_file_and_comes_back(hgmem: Run, letters: HGMem, settings: Settings) -> None:
    corpus, before = letters.corpus, moved(settings, letters.corpus)
    out = hgmem("export", "-c", corpus, "a.jsonl.gz")
    assert out.exit_code == 0, out.output
    held = f"{corpus}: 1 document, 5 chunks, 9 entities, 6 relations, 1 memories; "
    assert out.stdout.startswith(f"{held}exported to a.jsonl.gz (")
    hgmem("delete", "-c", corpus, "--yes")

    back = hgmem("import", "archive", "a.jsonl.gz")
    assert back.stdout.startswith(f"{held}imported (")
    assert moved(settings, corpus) == before
    again = json.loads(hgmem("import", "archive", "a.jsonl.gz", "--json").stdout)
    assert (again["corpus"], again["written"], again["counts"]["Entity"]) == (corpus, False, 9)


def test_a_file_that_exists_is_replaced_only_by_force(hgmem: Run, letters: HGMem, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    one_error(hgmem("export", "-c", letters.corpus, "mine"), "'mine' exists", "--force")
    assert (tmp_path / "mine").read_text() == "mine"
    done = hgmem("export", "-c", letters.corpus, "mine", "--force", "--without-memories", "--without-embeddings")
    assert done.exit_code == 0, done.output
    header = json.loads(gzip.decompress((tmp_path / "mine").read_bytes()).splitlines()[0])
    assert (header["memories"], header["embeddings"]) == (False, False)


def test_what_cannot_be_exported_or_imported_is_one_line(
    hgmem: Run, letters: HGMem, tmp_path: Path, settings: Settings
) -> None:
    before = moved(settings, letters.corpus)
    (tmp_path / "text").write_text("no archive")
    hgmem("export", "-c", letters.corpus, "whole")
    (tmp_path / "cut").write_bytes((tmp_path / "whole").read_bytes()[:-20])
    one_error(hgmem("export", "-c", "nowhere", "out"), "'nowhere'")
    one_error(hgmem("export", "-c", letters.corpus, "no/such/folder"), "cannot write")
    one_error(hgmem("export", "-c", letters.corpus, "."), "is a folder")
    one_error(hgmem("import", "archive", "nowhere"), "'nowhere' is not a file")
    one_error(hgmem("import", "archive", "text"), "'text', line 1: ")
    one_error(hgmem("import", "archive", "cut"), "'cut', line ", "truncated")
    one_error(hgmem("import", "archive", "whole", env={"HGMEM_MAX_ARCHIVE_BYTES": "999"}), "more than 999 bytes")
    one_error(hgmem("reembed", "-c", "nowhere", "--model", "deterministic"), "'nowhere'")
    onnx = {"HGMEM_EMBEDDING_BACKEND": "onnx"}  # which needs no PyTorch to say so
    absent = hgmem("reembed", "-c", letters.corpus, "--model", "no-such", env=onnx)
    one_error(absent, "'no-such' is not on this machine")
    one_error(hgmem("reembed", "-c", letters.corpus, "--model", "openai:e"), "OPENAI_API_KEY")
    assert moved(settings, letters.corpus) == before
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["cut", "text", "whole"]


def test_the_embedder_that_a_corpus_has_is_said_to_be_there(hgmem: Run, letters: HGMem) -> None:
    done = hgmem("reembed", "-c", letters.corpus, "--model", "deterministic")
    assert done.stdout == f"{letters.corpus}: already embedded with deterministic, nothing to do\n"


def test_a_corpus_is_reembedded_by_a_server_that_speaks_openais_interface(hgmem: Run, letters: HGMem) -> None:
    with WireServer(playing()) as server:
        env = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "secret"}
        done = json.loads(hgmem("reembed", "-c", letters.corpus, "--model", "openai:e", "--json", env=env).stdout)
    assert done["embedding_model"] == "openai:e"
    assert done["vectors"] >= len(LETTERS.chunks) + len(LETTERS.entities) + len(LETTERS.relations)
    refused = hgmem("ask", QUESTION, "-c", letters.corpus)
    one_error(refused, "embedded with 'openai:e'", f"hgmem reembed --corpus {letters.corpus} --model deterministic")


def test_the_exported_file_needs_no_server_to_be_read(hgmem: Run, letters: HGMem, tmp_path: Path) -> None:
    hgmem("export", "-c", letters.corpus, "a.jsonl.gz")
    code = "import gzip, json; print(len([json.loads(line) for line in gzip.open('a.jsonl.gz')]))"
    assert int(run_python("-c", code, env=os.environ, cwd=tmp_path).stdout) > 20

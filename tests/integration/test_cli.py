"""The command line with a real server: output, exit codes, and errors for invalid input."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import neo4j
import pytest
from typer.testing import CliRunner, Result

from hgmem import HGMem, Settings
from hgmem.cli import app
from hgmem.local import Server

QUESTION = "Who took the Ravensund Orrery, and where is it hidden?"
COMMAND = [sys.executable, "-m", "hgmem"]
UNREACHABLE = "bolt://127.0.0.1:1"


class Run(Protocol):
    """Runs a command line in this process."""

    def __call__(self, *arguments: str | Path, env: Mapping[str, str] = ...) -> Result: ...


@pytest.fixture
def hgmem(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)  # so that no .env or hgmem.toml is read

    def run(*arguments: str | Path, env: Mapping[str, str] = {}) -> Result:
        return CliRunner().invoke(app, [str(each) for each in arguments], env={**environment, **env})

    return run


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts the real command in its own process."""

    def popen(*arguments: str | Path, env: Mapping[str, str] = {}, **options: Any) -> subprocess.Popen[str]:
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", **options}
        return subprocess.Popen(
            [*COMMAND, *arguments], cwd=tmp_path, env={**environment, **env}, preexec_fn=interruptible, **settings
        )

    return popen


def interruptible() -> None:
    """Let Ctrl-C reach the command even if the tests run in the background and ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def affair_corpus(settings: Settings, affair: Path, module_corpus: str) -> Iterator[str]:
    """The demo corpus, indexed once for these tests."""
    with HGMem.open(module_corpus, **settings.model_dump(exclude_none=True)) as client:
        client.add(affair)
        yield client.corpus
        client.delete()


@pytest.fixture(scope="module")
def memory(settings: Settings, affair_corpus: str) -> str:
    """The memory of one question."""
    with HGMem.open(affair_corpus, **settings.model_dump(exclude_none=True)) as client:
        return client.ask(QUESTION).memory


def one_error(result: Result, *parts: str) -> None:
    """Check that it failed with one line on stderr that contains these parts, and nothing on stdout."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    [line] = result.stderr.splitlines()
    assert line.startswith("error: ")
    assert "unexpected" not in line
    for part in parts:
        assert part in line


# Complete workflow ---------------------------------------------------------------------------------------------


def test_documents_in_and_a_cited_answer_out(
    start: Callable[..., subprocess.Popen[str]], hgmem: Run, affair: Path, corpus: str
) -> None:
    done = start("index", affair, "--corpus", corpus)
    out, err = done.communicate(timeout=120)
    assert done.returncode == 0, err
    assert "17 documents added, 0 unchanged; 47 chunks done, 0 failed; 0 skipped" in out

    asked = start("ask", QUESTION, "-c", corpus, "--json")
    out, err = asked.communicate(timeout=120)
    assert (asked.returncode, err) == (0, "")
    answer = json.loads(out)
    assert answer["citations"]
    assert all(f"[{citation['marker']}]" in answer["answer"] for citation in answer["citations"])
    assert {point["uid"] for point in answer["points"]} >= {
        operation["point"] for step in answer["steps"] for operation in step["operations"] if operation["point"]
    }
    hits = answer["steps"][0]["subqueries"][0]["retrieved"]
    assert all(hits[kind] for kind in ("entities", "chunks"))
    assert hits["entities"][0]["name"]

    again = hgmem("index", affair, "--corpus", corpus, "--json")
    assert again.exit_code == 0
    counts = json.loads(again.stdout)
    assert (counts["documents"], counts["unchanged"], counts["chunks"]) == (0, 17, 0)
    assert hgmem("delete", "--corpus", corpus, "--yes").stdout == (
        f"deleted corpus {corpus!r} with 17 documents and 1 memories\n"
    )
    one_error(hgmem("status", "--corpus", corpus), repr(corpus), "hgmem index")


def test_the_memory_is_shown_with_a_query_that_draws_it(hgmem: Run, server: Server, affair_corpus: str) -> None:
    done = hgmem("ask", QUESTION, "-c", affair_corpus, "--show-memory", "--verbose")
    assert done.exit_code == 0
    assert "step 1: searched across the corpus" in done.stdout
    assert "active at the end of step" in done.stdout
    assert "answered without a language model (extractive)" in done.stdout
    assert "neo4j: " in done.stdout
    assert server.uri in done.stderr
    assert drawn(server, done.stdout)


@pytest.mark.parametrize("step", [(), ("--step", "1")])
def test_a_stored_memory_is_shown_with_a_query_that_draws_it(
    step: tuple[str, ...], hgmem: Run, server: Server, memory: str
) -> None:
    done = hgmem("memory", "show", memory, *step)
    assert done.exit_code == 0
    assert QUESTION in done.stdout
    assert drawn(server, done.stdout)


def test_the_naive_system_answers_and_its_citations_can_be_drawn(
    hgmem: Run, server: Server, affair_corpus: str
) -> None:
    done = hgmem("ask", QUESTION, "-c", affair_corpus, "--system", "naive")
    assert done.exit_code == 0
    assert "1 step, " in done.stdout
    assert drawn(server, done.stdout)


def drawn(server: Server, output: str) -> int:
    """Return the number of paths that the query in the output draws."""
    [query] = [line for line in output.splitlines() if "MATCH path" in line]
    return len(rows(server, query))


def rows(server: Server, query: str, **parameters: Any) -> list[neo4j.Record]:
    """Return the server's rows for a query."""
    auth = (server.username, server.password.get_secret_value())
    with neo4j.GraphDatabase.driver(server.uri, auth=auth) as driver:
        return driver.execute_query(query, parameters).records  # type: ignore[arg-type]


def test_memories_are_listed_shown_and_traced_as_json(hgmem: Run, affair_corpus: str, memory: str) -> None:
    listed = json.loads(hgmem("memory", "list", "-c", affair_corpus, "--json").stdout)
    assert memory in {row["uid"] for row in listed}
    shown = json.loads(hgmem("memory", "show", memory, "--json").stdout)
    assert shown["answers"][0]["citations"]
    assert all(point["born"] <= shown["step"] and not point["died"] for point in shown["points"])
    merged = [
        operation["point"]
        for step in shown["steps"]
        for operation in step["operations"]
        if operation["kind"] == "merge"
    ]
    traced = json.loads(hgmem("memory", "lineage", merged[0], "--json").stdout)
    assert traced["kind"] == "merge"
    assert len(traced["parts"]) >= 2
    assert f"{merged[0]}  merged at step" in hgmem("memory", "lineage", merged[0]).stdout
    part = traced["parts"][0]["uid"]
    assert json.loads(hgmem("memory", "lineage", part, "--json").stdout)["into"] == [merged[0]]
    assert f"became {merged[0]}" in " ".join(hgmem("memory", "lineage", part).stdout.split())
    assert memory in hgmem("memory", "list", "-c", affair_corpus).stdout


def test_status_and_corpora_count_and_list(hgmem: Run, affair_corpus: str) -> None:
    status = json.loads(hgmem("status", "-c", affair_corpus, "--json").stdout)
    assert set(status) >= {"documents", "chunks", "entities", "relations", "failed", "memories"}
    assert (status["documents"], status["chunks"], status["failed"]) == (17, 47, 0)
    ids = {row["id"] for row in status["document_list"]}
    printed = hgmem("status", "-c", affair_corpus).stdout
    assert len(ids) == 17
    assert all(os.path.relpath(id_) in printed or id_ in printed for id_ in ids)
    corpora = json.loads(hgmem("corpora", "--json").stdout)
    assert affair_corpus in {row["corpus"] for row in corpora}
    assert affair_corpus in hgmem("corpora").stdout


def test_the_doctor_is_content_and_says_so_as_json(hgmem: Run, server: Server) -> None:
    done = hgmem("doctor", "--json")
    assert done.exit_code == 0
    report = json.loads(done.stdout)
    assert report["uri"] == server.uri
    assert {"python", "server", "schema", "model", "embedder"} <= {check["name"] for check in report["checks"]}
    assert all(set(check) == {"name", "ok", "detail", "remedy", "required"} for check in report["checks"])


def test_the_doctor_names_what_is_missing_and_fails(hgmem: Run, tmp_path: Path) -> None:
    done = hgmem("doctor", env={"NEO4J_URI": UNREACHABLE, "HGMEM_EMBEDDING_MODEL": str(tmp_path / "none")})
    assert done.exit_code == 1
    lines = {line.split()[1]: line for line in done.stdout.splitlines()}
    assert lines["server"].startswith("missing server")
    assert UNREACHABLE in lines["server"]
    assert lines["embedder"].startswith("missing embedder")
    assert done.stderr == ""


def test_without_any_server_the_doctor_says_how_to_get_one(hgmem: Run, tmp_path: Path) -> None:
    done = hgmem("doctor", "--json", env={"NEO4J_URI": "", "HGMEM_DATA": str(tmp_path / "none")})
    assert done.exit_code == 1
    report = json.loads(done.stdout)
    assert report["uri"] is None
    assert [check["remedy"] for check in report["checks"] if check["name"] == "server"] == [
        "start one with `hgmem up`, or set NEO4J_URI"
    ]


def test_a_graph_of_lightrag_is_imported_once(hgmem: Run, tmp_path: Path, corpus: str) -> None:
    folder = lightrag_directory(tmp_path / "rag")
    first = json.loads(hgmem("import", "lightrag", folder, "-c", corpus, "--json").stdout)
    counts = {name: first[name] for name in ("documents", "chunks", "entities", "relations")}
    assert counts == {"documents": 1, "chunks": 1, "entities": 2, "relations": 1}
    assert first["written"] is True
    again = hgmem("import", "lightrag", folder, "-c", corpus)
    assert again.stdout.endswith("already imported, nothing was written\n")
    asked = json.loads(hgmem("ask", "Who commands the Aurora?", "-c", corpus, "--json").stdout)
    assert {citation["source_id"] for citation in asked["citations"]} == {"c1"}
    hgmem("delete", "-c", corpus, "--yes")


def lightrag_directory(folder: Path) -> Path:
    text = "Captain Rhee commands the ferry Aurora."
    data = '<data key="d0">{}</data><data key="d1">c1</data>'
    keys = "".join(
        f'<key id="d{number}" for="{scope}" attr.name="{name}"/>'
        for number, (scope, name) in enumerate(
            [("node", "description"), ("node", "source_id"), ("edge", "description"), ("edge", "source_id")]
        )
    )
    (folder).mkdir()
    (folder / "graph_chunk_entity_relation.graphml").write_text(
        f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{keys}<graph edgedefault="undirected">'
        f'<node id="AURORA">{data.format("A ferry.")}</node><node id="CAPTAIN RHEE">{data.format("A man.")}</node>'
        '<edge source="CAPTAIN RHEE" target="AURORA"><data key="d2">Commands.</data><data key="d3">c1</data></edge>'
        "</graph></graphml>"
    )
    chunk = {"content": text, "full_doc_id": "doc", "chunk_order_index": 0, "tokens": 8}
    (folder / "kv_store_text_chunks.json").write_text(json.dumps({"c1": chunk}))
    (folder / "kv_store_full_docs.json").write_text(json.dumps({"doc": {"content": text}}))
    return folder


# Invalid input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "question",
    [
        'AND OR NOT (foo:bar~2 [* TO *] "unclosed ^9 \\ +-!{}',
        "*:* OR layer_key:/.*/",
        "'}) DETACH DELETE n // $corpus `x` \" RETURN 1",
        "谁拿走了 Ravensund 的仪器？",
        "من أخذ القارب؟",
        "!!! ???",
        "\x00 null",
    ],
)
def test_questions_of_every_kind_are_answered(question: str, hgmem: Run, affair_corpus: str) -> None:
    done = hgmem("ask", question, "-c", affair_corpus, "--json")
    assert done.exit_code == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["status"] in ("answered", "no_evidence")
    assert answer["question"] == question.strip()


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("ask", ""), ("the question is empty",)),
        (("ask", " \n "), ("the question is empty",)),
        (("ask", "x" * 8_001), ("8001 characters", "8000")),
        (("ask", "x", "--system", "crystal"), ("'crystal'", "hgmem, hybrid, hypermem, memorag, naive, remindrag")),
        (("ask", "x", "--steps", "0"), ("steps=0",)),
        (("ask", "x", "-c", "nowhere"), ("'nowhere'", "hgmem corpora")),
        (("ask", "x", "-c", "../etc"), ("'../etc'", "must match")),
        (("ask", "x", "-c", "c" * 65), ("must match",)),
        (("ask", "x", "-c", "a\nb"), ("must match",)),
        (("index", ".", "-c", ""), ()),
        (("status", "-c", "nowhere"), ("'nowhere'",)),
        (("delete", "-c", "nowhere", "--yes"), ("'nowhere'",)),
        (("memory", "list", "-c", "nowhere"), ("'nowhere'",)),
        (("memory", "show", "nothing"), ("'nothing'", "hgmem memory list")),
        (("memory", "show", "x' OR true //"), ("hgmem memory list",)),
        (("memory", "lineage", "nothing"), ("'nothing'",)),
        (("memory", "fork", "nothing"), ("'nothing'", "hgmem memory list")),
        (("memory", "diff", "nothing"), ("'nothing'", "name another memory, or a step")),
        (("memory", "diff", "nothing", "nowhere"), ("'nothing'", "hgmem memory list")),
        (("import", "lightrag", "nowhere"), ("'nowhere'",)),
        (("index", "nowhere"), ("'nowhere' does not exist",)),
        (("up", "--heap", "huge"), ("heap 'huge'",)),
        (("delete", "-c", "nowhere"), ("--yes",)),
    ],
)
def test_what_cannot_be_done_is_one_line_with_the_remedy(
    arguments: tuple[str, ...], parts: tuple[str, ...], hgmem: Run, affair_corpus: str
) -> None:
    mentions = {"-c", "memory", "import", "index", "up"} & set(arguments)
    one_error(hgmem(*arguments, *(() if mentions else ("-c", affair_corpus))), *parts)


def test_a_step_that_a_memory_does_not_have_is_refused(hgmem: Run, memory: str) -> None:
    one_error(hgmem("memory", "show", memory, "--step", "99"), memory, "no step 99")
    one_error(hgmem("memory", "lineage", memory), memory, "hgmem memory show")


@pytest.mark.parametrize(
    ("env", "parts"),
    [
        ({"NEO4J_URI": UNREACHABLE}, (UNREACHABLE, "cannot be reached", "hgmem up")),
        ({"NEO4J_URI": "neo4j://127.0.0.1:1"}, ("neo4j://127.0.0.1:1", "cannot be reached")),
        ({"NEO4J_URI": "http://127.0.0.1:7474"}, ("not a Neo4j address", "bolt://")),
        ({"NEO4J_URI": "localhost"}, ("'localhost' is not a Neo4j address",)),
        ({"NEO4J_PASSWORD": "wrong"}, ("rejected the credentials of user 'neo4j'", "NEO4J_PASSWORD")),
        ({"NEO4J_DATABASE": "absent"}, ("no database 'absent'", "NEO4J_DATABASE")),
        ({"NEO4J_URI": "", "HGMEM_DATA": "/nonexistent/hgmem"}, ("hgmem up", "NEO4J_URI")),
        ({"HGMEM_WORKERS": "many"}, ("workers", "'many'")),
        ({"HGMEM_EMBEDDING_MODEL": "other"}, ("embedded with 'deterministic'", "HGMEM_EMBEDDING_MODEL")),
        ({"HGMEM_MODEL": "gpt-9"}, ("'gpt-9'", "OPENAI_BASE_URL")),
    ],
)
def test_what_is_wrong_with_the_surroundings_is_said_within_seconds(
    env: dict[str, str], parts: tuple[str, ...], hgmem: Run, affair_corpus: str
) -> None:
    began = time.monotonic()
    one_error(hgmem("ask", "Why?", "-c", affair_corpus, env=env), *parts)
    assert time.monotonic() - began < 15


def test_an_address_that_is_no_neo4j_is_said_so(hgmem: Run, server: Server) -> None:
    one_error(hgmem("corpora", "--uri", server.http.replace("http", "bolt")), "cannot be reached")


def test_files_that_cannot_be_used_are_named_and_the_rest_is_indexed(hgmem: Run, tmp_path: Path, corpus: str) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "good.txt").write_text("Captain Rhee commands the ferry Aurora.")
    (folder / "empty.txt").touch()
    (folder / "binary.md").write_bytes(b"a\0b")
    (folder / "latin.txt").write_bytes(b"caf\xe9")
    (folder / "large.txt").write_text("x" * 2_000)
    (folder / "lines.jsonl").write_text('{"text": "The log was lost."}\n{broken\n')
    done = hgmem("index", folder, "-c", corpus, env={"HGMEM_MAX_FILE_BYTES": "1000"})
    assert done.exit_code == 1
    assert done.stdout.startswith("2 documents added, 0 unchanged; 2 chunks done, 0 failed; 5 skipped")
    skipped = [line for line in done.stderr.splitlines() if line.startswith("skipped ")]
    named = {line.split(": ")[0].rpartition("/")[2] for line in skipped}
    assert named == {"empty.txt", "binary.md", "latin.txt", "large.txt", "lines.jsonl#2"}
    assert all(line.startswith("skipped ") for line in done.stderr.splitlines())
    report = json.loads(hgmem("index", folder, "-c", corpus, "--json").stdout)
    assert {Path(row["path"]).name for row in report["skipped"]} == named - {"large.txt"}
    hgmem("delete", "-c", corpus, "--yes")


def test_a_folder_with_nothing_usable_says_what_would_be(hgmem: Run, tmp_path: Path, corpus: str) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    one_error(hgmem("index", tmp_path, "-c", corpus), str(tmp_path), ".txt .md .json .jsonl")
    one_error(hgmem("status", "-c", corpus), corpus)


def test_an_embedder_that_is_not_installed_is_named_and_nothing_is_made(
    hgmem: Run, tmp_path: Path, corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("onnxruntime", "sentence_transformers"):  # as if neither were installed
        monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / "good.txt").write_text("Captain Rhee commands the ferry Aurora.")
    usual = {"HGMEM_EMBEDDING_MODEL": "all-MiniLM-L6-v2"}
    one_error(hgmem("index", "good.txt", "-c", corpus, env=usual), "sentence-transformers", "hgmem[local]")
    one_error(hgmem("status", "-c", corpus), corpus)


def test_deleting_one_document_needs_its_uid(hgmem: Run, tmp_path: Path, corpus: str) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.txt").write_text(f"Captain {name.title()} commands the ferry Aurora.")
    hgmem("index", tmp_path, "-c", corpus)
    one_error(hgmem("delete", "-c", corpus, "--document", "nothing", "--yes"), "'nothing'", "hgmem status")
    listed = json.loads(hgmem("status", "-c", corpus, "--json").stdout)["document_list"]
    done = hgmem("delete", "-c", corpus, "--document", listed[0]["uid"], "--yes")
    assert done.stdout == f"deleted document {listed[0]['uid']} ({listed[0]['title']}) of corpus {corpus!r}\n"
    assert json.loads(hgmem("status", "-c", corpus, "--json").stdout)["documents"] == 1
    hgmem("delete", "-c", corpus, "--yes")


def test_the_rows_of_a_table_are_deleted_by_the_path_of_their_file(hgmem: Run, tmp_path: Path, corpus: str) -> None:
    table = tmp_path / "notes.csv"
    table.write_text("name,boat\nRhee,Aurora\nOlsen,Corrie Vane\n")
    (tmp_path / "one.txt").write_text("Captain Rhee commands the ferry Aurora.")
    hgmem("index", tmp_path, "-c", corpus)
    one_error(hgmem("delete", "-c", corpus, "--document", "notes.tsv", "--yes"), "'notes.tsv'", "hgmem status")
    done = hgmem("delete", "-c", corpus, "--document", table, "--yes")
    assert done.stdout == f"deleted 2 documents of corpus {corpus!r}: {table}\n"
    assert json.loads(hgmem("status", "-c", corpus, "--json").stdout)["documents"] == 1
    hgmem("delete", "-c", corpus, "--yes")


# Behaviour ----------------------------------------------------------------------------------------------------


def test_debug_shows_the_traceback_wherever_it_stands(hgmem: Run) -> None:
    for arguments in (("--debug", "corpora"), ("corpora", "--debug")):
        done = hgmem(*arguments, "--uri", UNREACHABLE)
        assert done.exit_code == 1
        assert "Traceback (most recent call last)" in done.stderr
        assert done.stderr.splitlines()[-1].startswith("error: Neo4j at ")


@pytest.mark.parametrize("arguments", [("ask",), ("ask", "x", "--steps", "few"), ("nothing",), ("delete", "--yes")])
def test_what_is_typed_wrong_exits_with_2(arguments: tuple[str, ...], hgmem: Run) -> None:
    done = hgmem(*arguments)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("arguments", [(), ("memory",), ("import",)])
def test_no_arguments_get_help(arguments: tuple[str, ...], hgmem: Run) -> None:
    assert "Usage: hgmem" in hgmem(*arguments).output.replace("Usage: root", "Usage: hgmem")


def test_the_version_is_told(hgmem: Run) -> None:
    done = hgmem("--version")
    assert (done.exit_code, done.stdout) == (0, "hgmem 0.1.0\n")


def test_a_second_up_finds_the_first_and_keeps_the_password_from_a_log(hgmem: Run, started: Server) -> None:
    done = hgmem("up", env={"NEO4J_URI": ""})
    assert done.exit_code == 0
    assert "is already running" in done.stdout
    assert started.uri in done.stdout
    assert started.browser in done.stdout
    assert started.password.get_secret_value() not in done.output
    assert str(started.data / "server.json") in done.stdout
    assert "NEO4J_URI" in hgmem("up", "--data", started.data).stdout


def test_down_has_nothing_to_stop_where_nothing_runs(hgmem: Run, tmp_path: Path) -> None:
    done = hgmem("down", "--data", tmp_path / "none")
    assert (done.exit_code, done.stdout) == (0, f"nothing to stop: no Neo4j is running on {tmp_path / 'none'}\n")


def test_the_owner_of_the_terminal_sees_the_password(
    start: Callable[..., subprocess.Popen[str]], started: Server
) -> None:
    ours, theirs = pty.openpty()
    with start("up", stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        assert started.password.get_secret_value() in read_all(ours)
    assert running.returncode == 0


def test_deleting_asks_on_a_terminal(
    start: Callable[..., subprocess.Popen[str]], hgmem: Run, tmp_path: Path, corpus: str
) -> None:
    (tmp_path / "one.txt").write_text("Captain Rhee commands the ferry Aurora.")
    hgmem("index", "one.txt", "-c", corpus)
    ours, theirs = pty.openpty()
    with start("delete", "-c", corpus, stdin=theirs) as running:
        os.write(ours, b"n\n")
        _, err = running.communicate(timeout=60)
    assert running.returncode == 1
    assert f"Delete corpus {corpus!r} with 1 documents and 0 memories?" in err
    assert err.endswith("nothing was deleted\n")
    assert hgmem("status", "-c", corpus).exit_code == 0
    hgmem("delete", "-c", corpus, "--yes")


def read_all(terminal: int) -> str:
    """Return everything written to the other end until it closed."""
    pieces = []
    try:
        while piece := os.read(terminal, 4096):
            pieces.append(piece)
    except OSError:  # Linux's error if the other end is closed
        pass
    os.close(terminal)
    return b"".join(pieces).decode()


def test_a_reader_that_goes_away_is_no_error(start: Callable[..., subprocess.Popen[str]], memory: str) -> None:
    with start("memory", "show", memory) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 141


def test_output_is_utf_8_whatever_the_locale(start: Callable[..., subprocess.Popen[str]], affair_corpus: str) -> None:
    done = start("ask", "Où est 谁?", "-c", affair_corpus, "--json", env={"PYTHONIOENCODING": "ascii", "LC_ALL": "C"})
    out, err = done.communicate(timeout=60)
    assert (done.returncode, err) == (0, "")
    assert json.loads(out)["question"] == "Où est 谁?"


def test_ctrl_c_keeps_finished_chunks_and_says_so(
    start: Callable[..., subprocess.Popen[str]], hgmem: Run, server: Server, tmp_path: Path, corpus: str
) -> None:
    people = ["Rhee", "Aldo", "Brathe", "Marian", "Tobit", "Perrin", "Lucan"]
    sentences = [
        f"Captain {people[n % 7]} met Clerk {people[n * 3 % 5]} in Port {n % 50} about load {n}." for n in range(10_000)
    ]
    (tmp_path / "long.txt").write_text(" ".join(sentences))
    with start("index", "long.txt", "-c", corpus) as running:
        assert running.stderr
        assert "chunks, " in running.stderr.readline()  # some are done
        running.send_signal(signal.SIGINT)
        rest = running.stderr.read().splitlines()
    assert running.returncode == 130, rest
    assert rest[-1] == "interrupted: finished chunks are saved; run the same command again to resume"
    assert "Traceback" not in "\n".join(rest)
    kept = "MATCH (c:Chunk {corpus: $corpus}) RETURN count(c) AS chunks, count(c.extraction) AS finished"
    [counts] = rows(server, kept, corpus=corpus)
    assert 0 < counts["finished"] < counts["chunks"]
    hgmem("delete", "-c", corpus, "--yes")

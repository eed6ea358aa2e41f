"""Runs the examples of README.md and docs/ unchanged against a real Neo4j: commands, sessions, Python and Cypher."""

import json
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import neo4j
import pytest
from documented import ROOT, Block, Shell, blocks, pages, wrong
from histories import fetching
from playing import playing
from wire import WireServer

from hgmem import Answer, HGMem, Settings
from hgmem.local import Server

QUESTION = (
    "What links the Tamswell Company of Marian Dace to the museum director Edmund Sallowby and to the seven boxes of "
    "the Ravensund Orrery?"
)
OLLAMA = "http://127.0.0.1:11434/v1"
GRAPH = """<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="d" for="node" attr.name="source_id"/>
<graph edgedefault="undirected"><node id="ANNA"><data key="d">c</data></node><node id="MILL"/></graph></graphml>"""

pytestmark = [
    pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="the documents are not in the wheel"),
    pytest.mark.skipif(sys.platform == "win32", reason="the commands are written for a shell"),
]


@pytest.mark.slow
def test_the_readme_example_answers_with_quotes_and_points(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD", "HGMEM_EMBEDDING_MODEL"):
        monkeypatch.setenv(name, environment[name])
    exec(
        compile(next(block.text for block in blocks("README.md") if block.language == "python"), "README.md", "exec"),
        {},
    )
    printed = capsys.readouterr().out
    with HGMem.open("harbour") as client:
        client.delete()

    assert "Tallow Stairs Warehouse" in printed
    assert "[1] " in printed
    assert "Tamswell Company" in printed


@pytest.mark.slow
def test_the_examples_for_langchain_do_what_they_say(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    from langchain_core.language_models.fake_chat_models import FakeListChatModel

    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD", "HGMEM_EMBEDDING_MODEL"):
        monkeypatch.setenv(name, environment[name])
    examples = [block.text for block in blocks("docs/langchain.md") if block.elsewhere]
    printed = []
    names: dict[str, object] = {"llm": FakeListChatModel(responses=["The Tamswell Company."])}
    for number, example in enumerate(examples):
        exec(compile(example, f"docs/langchain.md, example {number}", "exec"), names)
        printed.append(capsys.readouterr().out)
    with HGMem.open("harbour") as client:
        client.delete()

    _, retrieved, chained, asked, run, tool, embedded = printed
    assert re.search(r"^1 (Log 1922 On 12 October|Register 1921 The Tallow)", retrieved)
    assert "Tallow Stairs Warehouse" in retrieved.split("\n")[1]
    assert chained.splitlines() == ["The Tamswell Company.", "['The Tamswell Company.', 'The Tamswell Company.']"]
    assert "Tamswell Company" in asked
    assert "QuestionAccepted" in asked
    assert "step 1 ['demo', 'hgmem:step:1']" in run
    assert run.startswith("warehouse ['demo'] ")
    assert "Tallow Stairs Warehouse" in tool
    assert embedded.splitlines() == ["64"]


@pytest.fixture(scope="module")
def model() -> Iterator[WireServer]:
    """A model server for every task and for embeddings; it lists the models that the documents name."""
    with pytest.MonkeyPatch.context() as patched, WireServer(playing()) as server:
        patched.setattr("wire.MODELS", ("qwen2.5:32b", "gpt-4o"))
        yield server


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[HGMem]:
    """A client on the corpus of the documents; deletes the data of their examples at the end."""
    before = {"affair"}
    with HGMem.open("affair", **settings.model_dump(exclude_none=True)) as client:
        before = {row["corpus"] for row in client.corpora()} - before
        yield client
        for row in client.corpora():
            if row["corpus"] not in before:
                client.delete(corpus=row["corpus"])


@pytest.fixture
def answer(client: HGMem, affair: Path) -> Answer:
    """A question of three steps on the initial corpus."""
    embedder = {row["corpus"]: row["embedding_model"] for row in client.corpora()}.get("affair")
    if embedder not in (None, client.embedder.name):
        client.delete()
    client.add(affair)
    return client.ask(QUESTION)


@pytest.fixture(scope="module")
def replays() -> None:
    """The graph library of replays, downloaded if it is missing, as by a build."""
    if missing := fetching.fetch():
        pytest.skip(missing)


@pytest.fixture
def shell(
    replays: None,
    answer: Answer,
    affair: Path,
    model: WireServer,
    server: Server,
    environment: dict[str, str],
    tmp_path: Path,
) -> Shell:
    """A folder with the files that the documents name: the affair, and a LightRAG working directory."""
    shutil.copytree(affair, tmp_path / "examples" / "affair")
    lightrag = tmp_path / "path" / "to" / "workdir"
    lightrag.mkdir(parents=True)
    text = "Anna left the mill."
    stored = {"c": {"content": text, "full_doc_id": "d", "chunk_order_index": 0}}
    (lightrag / "kv_store_full_docs.json").write_text(json.dumps({"d": {"content": text}}))
    (lightrag / "kv_store_text_chunks.json").write_text(json.dumps(stored))
    (lightrag / "graph_chunk_entity_relation.graphml").write_text(GRAPH)
    point = next(one.point for step in answer.steps for one in step.operations if one.kind == "merge")
    says = {"m0123456789abcdef-2-8": point, "m0123456789abcdef": answer.memory, OLLAMA: model.base_url}
    says["OPENAI_API_KEY=…"] = "OPENAI_API_KEY=any"
    if server.pid is None:  # a container that `hgmem up` did not start
        says["hgmem up "] = "hgmem doctor "
        says["hgmem up\n"] = "hgmem doctor\n"
    reached = {**environment, "OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "any"}
    return Shell.of(tmp_path, reached, says)


@pytest.fixture
def driver(server: Server) -> Iterator[neo4j.Driver]:
    password = server.password.get_secret_value()
    with neo4j.GraphDatabase.driver(server.uri, auth=(server.username, password)) as driver:
        yield driver


@pytest.mark.parametrize("page", pages())
def test_every_block_is_run_or_says_why_not(page: str) -> None:
    assert [said for block in blocks(page) for said in wrong(block)] == []
    fences = re.findall(r"^\s*```", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page)), "a fence is indented, or not closed"


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in pages() if any(block.is_run for block in blocks(page))])
def test_the_blocks_of_a_page_do_what_they_show(
    page: str, shell: Shell, answer: Answer, driver: neo4j.Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD", "HGMEM_EMBEDDING_MODEL", "HGMEM_CACHE"):
        monkeypatch.setenv(name, shell.environment[name])
    monkeypatch.chdir(shell.folder)
    names: dict[str, object] = {}
    for block in [block for block in blocks(page) if block.is_run]:
        if block.language == "bash":
            shell.run(block)
        elif block.language == "console":
            shell.check(block)
        elif block.language == "python":
            exec(compile(shell.put(block.text), str(block), "exec"), names)
        else:
            found = driver.execute_query(block.text, memory=answer.memory, corpus=answer.corpus, step=2).records
            assert found, f"{block}: the query finds nothing"


def test_a_block_that_nobody_runs_is_noticed() -> None:
    fine = Block(page="docs/x.md", line=1, language="bash", text="true", above="")
    assert list(wrong(fine)) == []
    for bad in (
        replace(fine, language="sh"),
        replace(fine, language=""),
        replace(fine, above="<!-- not run -->"),
        replace(fine, above="<!-- not run: no -->"),
        replace(fine, above="<!-- skip this -->"),
        replace(fine, above="<!-- run by tests -->"),
    ):
        assert len(list(wrong(bad))) == 1, bad


def test_a_session_is_compared_with_what_is_printed(tmp_path: Path) -> None:
    shell = Shell.of(tmp_path, {}, {})
    block = Block(page="docs/x.md", line=1, language="console", text="$ printf 'a  1\\nb 2\\n'\na …\nb 2\n", above="")
    shell.check(block)
    for other in ("b 2\na …\n", "a …\nc\n", "a 1 more\n"):
        with pytest.raises(AssertionError, match="not printed"):
            shell.check(replace(block, text=f"$ printf 'a  1\\nb 2\\n'\n{other}"))
    with pytest.raises(AssertionError, match="exit code 1"):
        shell.run(replace(block, text="false\ntrue\n"))


def test_the_example_of_the_page_on_data_sets_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    block = text.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)

    told: dict[str, object] = {}
    exec(block, told)

    assert told["data"].questions[0].evidence[0].text == "sold its bell to Moe"

"""What the documents show is run as it stands: examples of the README and of docs/, every query of docs/cypher.md."""

import re
from pathlib import Path

import neo4j
import pytest
from wire import Said, WireServer

from hgmem import Answer, HGMem
from hgmem.local import Server

RUN = "<!-- example: run by tests -->"
ROOT = Path(__file__).parents[2]
QUESTION = "Who took the Ravensund Orrery, and where was it hidden?"

pytestmark = pytest.mark.skipif(not (ROOT / "README.md").is_file(), reason="the documents are not in the wheel")


def blocks(file: str, language: str) -> list[str]:
    text = (ROOT / file).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_readme_example_answers_with_quotes_and_points(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD", "HGMEM_EMBEDDING_MODEL"):
        monkeypatch.setenv(name, environment[name])
    exec(compile(blocks("README.md", "python")[0], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    with HGMem.open("harbour") as client:
        client.delete()

    assert "Tallow Stairs Warehouse" in printed
    assert "[1] " in printed
    assert "Tamswell Company" in printed


def test_the_examples_for_langchain_do_what_they_say(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("langchain_core", reason="langchain-core is not installed")
    for name in ("NEO4J_URI", "NEO4J_USERNAME", "NEO4J_PASSWORD", "HGMEM_EMBEDDING_MODEL"):
        monkeypatch.setenv(name, environment[name])
    monkeypatch.setenv("HGMEM_CACHE", str(tmp_path))
    text = (ROOT / "docs" / "langchain.md").read_text(encoding="utf-8")
    examples = re.findall(rf"{RUN}\n```python\n(.*?)```", text, re.DOTALL)
    printed = []
    with WireServer(lambda asked: Said(f"I heard: {asked.user[-60:]}")) as model:
        names: dict[str, object] = {}
        for number, example in enumerate(examples):
            served = example.replace("http://127.0.0.1:11434/v1", model.base_url)
            exec(compile(served, f"docs/langchain.md, example {number}", "exec"), names)
            printed.append(capsys.readouterr().out)
    with HGMem.open("harbour") as client:
        client.delete()

    _, retrieved, chained, asked, run, tool, models = printed
    assert re.search(r"^1 (Log 1922 On 12 October|Register 1921 The Tallow)", retrieved)
    assert "Tallow Stairs Warehouse" in retrieved.split("\n")[1]
    assert "I heard: " in chained
    assert "Tamswell Company" in asked
    assert "QuestionAccepted" in asked
    assert "step 1 ['demo', 'hgmem:step:1']" in run
    assert run.startswith("warehouse ['demo'] ")
    assert "Tallow Stairs Warehouse" in tool
    assert models.splitlines() == ["I heard: Say hello.", "64"]


@pytest.fixture(scope="module")
def answered(settings: object, affair: Path) -> "tuple[HGMem, Answer]":
    client = HGMem.open("docs-queries", **settings.model_dump(exclude_none=True))  # type: ignore[attr-defined]
    client.add(affair)
    answer = client.ask(QUESTION)
    yield client, answer
    client.delete()
    client.close()


@pytest.mark.parametrize("number", range(len(blocks("docs/cypher.md", "cypher")) if (ROOT / "docs").is_dir() else 0))
def test_a_documented_query_finds_something(number: int, answered: "tuple[HGMem, Answer]", server: Server) -> None:
    client, answer = answered
    query = blocks("docs/cypher.md", "cypher")[number]
    with neo4j.GraphDatabase.driver(server.uri, auth=(server.username, server.password.get_secret_value())) as driver:
        found, _, _ = driver.execute_query(query, memory=answer.memory, corpus=client.corpus, step=2)

    assert found, query

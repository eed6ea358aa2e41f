"""Systems of other packages: listed, asked, recorded, and gone again. The code is that of docs/write-a-system.md."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from documented import blocks
from forked import run_hgmem
from letters import LETTERS, QUESTION
from wire import Asked, Said, WireServer

from hgmem import HGMem, UsageError
from hgmem.systems.registry import _loaders

Command = Callable[..., CompletedProcess[str]]


def documented_code() -> str:
    """Return the package that docs/write-a-system.md shows."""
    return next(block.text for block in blocks("docs/write-a-system.md") if block.language == "python")


def install(folder: Path, package: str, code: str, *, name: str) -> None:
    """Write what an installer leaves of a package that registers a system."""
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(code, encoding="utf-8")
    about = folder / f"{package}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n", encoding="utf-8")
    (about / "entry_points.txt").write_text(f"[hgmem.systems]\n{name} = {package}:SPEC\n", encoding="utf-8")


@pytest.fixture
def command(environment: dict[str, str], tmp_path: Path) -> Command:
    """Runs the command in a process of its own, with or without the packages of a folder."""

    def run(
        *arguments: str, packages: Path | None = None, variables: Mapping[str, str] | None = None
    ) -> CompletedProcess[str]:
        paths = [str(packages)] if packages else []
        known = os.environ.get("PYTHONPATH")
        env = {**environment, **(variables or {}), "PYTHONPATH": os.pathsep.join([*paths, *([known] if known else [])])}
        return run_hgmem(*arguments, env=env, cwd=tmp_path)

    return run


def test_a_system_of_another_package_is_listed_asked_and_remembered_when_it_is_gone(
    client: HGMem, command: Command, tmp_path: Path
) -> None:
    client.add_graph(LETTERS)
    packages = tmp_path / "packages"
    install(packages, "nearest_system", documented_code(), name="nearest")
    listed = {one["name"]: one for one in json.loads(command("systems", "--json", packages=packages).stdout)}
    assert listed.keys() == {"bm25", "hgmem", "hybrid", "hypermem", "memorag", "naive", "nearest", "remindrag"}
    assert (listed["nearest"]["recipes"], listed["nearest"]["continues"]) == (["pair"], False)

    asked = ("ask", QUESTION, "-c", client.corpus, "--system", "nearest", "--json")
    answer = json.loads(command(*asked, "--recipe", "pair", packages=packages).stdout)
    assert (answer["system"], len(answer["steps"])) == ("nearest", 1)
    chunks = [hit["uid"] for hit in answer["steps"][0]["subqueries"][0]["retrieved"]["chunks"]]
    assert len(chunks) == 2

    refused = command("ask", "And?", "-c", client.corpus, "--continue", answer["memory"], packages=packages)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "was made by system 'nearest', which cannot be continued" in refused.stderr
    wrong = command(*asked, "--set", "worst=3", packages=packages)
    assert "unknown recipe option 'worst': choose from best" in wrong.stderr

    gone = command(*asked)
    assert gone.stderr.strip().splitlines() == [
        "error: unknown system 'nearest': choose one of bm25, hgmem, hybrid, hypermem, memorag, naive, remindrag"
    ]
    assert "system nearest, answered" in command("memory", "show", answer["memory"]).stdout
    assert [one.chunk.uid for one in client.passages(answer["memory"])] == chunks
    with pytest.raises(UsageError, match="cannot be continued: unknown system 'nearest'"):
        client.ask("And?", memory=answer["memory"])
    assert client.check().findings == ()


WALKING = """
from dataclasses import dataclass

from hgmem.graph.retrieval import near_chunks
from hgmem.systems.single_step import SingleStep, evidence_of
from hgmem.values.evidence import BuiltHit


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    best: int = 1


def retrieve(services, question, *, scope, config):
    vector = services.embed([question], kind="query")[0]
    found = near_chunks(services.database, scope=scope, query=vector, k=config.best, over=50)
    topic = BuiltHit(uid="t1", kind="topic", rank=1, score=0.5, text="Boats ⛵")
    return evidence_of(question, found, strategy="walk", built=[topic])


SPEC = SingleStep(name="walking", summary="Walks.", config=Config, retrieve=retrieve, passage_option="best")
"""


def test_how_another_system_searched_and_what_it_had_built_are_recorded_shown_and_archived(
    client: HGMem, command: Command, tmp_path: Path
) -> None:
    client.add_graph(LETTERS)
    packages = tmp_path / "packages"
    install(packages, "walking_system", WALKING, name="walking")
    asked = command("ask", QUESTION, "-c", client.corpus, "--system", "walking", "--json", packages=packages)
    answer = json.loads(asked.stdout)
    (subquery,) = answer["steps"][0]["subqueries"]
    built = {"uid": "t1", "kind": "topic", "rank": 1, "score": 0.5, "text": "Boats ⛵", "source": ""}
    assert (answer["steps"][0]["strategy"], subquery["strategy"]) == ("walk", "walk")
    assert subquery["retrieved"]["built"] == [built]

    memory = answer["memory"]
    told = command("memory", "show", memory).stdout
    assert "searched by walk" in told
    assert "1 of kind topic" in told
    assert "Boats" in client.replay(memory)

    archive = tmp_path / "letters.jsonl"
    client.export(archive)
    client.delete()
    client.import_archive(archive)
    (step,) = client.memory(memory).steps
    assert (step.strategy, [asdict(hit) for hit in step.retrieved[0].built]) == ("walk", [built])


def test_a_strategy_that_is_no_word_is_refused_by_name(client: HGMem, command: Command, tmp_path: Path) -> None:
    client.add_graph(LETTERS)
    packages = tmp_path / "packages"
    install(packages, "walking_system", WALKING.replace('"walk"', "'Walk'"), name="walking")
    refused = command("ask", QUESTION, "-c", client.corpus, "--system", "walking", packages=packages)
    assert refused.returncode == 1
    said = "error: system 'walking' gave strategy 'Walk': use at most 30 lowercase letters and spaces"
    assert said in refused.stderr.strip().splitlines()


REWORDING = """
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import ClassVar

from hgmem.graph.retrieval import near_chunks
from hgmem.models.reply import TextReply
from hgmem.systems.single_step import SingleStep, evidence_of

PROMPTS = Path(__file__).parent / "prompts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reword:
    question: str
    name: ClassVar[str] = "reword"
    prompt_file: ClassVar[Path] = PROMPTS / "reword.md"
    reply_type: ClassVar[type[TextReply]] = TextReply

    def fields(self) -> Mapping[str, str]:
        return {"question": self.question}


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    best: int = 1


def retrieve(services, question, *, scope, config):
    reworded = services.reply(Reword(question=question)).text
    vector = services.embed([reworded], kind="query")[0]
    found = near_chunks(services.database, scope=scope, query=vector, k=config.best, over=50)
    return evidence_of(reworded, found, strategy="reworded")


SPEC = SingleStep(
    name="rewording", summary="Rewords.", config=Config, retrieve=retrieve, passage_option="best", prompts=PROMPTS
)
"""
PROMPT = """<!-- Words a question anew, for a test of systems with tasks of their own. -->
# System
Word the question anew. Reply with JSON: {"text": "…"}

# User
<question>
{{question}}
</question>
"""


def install_rewording(packages: Path, *, prompt: str = PROMPT, task: str = "reword") -> None:
    """Install a system with a task of its own, which needs a language model."""
    install(packages, "rewording_system", REWORDING, name="rewording")
    prompts = packages / "rewording_system" / "prompts"
    prompts.mkdir()
    (prompts / f"{task}.md").write_text(prompt, encoding="utf-8")


def test_a_task_of_another_package_is_asked_sampled_counted_and_needs_a_language_model(
    client: HGMem, command: Command, tmp_path: Path
) -> None:
    client.add_graph(LETTERS)
    packages = tmp_path / "packages"
    install_rewording(packages)
    asking = ("ask", QUESTION, "-c", client.corpus, "--system", "rewording", "--json")
    refused = command(*asking, packages=packages).stderr.strip().splitlines()
    assert refused == ["error: task 'reword' needs a language model: set HGMEM_MODEL"]

    def said(asked: Asked) -> Said:
        rewording = "Word the question anew" in asked.system
        return Said('{"text": "Who sold the boat?"}' if rewording else '{"text": "Anna sold it [1]."}')

    with WireServer(said) as server:
        model = {"HGMEM_MODEL": "wire", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any"}
        sampling = {"HGMEM_SAMPLING": '{"reword": {"temperature": 0.125}}'}
        answer = json.loads(command(*asking, packages=packages, variables=model | sampling).stdout)
        (subquery,) = answer["steps"][0]["subqueries"]
        assert (subquery["text"], answer["answer"]) == ("Who sold the boat?", "Anna sold it [1].")
        assert answer["usage"]["calls"]["model"].keys() == {"reword", "answer"}
        assert [one.body.get("temperature") for one in server.requests if "anew" in one.system] == [0.125]

        wrong = {"HGMEM_SAMPLING": '{"rewrite": {"temperature": 0}}'}
        (line,) = command(*asking, packages=packages, variables=model | wrong).stderr.strip().splitlines()
        assert line.startswith("error: HGMEM_SAMPLING: unknown task 'rewrite': choose from ")
        assert "reword" in line
        (line,) = command(*asking[:-2], "naive", variables=model | sampling).stderr.strip().splitlines()
        assert line.startswith("error: HGMEM_SAMPLING: unknown task 'reword': choose from ")


@pytest.mark.parametrize(
    ("prompt", "task", "why"),
    [
        (PROMPT, "plan", "hgmem has a task 'plan' already: rename its prompt"),
        ("Word it anew.", "reword", "prompt 'reword' has to be a comment, then # System, then # User"),
    ],
    ids=["a name of ours", "no prompt"],
)
def test_a_package_with_a_prompt_that_does_not_fit_is_named_and_all_else_works(
    prompt: str, task: str, why: str, command: Command, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    install_rewording(packages, prompt=prompt, task=task)
    listed = {one["name"]: one for one in json.loads(command("systems", "--json", packages=packages).stdout)}
    assert why in listed["rewording"]["summary"]
    assert not listed["rewording"]["installed"]
    assert listed["naive"]["installed"]


def test_a_task_whose_fields_are_not_those_of_its_prompt_is_named_in_one_line(
    client: HGMem, command: Command, tmp_path: Path
) -> None:
    client.add_graph(LETTERS)
    packages = tmp_path / "packages"
    install_rewording(packages, prompt=PROMPT.replace("{{question}}", "{{query}}"))
    with WireServer(lambda _: Said('{"text": "Never asked."}')) as server:
        model = {"HGMEM_MODEL": "wire", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any"}
        asking = ("ask", QUESTION, "-c", client.corpus, "--system", "rewording")
        (line,) = command(*asking, packages=packages, variables=model).stderr.strip().splitlines()
    assert line.startswith("error: prompt 'reword' (")
    assert "reword.md) has the fields query, and its task gives question: let the task's fields() return " in line


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("raise RuntimeError('half installed')", "cannot be loaded (RuntimeError: half installed)"),
        ("SPEC = {}", "its package registers {}, not its SystemSpec"),
        (WALKING, "its package registers SingleStep(name='walking'"),
        (
            WALKING.replace('name="walking"', 'name="broken"').replace("best: int = 1", "best: int"),
            "Config() raises TypeError",
        ),
        (
            "from hgmem.builds.stages import Build, BuiltKind\n"
            + WALKING.replace(
                'name="walking"', "name='broken', build=Build(kinds=[BuiltKind(name='Chunk')], stages=[])"
            ),
            "hgmem uses the label 'Chunk' itself: rename that kind",
        ),
    ],
    ids=["raises", "no spec", "another name", "no defaults", "a label of ours"],
)
def test_a_package_that_cannot_be_loaded_is_named_and_all_else_works(
    code: str, why: str, client: HGMem, command: Command, tmp_path: Path
) -> None:
    client.add_graph(LETTERS)
    packages = tmp_path / "packages"
    install(packages, "broken_system", code, name="broken")
    listed = {one["name"]: one for one in json.loads(command("systems", "--json", packages=packages).stdout)}
    assert why in listed["broken"]["summary"]
    assert not listed["broken"]["installed"]

    refused = command("ask", QUESTION, "-c", client.corpus, "--system", "broken", packages=packages)
    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = refused.stderr.strip().splitlines()
    assert "system 'broken' cannot be loaded" in line
    assert command("ask", QUESTION, "-c", client.corpus, "--system", "naive", packages=packages).returncode == 0


def test_a_package_cannot_replace_a_system_of_ours(command: Command, tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    install(packages, "impostor", WALKING.replace('name="walking"', 'name="naive"'), name="naive")
    listed = {one["name"]: one for one in json.loads(command("systems", "--json", packages=packages).stdout)}
    assert listed["naive"]["recipes"] == []


def test_a_memory_is_continued_by_its_own_system_whatever_the_default_is(open_client: Callable[..., HGMem]) -> None:
    client = open_client(system="naive")
    client.add_graph(LETTERS)
    assert client.ask(QUESTION).system == "naive"
    memory = client.ask(QUESTION, system="hgmem", steps=1).memory
    assert client.ask("Who else?", memory=memory, steps=1).system == "hgmem"
    assert _loaders().keys() - {one.name for one in client.systems()} == {"gists"}


STATED = """// Statements of a system in a package of its own.

// name: nearest_chunk(corpus, vector) read
CYPHER 25 MATCH (c:Chunk)
SEARCH c IN (VECTOR INDEX chunk_embedding FOR $vector WHERE c.corpus = $corpus LIMIT 5) SCORE AS score
RETURN c.uid AS uid ORDER BY score DESC LIMIT 1;
"""


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("", "", ""),
        ("(corpus, vector)", "(vector)", "declares and uses different parameters ($corpus): name in its header"),
        (" WHERE c.corpus = $corpus", "", "declares and uses different parameters ($corpus): name in its header"),
        ("nearest_chunk", "find_corpus", "statement 'find_corpus' already exists in "),
    ],
    ids=["fits", "undeclared", "without corpus", "a name of ours"],
)
def test_the_statements_of_a_package_are_known_where_they_can_be_read(
    old: str, new: str, why: str, command: Command, tmp_path: Path
) -> None:
    packages = tmp_path / "packages"
    code = WALKING.replace('name="walking"', 'name="walking", statements=Path(__file__).parent / "walking.cypher"')
    install(packages, "walking_system", f"from pathlib import Path\n{code}", name="walking")
    (packages / "walking_system" / "walking.cypher").write_text(STATED.replace(old, new), encoding="utf-8")
    listed = {one["name"]: one for one in json.loads(command("systems", "--json", packages=packages).stdout)}
    assert listed["walking"]["installed"] is not bool(why)
    assert why in listed["walking"]["summary"]
    assert listed["naive"]["installed"]


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("", "", ""),
        ("RETURN", "RETRUN", "Invalid input 'RETRUN'"),
        ("c.corpus = $corpus", "c.document = $corpus", "(c:Chunk) is not limited to the corpus"),
        ("CYPHER 25 ", "", "it does not begin with CYPHER 25"),
        (") read", ") schema", "its mode is 'schema', not 'read' or 'write'"),
        (
            STATED[STATED.index("MATCH") : STATED.index("RETURN")],
            "MATCH (c:Unindexed {corpus: $corpus}) WHERE $vector IS NOT NULL ",
            "reads all data of the server (NodeByLabelScan)",
        ),
    ],
    ids=["fits", "no Cypher", "not limited", "version", "mode", "scans"],
)
def test_doctor_checks_the_statements_of_packages(
    old: str, new: str, why: str, client: HGMem, command: Command, tmp_path: Path
) -> None:
    client.add_graph(LETTERS)  # which makes the schema
    packages = tmp_path / "packages"
    code = WALKING.replace('name="walking"', 'name="walking", statements=Path(__file__).parent / "walking.cypher"')
    install(packages, "walking_system", f"from pathlib import Path\n{code}", name="walking")
    stated = STATED.replace(old, new).replace(
        "ORDER BY score DESC ", "" if "Unindexed" in new else "ORDER BY score DESC "
    )
    (packages / "walking_system" / "walking.cypher").write_text(stated, encoding="utf-8")
    done = command("doctor", "--json", packages=packages)
    (check,) = [one for one in json.loads(done.stdout)["checks"] if one["name"] == "systems"]
    assert (check["ok"], check["detail"]) == (not why, check["detail"])
    assert why in check["detail"]
    assert done.returncode == 0  # everything else works


def test_doctor_checks_the_favourites_of_packages(client: HGMem, command: Command, tmp_path: Path) -> None:
    client.add_graph(LETTERS)
    packages = tmp_path / "packages"
    code = WALKING.replace(
        'name="walking"', 'name="walking", favourites=[Favourite.read(Path(__file__).parent / "all.cypher")]'
    )
    imports = "from pathlib import Path\nfrom hgmem.memory.browser.favourites import Favourite\n"
    install(packages, "walking_system", imports + code, name="walking")
    query = "// Everything\nMATCH (n) WHERE n.corpus = $corpus SET n.seen = true RETURN n;\n"
    (packages / "walking_system" / "all.cypher").write_text(query, encoding="utf-8")
    done = command("doctor", "--json", packages=packages)
    (check,) = [one for one in json.loads(done.stdout)["checks"] if one["name"] == "systems"]
    assert not check["ok"]
    assert "all.cypher" in check["detail"]
    assert "SET" in check["detail"]

"""`hgmem resolve` with a real server: what it prints, decides, and refuses in one line."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from test_resolving import BY_RULES, GIVEN, NAMED
from typer.testing import CliRunner, Result
from wire import Said, WireServer

from hgmem import HGMem
from hgmem.cli import app


@pytest.fixture
def hgmem(
    environment: dict[str, str], client: HGMem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Runs `hgmem resolve …` on the corpus of the test."""
    monkeypatch.chdir(tmp_path)
    client.add_graph(GIVEN)

    def run(*arguments: str, given: str = "", env: Mapping[str, str] = {}) -> Result:
        line = ["resolve", *arguments, "--corpus", client.corpus]
        return CliRunner().invoke(app, line, env={**environment, **env}, input=given)

    return run


def test_a_dry_run_a_run_and_its_undoing(hgmem: Callable[..., Result], client: HGMem) -> None:
    planned = hgmem("--dry-run")
    assert (planned.exit_code, "10 entities: rules join 3 pairs" in planned.stdout) == (0, True)
    assert "left, 0 model calls" in planned.stdout  # without a language model
    assert client.decisions() == []
    done = hgmem()
    assert (done.exit_code, "rules joined 3 pairs" in done.stdout) == (0, True)
    assert f"hgmem resolve review --corpus {client.corpus}" in done.stderr
    assert json.loads(hgmem("--json").stdout)["joined"] == 0

    listed = hgmem("list").stdout
    assert all(name in listed for pair in BY_RULES for name in pair)
    assert hgmem("undo", "--by", "rule").stdout == "3 decisions undone\n"
    again = hgmem("undo", "--by", "rule")
    assert (again.exit_code, again.stderr) == (0, "")
    assert again.stdout == f"corpus {client.corpus!r} has no decision by a rule left to undo\n"
    assert hgmem("undo", "--by", "nobody").stderr.startswith("error: by='nobody' must be one of")
    assert {one.state for one in client.decisions()} == {"open"}


def test_a_spent_budget_says_that_decisions_are_saved_and_how_many_pairs_are_left(
    hgmem: Callable[..., Result], client: HGMem, tmp_path: Path
) -> None:
    client.resolve(rules_only=True)
    whole = client.resolve(dry_run=True).left
    with WireServer(lambda _: Said('{"ready": true, "same": [], "verdict": "different"}')) as server:
        env = {"HGMEM_MODEL": "m", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any"}
        done = hgmem("--max-calls", "3", "--yes", env={**env, "HGMEM_CACHE": str(tmp_path)})
    saved = sum(one.decision.by == "model" for one in client.decisions())
    assert 0 < saved < whole
    assert done.exit_code == 1
    left = f"finished work is saved, {whole - saved} pairs left; rerun to continue"
    assert done.stderr.splitlines()[-1] == f"error: the budget of 3 calls is used up: {left}"


def test_a_run_whose_lists_may_propose_more_is_confirmed_first(hgmem: Callable[..., Result], tmp_path: Path) -> None:
    with WireServer(lambda _: Said('{"same": [], "verdict": "different", "confidence": 1}')) as server:
        env = {"HGMEM_MODEL": "m", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any"}
        env |= {"HGMEM_CACHE": str(tmp_path)}
        planned = hgmem("--dry-run", env=env).stdout
        assert re.search(r" model calls, 1 of them for lists of entities, which may propose more pairs\s*$", planned)
        refused = hgmem(env={**env, "HGMEM_CONFIRM_CALLS": "45"})
        assert "this takes an unknown number of model calls, and there is no terminal to confirm" in refused.stderr
        assert not server.requests
        done = hgmem(env={**env, "HGMEM_CONFIRM_CALLS": "46"})  # 45 pairs of ten entities, and a list
    assert (refused.exit_code, done.exit_code) == (1, 0)


def test_a_review_shows_passages_and_saves_each_answer(hgmem: Callable[..., Result], client: HGMem) -> None:
    pairs = client.open_pairs()
    done = hgmem("review", given="y\nwhat\nn\ns\nq\n")
    assert done.exit_code == 0
    assert done.stdout.endswith(f"2 of {len(pairs)} pairs decided\n")
    for one in (pairs[0].a, pairs[0].b):
        assert one.name in done.stdout
        assert all(text[:20] in done.stdout for text in one.passages.values())
    kinds = {frozenset((one.decision.a, one.decision.b)): one.decision.kind for one in client.decisions()}
    assert kinds == {frozenset((pairs[0].a.uid, pairs[0].b.uid)): "same",
                     frozenset((pairs[1].a.uid, pairs[1].b.uid)): "different"}  # fmt: skip
    assert hgmem("review", given="").stdout.endswith("pairs decided\n")


def test_a_review_skips_and_tells_what_somebody_else_decided_meanwhile(
    hgmem: Callable[..., Result], client: HGMem, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = client.open_pairs()[0]
    typed = iter("yq")

    def answer() -> str:
        typing = next(typed)
        if typing == "y":
            client.different(pair.a.uid, pair.b.uid, reason="letter of 3 May")
        return typing

    monkeypatch.setattr("hgmem.cli.resolve._answer", answer)
    done = hgmem("review")
    assert re.search(r"skipped: .* were decided 'different' by a person at .* ago \(letter of 3 May\)", done.stderr)
    assert done.stdout.splitlines()[-1].startswith("0 of ")
    assert [one.decision.reason for one in client.decisions()] == ["letter of 3 May"]


def test_a_decision_by_name_tells_what_it_replaces(hgmem: Callable[..., Result]) -> None:
    assert "before" not in hgmem("same", "Vail", "Owen Vail", "--reason", "a letter").stdout
    told = hgmem("different", "Vail", "Owen Vail").stdout
    assert re.search(r"were decided 'same' by a person at .* ago \(a letter\): replaced\n$", told)


def test_decisions_by_name_and_a_contradiction(hgmem: Callable[..., Result]) -> None:
    told = hgmem("same", "vail", "Owen Vail", "--reason", "it says so")
    assert told.stdout.startswith("'")
    assert "same (" in told.stdout
    hgmem("different", "Vail", "Dr. Owen Vail")
    void = [hgmem("same", "Owen Vail", "Dr. Owen Vail").stdout, hgmem("list").stdout]
    assert "void" in "".join(void)
    assert "are different, as a person decided" in "".join(void)
    assert json.loads(hgmem("list", "--json").stdout)[0]["decision"]["by"] == "person"
    undone = hgmem("undo", "Vail", "Dr. Owen Vail").stdout
    assert re.match(r"'.*' and '.*' different, by a person \(\w+\)\n1 decision undone\n$", undone)
    assert "void" not in hgmem("list").stdout


def test_an_import_tells_what_it_replaces_and_what_is_void_and_why(
    hgmem: Callable[..., Result], tmp_path: Path
) -> None:
    hgmem("different", "Vail", "Owen Vail")
    (tmp_path / "chain.csv").write_text(
        "a,b,kind,by,confidence\nVail,Owen Vail,same,,\nOwen Vail,Mrs. Vail,same,,\nVail,Mrs. Vail,different,,\n"
    )
    done = hgmem("import", "chain.csv")
    assert done.stdout == "3 decisions imported from chain.csv\n"
    replaced, void = done.stderr.splitlines()
    assert re.match(r"before, '.*' and '.*' different, by a person \(\w+\): replaced", replaced)
    assert re.match(r"void: '.*' and '.*' same, by a person .*: '.*' and '.*' are different, as a person decided", void)
    assert hgmem("import", "chain.csv").stderr.splitlines() == [void]


def test_decisions_to_a_file_and_back(hgmem: Callable[..., Result], tmp_path: Path) -> None:
    hgmem("same", "Vail", "Owen Vail")
    assert hgmem("export", "all.csv").stdout == "1 decision exported to all.csv\n"
    assert (tmp_path / "all.csv").read_text().splitlines()[0] == "a,b,kind,by,reason,evidence,confidence,created_at"
    assert "--force" in hgmem("export", "all.csv").stderr
    hgmem("undo", "Vail", "Owen Vail")
    assert hgmem("import", "all.csv").stdout == "1 decision imported from all.csv\n"


def test_what_sleeps_is_not_exported_and_a_file_that_contradicts_itself_writes_nothing(
    hgmem: Callable[..., Result], client: HGMem, tmp_path: Path
) -> None:
    hgmem("same", "Vail", "Owen Vail")
    client.delete(document=next(at for name, _, at in NAMED if name == "Vail"))
    assert [one.state for one in client.decisions()] == ["asleep"]
    assert hgmem("export", "all.csv").stdout == "0 decisions exported to all.csv\n"
    (tmp_path / "twice.csv").write_text("a,b,kind\nVail,Owen Vail,same\nOwen Vail,Vail,different\n")
    client.add_graph(GIVEN)
    before = client.decisions()
    refused = hgmem("import", "twice.csv")
    assert "decisions 1 and 2: both on" in refused.stderr
    assert client.decisions() == before


def test_a_review_does_not_ask_what_its_answers_say(hgmem: Callable[..., Result], client: HGMem) -> None:
    pairs = client.open_pairs()
    done = hgmem("review", given="yes\n" * len(pairs))
    screens = re.findall(rf"^\d+ of {len(pairs)}: ", done.stdout, re.MULTILINE)
    assert 0 < len(screens) < len(pairs)  # two ties of three names say the third
    assert f"{len(screens)} of {len(pairs)} pairs decided" in done.stdout
    assert all(one.state in ("stands", "open") for one in client.decisions())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("same", "Vale", "Owen Vail"), "has no entity 'Vale' (similar: 'Vail'"),
        (("same", "Vail", "Vail"), "name one entity"),
        (("undo",), "nothing to undo is named"),
        (("undo", "Vail", "Owen Vail"), "has no such decision"),
        (("import", "nowhere.csv"), "cannot be read"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    hgmem: Callable[..., Result], arguments: tuple[str, ...], message: str
) -> None:
    done = hgmem(*arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_corpus_stands_after_the_command(environment: dict[str, str], hgmem: Any) -> None:
    done = CliRunner().invoke(app, ["resolve", "--corpus", "x", "list"], env=environment)
    assert done.exit_code == 2
    assert "stands after 'list'" in done.stderr


@pytest.mark.parametrize("appended", [False, True])
def test_indexing_and_appending_tell_what_rules_joined(
    environment: dict[str, str], client: HGMem, tmp_path: Path, appended: bool
) -> None:
    texts = {"0.txt": "Dr. Marian Dace met Captain Rhee.", "1.txt": "Marian Dace wrote to Captain Rhee."}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    line = ["index", str(tmp_path)]
    if appended:
        client.add(tmp_path / "0.txt")
        (tmp_path / "talk.log").write_text(f"[2023-02-04 19:12] Ann: {texts['1.txt']}\n")
        line = ["append", str(tmp_path / "talk.log"), "--conversation", "talk", "--graph"]
    done = CliRunner().invoke(app, [*line, "--corpus", client.corpus], env=environment)
    assert done.exit_code == 0
    assert (
        f"rules joined 1 pair of names: to take this back, `hgmem resolve undo --by rule --corpus {client.corpus}`"
        in (done.stderr)
    )

"""Tests of runs of plans, their reports and their judges, on a real server with the rule-based model."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluating import DOCUMENTS, read_tiny, write_data
from forked import run_python
from wire import Asked, Said, WireServer

from hgmem import HGMem
from hgmem.errors import BudgetError, DocumentError, ModelError, UsageError
from hgmem.evaluation import formats as data
from hgmem.evaluation.judging import JudgeReply, LetterScore, UnfitJudgeError, judge_sheets, judged
from hgmem.evaluation.plan import read_plan
from hgmem.evaluation.results import load
from hgmem.evaluation.running import Run, running
from hgmem.evaluation.sheets import RIGHT, WRONG, read_scores, sheets, turned, verdict
from hgmem.systems.hgmem.recipes import RECIPES
from hgmem.testing import ScriptedModel
from hgmem.values.inputs import Document

HERE = Path(__file__).parent
SYSTEMS = """
[[systems]]
name = "naive"
settings = {chunks = 1}
label = "one chunk"

[[systems]]
name = "hgmem"
label = "memory"
"""


def write_plan(folder: Path, *, systems: str = SYSTEMS, **values: object) -> Path:
    data_file = write_data(folder)
    lines = [f"{name} = {json.dumps(value)}" for name, value in {"output": "out", **values}.items()]
    file = folder / "plan.toml"
    file.write_text("\n".join([*lines, "[[data]]", f'path = "{data_file.name}"', systems]), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads data sets in the form of these tests."""
    monkeypatch.setattr(data, "read_data", read_tiny)


@pytest.fixture
def started(open_client: Callable[..., HGMem], tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens the run of a plan; deletes its corpora at the end."""
    clients: list[HGMem] = []

    @contextmanager
    def starting(file: Path | None = None, *, model: Any = None, **options: Any) -> Iterator[Run]:
        def opens(seed: int | None) -> Any:
            client = open_client(model=model, **({} if seed is None else {"seed": seed}))
            clients.append(client)

            @contextmanager
            def lent() -> Iterator[HGMem]:
                yield client

            return lent()

        with running(read_plan(file or write_plan(tmp_path)), opens, **options) as run:
            yield run

    yield starting
    for client in clients[:1]:
        for row in client.corpora():
            if row["corpus"].startswith("eval-tiny-"):
                client.delete(corpus=row["corpus"])


def test_a_run_records_what_prompts_showed_and_keeps_the_memories(started: Callable[..., Any]) -> None:
    with started() as run:
        run.work()
        rows = {(row["label"], row["question"]): row for row in run.results.rows.values()}
        assert len(rows) == 8
        one = rows["one chunk", "q1"]
        assert one["figures"]["answer_prompt"] == one["figures"]["answer_prompt"] | {"share": 1.0, "all": True}
        assert one["characters"].keys() == {"answer"}
        assert one["curves"]["chunks"]["40"] == 1
        assert one["unplaced"] == 0
        assert rows["one chunk", "q2"]["figures"]["retrieved"]["share"] < 1
        assert rows["memory", "q2"]["figures"]["retrieved"]["all"]
        assert rows["memory", "q2"]["characters"].keys() >= {"clues", "step", "answer"}
        assert rows["one chunk", "q4"]["figures"]["retrieved"]["share"] is None
        client = run.clients(None)
        assert client.memory(one["memory"]).answers[0].text == one["answer"]
    assert load([run.plan.output]) == list(run.results.rows.values())


def test_a_second_run_asks_nothing_and_a_changed_system_is_asked_anew(
    started: Callable[..., Any], tmp_path: Path
) -> None:
    with started() as run:
        assert run.work().asked == 8
    with started() as run:
        assert run.work().asked == 0
    changed = write_plan(tmp_path, systems=SYSTEMS.replace("chunks = 1", "chunks = 2"))
    with started(changed) as run:
        assert (run.work().asked, len(load([run.plan.output]))) == (4, 8)
    with started(write_plan(tmp_path)) as run:  # as it was: nothing is paid twice
        assert run.work().asked == 0


def test_a_recipe_that_means_something_else_by_now_is_asked_anew(
    started: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with started() as run:
        assert run.work().asked == 8
    monkeypatch.setitem(RECIPES, "default", replace(RECIPES["default"], answer_tokens=5_000))
    with started() as run:
        assert {entry.system.title for entry in run.entries if entry.key not in run.results.rows} == {"memory"}


@pytest.mark.parametrize(("choice", "ids"), [("open", {"q1", "q2", "q4"}), ("held_back", {"q3"})])
def test_questions_are_chosen(started: Callable[..., Any], tmp_path: Path, choice: str, ids: set[str]) -> None:
    with started(write_plan(tmp_path, questions=choice)) as run:
        assert {entry.question.id for entry in run.entries} == ids


def test_an_error_of_one_question_is_recorded_and_the_rest_goes_on(
    started: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = HGMem.ask

    def failing(self: HGMem, question: str = "", **asking: Any) -> Any:
        if question.startswith("Who sold"):
            raise ModelError("the server is tired: ask later")
        return usual(self, question, **asking)

    monkeypatch.setattr(HGMem, "ask", failing)
    with started() as run:
        done = run.work()
        assert (done.asked, done.failed) == (8, 2)
    monkeypatch.setattr(HGMem, "ask", usual)
    with started() as run:
        assert run.work().asked == 0
    with started(retry_failed=True) as run:
        assert (run.work().asked, run.report.failed) == (2, 0)


def test_a_spent_budget_stops_and_says_what_is_left(
    started: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = HGMem.ask

    def limited(self: HGMem, question: str = "", **asking: Any) -> Any:
        if question.startswith("What does"):
            raise BudgetError("the budget of 3 calls is used up")
        return usual(self, question, **asking)

    monkeypatch.setattr(HGMem, "ask", limited)
    with started(write_plan(tmp_path, max_calls=3)) as run, pytest.raises(BudgetError, match="6 questions left"):
        run.work()
    assert len(load([run.plan.output])) == 2


def test_a_budget_of_the_plan_holds_for_everything_in_the_run(
    started: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hgmem.models.metering import current_meter

    seen = []
    usual = HGMem.ask

    def looking(self: HGMem, question: str = "", **asking: Any) -> Any:
        seen.append((current_meter().max_calls, current_meter().max_tokens))
        return usual(self, question, **asking)

    monkeypatch.setattr(HGMem, "ask", looking)
    with started(write_plan(tmp_path, max_calls=30, max_tokens=900, limit=1)) as run:
        run.work()
    assert set(seen) == {(30, 900)}


def test_an_estimate_writes_nothing(started: Callable[..., Any]) -> None:
    with started() as run:
        lines = run.estimate().lines
        assert lines[0] == "8 questions to ask, 0 done before"
        assert lines[-1] == "together: no model calls; repeated requests come on top"
        assert not run.plan.output.exists()
        assert run.entries[0].subject.corpus not in {row["corpus"] for row in run.clients(None).corpora()}


def test_an_estimate_with_a_language_model_counts_the_calls_of_a_recipe(started: Callable[..., Any]) -> None:
    with started(model=ScriptedModel({})) as run:
        estimate = run.estimate()
        calls = {part.name.partition(" to ")[2]: part.calls for part in estimate.parts}
        assert (calls["'one chunk'"], calls["'memory'"]) == (4, 4 * 5)
        assert estimate.calls == 4 + 20 + 3  # and a chunk each of three documents


@pytest.mark.parametrize(
    ("systems", "values", "message"),
    [
        ('[[systems]]\nname = "nobody"', {}, "systems.0: unknown system 'nobody'"),
        ('[[systems]]\nname = "hgmem"\nrecipe = "cake"', {}, "systems.0: unknown recipe 'cake'"),
        ('[[systems]]\nname = "naive"\nsettings = {chunk = 1}', {}, "systems.0: unknown recipe option 'chunk'"),
        ('[[systems]]\nname = "naive"\nsettings = {chunks = "few"}', {}, "systems.0: invalid recipe option 'chunks'"),
        ('[[systems]]\nnome = "naive"', {}, r"systems\.0\.(name: missing|nome: unknown field)"),
        (SYSTEMS, {"seedz": [1]}, "seedz: unknown field: choose from data"),
        (SYSTEMS, {"questions": "some"}, "questions: "),
        (SYSTEMS, {"limit": 0}, "limit: "),
        (SYSTEMS, {"ids": ["q9"]}, "no data set has question 'q9'"),
        (SYSTEMS, {"ids": ["q3"], "questions": "open"}, "no question that the plan asks"),
        (f"format = 'paper'\n{SYSTEMS}", {}, "data.0: unknown format 'paper'"),
        ('[[systems]]\nname = "naive"\n[[systems]]\nname = "naive"', {}, "'naive' is there twice"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_in_one_line(
    started: Callable[..., Any], tmp_path: Path, systems: str, values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as raised, started(write_plan(tmp_path, systems=systems, **values)):
        pass
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "out").exists()


def test_two_runs_do_not_write_to_one_folder(started: Callable[..., Any]) -> None:
    with started() as run, run.results.writing(), started() as other, pytest.raises(UsageError, match="another run"):
        other.work()


def test_a_run_asks_built_rows_of_other_peoples_systems(started: Callable[..., Any], tmp_path: Path, toy: Path) -> None:
    with started(write_plan(tmp_path, systems='[[systems]]\nname = "toy"', ids=["q1"])) as run:
        assert "build of 'toy' for 'tiny': no model calls" in "\n".join(run.estimate().lines)
        run.work()
        (row,) = run.results.rows.values()
        assert row["error"] is None
        assert row["figures"]["retrieved"]["all"]


def test_a_system_without_a_recipe_is_built_with_its_defaults_after_another_recipe(
    started: Callable[..., Any], tmp_path: Path, toy: Path
) -> None:
    both = '[[systems]]\nname = "toy"\nrecipe = "short"\n[[systems]]\nname = "toy"'
    with started(write_plan(tmp_path, systems=both, ids=["q1"])) as run:
        run.work()
        (build,) = run.clients(None).builds(corpus=run.entries[0].subject.corpus)
        assert build.settings["words"] == 12


def test_a_build_for_the_corpus_of_an_archive_is_estimated(
    client: HGMem, started: Callable[..., Any], tmp_path: Path, toy: Path
) -> None:
    client.add([Document(id=name, text=text) for name, text in DOCUMENTS.items()])
    client.export(tmp_path / "graph.jsonl")
    systems = 'graph = "graph.jsonl"\n[[systems]]\nname = "toy"'
    with started(write_plan(tmp_path, systems=systems), model=ScriptedModel({})) as run:
        assert run.entries[0].subject.corpus == client.corpus
        assert (run.estimate().parts[0].calls or 0) > 0
        client.delete(corpus=client.corpus)
        assert run.estimate().calls is None


def test_an_unknown_number_of_model_calls_is_confirmed(environment: dict[str, str], tmp_path: Path, toy: Path) -> None:
    file = write_plan(tmp_path, systems='[[systems]]\nname = "toy"', ids=["q1"])
    more = {"HGMEM_MODEL": "wire", "OPENAI_BASE_URL": "http://127.0.0.1:9", "PYTHONPATH": str(toy)}
    done = run_python(*command("run", str(file)), env=environment | more)
    assert done.returncode == 1
    assert "nothing was written: this takes an unknown number of model calls" in done.stderr
    assert "limit it with max_calls in the plan" in done.stderr


def command(*words: str) -> list[str]:
    return [str(HERE / "evaluating.py"), "eval", *words]


def done(environment: dict[str, str], *words: str) -> str:
    """Run a command that succeeds, and return what it prints."""
    process = run_python(*command(*words), env=environment)
    assert process.returncode == 0, process.stderr
    return process.stdout


def table(output: Path) -> list[dict[str, Any]]:
    """The figures of a run without what differs between any two runs."""
    unlike = {"memory", "seconds", "citations", "corpus"}
    rows = [{name: value for name, value in row.items() if name not in unlike} for row in load([output])]
    return sorted(rows, key=lambda row: row["key"])


@pytest.mark.slow
def test_a_run_that_is_killed_again_and_again_ends_in_the_same_table(
    environment: dict[str, str], tmp_path: Path, started: Callable[..., Any]
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    for folder in (whole, killed):
        folder.mkdir()
    done(environment, "run", str(write_plan(whole)))
    again = ("run", str(write_plan(killed)))
    results = killed / "out" / "results.jsonl"
    for wanted in (1, 3, 6):
        process = subprocess.Popen(
            [sys.executable, *command(*again)], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            if results.exists() and len(results.read_bytes().splitlines()) >= wanted:
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.01)
        process.wait(30)
    with results.open("ab") as file:
        file.write(b'{"key": "cut sho')
    assert "0 failed" in done(environment, *again)
    assert table(killed / "out") == table(whole / "out")
    shown = done(environment, "report", str(whole / "out"), "--compare", "memory", "one chunk")
    assert "### memory minus one chunk, 3 questions of both" in shown
    assert shown.count("| one chunk | 4 | 0 |") == 3
    with started():  # whose end deletes the corpora
        pass


def rows_of(*answers: tuple[str, str, str]) -> list[dict[str, Any]]:
    """Rows of (question, label, answer)."""
    return [
        {
            "key": f"{question}{label}",
            "data": "tiny",
            "question": question,
            "kind": "single",
            "label": label,
            "seed": None,
            "asked": f"What of {question}?",
            "reference": f"The truth of {question}.",
            "evidence": [f"Evidence of {question}."],
            "answer": answer,
            "error": None,
        }
        for question, label, answer in answers
    ]


ROWS = rows_of(*((f"q{at}", label, f"{label} says {at} [1].") for at in range(6) for label in ("good", "bad")))


def test_letters_are_shuffled_by_question_and_marks_are_taken_out() -> None:
    found = sheets(ROWS)
    assert {one.labels["A"] for one in found} == {"good", "bad"}
    assert sheets(list(reversed(ROWS)))[0].labels == found[-1].labels
    assert all("[1]" not in text for one in found for text in one.answers.values())
    with_controls = sheets(ROWS, controls=True)[0]
    assert len(with_controls.answers) == 5
    shown = {label: with_controls.answers[letter] for letter, label in with_controls.labels.items()}
    assert shown[RIGHT] == "The truth of q0."
    assert shown[WRONG].startswith("The truth of q")
    assert shown[WRONG] != shown[RIGHT]


def test_scores_of_two_judges_come_back_as_scores_of_systems(tmp_path: Path, environment: dict[str, str]) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "results.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    words = ("judge", str(out), "--controls", "--sheet", str(tmp_path / "sheet.md"))
    done(environment, *words)
    key = json.loads((tmp_path / "sheet.md.key.json").read_text(encoding="utf-8"))
    sheet = (tmp_path / "sheet.md").read_text(encoding="utf-8")
    assert "good" not in sheet.replace("good says", "")
    value = {"good": 80, "bad": 30, "control: right and short": 100}
    for judge, more in (("anna", 0), ("bo", 5)):
        scores = {
            name: {letter: max(0, value.get(label, 5) - more * (len(letter) + at % 2)) for letter, label in row.items()}
            for at, (name, row) in enumerate(key.items())
        }
        (tmp_path / f"{judge}.json").write_text(json.dumps(scores), encoding="utf-8")
    files = [one for judge in ("anna", "bo") for one in ("--scores", str(tmp_path / f"{judge}.json"))]
    said = json.loads(done(environment, *words, *files, "--json"))
    assert said["means"]["good"]["mean"] == pytest.approx(76.25)
    assert said["wins"]["good"]["bad"] == 1
    assert said["correlations"]["anna.json and bo.json"] > 0.9
    assert (said["fooled"], said["missing"]) == (0, 0)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"tiny/q9": {"A": 1}}, "no such sheet"),
        ({"tiny/q1": {"Z": 1}}, "no answer 'Z'"),
        ({"tiny/q1": {"A": 101}}, "invalid score 101"),
        ({"tiny/q1": 3}, "not an object of letters"),
    ],
)
def test_scores_that_do_not_fit_are_refused_with_their_place(
    tmp_path: Path, scores: dict[str, Any], message: str
) -> None:
    file = tmp_path / "scores.json"
    file.write_text(json.dumps(scores), encoding="utf-8")
    with pytest.raises(DocumentError, match=message):
        read_scores(file, {one.id: one.labels for one in sheets(ROWS)})


def by_content(task: Any) -> JudgeReply:
    return JudgeReply(
        scores=tuple(
            LetterScore(letter=letter, score=90 if "good" in text or "truth" in text else 10)
            for letter, text in task.sheet.answers.items()
        )
    )


def test_a_model_judges_each_sheet_once(tmp_path: Path) -> None:
    file, found = tmp_path / "judge.jsonl", sheets(ROWS)
    model = ScriptedModel({"judge": by_content})
    assert judge_sheets(model, found, file, limits={}) == []
    assert judge_sheets(model, found, file, limits={}) == []
    assert len(model.tasks) == 6
    key = {one.id: one.labels for one in found}
    said = verdict({"model": turned(judged(found, file, judge="scripted"), key, "file")}, key)
    assert (said.means["good"].mean, said.means["bad"].mean, said.wins["good"]["bad"]) == (90, 10, 1)
    assert read_scores(file, key) == turned(judged(found, file, judge="scripted"), key, "file")


def test_a_judge_that_leaves_letters_out_ends_with_the_first_sheet(tmp_path: Path) -> None:
    model = ScriptedModel({"judge": lambda _: JudgeReply(scores=(LetterScore(letter="A", score=1),))})
    with pytest.raises(UnfitJudgeError, match="did not score the first sheet as asked"):
        judge_sheets(model, sheets(ROWS), tmp_path / "judge.jsonl", limits={})
    assert len(model.tasks) == 1


@pytest.mark.parametrize(
    ("reply", "sheets_paid", "code"),
    [
        ("The first answer is rather better than the second.", 1, 1),
        ('{"scores": [{"letter": "A", "score": 70}, {"letter": "B", "score": 20, "reason": "thin"}]}', 6, 0),
    ],
    ids=["prose", "scores"],
)
def test_a_judge_on_a_server_is_tried_on_the_first_sheet(
    tmp_path: Path, environment: dict[str, str], reply: str, sheets_paid: int, code: int
) -> None:
    (tmp_path / "results.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    asked: list[str] = []

    def replying(request: Asked) -> Said:
        about = [line for line in request.user.splitlines() if line.startswith("What of")]
        asked.extend(about[:1])
        return Said(reply if about else '{"ready": true}')  # the first request only asks for a format

    with WireServer(replying) as server:
        more = {"OPENAI_BASE_URL": server.base_url, "HGMEM_MODEL": "wire", "HGMEM_CACHE": str(tmp_path / "cache")}
        done = run_python(*command("judge", str(tmp_path)), env=environment | more)
    assert (done.returncode, len(set(asked))) == (code, sheets_paid)
    if code:
        assert "did not score the first sheet as asked" in done.stderr
    else:
        assert "| good |" in done.stdout
        assert len((tmp_path / "judge-wire.jsonl").read_text(encoding="utf-8").splitlines()) == 6


def test_the_rule_based_model_cannot_judge(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(ROWS[0])}\n", encoding="utf-8")
    done = run_python(*command("judge", str(tmp_path)), env=environment)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "rule-based model cannot judge" in done.stderr

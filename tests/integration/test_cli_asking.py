"""`hgmem ask` with `--continue`, a recipe, a budget, and on a terminal."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from letters import LETTERS, QUESTION
from playing import playing, task_of
from typer.testing import CliRunner, Result
from wire import Said, WireServer

from hgmem import HGMem
from hgmem.cli import app

Run = Callable[..., Result]
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


@pytest.fixture
def letters(client: HGMem) -> HGMem:
    """A client whose corpus contains the letters."""
    client.add_graph(LETTERS)
    return client


@pytest.fixture
def hgmem(environment: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line in this process."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, env: Mapping[str, str] = {}) -> Result:
        given = {**environment, "HGMEM_CACHE": str(tmp_path / "cache"), **env}
        return CliRunner().invoke(app, list(arguments), env=given)

    return run


@pytest.fixture
def served(letters: HGMem) -> Iterator[tuple[WireServer, dict[str, str]]]:
    """A server of a model that uses every step, and the environment for it."""
    with WireServer(playing()) as server:
        yield server, {"HGMEM_MODEL": "test-model", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "secret"}


def test_a_recipe_and_single_settings_of_it_are_chosen_by_name(hgmem: Run, letters: HGMem) -> None:
    done = hgmem(
        *("ask", QUESTION, "-c", letters.corpus, "--recipe", "paper", "--set", "concerns=1"),
        *("--set", "retrieval.hops=2", "--steps", "2", "--json"),
    )
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert set(answer["usage"]["calls"]["model"]) <= {"evolve", "merge", "plan", "subqueries", "describe", "answer"}
    assert all(len(step["planned"]) <= 1 for step in answer["steps"])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--recipe", "papper"), "'papper'"),
        (("--set", "hops"), "KEY=VALUE"),
        (("--set", "hops=2"), "'hops'"),
        (("--set", "retrieval.hops=3"), "'retrieval.hops'"),
        (("--continue", "m-nowhere"), "'m-nowhere'"),
        (("--at-step", "1"), "--continue"),
        (("--at-step", "1", "--steps", "2"), "at_step= (--at-step) and steps= (--steps) cannot be combined"),
    ],
)
def test_what_does_not_exist_is_one_line_that_names_it(
    arguments: tuple[str, ...], part: str, hgmem: Run, letters: HGMem
) -> None:
    done = hgmem("ask", QUESTION, "-c", letters.corpus, *arguments)

    assert (done.exit_code, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert part in line
    assert "unexpected" not in line
    assert letters.memories() == []


def test_a_memory_goes_on_with_another_question_and_is_answered_at_a_step(hgmem: Run, letters: HGMem) -> None:
    first = letters.ask(QUESTION, steps=1)
    on = hgmem("ask", "What did Cleo leave?", "--continue", first.memory, "--steps", "1")
    again = hgmem("ask", "--continue", first.memory, "--at-step", "1", "--json")
    shown = hgmem("memory", "show", first.memory)

    assert (on.exit_code, again.exit_code) == (0, 0), on.output + again.output
    assert "2 steps, answered without a language model (extractive)," in on.stdout.replace("\n", " ")
    assert json.loads(again.stdout)["question"] == QUESTION
    assert [one.step for one in letters.memory(first.memory).answers] == [1, 2, 1]
    assert "What did Cleo leave?" in shown.stdout


def test_what_a_model_cost_is_said_in_the_last_line_and_by_task_with_verbose(
    hgmem: Run, letters: HGMem, served: tuple[WireServer, dict[str, str]]
) -> None:
    server, env = served
    done = hgmem("ask", QUESTION, "-c", letters.corpus, "--steps", "1", "--verbose", env=env)

    assert done.exit_code == 0, done.output
    said = " ".join(done.stdout.split())
    tokens = f"{server.prompt_tokens:,} tokens in, {server.completion_tokens:,} out"
    assert f"answered by test-model, {len(server.requests)} calls, {tokens}," in said
    assert "tokens of evolve: " in said


def test_a_spent_budget_is_one_line_and_another_that_says_how_to_go_on(
    hgmem: Run, letters: HGMem, served: tuple[WireServer, dict[str, str]]
) -> None:
    _, env = served
    done = hgmem("ask", QUESTION, "-c", letters.corpus, "--max-calls", "3", env=env)
    (memory,) = letters.memories()

    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "error: the budget of 3 calls is used up",
        f"finished steps are saved: continue with `hgmem ask --continue {memory.uid}`",
    ]
    assert (memory.steps, memory.status) == (1, "interrupted")
    assert hgmem("ask", "--continue", memory.uid, "--steps", "1", env=env).exit_code == 0


def test_a_terminal_shows_what_happens_and_then_the_same_result(
    environment: dict[str, str], letters: HGMem, tmp_path: Path
) -> None:
    shown, out, code = terminal(environment, tmp_path, "ask", QUESTION, "-c", letters.corpus, "--steps", "2")

    assert code == 0, shown
    for part in ("step 1", f"asks {QUESTION}", "found across the corpus: 1 entity", "inserted ", "judged "):
        assert part in shown
    assert "answered without a language model" in out
    _, out, code = terminal(environment, tmp_path, "ask", QUESTION, "-c", letters.corpus, "--steps", "1", "--json")
    assert code == 0
    assert json.loads(out)["citations"]


def terminal(environment: dict[str, str], folder: Path, *arguments: str) -> tuple[str, str, int]:
    """Return a terminal's stderr, the stdout, and the exit code."""
    reader, writer = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "hgmem", *arguments],
        cwd=folder, env={**environment, "TERM": "xterm"}, stdout=subprocess.PIPE, stderr=writer, encoding="utf-8",
    ) as process:  # fmt: skip
        os.close(writer)
        seen = b""
        while True:
            try:
                read = os.read(reader, 65536)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            seen += read
        os.close(reader)
        out = process.stdout.read() if process.stdout else ""
        code = process.wait(60)
    return ESCAPES.sub("", seen.decode("utf-8", "replace")), out, code


def test_ctrl_c_ends_a_question_with_its_whole_steps_and_the_memory_goes_on(
    environment: dict[str, str], letters: HGMem, tmp_path: Path
) -> None:
    slow = playing({"step": [None, Said('{"insert": []}', delay=20)]})
    with WireServer(slow) as server:
        env = {**environment, "HGMEM_MODEL": "m", "OPENAI_BASE_URL": server.base_url, "HGMEM_CACHE": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-m", "hgmem", "ask", QUESTION, "-c", letters.corpus],
            cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
        until = time.monotonic() + 60
        while len(server.requests) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)

    (memory,) = letters.memories()
    assert (process.returncode, out) == (130, "")
    on = f"finished steps are saved: continue with `hgmem ask --continue {memory.uid}`"
    assert err == f"interrupted: {on}\n"
    assert (memory.steps, memory.status) == (1, "interrupted")
    assert letters.ask(memory=memory.uid, steps=1).status == "answered"


@pytest.mark.parametrize("budget", [("--max-calls", "1"), ("--max-tokens", "1")])
def test_a_budget_that_ends_before_the_first_step_promises_nothing(
    budget: tuple[str, str], hgmem: Run, letters: HGMem, served: tuple[WireServer, dict[str, str]]
) -> None:
    done = hgmem("ask", QUESTION, "-c", letters.corpus, *budget, env=served[1])

    assert done.exit_code == 1
    unit = budget[0].removeprefix("--max-").rstrip("s")
    assert done.stderr.splitlines() == [f"error: the budget of 1 {unit} is used up"]


def test_being_told_to_end_gives_the_claim_back_as_ctrl_c_does(
    environment: dict[str, str], letters: HGMem, tmp_path: Path
) -> None:
    slow = playing({"step": [None, Said('{"insert": []}', delay=20)]})
    with WireServer(slow) as server:
        env = {**environment, "HGMEM_MODEL": "m", "OPENAI_BASE_URL": server.base_url, "HGMEM_CACHE": str(tmp_path)}
        process = subprocess.Popen(
            [sys.executable, "-m", "hgmem", "ask", QUESTION, "-c", letters.corpus],
            cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
        )  # fmt: skip
        until = time.monotonic() + 60
        while len(server.requests) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        process.terminate()
        process.communicate(timeout=30)

    (memory,) = letters.memories()
    assert memory.status == "interrupted"


def test_a_setting_that_is_no_json_is_named(hgmem: Run, letters: HGMem) -> None:
    done = hgmem("ask", QUESTION, "-c", letters.corpus, env={"HGMEM_SAMPLING": "plan"})
    assert done.exit_code == 1
    assert done.stderr.startswith("error: HGMEM_SAMPLING is not valid JSON")


def test_what_failed_is_named_and_tried_again_without_its_files(hgmem: Run, client: HGMem, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("Captain Rhee commands the ferry Aurora of the Nordhavn Line.")
    (tmp_path / "two.txt").write_text("Doctor Moe keeps the lamp of Nordhavn in good order.")
    found = '{"entities": [{"name": "Rhee", "type": "person", "description": "a captain"}], "relations": []}'
    empty = '{"entities": [], "relations": []}'
    with WireServer(lambda asked: Said(empty if "Moe" in asked.user else found)) as server:
        leads = {"HGMEM_MODEL": "test-model", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "secret"}
        first = hgmem("index", str(tmp_path), "-c", client.corpus, env=leads)
        other = hgmem("index", str(tmp_path / "one.txt"), "-c", client.corpus, env=leads)
        again = hgmem("index", "--retry-failed", "-c", client.corpus, env=leads)
    shown = hgmem("status", "-c", client.corpus)
    with WireServer(lambda _: Said(found)) as server:
        leads = {"HGMEM_MODEL": "test-model", "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "secret"}
        last = hgmem("index", "--retry-failed", "-c", client.corpus, "--json", env=leads)

    assert [one.exit_code for one in (first, other, again, last)] == [1, 1, 1, 0]
    for one in (first, other, again):
        assert "1 chunk of the corpus has failed: retry with `hgmem index --retry-failed`" in one.stderr
    assert "0 documents added, 1 unchanged" in other.stdout
    assert "failed 2 times: the extraction is empty" in shown.stdout
    report = json.loads(last.stdout)
    assert (report["chunks"], report["failed"], report["failed_in_corpus"]) == (1, 0, 0)
    assert hgmem("index", "--retry-failed", "-c", client.corpus).exit_code == 0


@pytest.mark.parametrize("arguments", [("index",), ("index", "--retry-failed", ".")])
def test_indexing_takes_files_or_what_failed(hgmem: Run, arguments: tuple[str, ...]) -> None:
    done = hgmem(*arguments)
    assert done.exit_code == 2
    assert "--retry-failed" in done.stderr


def test_a_local_model_reads_and_a_remote_one_answers(hgmem: Run, client: HGMem, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("Captain Rhee commands the ferry Aurora of the Nordhavn Line.")
    with WireServer(playing()) as local, WireServer(playing()) as remote:
        leads = {
            "HGMEM_MODEL": "big",
            "OPENAI_BASE_URL": remote.base_url,
            "OPENAI_API_KEY": "key-of-the-remote-server",
            "HGMEM_EXTRACTION_MODEL": "small",
            "HGMEM_EXTRACTION_BASE_URL": local.base_url,
        }
        corpus = ("-c", client.corpus)
        done = {
            "doctor": hgmem("doctor", env=leads),
            "index": hgmem("--verbose", "index", str(tmp_path / "one.txt"), *corpus, env=leads),
            "ask": hgmem("ask", "Who commands the Aurora?", *corpus, "--steps", "1", "--json", env=leads),
            "status": hgmem("status", *corpus, "--json", env=leads),
        }
        printed = hgmem("status", *corpus, env=leads).stdout

    assert {name: one.exit_code for name, one in done.items()} == dict.fromkeys(done, 0), done
    assert {task_of(asked) for asked in local.requests} == {"probe", "extract"}
    assert {task_of(asked) for asked in remote.requests} >= {"probe", "evolve", "answer"}
    keys = [{asked.headers["authorization"] for asked in server.requests} for server in (local, remote)]
    assert keys == [{"Bearer none"}, {"Bearer key-of-the-remote-server"}]
    assert [server.listings[0]["authorization"] for server in (local, remote)] == ["Bearer none", *keys[1]]
    answers, extraction = f"big at {remote.base_url}", f"small at {local.base_url}"
    assert f"model     {answers}, which responds; extraction: {extraction}, which responds" in done["doctor"].stdout
    assert f"answers: {answers}; extraction: {extraction}; embeddings: deterministic" in done["index"].stderr
    assert f"answers: {answers}; extraction: {extraction}" in printed
    roles = {"answers": answers, "extraction": extraction, "embeddings": "deterministic"}
    assert json.loads(done["status"].stdout)["roles"] == roles
    answer = json.loads(done["ask"].stdout)
    assert (answer["model"], client.memory(answer["memory"]).model) == ("big", "big")
    assert not [one for one in done.values() if "key-of-the-remote-server" in one.output]

import logging
import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer

from hgmem import cli
from hgmem.cli import app
from hgmem.cli.front import COMMANDS, failure, hoisted, quiet
from hgmem.errors import CacheWarning, DocumentError, GraphError, UsageError


@pytest.mark.parametrize(
    ("given", "front"),
    [
        (["ask", "why", "--debug"], ["--debug", "ask", "why"]),
        (["ask", "--uri", "bolt://x", "why", "-c", "a"], ["--uri", "bolt://x", "ask", "why", "-c", "a"]),
        (["ask", "why", "--uri=bolt://x"], ["--uri=bolt://x", "ask", "why"]),
        (["ask", "--", "--debug"], ["ask", "--", "--debug"]),
        (["ask", "why", "--uri"], ["--uri", "ask", "why"]),
        (["--verbose", "status"], ["--verbose", "status"]),
        ([], []),
    ],
)
def test_global_options_may_stand_anywhere_but_after_two_dashes(given: list[str], front: list[str]) -> None:
    assert hoisted(given) == front


@pytest.mark.parametrize("kind", [UsageError, GraphError, DocumentError])
def test_an_error_is_one_line_whatever_its_message_holds(
    kind: type[Exception], capsys: pytest.CaptureFixture[str]
) -> None:
    assert failure(kind("corpus 'a\nb\x1b[2J' is\r\n unknown"), command="ask", debug=False) == 1
    printed = capsys.readouterr()
    assert printed.err == "error: corpus 'a b\\x1b[2J' is unknown\n"
    assert printed.out == ""


def test_a_very_long_error_keeps_its_beginning_and_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    failure(UsageError(f"corpus {'x' * 10**6} is unknown: list them"), command="ask", debug=False)
    line = capsys.readouterr().err
    assert len(line) < 1_100
    assert line.startswith("error: corpus xxx")
    assert line.endswith("is unknown: list them\n")


def test_what_nobody_expected_is_named_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert failure(KeyError("colour"), command="ask", debug=False) == 1
    assert (
        capsys.readouterr().err == "error: unexpected KeyError: 'colour' (run again with --debug for the traceback)\n"
    )


def test_a_traceback_is_shown_to_those_who_ask(capsys: pytest.CaptureFixture[str]) -> None:
    assert failure(UsageError("no"), command="ask", debug=True) == 1
    assert "Traceback" not in capsys.readouterr().out
    failure(UsageError("no"), command="ask", debug=True)
    lines = capsys.readouterr().err.splitlines()
    assert "hgmem.errors.UsageError: no" in lines
    assert lines[-1] == "error: no"


@pytest.mark.parametrize(
    ("command", "said"),
    [("index", "finished chunks are saved"), ("ask", "no step finished"), ("import", "nothing was imported")],
)
def test_an_interrupt_says_what_is_kept(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert failure(KeyboardInterrupt(), command=command, debug=False) == 130
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("raised", [typer.Exit(3), typer.Abort(), typer.BadParameter("x")])
def test_what_typer_raises_is_left_to_typer(raised: Exception) -> None:
    assert failure(raised, command="ask", debug=False) is None


def test_a_closed_pipe_is_no_error(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hgmem.cli.front.abandon", lambda stream: None)
    assert failure(BrokenPipeError(), command="ask", debug=False) == 141
    assert capsys.readouterr().err == ""


def test_what_libraries_log_is_kept_back_for_as_long_as_a_command_runs(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("somebody.else")
    with quiet(unless=False), warnings.catch_warnings(record=True) as warned:
        log.error("noise")
        warnings.warn("noise", stacklevel=1)
    assert not caplog.records
    assert not warned
    log.error("heard again")
    assert len(caplog.records) == 1


def test_a_cache_that_cannot_be_used_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with quiet(unless=False):
        for _ in range(2):
            warnings.warn("vectors are not cached:\n cannot use 'there'", CacheWarning, stacklevel=1)
    assert capsys.readouterr().err == "warning: vectors are not cached: cannot use 'there'\n"


def test_those_who_want_to_know_hear_what_libraries_log(caplog: pytest.LogCaptureFixture) -> None:
    with quiet(unless=True):
        logging.getLogger("somebody.else").warning("news")
    assert [record.message for record in caplog.records] == ["news"]


def test_a_question_imports_nothing_that_only_other_work_needs() -> None:
    names = ("json_repair", "onnx", "onnxruntime", "torch", "openai", "hgmem.corpus.exporting", "hgmem.corpus.archive")
    code = f"import sys, hgmem.client, hgmem.cli.ask; print([name for name in {names!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


def test_no_command_takes_a_password() -> None:
    from typer.main import get_command

    waiting = [get_command(app)]
    options = set()
    while waiting:
        command = waiting.pop()
        options |= {name for parameter in command.params for name in parameter.opts}
        waiting += [command.get_command(None, name) for name in getattr(command, "commands", {})]
    assert {"--uri", "--corpus", "--json", "--steps"} <= options
    assert not {name for name in options if "password" in name}


def test_every_command_is_listed_with_the_first_sentence_of_its_help() -> None:
    from typer.main import get_group

    for name, (module, said) in COMMANDS.items():
        commands = get_group(import_module(f"hgmem.cli.{module}").app).commands
        listed = {command for command, (its, _) in COMMANDS.items() if its == module}
        assert set(commands) == listed, module
        help_ = " ".join((commands[name].help or "").split())
        assert help_.startswith(said.removesuffix(".")), name
    apps = {path.stem for path in Path(str(cli.__path__[0])).glob("*.py") if "\napp = typer.Typer(" in path.read_text()}
    assert apps - {"__init__"} == {module for module, _ in COMMANDS.values()}


def test_help_loads_no_command_and_nothing_heavy() -> None:
    script = (
        "import sys; from hgmem.cli import main\ntry: main()\nexcept SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert "Commands:" in done.stdout
    assert "hgmem.cli.front" in loaded
    assert not loaded & {"hgmem.cli.ask", "hgmem.values.records", "rich.console", "neo4j", "pydantic", "numpy", "torch"}


IGNORED = """
import signal, sys, time
from hgmem.cli import send_again

class Finalized:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGTERM, signal.default_int_handler)
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started this with it ignored
sys.unraisablehook = send_again
try:
    Finalized()
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


def test_an_interrupt_in_a_finalizer_interrupts_all_the_same() -> None:
    done = subprocess.run([sys.executable, "-c", IGNORED], timeout=30, check=False)
    assert done.returncode == 130


def test_a_command_spares_the_driver_what_it_does_not_use_and_leaves_it_to_others() -> None:
    code = (
        "import sys; from importlib.util import find_spec; from hgmem.cli import Spared; "
        "sys.meta_path.insert(0, Spared()); import hgmem.client; "
        "print({'pandas', 'pyarrow'} & set(sys.modules)); print(find_spec('pyarrow') is not None)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.split("\n")[:2] == ["set()", str(find_spec("pyarrow") is not None)]

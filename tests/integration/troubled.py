"""Questions during faults, by a program and by the command line, and the resulting errors."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from letters import QUESTION
from playing import playing, task_of
from pydantic import SecretStr
from typer.testing import CliRunner
from wire import Answered, Asked

from hgmem import HGMem, HGMemError
from hgmem.cli import app
from hgmem.errors import ConflictError

CONTINUE = re.compile(r"^finished steps are saved: continue with `hgmem ask --continue (\S+)`$")
STEPS = 2  # of a question


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The result of a question: an answer, or one error, which may name a memory to continue."""

    answer: str = ""
    error: str = ""
    memory: str | None = None


class Asker(Protocol):
    """Asks a question or continues a memory; `settings` are those of the client."""

    def __call__(self, corpus: str, settings: Mapping[str, Any], *, memory: str | None = None) -> Ended:
        """Return the result."""


def by_program(corpus: str, settings: Mapping[str, Any], *, memory: str | None = None) -> Ended:
    """Ask with a client; an error must be one of ours, in one line, and say whether a retry may help."""
    with HGMem.open(corpus, **settings) as client:
        try:
            answer = client.ask("" if memory else QUESTION, memory=memory, steps=STEPS)
        except HGMemError as error:
            raised = error
        else:
            return Ended(answer=answer.text, memory=answer.memory)
    assert "\n" not in str(raised)
    assert raised.retryable != isinstance(raised, ConflictError)
    return Ended(error=str(raised), memory=raised.memory)


def by_command(corpus: str, settings: Mapping[str, Any], *, memory: str | None = None) -> Ended:
    """Ask with `hgmem ask`; an error is one line on stderr, perhaps followed by a way to continue, with exit code 1."""
    asked = ["--continue", memory] if memory else [QUESTION]
    arguments = ["ask", *asked, "-c", corpus, "--steps", str(STEPS), "--json"]
    done = CliRunner().invoke(app, arguments, env={**os.environ, **environment(settings)})
    if done.exit_code == 0:
        answer = json.loads(done.stdout)
        return Ended(answer=answer["answer"], memory=answer["memory"])
    assert (done.exit_code, done.stdout) == (1, ""), done.output
    said, *rest = done.stderr.splitlines()
    assert said.startswith("error: ")
    assert "unexpected" not in said
    assert len(rest) <= 1
    kept = CONTINUE.match(rest[0]) if rest else None
    assert bool(kept) == bool(rest)
    return Ended(error=said.removeprefix("error: "), memory=kept[1] if kept else None)


def environment(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return simple settings as environment variables of a command."""
    found = {}
    for name, value in settings.items():
        if not isinstance(value, str | int | float | Path | SecretStr):
            continue
        known = name.upper() if name.startswith(("neo4j_", "openai_")) else f"HGMEM_{name.upper()}"
        found[known] = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    return found


def breaking(task: str, number: int, fault: Callable[[], Answered | None]) -> Callable[[Asked], Answered]:
    """Return a model server's replies on the letters, with `fault` at the n-th request for this task."""
    play, counted = playing(), [0]

    def answer(asked: Asked) -> Answered:
        counted[0] += task_of(asked) == task
        broken = fault() if task_of(asked) == task and counted[0] == number else None
        return broken or play(asked)

    return answer

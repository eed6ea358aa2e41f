"""The exact prompts of one question with three steps: a change of any prompt is visible as a diff of one file.

`pytest --rewrite-golden` rewrites the file. Nothing in it is random, but equally near evidence is ordered by uid. Uids
are hashes that include the corpus's name, so the test always uses the same name.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from letters import LETTERS, QUESTION
from playing import check_fences, playing, task_of
from wire import Answered, Asked, Said, WireServer

from hgmem import HGMem
from hgmem.values.records import Answer

GOLDEN = Path(__file__).parents[1] / "golden" / "three_steps.md"
HEAD = """# Three steps of the default recipe

What a model's server is sent, and what the script of `tests/integration/letters.py` replies: each system prompt once,
then every call in order. Steps search for fewer chunks than usual, so that each finds something new in so small a
corpus. `pytest --rewrite-golden` writes this file.
"""
CORPUS = "golden-letters"
FEW = {"retrieval.chunks": 0, "retrieval.searched_chunks": 2, "later_chunks": 1}
CLUES = '{"spans": ["Dag burned the mill at night."], "queries": ["To whom was the mill sold in spring?"]}'
LONG_ANSWER = "Anna sold the mill to Bo [1], and Dag burned it [3]."


def fence(text: str) -> str:
    assert "~~~" not in text
    return f"~~~text\n{text}\n~~~\n"


def transcript(said: list[tuple[Asked, str]]) -> str:
    """Return the conversations as Markdown."""
    systems: dict[str, str] = {}  # names of prompts by their text
    calls: list[str] = []
    steps = count(1)
    for number, (asked, reply) in enumerate(said, start=1):
        task = task_of(asked)
        if asked.system:
            known = task in systems.values()
            systems.setdefault(asked.system, f"{task}, where points may be merged" if known else task)
        step = f", step {next(steps)}" if task in ("step", "evolve") else ""
        body = asked.body
        how = ", ".join(f"{name} {body[name]}" for name in ("temperature", "max_tokens") if name in body)
        calls.append(f"### {number}. {task}{step}\n\n{asked.format or 'text'}, {how}\n\n{fence(asked.user)}")
        calls.append(f"Reply:\n\n{fence(reply)}")
    parts = [f"### {task}\n\n{fence(text)}" for text, task in systems.items()]
    return "\n".join([HEAD, "## System prompts\n", *parts, "## Calls\n", *calls])


def played(open_client: Callable[..., HGMem], cache: Path) -> tuple[str, Answer]:
    said: list[tuple[Asked, str]] = []
    play = playing({"answer": Said(LONG_ANSWER), "clues": Said(CLUES)})

    def answer(asked: Asked) -> Answered:
        check_fences(asked)
        does = play(asked)
        assert isinstance(does, Said)
        said.append((asked, str(does.text)))
        return does

    with WireServer(answer) as server:
        client = open_client(
            corpus=CORPUS,
            model="test-model",
            openai_base_url=server.base_url,
            openai_api_key="secret",
            cache=cache,
        )
        client.add_graph(LETTERS)
        found = client.ask(QUESTION, steps=3, settings=FEW)
    return transcript(said), found


def test_three_steps_are_asked_word_for_word_as_the_golden_transcript_has_them(
    open_client: Callable[..., HGMem], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text, answer = played(open_client, tmp_path)
    if request.config.getoption("--rewrite-golden"):
        GOLDEN.write_text(text, encoding="utf-8")

    assert [step.number for step in answer.steps] == [1, 2, 3]
    uids = {answer.memory, CORPUS, *(point.uid for point in answer.points)}
    uids |= {entity.uid for point in answer.points for entity in point.entities}
    assert not [uid for uid in uids if uid in text]  # nothing specific to one run
    assert text == GOLDEN.read_text(encoding="utf-8")
    again, _ = played(open_client, tmp_path / "again")
    assert again == text

"""The exact prompts of one question with three steps: a change of any prompt is visible as a diff of one file.

`pytest --rewrite-golden` rewrites the file. Nothing in it is random, but equally near evidence is ordered by uid. Uids
are hashes that include the corpus's name, so the test always uses the same name.
"""

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from letters import LETTERS
from playing import check_fences, playing, task_of
from wire import Answered, Asked, Said, WireServer

from hgmem import HGMem
from hgmem.systems.hgmem.replies import EvolveReply, Inquiry, Insertion, Joining, Retirement, Revision, StepReply
from hgmem.values.records import Answer

GOLDEN = Path(__file__).parents[1] / "golden" / "three_steps.md"
HEAD = """# Three steps of the default recipe

What a model's server is sent, and what a script replies (`tests/integration/test_golden.py`): each system prompt once,
then every call in order. The question takes something for granted that is false. Replies add to a point and replace
one, merge a fact with an inference, retire a point, and say what is contradicted and open. Steps search for fewer
chunks than usual, so that each finds something new in so small a corpus. `pytest --rewrite-golden` writes this file.
"""
CORPUS = "golden-letters"
FEW = {"retrieval.chunks": 0, "retrieval.searched_chunks": 2, "later_chunks": 1}
QUESTION = "When did Bo burn the mill that he had bought from Anna?"
CLUES = '{"spans": ["Dag burned the mill at night."], "queries": ["To whom was the mill sold in spring?"]}'
DENIED = "Dag burned the mill; no document says that Bo did."
FIRST = StepReply(
    update=(),
    insert=(
        Insertion(entities=("Anna", "Bo", "Mill"), description="Bo bought the mill from Anna in spring.", chunks=(0,)),
        Insertion(entities=("Dag", "Mill"), description="Dag burned the mill at night.", chunks=(2,)),
        Insertion(
            entities=("Bo", "Mill"), description="The mill that burned was Bo's.", kind="inference", chunks=(0, 2)
        ),
        Insertion(entities=("Anna",), description="Anna had owned the mill before.", kind="inference", chunks=(0,)),
    ),
    premise=DENIED,
    open=("the day on which the mill burned", "what Bo did then"),
    judgement="open",
    concerns=(
        Inquiry(text="What Bo did after he bought the mill.", strategy="local", points=(0,), subquery="Bo's boat"),
        Inquiry(text="When Dag was at the mill.", strategy="global", subquery="Dag in May"),
    ),
)
SECOND = StepReply(
    update=(
        Revision(
            point=0,
            description="He had money left: he bought a boat too.",
            kind="inference",
            entities=("Boat",),
            chunks=(1,),
        ),
        Revision(
            point=2,
            description="The mill was Bo's when Dag burned it, if that was after spring.",
            replaces=True,
            kind="inference",
        ),
    ),
    insert=(Insertion(entities=("Cleo", "Harbour"), description="Cleo left the harbour in May.", chunks=(3,)),),
    merge=(Joining(points=(1, 2), description="Bo lost the mill to a fire that another laid."),),
    retire=(Retirement(point=3, reason="who owned it before spring is not asked"),),
    premise=DENIED,
    open=("the day on which the mill burned",),
    judgement="open",
    concerns=(Inquiry(text="Who saw the fire.", strategy="global", subquery="lamps of the pier at night"),),
)
THIRD = EvolveReply(
    update=(
        Revision(
            point=4, description="Cleo, who sold Bo a boat, left in May.", replaces=True, kind="fact", chunks=(1, 3)
        ),
    ),
    retire=(),
    merge=(),
    insert=(Insertion(entities=("Eve", "Pier"), description="Eve tends the lamps of the pier.", chunks=(4,)),),
    premise=DENIED,
    open=("the day on which the mill burned",),
)
ANSWER = "Bo did not burn it: Dag did, at night [4]. Bo had bought it in spring [1]. The day is not told."


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
    play = playing({"answer": ANSWER, "clues": CLUES, "step": [FIRST, SECOND], "evolve": [THIRD]})

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
    kinds = {one.kind for step in answer.steps for one in step.operations}
    assert kinds == {"insert", "revise", "merge", "retire"}  # nothing was dropped
    uids = {answer.memory, CORPUS, *(point.uid for point in answer.points)}
    uids |= {entity.uid for point in answer.points for entity in point.entities}
    assert not [uid for uid in uids if uid in text]  # nothing specific to one run
    assert text == GOLDEN.read_text(encoding="utf-8")
    again, _ = played(open_client, tmp_path / "again")
    assert again == text

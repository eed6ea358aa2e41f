import io
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from hgmem.cli import output, render
from hgmem.cli.lists import contents, memories, tenants
from hgmem.cli.progress import Lines, progress
from hgmem.cli.render import picture, show
from hgmem.values import as_json
from hgmem.values.evidence import Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.records import (
    Answer,
    Citation,
    Lineage,
    Memory,
    MemoryPoint,
    MemorySummary,
    Operation,
    QuoteStatus,
    Step,
)
from hgmem.values.reports import CorpusStatus, Progress
from hgmem.values.systems import SystemInfo
from hgmem.values.usage import Usage

HOSTILE = "\x1b]0;owned\x07 [bold]not markup[/bold] :smile: \x9b2J [1]"
ENTITIES = tuple(Entity(uid=f"e{number}", name=f"Name {number}") for number in range(15))
OLD = MemoryPoint(uid="m1-1-1", description="Half of it.", entities=ENTITIES[:2], chunks=("c1",), died=2)
OTHER = MemoryPoint(uid="m1-1-2", description="The other half.", entities=ENTITIES[1:3], chunks=("c2",), died=2)
WHOLE = MemoryPoint(uid="m1-2-1", description=HOSTILE, entities=ENTITIES, chunks=("c1", "c2"), born=2)
SUBQUERY = Subquery(text="Where?", concern="the place", strategy="local", targets=("m1-1-1",))
RETRIEVED = Retrieved(
    subquery=SUBQUERY,
    entities=(Hit(uid="e1", rank=1, score=0.5, name="Name 1"),),
    relations=(Hit(uid="r1", rank=1),),
    chunks=(Hit(uid="c1", rank=1, score=0.25, source_id="chunk-1"),),
)
STEPS = (
    Step(
        number=1,
        question="Why?",
        strategy="global",
        judgement="local",
        retrieved=(Retrieved(subquery=Subquery(text="Why?")),),
        operations=(Operation(kind="insert", point="m1-1-1"), Operation(kind="insert", point="m1-1-2")),
    ),
    Step(
        number=2,
        question="Why?",
        strategy="local",
        retrieved=(RETRIEVED,),
        operations=(
            Operation(kind="merge", point="m1-2-1", parts=("m1-1-1", "m1-1-2")),
            Operation(kind="drop", reason="point 7 does not exist"),
        ),
        notes=("a note of the step",),
    ),
)
CITATION = Citation(marker=1, chunk="c1", document="d1", title="Läs [b]", quote="Half\n of it.", start=3, end=14)
ANSWER = Answer(
    uid="m1-answer",
    question="Why?",
    text=f"Because. [1] {HOSTILE}",
    status="answered",
    corpus="c",
    system="hgmem",
    memory="m1",
    model="extractive",
    step=2,
    citations=(CITATION,),
    points=(OLD, OTHER, WHOLE),
    steps=STEPS,
    notes=("a note of the answer",),
    usage=Usage(calls={"model": {"answer": 1}}, seconds={"model": {"answer": 0.5}}),
    seconds=1.25,
)
SYSTEM = SystemInfo(name="hgmem", continues=True)
MEMORY = Memory(
    uid="m1",
    corpus="c",
    system="hgmem",
    model="extractive",
    status="answered",
    created_at="2026-01-02T03:04:05.678Z",
    step=2,
    points=(WHOLE,),
    steps=STEPS,
    answers=(ANSWER,),
)
LINEAGE = Lineage(
    point=WHOLE, kind="merge", parts=(Lineage(point=OLD, kind="insert"), Lineage(point=OTHER, kind="insert"))
)


def shown(parts: Sequence[object], capsys: pytest.CaptureFixture[str]) -> str:
    show(*parts)  # type: ignore[arg-type]
    return capsys.readouterr().out


def test_codes_that_steer_a_terminal_are_shown_and_not_sent(capsys: pytest.CaptureFixture[str]) -> None:
    everything = [
        *render.remembered(ANSWER),
        *render.answered(ANSWER),
        *render.stored(MEMORY, system=SYSTEM),
        render.ancestry(LINEAGE),
    ]
    text = shown(everything, capsys)
    assert not {code for code in text if code != "\n" and (code < " " or "\x7f" <= code <= "\x9f")}
    assert "\\x1b]0;owned\\x07 [bold]not markup[/bold] :smile: \\x9b2J [1]" in " ".join(text.split())


def test_an_answer_reads_with_its_quotes_how_it_came_about_and_what_to_paste(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown(list(render.answered(ANSWER)), capsys).splitlines()
    assert '[1] Läs [b] (3–14): "Half of it."' in lines
    assert "2 steps, answered without a language model (extractive), 1.2 s, memory m1" in lines
    assert "note: a note of the answer" in lines
    assert lines[-1].strip() == picture("m1")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("in_document", "(withdrawn; the sentence still stands in the document)"),
        ("not_in_document", "(withdrawn; no longer in the document)"),
        ("document_deleted", "(withdrawn; the document was deleted)"),
        (None, "(withdrawn)"),
    ],
)
def test_a_withdrawn_citation_says_what_its_document_says_now(
    capsys: pytest.CaptureFixture[str], status: QuoteStatus | None, said: str
) -> None:
    withdrawn = replace(CITATION, withdrawn=True, quote_status=status)
    text = shown(list(render.answered(replace(ANSWER, citations=(withdrawn,)))), capsys)
    assert f'[1] Läs [b] (3–14) {said}: "Half of it."' in " ".join(text.split())


@pytest.mark.parametrize(
    ("chunks", "deleted", "said"),
    [
        (("c1", "c2"), (), "since step 2, 2 chunks"),
        (("c1",), ("c2",), "since step 2, 1 chunk, 1 more deleted or changed"),
        ((), ("c1", "c2"), "since step 2, no longer supported: all its chunks were deleted or changed"),
        ((), (), "since step 2, 0 chunks"),
    ],
)
def test_a_point_says_how_many_chunks_support_it_and_how_many_are_gone(
    capsys: pytest.CaptureFixture[str], chunks: tuple[str, ...], deleted: tuple[str, ...], said: str
) -> None:
    point = replace(WHOLE, chunks=chunks, deleted_chunks=deleted)
    text = " ".join(shown(list(render.stored(replace(MEMORY, points=(point,)), system=SYSTEM)), capsys).split())
    assert said in text
    if not deleted:
        assert "deleted or changed" not in text


def test_a_memory_shows_the_names_of_a_class_once(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("Captain Ivar Brandt", "I. Brandt", "Brandt")
    brandts = [Entity(uid=f"b{at}", name=name, canonical_uid="b0", names=names) for at, name in enumerate(names)]
    points = tuple(replace(OLD, uid=f"m1-1-{at}", entities=(one, ENTITIES[0])) for at, one in enumerate(brandts))
    text = shown(list(render.stored(replace(MEMORY, points=points), system=SYSTEM)), capsys)
    assert text.count("Captain Ivar Brandt (also: I. Brandt, Brandt)") == text.count("also: ") == 1
    assert "Brandt · Name 0" in text  # a point keeps the name that it has


def test_the_model_that_answered_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "answered by gpt-9" in shown(list(render.answered(replace(ANSWER, model="gpt-9"))), capsys)


def test_the_steps_show_what_was_asked_done_dropped_and_noted(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(list(render.remembered(ANSWER)), capsys)
    assert "step 1: searched across the corpus, then judged local" in text
    assert "step 2: searched around its points" in text
    assert "concern: the place" in text
    assert "about 1-1; found 1 entity, 1 relation, 1 chunk" in text
    assert "inserted 1-1: Half of it." in text
    assert "merged 2-1 from 1-1, 1-2: " in text
    assert "dropped (point 7 does not exist)" in text
    assert "note: a note of the step" in text
    assert "active at the end of step 2: 1 point" in text
    assert "Name 11 and 3 more; since step 2, 2 chunks" in text


def test_a_lineage_reads_from_the_point_to_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown([render.ancestry(LINEAGE)], capsys)
    assert "m1-2-1  merged at step 2\n" in text
    assert "├── m1-1-1  inserted at step 1, until step 2\n" in text
    assert "└── m1-1-2  inserted at step 1, until step 2\n" in text
    assert "(inferred)" not in text

    guessed = replace(LINEAGE, point=replace(LINEAGE.point, description="It was whole.", inferred=True))
    assert "It was whole. (inferred)\n" in shown([render.ancestry(guessed)], capsys)


def test_no_line_ends_with_blanks_and_none_that_is_to_copy_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = shown([*render.remembered(ANSWER), *render.answered(ANSWER)], capsys).splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert f"  {picture('m1')}" in lines
    assert [line for line in lines if len(line) > 40] == [f"  {picture('m1')}"]


def test_lists_name_what_they_list(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    summary = MemorySummary(
        uid="m1", corpus="c", system="naive", model="extractive", status="answered",
        question=f"Why {HOSTILE} {'?' * 99}", steps=1, points=0, created_at="2026-01-02T03:04:05Z",
        withdrawn=2,
    )  # fmt: skip
    corpus = {
        "corpus": "c",
        "status": "ready",
        "embedding_model": "m",
        "dimensions": 3,
        "created_at": "2026-01-02T03:04",
    }
    counts = CorpusStatus(
        corpus="c", status="ready", documents=60, chunks=1234, entities=2, relations=1, memories=0, failed=1, pending=0,
        embedding_model="m", dimensions=3, failures=({"chunk": "c9", "error": "bad\nreply"},),
    )  # fmt: skip
    documents = [
        {
            "uid": f"u{number}",
            "id": f"d{number}",
            "title": "T",
            "source": "s",
            "status": "done",
            "conversation": "",
            "chunks": 1,
        }
        for number in range(60)
    ]
    roles = {"answers": "big at u"}
    text = shown([memories([summary]), tenants([corpus]), *contents(counts, documents, roles)], capsys)
    assert "m1      2026-01-02 03:04  answered, 2 citations withdrawn  naive" in text
    assert "\x1b" not in text
    assert "c       ready   m              2026-01-02 03:04" in text
    assert "answers: big at u" in text
    assert "1,234" in text
    assert "chunk c9 failed: bad reply" in text
    assert "d49" in text
    assert "d50" not in text
    assert "and 10 more: use --json to list all" in text


def test_json_of_an_answer_holds_what_scripts_were_promised() -> None:
    row = as_json.row(ANSWER)
    assert set(row) >= {
        "answer", "status", "question", "corpus", "system", "citations", "memory", "points", "steps", "notes", "usage",
        "model", "seconds",
    }  # fmt: skip
    assert set(row["citations"][0]) >= {"marker", "chunk", "document", "title", "start", "end", "quote", "source_id"}
    assert row["points"][0] == {
        "uid": "m1-1-1", "description": "Half of it.", "entities": ["Name 0", "Name 1"], "inferred": False,
        "born": 1, "died": 2, "retired": "", "chunks": ["c1"], "deleted_chunks": [],
    }  # fmt: skip
    step = row["steps"][1]
    assert set(step) >= {
        "number", "strategy", "judgement", "subqueries", "operations", "notes", "seconds", "usage",
    }  # fmt: skip
    assert step["subqueries"] == [
        {
            "text": "Where?",
            "concern": "the place",
            "strategy": "local",
            "targets": ["m1-1-1"],
            "retrieved": {
                "entities": [{"uid": "e1", "rank": 1, "score": 0.5, "name": "Name 1"}],
                "relations": [{"uid": "r1", "rank": 1, "score": 0.0}],
                "chunks": [{"uid": "c1", "rank": 1, "score": 0.25, "source_id": "chunk-1"}],
                "built": [],
            },
        }
    ]
    assert step["operations"][1] == {"kind": "drop", "point": "", "parts": [], "reason": "point 7 does not exist"}


def test_json_of_a_memory_and_of_a_lineage() -> None:
    row = as_json.row(MEMORY)
    assert (row["memory"], row["step"], [point["uid"] for point in row["points"]]) == ("m1", 2, ["m1-2-1"])
    assert row["answers"][0]["text"] == ANSWER.text
    assert row["answers"][0]["citations"][0]["marker"] == 1
    tree = as_json.row(LINEAGE)
    assert (tree["kind"], [part["uid"] for part in tree["parts"]]) == ("merge", ["m1-1-1", "m1-1-2"])


def test_the_query_to_paste_keeps_to_the_step_and_to_its_memory() -> None:
    assert "{uid: 'm\\'1'}" in picture("m'1")
    assert "p.born <= 2 AND (p.died IS NULL OR p.died > 2)" in picture("m1", step=2)
    assert "HAS_CITATION" in picture("m1", points=False, step=1)


class FakeClock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_log_gets_a_line_at_once_and_then_every_few_seconds() -> None:
    clock, said = FakeClock(), list[str]()
    report = Lines(said.append, clock=clock)
    for second, done in ((1, 64), (2, 128), (5, 320), (10, 640)):
        clock.now = 100.0 + second
        report(Progress(done=done, total=640, document="d"))
    for second, done in ((12, 500), (15, 1_000), (20, 1_500)):
        clock.now = 100.0 + second
        report(Progress(done=done, total=2_000, unit="entities and relations"))
    assert said == [
        "64 of 640 chunks, 64.0 per second, about 9 s left",
        "320 of 640 chunks, 64.0 per second, about 5 s left",
        "640 of 640 chunks, 64.0 per second",
        "1,000 of 2,000 entities and relations, 200.0 per second, about 5 s left",
        "1,500 of 2,000 entities and relations, 150.0 per second, about 3 s left",
    ]


def test_before_anything_is_done_no_time_is_foretold() -> None:
    clock, said = FakeClock(), list[str]()
    Lines(said.append, clock=clock)(Progress(done=0, total=3_070, unit="entities and relations"))
    assert said == ["0 of 3,070 entities and relations, 0.0 per second"]


def test_what_is_soon_over_says_nothing_in_a_log() -> None:
    clock, said = FakeClock(), list[str]()
    Lines(said.append, clock=clock)(Progress(done=47, total=47, document="d"))
    assert said == []


def test_on_a_terminal_there_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with progress() as report:
        report(Progress(done=64, total=128, document="[red]A title[/red]"))
        report(Progress(done=127, total=128, document="[red]A title[/red]"))
    assert "127/128" in terminal.getvalue()
    assert "[red]A title[/red]" in terminal.getvalue()


def test_a_pipe_gets_utf_8_whatever_the_locale_and_half_a_character_does_no_harm() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    output.use_utf8(stream)
    stream.write("Où 谁 \udcff")
    stream.flush()
    assert raw.getvalue() == "Où 谁 \\udcff".encode()

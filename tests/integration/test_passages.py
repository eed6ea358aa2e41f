"""Questions without an answer, the passages that support their memory, and tracing hooks."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from letters import QUESTION, SENTENCES
from typer.testing import CliRunner

from hgmem import Document, HGMem, Passage
from hgmem.cli import app
from hgmem.errors import ModelError, UsageError
from hgmem.graph.painting import Pictured
from hgmem.memory.browser.guide import guide
from hgmem.systems.hgmem.replies import EvolveReply, Insertion
from hgmem.testing import ScriptedModel
from hgmem.values.events import Answered, Event, Planned, StepStarted, Watcher

Open = Callable[..., HGMem]


def supporting(task: Any) -> EvolveReply:
    """A point that only the sentence about Anna supports."""
    (at,) = [at for at, chunk in enumerate(task.evidence.chunks) if "Anna" in chunk.text][:1] or [0]
    return EvolveReply(
        insert=(Insertion(entities=("Anna", "Mill"), description=f"Anna sold the mill ({task.name}).", chunks=(at,)),)
    )


def names(client: HGMem) -> list[str]:
    model: Any = client.model
    assert isinstance(model, ScriptedModel)
    return [task.name for task in model.tasks]


# Without an answer --------------------------------------------------------------------------------------------


def test_a_question_that_is_left_unanswered_has_its_memory_and_no_answer_was_written(letters: Any) -> None:
    client = letters()
    answer = client.ask(QUESTION, steps=2, answer=False)
    stored = client.memory(answer.memory)

    assert (answer.status, answer.uid, answer.text, answer.citations) == ("unanswered", "", "", ())
    assert "answer" not in names(client)
    assert (stored.status, stored.step, stored.answers) == ("unanswered", 2, ())
    assert {point.uid for point in stored.points} == {point.uid for point in answer.points if point.alive(2)}
    assert client.check().findings == ()


def test_asked_on_it_gets_its_answer_and_takes_no_step_for_it(letters: Any) -> None:
    client = letters()
    left = client.ask(QUESTION, steps=1, answer=False)
    asked = len(names(client))
    answer = client.ask(memory=left.memory)

    assert answer.question == QUESTION
    assert (answer.status, answer.step) == ("answered", 1)
    assert names(client)[asked:] == ["answer"]
    assert client.memory(left.memory).status == "answered"


def test_left_unanswered_is_a_status_of_its_own_that_a_follow_up_ends_and_a_run_cut_short_does_not_get(
    letters: Any,
) -> None:
    gone: list[ModelError] = []
    client = letters(evolve=lambda _: gone[0] if gone else EvolveReply())
    left = client.ask(QUESTION, steps=1, answer=False).memory
    plain = client.ask(QUESTION, system="naive", answer=False).memory
    assert {one.uid: one.status for one in client.memories()} == {left: "unanswered", plain: "unanswered"}

    assert client.ask("And then?", memory=left, steps=1).status == "answered"
    assert client.memory(left).status == "answered"
    client.ask("And who else?", memory=left, steps=1, answer=False)
    assert client.memory(left).status == "unanswered"

    gone.append(ModelError("gone"))
    with pytest.raises(ModelError, match="gone"):
        client.ask("And why?", memory=left, steps=1, answer=False)
    assert client.memory(left).status == "unanswered"  # nothing was written
    with pytest.raises(ModelError, match="gone"):
        client.ask("Where?", steps=1, answer=False)
    assert client.memories()[0].status == "interrupted"


def test_cut_off_before_it_is_left_a_memory_is_interrupted(letters: Any) -> None:
    client = letters(evolve=lambda task: ModelError("gone") if task.merging else EvolveReply())
    with pytest.raises(ModelError, match="gone"):
        client.ask(QUESTION, steps=2, answer=False)  # the second step merges
    assert [(one.status, one.steps) for one in client.memories()] == [("interrupted", 1)]


def test_the_command_line_and_the_guide_say_that_no_answer_was_wanted(
    letters: Any, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    client = letters()
    memory = client.ask(QUESTION, steps=1, answer=False).memory

    def said(*command: str) -> str:
        done = CliRunner().invoke(app, list(command), env=environment)
        assert done.exit_code == 0, done.output
        return done.output

    assert "unanswered" in said("memory", "list", "--corpus", client.corpus)
    shown = said("memory", "show", memory)
    assert "system hgmem, unanswered, since" in shown
    assert f"`hgmem ask --continue {memory}`" in shown
    assert "status unanswered" in guide(client.memory(memory), Pictured(), style="x", system=client.system("hgmem"))
    client.ask(memory=memory)
    assert "No answer was requested" not in said("memory", "show", memory)


def test_events_and_the_twin_end_with_it_too(letters: Any) -> None:
    client = letters()
    *_, last = client.stream(QUESTION, steps=1, answer=False)
    assert isinstance(last, Answered)
    assert last.answer.status == "unanswered"
    assert asyncio.run(client.aask(QUESTION, steps=1, answer=False)).status == "unanswered"
    assert client.ask(QUESTION, steps=2, settings={"answer_each_step": True}, answer=False).status == "unanswered"
    assert "answer" not in names(client)


def test_an_answer_at_a_step_can_not_be_left_out(letters: Any) -> None:
    client = letters()
    memory = client.ask(QUESTION, steps=1).memory
    with pytest.raises(UsageError, match="answer=False cannot be combined"):
        client.ask(memory=memory, at_step=1, answer=False)


# Passages -----------------------------------------------------------------------------------------------------


def test_passages_come_best_first_with_what_they_stand_for_in_memory(letters: Any) -> None:
    client = letters(evolve=supporting)
    memory = client.ask(QUESTION, steps=1, answer=False).memory
    passages = client.passages(memory)
    first = passages[0]

    assert [one.rank for one in passages] == list(range(1, len(passages) + 1))
    assert first.chunk.text == SENTENCES[0]
    assert [point.description for point in first.points] == ["Anna sold the mill (evolve)."]
    assert all(one.points == () for one in passages[1:])
    found = [hit.uid for one in client.memory(memory).steps[0].retrieved for hit in one.chunks]
    assert [one.chunk.uid for one in passages[1:]] == [uid for uid in found if uid != first.chunk.uid]
    assert all(one.score is not None and -1 <= one.score <= 1 and one.step == 1 for one in passages)
    hits = {hit.uid: hit.score for one in client.memory(memory).steps[0].retrieved for hit in one.chunks}
    assert {one.chunk.uid: one.score for one in passages} == hits


def test_as_many_as_are_wanted_come_and_the_recipe_says_which(letters: Any) -> None:
    client = letters(evolve=supporting)
    memory = client.ask(QUESTION, steps=1, answer=False).memory
    assert [len(client.passages(memory, limit=most)) for most in (1, 3)] == [1, 3]
    assert client.passages(memory, limit=3) == client.passages(memory)[:3]

    supports = client.ask(QUESTION, steps=1, settings={"read_tokens": 0}, answer=False).memory
    assert [one.chunk.text for one in client.passages(supports)] == [SENTENCES[0]]
    around = client.ask(QUESTION, steps=1, recipe="paper", answer=False).memory
    assert {"Anna", "Mill"} <= {
        entity.name for one in client.passages(around) for point in one.points for entity in point.entities
    }


def test_where_too_few_were_read_the_same_sub_queries_find_what_comes_next(letters: Any) -> None:
    client = letters(evolve=supporting)
    shallow = {"retrieval.entities": 1, "retrieval.chunks": 1, "retrieval.searched_chunks": 1}
    memory = client.ask(QUESTION, steps=1, settings=shallow, answer=False).memory
    read = client.passages(memory)
    assert len(read) < len(SENTENCES)

    wanted = client.passages(memory, limit=len(SENTENCES))
    assert wanted[: len(read)] == read
    assert {one.chunk.text for one in wanted} == set(SENTENCES)
    assert [one.rank for one in wanted] == list(range(1, len(SENTENCES) + 1))
    assert all((one.score, one.step, one.points) == (None, None, ()) for one in wanted[len(read) :])
    assert client.passages(memory, limit=len(read) + 1) == wanted[: len(read) + 1]
    assert client.passages(memory) == read  # a higher limit has written nothing


def test_without_a_model_an_answer_is_drawn_from_what_a_plain_search_finds_first(client: HGMem, affair: Path) -> None:
    client.add(affair)
    for question in ("Who took the Ravensund Orrery, and where is it hidden?", "Who owned the warehouse?"):
        found = client.passages(client.ask(question, answer=False).memory)
        plain = client.search(question, limit=100)
        assert {one.chunk.uid for one in plain[:12]} < {one.chunk.uid for one in found}
        assert len(found) < len(plain)


def test_further_passages_keep_to_the_documents_that_were_asked_for(client: HGMem) -> None:
    for at in range(4):
        text = f"The Tallow Stairs Warehouse had {at + 2} owners before Marian Dace."
        client.add(Document(id=f"d{at}", text=text, title=f"Deed {at}", metadata={"year": 1920 + at % 2}))
    shallow = {"clues": (), "retrieval.entities": 1, "retrieval.chunks": 0, "retrieval.searched_chunks": 1}
    asking: Any = {"steps": 1, "settings": shallow, "answer": False}
    memory = client.ask("Who owned the warehouse?", filters={"year": 1921}, **asking).memory
    assert {one.chunk.title for one in client.passages(memory)} <= {"Deed 1", "Deed 3"}
    assert sorted(one.chunk.title for one in client.passages(memory, limit=9)) == ["Deed 1", "Deed 3"]


def test_a_step_is_that_which_found_a_passage_and_earlier_steps_can_be_asked_for(letters: Any) -> None:
    client = letters()
    memory = client.ask(QUESTION, steps=3, answer=False).memory
    passages = client.passages(memory)
    stored = client.memory(memory)
    first: dict[str, int] = {}
    for step in stored.steps:
        for one in step.retrieved:
            for hit in one.chunks:
                first.setdefault(hit.uid, step.number)

    assert {one.chunk.uid: one.step for one in passages} == first
    earlier = client.passages(memory, step=1)
    assert {one.chunk.uid for one in earlier} == {uid for uid, step in first.items() if step == 1}
    with pytest.raises(UsageError, match="has no step 9"):
        client.passages(memory, step=9)


def test_plain_retrieval_gives_as_many_chunks_as_it_is_told(letters: Any) -> None:
    client = letters()
    memory = client.ask(QUESTION, system="naive", settings={"chunks": 2}, answer=False).memory
    assert [one.rank for one in client.passages(memory)] == [1, 2]
    assert [one.rank for one in client.passages(memory, limit=4)] == [1, 2, 3, 4]
    nearest = client.ask(QUESTION, system="naive", settings={"chunks": 4}, answer=False).memory
    assert [one.chunk.uid for one in client.passages(memory, limit=4)] == [
        one.chunk.uid for one in client.passages(nearest)
    ]
    assert names(client) == []
    for wrong in (0, "many"):
        with pytest.raises(UsageError, match="invalid recipe option 'chunks'"):
            client.ask(QUESTION, system="naive", settings={"chunks": wrong})


def test_documents_say_where_a_passage_is_from_and_filters_hold(client: HGMem) -> None:
    for year in (1921, 1922):
        text = f"In {year} the Tallow Stairs Warehouse belonged to Marian Dace."
        client.add(
            Document(id=f"d{year}", text=text, title=f"Year {year}", source=f"{year}.txt", metadata={"year": year})
        )
    memory = client.ask("Who owned the warehouse?", steps=1, filters={"year": 1922}, answer=False).memory
    (passage,) = client.passages(memory)

    assert isinstance(passage, Passage)
    assert (passage.source, passage.metadata, passage.chunk.title) == ("1922.txt", {"year": 1922}, "Year 1922")
    assert (passage.chunk.start, passage.chunk.end) == (0, len(passage.chunk.text))


def test_no_evidence_leaves_no_passages_and_bad_input_is_named(client: HGMem, letters: Any) -> None:
    client.add(Document(id="one", text="A lamp."))
    other = letters()
    memory = other.ask(QUESTION, steps=1).memory
    for call, said in (
        (lambda: client.passages("nothing"), "memory, point or answer 'nothing' not found"),
        (lambda: other.passages(memory, limit=0), "limit=0 must be an integer of at least 1"),
        (lambda: other.passages(memory, limit=True), "limit=True must be an integer of at least 1"),
        (lambda: other.passages(memory, step="x"), "step='x' is not a valid step: use an integer of at least 1"),
        (lambda: other.passages(memory, step=True), "step=True is not a valid step"),
        (lambda: other.passages(["m"]), r"uid=\['m'\] is not a memory uid: pass one"),
        (lambda: other.memory(memory, step="x"), "step='x' is not a valid step"),
        (lambda: other.memory(object()), "is not a memory uid: pass one"),
        (lambda: other.replay(3), "uid=3 is not a memory uid"),
        (lambda: other.ask(["And then?"], memory=memory), "the question must be a string, not list"),
        (lambda: other.memories(corpus=3), "invalid corpus name 3: it must match"),
    ):
        with pytest.raises(UsageError, match=said):
            call()
    assert asyncio.run(other.apassages(memory, limit=2)) == other.passages(memory, limit=2)


# Tracing hooks ------------------------------------------------------------------------------------------------


class Noting(Watcher):
    """Records its events and their threads."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, Any]] = []
        self.threads: set[int] = set()

    def _note(self, kind: str, what: object) -> None:
        self.noted.append((kind, what))
        self.threads.add(threading.get_ident())

    def question(self, work: Callable[[], Any], /) -> Any:
        self._note("begins", None)
        try:
            return work()
        finally:
            self._note("ends", None)

    def call(self, task: Any, work: Callable[[], Any], /) -> Any:
        self._note("asks", task.name)
        done = work()
        self._note("told", type(done).__name__)
        return done

    def hear(self, event: Event, /) -> None:
        self._note("event", type(event).__name__)


def test_a_watcher_hears_of_everything_in_order_in_the_thread_that_works(letters: Any) -> None:
    client, watcher = letters(), Noting()
    list(client.stream(QUESTION, steps=1, watcher=watcher))

    assert watcher.noted == [
        ("begins", None),
        ("event", "QuestionAccepted"),
        *(("asks", "clues"), ("told", "CluesReply")),
        ("event", "StepStarted"),
        ("event", "EvidenceFound"),
        *(("asks", "evolve"), ("told", "EvolveReply")),
        ("event", "OperationApplied"),
        ("event", "OperationApplied"),
        ("event", "Planned"),
        *(("asks", "answer"), ("told", "AnswerReply")),
        ("event", "AnswerToken"),
        ("event", "Answered"),
        ("ends", None),
    ]
    assert len(watcher.threads) == 1
    assert threading.get_ident() not in watcher.threads


def test_a_watcher_hears_of_the_end_of_a_question_that_fails_or_is_closed(letters: Any) -> None:
    client, watcher = letters(step=lambda _: ModelError("gone")), Noting()
    with pytest.raises(ModelError, match="gone"):
        client.ask(QUESTION, watcher=watcher)
    assert watcher.noted[-1] == ("ends", None)

    client, watcher = letters(), Noting()
    stream = client.stream(QUESTION, steps=3, watcher=watcher)
    for event in stream:
        if isinstance(event, Planned):
            break
    stream.close()
    assert watcher.noted[-1] == ("ends", None)
    assert ("asks", "answer") not in watcher.noted


def test_plain_retrieval_tells_of_its_step(letters: Any) -> None:
    events = list(letters().stream(QUESTION, system="naive"))
    (started,) = [event for event in events if isinstance(event, StepStarted)]
    assert [one.text for one in started.subqueries] == [QUESTION]


# Searching ----------------------------------------------------------------------------------------------------


def test_a_search_finds_by_words_and_meaning_and_writes_nothing(letters: Any) -> None:
    client = letters()
    found = client.search("Who counts the lamps?", limit=2)
    assert found[0].chunk.text == "Eve counts the lamps of the pier."
    assert [one.rank for one in found] == [1, 2]
    assert found[0].score > found[1].score
    assert asyncio.run(client.asearch("Who counts the lamps?", limit=2)) == found
    assert (names(client), client.memories()) == ([], [])

    client.add(Document(id="note", title="Note", text="The lamps were counted twice."), graph=False)
    (only,) = client.search("lamps", limit=9, filters={"title": "Note"})
    assert (only.chunk.title, only.points, only.step) == ("Note", (), None)


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (" ", {}, "the question is empty"),
        ("x" * 1_000_000, {}, "more than the limit"),
        ("x", {"limit": 0}, "limit=0 must be an integer of at least 1"),
        ("x", {"corpus": "nowhere"}, "corpus 'nowhere' not found"),
        ("x", {"filters": {"title": "Nothing"}}, "has title 'Nothing'"),
        ("x", {"filters": "title"}, "filters= must map names to values"),
    ],
)
def test_a_bad_search_is_one_line(letters: Any, text: str, options: Any, said: str) -> None:
    with pytest.raises(UsageError) as error:
        letters().search(text, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)

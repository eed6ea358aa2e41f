"""Questions during faults: the server is killed, the connection is cut or silent, the model is unavailable.

Each time the caller gets one clear error, memory contains whole steps, the corpus is unchanged, and the memory can be
continued.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from dumping import driver, dump
from letters import LETTERS
from playing import playing
from proxy import Moment, Proxy
from servers import OwnServer, own_server
from troubled import Asker, Ended, breaking, by_command, by_program
from whole import corpus_layer, whole_steps
from wire import Answered, Asked, Failing, Said, WireServer

from hgmem import HGMem, Settings
from hgmem.errors import GraphError
from hgmem.local.process import KEEP_ALIVE, PROBES

HELD = "is in use by another run: wait until it ends; if that run crashed, retry"
GONE = "cannot be reached: start one with `hgmem up`, or set NEO4J_URI to a running server"
SILENT = (
    "stopped answering: check that the server runs, that NEO4J_URI names it, and that the network reaches it, "
    "then try again"
)
HOUR = 3_600.0  # of a lease that must not expire, even on a slow machine
PATIENCE = 0.6  # seconds after which a lease expires, if the test needs it

# Phases of a question: the model's task, the number of the request for it, and the number of whole steps so far.
BEFORE = ("step", 1, 0)
BETWEEN = ("evolve", 1, 1)
ANSWERING = ("answer", 1, 2)
MOMENTS = pytest.mark.parametrize(
    ("task", "number", "steps"),
    [pytest.param(*BEFORE, marks=pytest.mark.long), BETWEEN, pytest.param(*ANSWERING, marks=pytest.mark.long)],
    ids=["before the first step is written", "between reading and writing of step 2", "while it is answered"],
)
ASKERS = pytest.mark.parametrize("ask", [by_program, pytest.param(by_command, marks=pytest.mark.long)])


@dataclass
class Scene:
    """The letters in a corpus, and settings for it; with `server` the test reads the database around the fault."""

    corpus: str
    server: Settings
    settings: dict[str, Any]
    before: Any = field(init=False)

    def __post_init__(self) -> None:
        with HGMem.open(self.corpus, **self.server.model_dump(exclude_none=True)) as client:
            client.add_graph(LETTERS)
        self.before = corpus_layer(dump(self.server, self.corpus))

    def reached(self, **changes: Any) -> dict[str, Any]:
        return {**self.settings, **changes}

    @contextmanager
    def asking(self, answer: Callable[[Asked], Answered] | None = None) -> Iterator[tuple[dict[str, Any], WireServer]]:
        """A model server with this behaviour, by default without faults, and settings for it."""
        with WireServer(answer or playing()) as model:
            yield self.reached(openai_base_url=model.base_url), model

    def memory(self, *, steps: int) -> str:
        """Check that the corpus is unchanged, and that its one memory has `steps` whole steps; return its uid."""
        found = dump(self.server, self.corpus)
        assert corpus_layer(found) == self.before
        (memory,) = found.of("Memory")
        assert whole_steps(found, memory) == steps
        return memory

    def answers(self) -> int:
        return len(dump(self.server, self.corpus).of("Answer"))

    def goes_on(self, ask: Asker, memory: str, *, steps: int, held: bool = True) -> Ended:
        """Check that a memory of `steps` steps is refused while leased, and can then be continued to an answer."""
        with self.asking() as (settings, _):
            if held:
                refused = ask(self.corpus, {**settings, "claim_timeout": HOUR}, memory=memory)
                assert HELD in refused.error
                self.memory(steps=steps)
                time.sleep(PATIENCE + 0.1)
                settings |= {"claim_timeout": PATIENCE, "heartbeat": PATIENCE / 4}
            ended = ask(self.corpus, settings, memory=memory)
        assert (ended.answer, ended.error, ended.memory) == ("Anna sold it [1].", "", memory)
        found = dump(self.server, self.corpus)
        assert whole_steps(found, memory) >= max(steps, 1)
        assert corpus_layer(found) == self.before
        return ended


def wired(settings: Settings, cache: Path) -> dict[str, Any]:
    """Return settings with a model behind a server, with at most two attempts per request."""
    wire = {"model": "test-model", "openai_api_key": "secret", "model_attempts": 2, "model_timeout": 60}
    return {**settings.model_dump(exclude_none=True), **wire, "cache": str(cache)}


# The server -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    with own_server(tmp_path_factory.mktemp("faults")) as server:
        yield server


@pytest.mark.slow
@MOMENTS
@ASKERS
def test_a_server_killed_during_a_question_costs_the_step_under_way(
    own: OwnServer, corpus: str, tmp_path: Path, ask: Asker, task: str, number: int, steps: int
) -> None:
    scene = Scene(corpus, own.settings, wired(own.settings, tmp_path))
    with scene.asking(breaking(task, number, own.kill)) as (settings, _):
        ended = ask(corpus, settings)
    own.restart()
    scene.server, scene.settings = own.settings, wired(own.settings, tmp_path)
    memory = scene.memory(steps=steps)

    assert GONE in ended.error
    assert ended.memory == (memory if steps else None)
    scene.goes_on(ask, memory, steps=steps)


# Connection -----------------------------------------------------------------------------------------------------


@pytest.fixture
def line(settings: Settings) -> Iterator[Proxy]:
    """A proxy to the server of the test run."""
    assert settings.neo4j_uri
    with Proxy(settings.neo4j_uri) as proxy:
        yield proxy


@pytest.fixture
def scene(settings: Settings, line: Proxy, corpus: str, tmp_path: Path, open_client: Any) -> Scene:
    open_client()  # this client deletes the corpus at the end
    behind = {"neo4j_uri": line.uri, "connect_timeout": 1}
    return Scene(corpus, settings, {**wired(settings, tmp_path), **behind})


def test_a_line_cut_once_while_reading_is_not_noticed(scene: Scene, line: Proxy) -> None:
    for statement, number in (("find_corpus", 1), ("retrieve", 1), ("neighbours", 1), ("retrieve", 2)):
        line.at(statement, "asked", number=number)
    with scene.asking() as (settings, _):
        ended = by_program(scene.corpus, settings)

    assert ended.answer
    assert line.rules == []
    assert scene.memory(steps=2) == ended.memory


@ASKERS
@pytest.mark.parametrize(("number", "steps"), [(1, 0), (2, 1)])
def test_a_line_cut_for_good_while_reading_costs_the_step_under_way(
    scene: Scene, line: Proxy, ask: Asker, number: int, steps: int
) -> None:
    line.at("retrieve", "asked", number=number, fault=line.cut_for_good)
    with scene.asking() as (settings, _):
        ended = ask(scene.corpus, settings)
    memory = scene.memory(steps=steps)
    line.mend()

    assert GONE in ended.error
    assert ended.memory == (memory if steps else None)
    scene.goes_on(ask, memory, steps=steps)


@ASKERS
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("moment", ["uncommitted", "unanswered"])
def test_a_step_whose_commit_nobody_heard_of_is_there_once_or_not_at_all(
    scene: Scene, line: Proxy, ask: Asker, moment: Moment, number: int
) -> None:
    line.at("write_step", moment, number=number)
    with scene.asking() as (settings, _):
        ended = ask(scene.corpus, settings)
    steps = number if moment == "unanswered" else number - 1
    memory = scene.memory(steps=steps)

    assert GONE in ended.error
    assert ended.memory == memory
    scene.goes_on(ask, memory, steps=steps)


@ASKERS
@pytest.mark.parametrize("moment", ["uncommitted", "unanswered"])
def test_an_answer_whose_commit_nobody_heard_of_is_there_once_or_given_when_it_goes_on(
    scene: Scene, line: Proxy, ask: Asker, moment: Moment
) -> None:
    line.at("write_answer", moment)
    with scene.asking() as (settings, _):
        ended = ask(scene.corpus, settings)
    memory = scene.memory(steps=2)
    written = int(moment == "unanswered")

    assert GONE in ended.error
    assert ended.memory == memory
    assert scene.answers() == written
    scene.goes_on(ask, memory, steps=2, held=not written)
    assert scene.answers() == written + 1


def test_a_memory_whose_creation_nobody_heard_of_holds_nothing_and_can_go_on(scene: Scene, line: Proxy) -> None:
    line.at("create_memory", "unanswered")
    with scene.asking() as (settings, model):
        ended = by_program(scene.corpus, settings)
    memory = scene.memory(steps=0)

    assert (ended.answer, ended.memory, model.requests) == ("", None, [])
    scene.goes_on(by_program, memory, steps=0)


@ASKERS
@pytest.mark.parametrize(
    ("statement", "moment", "steps"),
    [pytest.param("retrieve", "asked", 1, marks=pytest.mark.slow), ("write_step", "unanswered", 2)],
)
def test_a_line_that_falls_silent_for_longer_than_is_borne_ends_the_question(
    scene: Scene, line: Proxy, ask: Asker, statement: str, moment: Moment, steps: int
) -> None:
    line.patience = 6
    line.at(statement, moment, number=2, fault=line.freeze)
    began = time.monotonic()
    with scene.asking() as (settings, _):
        ended = ask(scene.corpus, settings)
    took = time.monotonic() - began
    memory = scene.memory(steps=steps)
    line.mend()

    assert SILENT in ended.error
    assert ended.memory == memory
    assert 6 < took < 60
    scene.goes_on(ask, memory, steps=steps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "moment", "steps"),
    [("retrieve", "asked", 1), pytest.param("write_step", "uncommitted", 1, marks=pytest.mark.long)],
)
def test_a_line_to_a_server_of_hgmem_up_that_falls_silent_ends_the_question_within_half_a_minute(
    own: OwnServer, corpus: str, tmp_path: Path, statement: str, moment: Moment, steps: int
) -> None:
    fell: list[float] = []

    def freeze() -> None:
        line.freeze()
        fell.append(time.monotonic())

    assert own.settings.neo4j_uri
    with Proxy(own.settings.neo4j_uri) as line:
        scene = Scene(corpus, own.settings, {**wired(own.settings, tmp_path), "neo4j_uri": line.uri})
        line.at(statement, moment, number=2, fault=freeze)
        with scene.asking() as (settings, _):
            ended = by_program(corpus, settings)
        took = time.monotonic() - fell[0]
        memory = scene.memory(steps=steps)
        line.mend()

        assert SILENT in ended.error
        assert ended.memory == memory
        assert took < 30
        scene.goes_on(by_program, memory, steps=steps)


LONG = KEEP_ALIVE * PROBES + 3  # seconds: longer than the timeout hint of a server of `hgmem up`


@pytest.mark.slow
def test_a_statement_that_waits_for_longer_than_silence_is_borne_is_not_cut_off(own: OwnServer, corpus: str) -> None:
    with HGMem.open(corpus, **own.settings.model_dump(exclude_none=True)) as client:
        client.add_graph(LETTERS)
        chunks = list(dump(own.settings, corpus).of("Chunk"))
        with driver(own.settings) as opened, opened.session() as session, session.begin_transaction() as holding:
            holding.run("MATCH (c:Chunk {corpus: $c}) SET c.held = true", c=corpus).consume()
            ending = threading.Timer(LONG, holding.rollback)
            ending.start()
            began = time.monotonic()
            client._database.run("finish_chunks", corpus=corpus, uids=chunks)
            ending.join()
        assert time.monotonic() - began > LONG - 1
        client.delete()


@pytest.mark.long
def test_a_statement_that_computes_for_longer_than_silence_is_borne_is_not_cut_off(own: OwnServer) -> None:
    counting = "UNWIND range(1, $most) AS i WITH i WHERE sqrt(i) * sqrt(i + 1) < 0 RETURN count(i) AS found"
    most, took = 10_000_000, 0.0
    with driver(own.settings) as opened:
        while took < LONG:  # assumes that this machine is fast enough
            began = time.monotonic()
            assert opened.execute_query(counting, most=most).records[0]["found"] == 0
            took = time.monotonic() - began
            most *= 3


def test_a_line_cut_while_a_claim_is_renewed_is_not_noticed(scene: Scene, line: Proxy, settings: Settings) -> None:
    line.at("renew_memory", "uncommitted")
    slowly = breaking("evolve", 1, lambda: time.sleep(2 * PATIENCE))
    with scene.asking(slowly) as (given, _):
        ended = by_program(scene.corpus, {**given, "claim_timeout": 5 * PATIENCE, "heartbeat": PATIENCE / 4})

    assert ended.answer
    assert line.rules == []
    assert scene.memory(steps=2) == ended.memory
    with driver(settings) as opened:
        rows = opened.execute_query("MATCH (m:Memory {corpus: $c}) RETURN m.run AS run", c=scene.corpus).records
    assert [row["run"] for row in rows] == [None]


def test_a_statement_that_takes_longer_than_it_may_is_named_with_the_setting(
    scene: Scene, settings: Settings, client: HGMem
) -> None:
    client._database._timeout = 0.5
    chunks = list(dump(settings, scene.corpus).of("Chunk"))
    with driver(settings) as opened, opened.session() as session, session.begin_transaction() as holding:
        holding.run("MATCH (c:Chunk {corpus: $c}) SET c.held = true", c=scene.corpus).consume()
        with pytest.raises(GraphError, match=r"'finish_chunks' timed out: .*HGMEM_STATEMENT_TIMEOUT") as error:
            client._database.run("finish_chunks", corpus=scene.corpus, uids=chunks)
        holding.rollback()
    assert error.value.retryable


# The model ------------------------------------------------------------------------------------------------------


@ASKERS
@MOMENTS
@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (Said("", delay=60), "did not reply within 1 s: check that it is running, and OPENAI_BASE_URL"),
        (
            Failing(500, "it fell over"),
            "failed with status 500 (check that it is running, and OPENAI_BASE_URL): it fell over",
        ),
        (None, "cannot be reached: check that it is running, and OPENAI_BASE_URL"),
    ],
    ids=["silent", "failing", "gone"],
)
def test_a_model_that_goes_away_leaves_whole_steps_that_go_on_at_once(
    scene: Scene,
    monkeypatch: pytest.MonkeyPatch,
    ask: Asker,
    trouble: Answered | None,
    said: str,
    task: str,
    number: int,
    steps: int,
) -> None:
    monkeypatch.setattr("hgmem.models.llm.rate_limits.FIRST_BACKOFF", 0.02)
    broken: list[Answered] = []

    def breaks() -> Answered:
        if trouble is None:
            model.close()
        else:
            model.answer = lambda _: trouble
        broken.append(trouble or Failing(500))
        return broken[-1]

    with scene.asking(breaking(task, number, breaks)) as (settings, model):
        ended = ask(scene.corpus, {**settings, "model_timeout": 1})
    memory = scene.memory(steps=steps)

    assert len(broken) == 1
    assert said in ended.error
    assert ended.memory == (memory if steps else None)
    scene.goes_on(ask, memory, steps=steps, held=False)

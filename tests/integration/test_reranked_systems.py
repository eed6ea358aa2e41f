"""Rerankers in every system: what they order, what is counted, and what a server that fails leaves behind."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting
from playing import playing
from test_hypermem import talk
from typer.testing import CliRunner
from walking import SMALL, town
from wire import Asked, Failing, Reranked, WireServer

from hgmem import HGMem
from hgmem.cli import app
from hgmem.errors import AccessError, ModelError, UsageError
from hgmem.models.llm.rate_limits import UnavailableError
from hgmem.systems.hgmem.recipes import RECIPES

ASKED = "Who gave the key number 2 to Clara?"
BUILT = {"remindrag": SMALL}


class LastFirst:
    """A reranker that prefers later letters of the first name, then higher numbers: Felix 2, Felix 1, …, Anna 0."""

    name = "last-first"

    def __init__(self) -> None:
        self.asked: list[tuple[str, Sequence[str]]] = []

    def rerank(self, query: str, texts: Sequence[str], /) -> list[float]:
        self.asked.append((query, texts))
        return [ord(text[0]) + 0.1 * sum(map(int, filter(str.isdigit, text.split(" to ")[0]))) for text in texts]


@pytest.fixture
def reranker() -> LastFirst:
    return LastFirst()


@pytest.fixture
def place(open_client: Callable[..., HGMem], reranker: LastFirst) -> HGMem:
    """A client with a reranker on a town of 18 chunks."""
    client = open_client(reranker=reranker)
    client.add_graph(town())
    return client


def texts_of(client: HGMem, uids: Sequence[str]) -> list[str]:
    chunks = {chunk.uid: chunk.text.split(". ")[0] for chunk in client.chunks()}
    return [chunks[uid] for uid in uids]


# What is ordered ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["naive", "bm25", "hybrid"])
def test_baselines_keep_the_best_of_what_was_found(system: str, place: HGMem, reranker: LastFirst) -> None:
    settings = {"chunks": 3, "rerank": 12}
    answer = place.ask(ASKED, system=system, settings=settings)
    [(query, texts)] = reranker.asked
    scores = LastFirst().rerank(query, texts)
    [retrieved] = answer.steps[0].retrieved
    assert (query, len(texts)) == (ASKED, 12)
    best = sorted(range(12), key=lambda at: -scores[at])[:3]
    found = texts_of(place, [hit.uid for hit in retrieved.chunks])
    assert found == [texts[at].split(". ")[0] for at in best]
    assert [hit.score for hit in retrieved.chunks] == [scores[at] for at in best]
    assert (answer.usage.calls["reranking"], answer.usage.texts["reranking"]) == ({"last-first": 1}, 12)
    assert place.memory(answer.memory).steps[0].usage.calls["reranking"] == {"last-first": 1}
    plain = place.ask(ASKED, system=system, settings={"chunks": 12}).steps[0].retrieved[0].chunks
    assert texts_of(place, [hit.uid for hit in plain]) == [text.split(". ")[0] for text in texts]
    assert [one.chunk.uid for one in place.passages(answer.memory, limit=3)] == [hit.uid for hit in retrieved.chunks]
    assert len(reranker.asked) == 1
    assert place.check().findings == ()


def test_what_the_reranker_does_not_read_follows_as_it_was_found(place: HGMem) -> None:
    found = [
        [hit.uid for hit in place.ask(ASKED, system="naive", settings=settings).steps[0].retrieved[0].chunks]
        for settings in ({"chunks": 8}, {"chunks": 8, "rerank": 3})
    ]
    assert sorted(found[0][:3]) == sorted(found[1][:3])
    assert found[0][:3] != found[1][:3]
    assert found[0][3:] == found[1][3:]


def test_memorag_keeps_the_best_of_what_has_no_room_and_fills_the_rest(place: HGMem, reranker: LastFirst) -> None:
    few = {"hits": 6, "evidence_tokens": 250, "rerank": 10}
    answer = place.ask(ASKED, system="memorag", recipe="question-only", settings=few)
    [(query, texts)] = reranker.asked
    assert (query, len(texts)) == (ASKED, 6)
    assert "did not fit into 250 tokens" in " ".join(answer.steps[0].notes)
    wide = {"hits": 2, "evidence_tokens": 500, "rerank": 10}
    filled = place.ask(ASKED, system="memorag", recipe="question-only", settings=wide)
    (query, texts), scores = reranker.asked[1], LastFirst().rerank(*reranker.asked[1])
    hits = filled.steps[0].retrieved[0].chunks
    best = sorted(range(10), key=lambda at: -scores[at])[: len(hits) - 2]
    assert len(hits) > 3
    assert texts_of(place, [hit.uid for hit in hits[2:]]) == [texts[at].split(". ")[0] for at in best]
    assert [hit.score for hit in hits[2:]] == [scores[at] for at in best]
    roomy = {"hits": 6, "evidence_tokens": 700, "rerank": 10, "fill": False}
    assert place.ask(ASKED, system="memorag", recipe="question-only", settings=roomy).text
    assert len(reranker.asked) == 2  # all that was found has room


def test_remindrag_fills_the_room_of_a_walk_with_the_best(place: HGMem, reranker: LastFirst) -> None:
    place.build("remindrag", settings=SMALL)
    settings = {**SMALL, "max_jumps": 0, "evidence_tokens": 700, "rerank": 9, "look_tokens": 0}
    filled = place.ask(ASKED, system="remindrag", settings=settings).steps[-1].retrieved[0].chunks
    [(query, texts)] = reranker.asked
    scores = LastFirst().rerank(query, texts)
    best = sorted(range(9), key=lambda at: -scores[at])[: len(filled)]
    assert (query, len(texts), len(filled) > 1) == (ASKED, 9, True)
    assert texts_of(place, [hit.uid for hit in filled]) == [texts[at].split(". ")[0] for at in best]
    place.ask(ASKED, system="remindrag", settings={**settings, "evidence_tokens": 50})
    assert len(reranker.asked) == 1  # there was no room


def test_hypermem_orders_the_rows_of_each_level(open_client: Callable[..., HGMem]) -> None:
    class Vowels(LastFirst):
        name = "vowels"

        def rerank(self, query: str, texts: Sequence[str], /) -> list[float]:
            self.asked.append((query, texts))
            return [float(sum(letter in "aeiou" for letter in text)) for text in texts]

    client = open_client(reranker=(vowels := Vowels()))
    client.add(talk(), graph=False)
    client.build("hypermem")
    settings = {"rerank": 5, "facts": 3, "episodes": 2}
    answer = client.ask("boat", system="hypermem", settings=settings)
    hits = answer.steps[0].retrieved[0].built
    kept = {kind: [hit.score for hit in hits if hit.kind == kind] for kind in ("Topic", "Episode", "Fact")}
    read = [sorted(Vowels().rerank(query, texts), reverse=True) for query, texts in vowels.asked]
    assert [len(texts) for _, texts in vowels.asked] == [3, 4, 5]
    assert list(kept.values()) == [read[0], read[1][:2], read[2][:3]]
    assert answer.usage.texts["reranking"] == 12


@pytest.mark.parametrize("recipe", ["default", "paper", "code"])
def test_hgmem_orders_the_chunks_of_each_sub_query_and_of_the_answer(
    recipe: str, open_client: Callable[..., HGMem], reranker: LastFirst
) -> None:
    client = open_client(model=(model := wanting()), reranker=reranker)
    client.add_graph(town())
    limits = {"retrieval.chunks": 2, "retrieval.searched_chunks": 2, "retrieval.relations": 0, "retrieval.entities": 3}
    plain = client.ask(ASKED, recipe=recipe, steps=2, settings={**limits, "rerank": 0})
    assert (reranker.asked, plain.usage.calls.get("reranking")) == ([], None)
    answer = client.ask(ASKED, recipe=recipe, steps=2, settings={**limits, "rerank": 9})
    subqueries = [one for step in answer.steps for one in step.retrieved]
    queries = [query for query, _ in reranker.asked]
    assert queries == [*(one.subquery.text for one in subqueries), ASKED][: len(queries)]
    assert len(queries) >= len(subqueries)
    for one, (query, texts) in zip(subqueries, reranker.asked, strict=False):
        scores = dict(zip((text.split(". ")[0] for text in texts), LastFirst().rerank(query, texts), strict=True))
        hits = [hit.uid for hit in one.chunks]
        found = texts_of(client, hits)
        beside = RECIPES[recipe].retrieval.beside if one.subquery.targets else 0  # which no reranker reads
        assert len(found) <= 4 + beside
        assert found[:3] == sorted(scores, key=lambda text: -scores[text])[: len(found)][:3]
    passages = model.tasks[-1].passages
    assert {one.uid for one in passages} == {one.chunk.uid for one in client.passages(answer.memory)}


# What is refused ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["bm25", "hgmem", "hybrid", "hypermem", "memorag", "naive", "remindrag"])
def test_without_a_reranker_no_question_begins(system: str, client: HGMem) -> None:
    client.add_graph(LETTERS)
    why = "rerank=5 needs a reranker: set HGMEM_RERANKER to the name or path of a CrossEncoder, or to a model of the"
    for asking in (client.ask, lambda _, **more: client.plan_question(**more)):
        with pytest.raises(UsageError, match=why):
            asking(QUESTION, system=system, settings={"rerank": 5})
    assert client.memories() == []
    with pytest.raises(UsageError, match=r"invalid recipe option 'rerank': .*less than or equal to 1000"):
        client.ask(QUESTION, system=system, settings={"rerank": 1_001})


def test_a_budget_counts_no_request_of_a_reranker(open_client: Callable[..., HGMem]) -> None:
    with WireServer(playing()) as server:
        model = {"model": "test-model", "openai_base_url": server.base_url, "openai_api_key": "secret"}
        client = open_client(**model, reranker="big", reranker_base_url=server.base_url)
        client.add_graph(LETTERS)
        answer = client.ask(QUESTION, system="naive", settings={"rerank": 5}, max_calls=1)
        assert (answer.status, len(server.reranked), len(server.requests)) == ("answered", 1, 1)


# A server that fails ------------------------------------------------------------------------------------------


@pytest.fixture
def failing(open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch) -> Callable[..., HGMem]:
    """Opens clients on the letters whose reranker is a server, with two attempts a request."""
    monkeypatch.setattr("hgmem.models.llm.rate_limits.FIRST_BACKOFF", 0.02)

    def opening(server: WireServer, **more: Any) -> HGMem:
        usual = {"reranker": "big", "reranker_base_url": server.base_url, "reranker_timeout": 1, "model_attempts": 2}
        client = open_client(model=wanting(), **{**usual, **more})
        if client.corpus not in {row["corpus"] for row in client.corpora()}:
            client.add_graph(LETTERS)
        return client

    return opening


@pytest.mark.parametrize(
    ("does", "kind"),
    [
        (Failing(404, "The model `big` does not exist."), AccessError),
        (Failing(401, "Invalid key"), AccessError),
        (Reranked(rows=[]), ModelError),
        (Reranked(rows=[{"index": 9, "relevance_score": 1.0}]), ModelError),
        (Reranked(delay=4), UnavailableError),
        (Failing(500, "input (2793 tokens) is too large to process"), ModelError),
    ],
)
@pytest.mark.parametrize("at", [1, 2, 4])
def test_a_server_that_fails_leaves_whole_steps_that_go_on(
    at: int, does: Any, kind: type[ModelError], failing: Callable[..., HGMem]
) -> None:
    def reranking(asked: Asked) -> Any:
        return does if asked.number >= at else Reranked()

    settings = {"rerank": 4}
    with WireServer(reranking=reranking) as server:
        client = failing(server)
        with pytest.raises(ModelError) as raised:
            client.ask(QUESTION, steps=2, settings=settings)
        assert (type(raised.value), "\n" in str(raised.value)) == (kind, False)
        [memory] = client.memories()
        steps = {1: 0, 2: 1, 4: 2}[at]
        assert (memory.status, memory.steps) == ("interrupted", steps)
        server.reranking = lambda _: Reranked()
        went_on = client.ask(memory=memory.uid)
        assert (went_on.memory, went_on.status) == (memory.uid, "answered")
        assert (len(went_on.steps) > steps) == (at < 4)  # the answer alone was missing
        assert client.check().findings == ()


def test_a_model_that_is_not_there_is_one_line_and_the_memory_goes_on(open_client: Callable[..., HGMem]) -> None:
    client = open_client(model=wanting(), reranker="nobody/nothing")
    client.add_graph(LETTERS)
    with pytest.raises(ModelError, match=r"reranker 'nobody/nothing' is not on this machine: .* HGMEM_DOWNLOAD=1"):
        client.ask(QUESTION, settings={"rerank": 4})
    [memory] = client.memories()
    assert open_client(model=wanting()).ask(memory=memory.uid, settings={"rerank": 0}).status == "answered"


def test_the_command_line_tells_what_the_reranker_cost(
    environment: dict[str, str], client: HGMem, tmp_path: Path
) -> None:
    client.add_graph(LETTERS)
    with WireServer() as server:
        more = {"HGMEM_RERANKER": "big", "HGMEM_RERANKER_BASE_URL": server.base_url, "HGMEM_CACHE": str(tmp_path)}
        env = {**environment, **more, "HGMEM_RERANKER_API_KEY": "key-of-the-reranker", "OPENAI_API_KEY": "other"}
        asking = ("ask", QUESTION, "-c", client.corpus, "--system", "naive", "--set", "rerank=5")
        done = {
            "text": CliRunner().invoke(app, [*asking, "--verbose"], env=env),
            "json": CliRunner().invoke(app, [*asking, "--json"], env=env),
            "doctor": CliRunner().invoke(app, ["doctor"], env=env),
        }
        keys = {asked.headers["authorization"] for asked in server.reranked}
    assert {one.exit_code for one in done.values()} == {0}, done
    assert "reranking: 1 calls, 5 texts, " in done["text"].stdout
    assert f"reranking: big at {server.base_url}" in done["text"].stderr
    assert json.loads(done["json"].stdout)["usage"]["texts"]["reranking"] == 5
    assert f"ok      reranker  big at {server.base_url}, which responds" in done["doctor"].stdout
    assert keys == {"Bearer key-of-the-reranker"}
    assert not [one for one in done.values() if "key-of-the-reranker" in one.output]

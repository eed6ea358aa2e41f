"""Retention: old memories are deleted or reduced to answers; active ones and the corpus stay; prunes can be resumed."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from dumping import Dump, driver, dump
from letters import LETTERS, QUESTION, wanting
from typer.testing import CliRunner

from hgmem import Answer, ConflictError, GraphError, HGMem, Settings, UsageError
from hgmem.cli import app
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.graph.database import Database, Row
from hgmem.systems.hgmem.replies import EvolveReply, Insertion

Open = Callable[..., HGMem]
MONTH = timedelta(days=30)
TOM = EvolveReply(insert=(Insertion(entities=("Bo", "Old Tom"), description="Bo trades with Old Tom."),))
DESCRIBED = Extraction(
    entities=(ExtractedEntity(name="Old Tom", type="person", description="A trader."),),
    relations=(ExtractedRelation(source="Bo", target="Old Tom", description="They trade."),),
)


@pytest.fixture
def client(open_client: Open) -> HGMem:
    """A client of the letters whose memories name an entity that is missing from the corpus."""
    client = open_client(model=wanting(evolve=lambda _: TOM, describe=lambda _: DESCRIBED))
    client.add_graph(LETTERS)
    return client


@pytest.fixture
def aged(client: HGMem, settings: Settings) -> Callable[..., None]:
    """Moves all times of memories back by a number of days."""

    def aging(*answers: Answer, days: int = 40) -> None:
        with driver(settings) as opened:
            opened.execute_query(
                "UNWIND $memories AS uid MATCH (m:Memory {uid: uid}) "
                "OPTIONAL MATCH (m)-[:HAS_STEP|HAS_ANSWER]->(n) WITH m, collect(n) + [m] AS all UNWIND all AS one "
                "SET one.created_at = datetime() - duration({days: $days})",
                memories=[answer.memory for answer in answers],
                days=days,
            )

    return aging


def corpus_layer(found: Dump) -> dict[str, Any]:
    return {uid: one for uid, one in found.nodes.items() if not one[1].get("memory")}


def of_memory(found: Dump, memory: str) -> set[str]:
    return {label for labels, held in found.nodes.values() if held.get("memory") == memory for label in labels}


def ask(client: HGMem) -> Answer:
    return client.ask(QUESTION, recipe="code", steps=2)


def test_old_memories_go_with_all_that_is_theirs_and_nothing_else_does(
    client: HGMem, aged: Any, settings: Settings
) -> None:
    before = dump(settings, client.corpus)
    old, young = ask(client), ask(client)
    aged(old)
    whole = dump(settings, client.corpus)
    assert of_memory(whole, old.memory) >= {"Provisional", "MemoryPoint", "Step", "SubQuery", "Citation"}

    assert client.prune(older_than=MONTH, dry_run=True).memories == (old.memory,)
    assert dump(settings, client.corpus) == whole
    assert client.prune(older_than=MONTH).memories == (old.memory,)
    after = dump(settings, client.corpus)

    assert of_memory(after, old.memory) == set()
    assert of_memory(after, young.memory) == of_memory(whole, young.memory)
    assert corpus_layer(after) == corpus_layer(before)
    assert client.check().ok
    client.delete(memory=young.memory)
    assert dump(settings, client.corpus) == before


def test_a_memory_that_was_left_unanswered_goes_like_any_other(client: HGMem, aged: Any, settings: Settings) -> None:
    before = dump(settings, client.corpus)
    left, kept = (client.ask(QUESTION, recipe="code", steps=2, answer=False) for _ in range(2))
    assert {one.status for one in client.memories()} == {"unanswered"}
    assert client.prune(older_than=MONTH).memories == ()
    aged(left)
    assert client.prune(older_than=MONTH).memories == (left.memory,)
    aged(kept)
    assert client.prune(older_than=MONTH, keep_answers=True).memories == (kept.memory,)
    assert client.memory(kept.memory).status == "pruned"
    assert client.prune(older_than=MONTH).memories == (kept.memory,)
    assert dump(settings, client.corpus) == before


def test_kept_answers_stay_with_their_citations_and_the_memory_can_be_looked_at_but_not_go_on(
    client: HGMem, aged: Any, settings: Settings
) -> None:
    answer = ask(client)
    aged(answer)
    said = client.memory(answer.memory).answers
    assert client.prune(older_than=MONTH, keep_answers=True).memories == (answer.memory,)
    kept = client.memory(answer.memory)

    assert (kept.status, kept.steps, kept.points) == ("pruned", (), ())
    assert [(one.text, one.citations) for one in kept.answers] == [(one.text, one.citations) for one in said]
    assert of_memory(dump(settings, client.corpus), answer.memory) == {"Memory", "Answer", "Citation"}
    assert [(one.status, one.steps, one.points) for one in client.memories()] == [("pruned", 0, 0)]
    assert client.check().ok
    for going_on in ({}, {"at_step": 1}):
        with pytest.raises(UsageError, match="was pruned and cannot be continued: ask a new question"):
            client.ask("And then?", memory=answer.memory, **going_on)
    with pytest.raises(UsageError, match="was pruned and has no steps"):
        client.memory(answer.memory, step=1)
    with pytest.raises(UsageError, match=r"memory, point or answer .* not found"):
        client.lineage(answer.points[0].uid)
    assert client.prune(older_than=MONTH, keep_answers=True).memories == ()
    assert client.prune(older_than=MONTH).memories == (answer.memory,)
    assert client.memories() == []


@pytest.mark.parametrize("what", ["Step", "Answer"])
def test_the_newest_step_or_answer_is_what_counts(what: str, client: HGMem, aged: Any, settings: Settings) -> None:
    answer = ask(client)
    aged(answer)
    with driver(settings) as opened:
        opened.execute_query(
            f"MATCH (n:{what} {{memory: $memory}}) WITH n LIMIT 1 SET n.created_at = datetime()", memory=answer.memory
        )
    assert client.prune(older_than=MONTH).memories == ()


def test_a_memory_that_a_run_holds_stays_until_its_claim_runs_out(client: HGMem, aged: Any, settings: Settings) -> None:
    answer = ask(client)
    aged(answer)
    beat = "MATCH (m:Memory {uid: $memory}) SET m.run = 'x', m.heartbeat = datetime() - duration({seconds: $ago})"
    with driver(settings) as opened:
        opened.execute_query(beat, memory=answer.memory, ago=1)
        assert client.prune(older_than=MONTH).memories == ()
        with pytest.raises(ConflictError, match="is in use by another run"):
            client.delete(memory=answer.memory)
        opened.execute_query(beat, memory=answer.memory, ago=31 * 86_400)
    assert client.prune(older_than=MONTH).memories == (answer.memory,)


@pytest.mark.parametrize(
    ("stage", "keep"),
    [("empty_memories", True), ("empty_memories", False), ("keep_answers", True), ("delete_emptied", False)],
)
def test_what_was_cut_short_is_no_whole_memory_and_the_same_again_ends_it(
    stage: str, keep: bool, client: HGMem, aged: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ask(client)
    aged(answer)
    with monkeypatch.context() as broken:
        broken.setattr(Database, "run", gone_at(stage))
        with pytest.raises(GraphError, match="gone"):
            client.prune(older_than=MONTH, keep_answers=keep)

    found = client.check()
    assert (found.ok, [one.name for one in found.notes]) == (True, ["unfinished-prune"])
    assert [one.status for one in client.memories()] == ["pruning"]
    with pytest.raises(UsageError, match="was pruned"):
        client.ask("And then?", memory=answer.memory)
    assert client.prune(older_than=MONTH, keep_answers=keep).memories == (answer.memory,)
    assert [one.status for one in client.memories()] == (["pruned"] if keep else [])
    assert client.check() == type(found)(corpus=client.corpus)


def gone_at(stage: str) -> Callable[..., list[Row]]:
    run = Database.run

    def broken(database: Database, name: str, /, **parameters: Any) -> list[Row]:
        if name == stage:
            raise GraphError("the server is gone")
        return run(database, name, **parameters)

    return broken


@pytest.mark.parametrize("deleted", ["SubQuery", "Step", "Provisional", "MemoryPoint"])
def test_a_prune_that_ended_between_two_transactions_breaks_no_promise(
    deleted: str, client: HGMem, aged: Any, settings: Settings
) -> None:
    """Dependent nodes are deleted first: each label here stands for all before it as well."""
    answer = ask(client)
    order = ["SubQuery", "Step", "Provisional", "MemoryPoint"]
    with driver(settings) as opened:
        opened.execute_query("MATCH (m:Memory {uid: $memory}) SET m.status = 'pruning'", memory=answer.memory)
        for label in order[: order.index(deleted) + 1]:
            opened.execute_query(f"MATCH (n:{label} {{memory: $memory}}) DETACH DELETE n", memory=answer.memory)
    assert client.check().ok
    assert client.prune(older_than=MONTH).memories == (answer.memory,)
    assert of_memory(dump(settings, client.corpus), answer.memory) == set()


@pytest.mark.parametrize("age", [timedelta(0), timedelta(days=-1), 30, "30d"])
def test_an_age_that_is_none_is_refused(age: Any, client: HGMem) -> None:
    with pytest.raises(UsageError, match="invalid older_than"):
        client.prune(older_than=age)


def test_deleting_names_one_thing_and_a_memory_that_exists(client: HGMem) -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        client.delete(memory="m1", document="d1")
    with pytest.raises(UsageError, match="memory, point or answer 'm1' not found"):
        client.delete(memory="m1")


# The command line -----------------------------------------------------------------------------------------------


@pytest.fixture
def hgmem(environment: dict[str, str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, list(arguments), env=environment)


def test_the_command_says_what_would_go_and_then_lets_it_go(client: HGMem, aged: Any, hgmem: Any) -> None:
    answer = ask(client)
    aged(answer)
    asked = ("memory", "prune", "--corpus", client.corpus, "--older-than", "30d")

    assert hgmem(*asked, "--dry-run").stdout.splitlines() == [
        answer.memory,
        f"would prune 1 memory of corpus {client.corpus!r}",
    ]
    refused = hgmem(*asked)
    assert (refused.exit_code, "nothing was pruned" in refused.stderr) == (1, True)
    assert hgmem(*asked, "--yes", "--keep-answers").stdout == (
        f"pruned 1 memory of corpus {client.corpus!r}, keeping their answers\n"
    )
    shown = hgmem("memory", "show", answer.memory)
    assert "Its steps and points were pruned; its answers were kept." in shown.stdout
    assert "Anna sold it [1]." in shown.stdout
    assert "pruned" in hgmem("memory", "list", "--corpus", client.corpus).stdout
    assert json.loads(hgmem(*asked, "--yes", "--json").stdout)["memories"] == [answer.memory]


def test_one_memory_is_deleted_by_its_name(client: HGMem, hgmem: Any) -> None:
    answer = ask(client)

    assert hgmem("memory", "delete", answer.memory).exit_code == 1
    done = hgmem("memory", "delete", answer.memory, "--yes")
    assert (done.exit_code, done.stdout) == (0, f"deleted memory {answer.memory}\n")
    assert client.memories() == []


def test_the_doctor_looks_through_a_corpus_and_fails_where_a_promise_is_broken(
    client: HGMem, hgmem: Any, settings: Settings
) -> None:
    answer = ask(client)
    well = hgmem("doctor", "--corpus", client.corpus)
    assert (well.exit_code, well.stdout.partition(" (")[0]) == (0, f"corpus {client.corpus}: no integrity violations")
    with driver(settings) as opened:
        opened.execute_query("MATCH (s:Step {memory: $memory})-[r:NEXT_STEP]->() DELETE r", memory=answer.memory)
    ill = hgmem("doctor", "--deep", "--corpus", client.corpus)
    assert ill.exit_code == 1
    assert "error   step-order (1): NEXT_STEP does not lead" in ill.stdout
    told = json.loads(hgmem("doctor", "--deep", "--corpus", client.corpus, "--json").stdout)
    assert (told["ok"], told["findings"][0]["name"], told["findings"][0]["uids"]) == (
        False,
        "step-order",
        [answer.memory],
    )
    missing = hgmem("doctor", "--deep", "--corpus", "nowhere")
    assert (missing.exit_code, "corpus 'nowhere' not found" in missing.stderr) == (1, True)

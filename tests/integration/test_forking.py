"""Forks of memories: as the original was at the end of a step, whole without it, and on their own from there."""

import json
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from dumping import Dump, dump
from letters import LETTERS, QUESTION, wanting
from moving import hold, moved, retiring, telling
from typer.testing import CliRunner

from hgmem import ConflictError, HGMem, Memory, Settings, UsageError
from hgmem.cli import app
from hgmem.client.comparing import fork_memory
from hgmem.client.serving import ServiceStore
from hgmem.errors import GraphError, HGMemError
from hgmem.graph.database import Row, Transaction
from hgmem.memory.recording import recording
from hgmem.testing import ScriptedModel
from hgmem.text.identity import uid
from hgmem.values import as_json
from hgmem.values.graph_elements import Entity
from hgmem.values.inputs import Question
from hgmem.values.records import Birth, MemoryPoint, Operation, StepChanges

Open = Callable[..., HGMem]
MODELS: dict[str, tuple[Callable[[], ScriptedModel], dict[str, Any]]] = {
    "merging": (wanting, {}),
    "own entities and relations": (telling, {"recipe": "code"}),
    "retiring": (retiring, {}),
}


def unchanged(before: Dump, after: Dump) -> bool:
    """Whether all that was there is there as it was."""
    same = all(after.nodes.get(uid) == node for uid, node in before.nodes.items())
    return same and not before.relationships - after.relationships


def told(memory: Memory) -> Row:
    """Return a memory as JSON in the words of every fork: its own uid is `M`, its own relations have no uid.

    Its points are alive then, and when they died is later.
    """
    found = as_json.row(memory)
    for name in ("created_at", "status", "forked_from", "forked_at"):
        del found[name]
    for point in found["points"]:
        del point["died"], point["retired"]
    for step in found["steps"]:
        for subquery in step["subqueries"]:
            hits = subquery["retrieved"]["relations"]
            subquery["retrieved"]["relations"] = [hit["rank"] for hit in hits]
    renamed: Row = json.loads(json.dumps(found).replace(memory.uid, "M"))
    return renamed


def of_memory(found: Dump, memory: str) -> Counter[str]:
    return Counter("/".join(labels) for labels, node in found.nodes.values() if node.get("memory") == memory)


# What a fork is -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MODELS)
def test_a_fork_is_the_memory_as_it_was_and_the_original_does_not_change(
    open_client: Open, settings: Settings, kind: str
) -> None:
    model, options = MODELS[kind]
    client = open_client(model=model())
    client.add_graph(LETTERS)
    original = client.ask(QUESTION, steps=2, **options).memory
    client.ask("And who else?", memory=original, steps=1)
    before = dump(settings, client.corpus, times=True)
    for step in (1, 2, 3):
        then = client.memory(original, step=step)
        fork = client.fork(original, step=step)
        assert (fork.forked_from, fork.forked_at, fork.system, fork.model) == (original, step, "hgmem", "scripted")
        assert fork.status == {1: "interrupted", 2: "answered", 3: "answered"}[step]
        assert told(fork) == told(then)
        assert client.diff(original, fork.uid, step=step).is_empty
    assert unchanged(before, dump(settings, client.corpus, times=True))
    whole = dump(settings, client.corpus, times=True)
    assert of_memory(whole, fork.uid) == of_memory(whole, original)
    assert client.check().findings == ()
    for one in client.memories():
        client.delete(memory=one.uid)
    assert not [node for _, node in dump(settings, client.corpus).nodes.values() if node.get("memory")]


def test_a_fork_has_relations_and_entities_of_its_own(open_client: Open, settings: Settings) -> None:
    client = open_client(model=telling())
    client.add_graph(LETTERS)
    original = client.ask(QUESTION, recipe="code", steps=2).memory
    fork = client.fork(original, step=1).uid
    found = dump(settings, client.corpus)
    own = {owner: set() for owner in (original, fork)}
    for source, target, relation in found.joined("RELATES"):
        if relation["memory"]:
            assert relation["uid"] == uid(relation["memory"], "relation", source, target)  # as another step would say
            own[relation["memory"]].add(relation["description"])
    assert own == {original: {"They trade."}, fork: {"They trade."}}
    assert of_memory(found, fork)["Entity/Provisional"] == of_memory(found, original)["Entity/Provisional"] > 0
    client.ask(memory=fork, steps=1)
    assert client.check().findings == ()


def test_a_fork_goes_on_as_its_original_did_and_elsewhere_on_its_own(letters: Callable[..., HGMem]) -> None:
    client = letters()
    with HGMem.open(
        client.corpus, **{**client.settings.model_dump(exclude_none=True), "model": ""}
    ) as plain:  # by rules
        original = plain.ask(QUESTION, steps=3).memory
        fork = plain.fork(original, step=2).uid
        plain.ask(memory=fork, steps=1)
        found = plain.diff(original, fork)
        assert (found.gained, found.lost, found.revised, found.evidence_gained) == ((), (), (), ())
        assert found.kept
        other = plain.fork(original, step=1).uid
        plain.ask("Who counts the lamps of the pier?", memory=other, steps=1)
        assert [step.question for step in plain.memory(other).steps] == [QUESTION, "Who counts the lamps of the pier?"]
        assert not plain.diff(original, other).is_empty
        assert plain.check().findings == ()


def test_a_fork_is_whole_without_its_original_and_with_its_fork(
    letters: Callable[..., HGMem], settings: Settings
) -> None:
    client = letters()
    original = client.ask(QUESTION, steps=2).memory
    fork = client.fork(original, step=1).uid
    again = client.fork(fork).uid
    merged = client.ask(memory=again, steps=1).points[-1].uid
    of_fork = client.fork(again, step=1).uid
    first = client.memory(fork).points[0].uid
    lineage = client.lineage(first)
    assert lineage.copied_from == first.replace(fork, original)
    assert client.lineage(client.memory(again, step=1).points[0].uid).copied_from.startswith(fork)
    assert client.lineage(merged).copied_from == ""
    assert client.lineage(client.memory(original).points[0].uid).copied_from == ""
    told_before = told(client.memory(fork))
    client.delete(memory=original)
    client.delete(memory=again)
    assert told(client.memory(fork)) == told(client.memory(of_fork)) == told_before
    assert client.lineage(first) == lineage
    assert {one.uid: one.forked_from for one in client.memories()} == {fork: original, of_fork: again}
    assert client.ask(memory=fork, steps=1).status == "answered"
    assert client.check().findings == ()


def test_a_fork_is_written_in_one_transaction_or_not_at_all(
    letters: Callable[..., HGMem], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = letters()
    original = client.ask(QUESTION, steps=2).memory
    before = dump(settings, client.corpus, times=True)
    run = Transaction.run

    def failing(self: Transaction, name: str, /, **parameters: Any) -> list[Row]:
        if name == "fork_answers":
            raise GraphError("the disk is full")
        return run(self, name, **parameters)

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "run", failing)
        with pytest.raises(GraphError, match="the disk is full"):
            client.fork(original)
    assert dump(settings, client.corpus, times=True) == before


def test_a_request_for_a_fork_that_comes_twice_at_once_makes_one_and_counts_once(
    letters: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = letters()
    original = client.ask(QUESTION, steps=1, owner="anna").memory
    _, key = ServiceStore(client).make_key("anna", questions_per_minute=1)
    run, begun, both = Transaction.run, [], Event()

    def held(self: Transaction, name: str, /, **parameters: Any) -> list[Row]:
        if name == "begin_fork":
            begun.append(name)
            if len(begun) == 2:
                both.set()
        if name == "fork_points":
            assert both.wait(20)
        return run(self, name, **parameters)

    def fork(_: int) -> Memory:
        return ServiceStore(client).fork_within(key, original, step=None, name=f"{original}0")

    monkeypatch.setattr(Transaction, "run", held)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(fork, range(2))
    assert first == second
    assert len(client.memories()) == 2
    ServiceStore(client).revoke_key(key.uid)


def test_citations_of_deleted_texts_and_points_without_support_are_copied_as_they_are(
    letters: Callable[..., HGMem],
) -> None:
    client = letters()
    original = client.ask(QUESTION, steps=2).memory
    client.delete(document="letters")
    fork = client.fork(original)
    assert told(fork) == told(client.memory(original))
    assert [citation.withdrawn for citation in fork.answers[0].citations] == [True]
    assert any(point.unsupported for point in fork.points)
    assert client.check().findings == ()


def test_archives_carry_a_fork_with_its_original_and_without(
    letters: Callable[..., HGMem], settings: Settings, tmp_path: Path
) -> None:
    client = letters()
    original = client.ask(QUESTION, steps=2).memory
    fork = client.fork(original, step=1).uid
    for number in range(2):
        archive = tmp_path / f"{number}.jsonl.gz"
        before = moved(settings, client.corpus)
        client.export(archive)
        client.delete()
        client.import_archive(archive)
        assert moved(settings, client.corpus) == before
        memory = client.memory(fork)
        assert (memory.forked_from, memory.forked_at) == (original, 1)
        assert client.check().findings == ()
        if not number:
            client.delete(memory=original)
    assert client.ask(memory=fork, steps=1).status == "answered"


def test_a_memory_of_five_thousand_points_is_forked(letters: Callable[..., HGMem], settings: Settings) -> None:
    client = letters()
    services = client._services(None)
    ends = [
        Entity(uid=uid(client.corpus, "entity", name.casefold()), name=name) for name in ("Anna", "Bo", "Cleo", "Mill")
    ]
    (chunk, *_) = client.chunks()
    with recording(services, system="hgmem", question=Question(text=QUESTION), settings={}) as record:
        for number in (1, 2):
            births = tuple(
                Birth(
                    point=MemoryPoint(
                        uid=f"{record.lease.memory}-{number}-{at}",
                        description=f"Statement {at} of step {number}.",
                        entities=(ends[at % 4], ends[(at + 1) % 4]),
                        chunks=(chunk.uid,),
                        born=number,
                    )
                )
                for at in range(2_500)
            )
            made = tuple(Operation(kind="insert", point=birth.point.uid) for birth in births)
            step = record.new_step("global", (), record.meter, operations=made)
            record.write_step(step, StepChanges(births=births))
        memory = record.unanswered().memory
    fork = client.fork(memory)
    assert (len(fork.points), fork.status) == (5_000, "unanswered")
    assert len(client.fork(memory, step=1).points) == 2_500
    assert client.diff(memory, fork.uid).is_empty
    assert client.check().findings == ()


def test_forks_made_while_texts_and_the_original_are_deleted_are_whole_or_not_there(
    letters: Callable[..., HGMem],
) -> None:
    client = letters()
    original = client.ask(QUESTION, steps=2).memory
    steps = [told(client.memory(original, step=step))["steps"][-1]["operations"] for step in (1, 2)]
    forks: list[Memory] = []
    refusals: set[str] = set()

    def forking() -> None:
        for number in range(8):
            try:
                forks.append(client.fork(original, step=1 + number % 2))
            except HGMemError as error:
                refusals.add(str(error))

    threads = [Thread(target=forking) for _ in range(3)]
    for thread in threads:
        thread.start()
    client.delete(document="letters")
    client.add_graph(LETTERS)
    client.delete(memory=original)
    for thread in threads:
        thread.join()
    assert forks
    assert not [
        one for one in refusals if not re.search("not found|has no memory|deleted meanwhile|pruned|in use", one)
    ]
    for fork in forks:
        memory = client.memory(fork.uid)
        assert [step["operations"] for step in told(memory)["steps"]] == steps[: len(memory.steps)]
    assert {one.uid for one in client.memories()} == {fork.uid for fork in forks}
    assert client.check().findings == ()


# What is refused ----------------------------------------------------------------------------------------------------


def refused(ask: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as error:
        ask()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_what_cannot_be_forked_is_one_line_with_the_remedy(letters: Callable[..., HGMem], settings: Settings) -> None:
    client = letters()
    memory = client.ask(QUESTION, steps=2).memory
    plain = client.ask(QUESTION, system="naive").memory
    before = dump(settings, client.corpus)
    assert "was made by system 'naive', which cannot continue a fork: ask a new question" in refused(
        lambda: client.fork(plain)
    )
    assert refused(lambda: client.fork(memory, step=3)) == f"memory {memory!r} has no step 3: choose 1 to 2"
    for step in (0, -1, True, "2", 1.5):
        assert "is not a valid step" in refused(lambda step=step: client.fork(memory, step=step))
    assert "'m-none' not found" in refused(lambda: client.fork("m-none"))
    with pytest.raises(ConflictError, match=rf"^memory '{plain}' exists already: fork '{memory}' under another uid$"):
        fork_memory(client._services(None), memory, step=1, name=plain)
    assert dump(settings, client.corpus) == before
    hold(settings, memory, "PT1S")
    for ask in (lambda: client.fork(memory, step=1), lambda: client.diff(memory, plain)):
        with pytest.raises(ConflictError, match=r"is in use by another run: wait until it ends"):
            ask()
    hold(settings, memory, "P1D")  # that run is gone
    fork = client.fork(memory)
    assert (fork.status, len(fork.steps)) == ("answered", 2)
    client.prune(older_than=timedelta(microseconds=1), keep_answers=True)
    assert "was pruned and has no steps to fork: ask a new question" in refused(lambda: client.fork(fork.uid))
    assert "was pruned and has no steps and points: compare" in refused(lambda: client.diff(fork.uid, plain))


def test_a_fork_is_its_originals_owners_and_of_everybodys_its_makers(letters: Callable[..., HGMem]) -> None:
    client = letters()
    hers = client.ask(QUESTION, owner="anna", steps=1).memory
    ours = client.ask(QUESTION, steps=1).memory
    assert client.fork(hers, owner="anna").owner == "anna"
    assert client.fork(hers).owner == "anna"  # who operates the database forks for its owner
    assert client.fork(ours, owner="ben").owner == "ben"
    assert client.fork(ours).owner == ""
    assert "not found" in refused(lambda: client.fork(hers, owner="ben"))


# Differences --------------------------------------------------------------------------------------------------------


def test_steps_forks_and_other_memories_are_compared_by_what_points_say(letters: Callable[..., HGMem]) -> None:
    client = letters()
    first = client.ask(QUESTION, steps=3)
    memory = first.memory
    steps = client.diff(memory, step=1, other_step=3)
    assert [pair.after.point.uid for pair in steps.revised]  # the first two points were merged
    merged = steps.revised[0].after
    parts = client.lineage(merged.point.uid).parts
    assert {pair.before.point.uid for pair in steps.revised if pair.after == merged} >= {
        part.point.uid for part in parts if part.point.alive(1)
    }
    assert steps.then(client.diff(memory, step=3, other_step=1)) == client.diff(memory, step=1, other_step=1)
    fork = client.fork(memory, step=1).uid
    assert [pair.after.point.uid for pair in client.diff(memory, fork, step=1).kept] == [
        point.uid for point in client.memory(fork).points
    ]
    with HGMem.open(client.corpus, **{**client.settings.model_dump(exclude_none=True), "model": wanting()}) as again:
        other = again.ask(QUESTION, steps=3)  # the same model, from its beginning
    found = client.diff(memory, other.memory)
    assert (found.is_empty, len(found.kept)) == (True, len(client.memory(memory).points))
    assert found.then(client.diff(other.memory, fork)) == client.diff(memory, fork)


def test_an_answer_from_an_earlier_step_is_that_steps_alone(letters: Callable[..., HGMem]) -> None:
    client = letters()
    memory = client.ask(QUESTION, steps=3).memory
    early = client.ask(memory=memory, at_step=1)
    found = [client.diff(memory, step=step, other_step=3) for step in (1, 2)]
    assert [one.before.answer for one in found] == [early.text, ""]
    assert [one.after.answer for one in found] == [client.memory(memory).answers[0].text] * 2
    assert client.fork(memory, step=1).status == "interrupted"  # there is a plan to go on with
    assert client.fork(memory, step=3).status == "answered"


def test_memories_without_points_are_compared_by_evidence_and_answers(letters: Callable[..., HGMem]) -> None:
    client = letters()
    one = client.ask(QUESTION, system="naive", settings={"chunks": 1}).memory
    other = client.ask(QUESTION, system="naive", settings={"chunks": 3}).memory
    found = client.diff(one, other)
    assert (found.kept, found.gained, len(found.evidence_kept), len(found.evidence_gained)) == ((), (), 1, 2)
    assert client.diff(one, one).is_empty
    assert "name another memory, or a step" in refused(lambda: client.diff(one))


def test_memories_of_several_corpora_are_not_compared(letters: Callable[..., HGMem], open_client: Open) -> None:
    client = letters()
    elsewhere = open_client(model=wanting(), corpus=f"{client.corpus}-b")
    elsewhere.add_graph(LETTERS)
    here, there = (one.ask(QUESTION, steps=1).memory for one in (client, elsewhere))
    said = refused(lambda: client.diff(here, there))
    assert said.endswith("which share no entities and chunks: compare memories of one corpus")
    assert (client.corpus in said, elsewhere.corpus in said) == (True, True)


def test_the_commands_fork_and_compare(letters: Callable[..., HGMem], environment: dict[str, str]) -> None:
    client = letters()
    memory = client.ask(QUESTION, steps=3).memory

    def run(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["memory", *arguments], env=environment)
        assert done.exit_code == 0, done.output
        return done.stdout

    made = run("fork", memory, "--step", "1")
    fork = made.splitlines()[0].rpartition(" ")[2]
    assert made.splitlines() == [
        f"forked memory {memory} at the end of step 1: {fork}",
        f"continue it: `hgmem ask --continue {fork}`",
    ]
    assert json.loads(run("fork", memory, "--json"))["forked_at"] == 3
    assert f"forked from memory {memory} at the end of its step 1" in run("show", fork)
    point = client.memory(fork).points[0].uid
    assert f"copied from {point.replace(fork, memory)}" in " ".join(run("lineage", point).split())

    shown = run("diff", memory, fork)
    kept = client.diff(memory, fork)
    numbers = f"{len(kept.kept)} kept, {len({pair.after for pair in kept.revised})} revised"
    assert f"points: {numbers}, {len(kept.gained)} gained, {len(kept.lost)} lost" in shown
    assert "+ no answer at this step" in shown
    assert "- Anna sold it [1]." in shown
    assert "They do not differ" in run("diff", memory, memory)
    found = json.loads(run("diff", memory, "--step", "1", "--other-step", "3", "--json"))
    assert (found["before"]["step"], found["after"]["step"]) == (1, 3)
    assert {"key", "uid", "description", "entities"} <= found["gained"][0].keys()
    assert found["revised"][0]["before"]["uid"].startswith(f"{memory}-1-")

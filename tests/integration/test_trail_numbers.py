"""Trails that many learnings touched, owners who contradict each other, and a memory learnt and corrected again."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dumping import driver
from walking import Guide, nodes, walked_town

from hgmem import HGMem, UsageError
from hgmem.graph.values import vector
from hgmem.systems.remindrag.recipes import DEFAULT
from hgmem.systems.remindrag.tasks import UsefulReply
from hgmem.systems.remindrag.touches import MOST, Touch, nearest_use, relevance, strong_trails
from hgmem.systems.remindrag.trails import LEARNT_ONCE, put_trails, trail_key
from hgmem.text.identity import built_uid

QUESTION = "Which key did Anna give away last?"
KEY = "Anna gave the key number 2"
WAY = {"quotes": 0, "fill": False, "look_tokens": 0}  # the walk alone
ALONE = {**WAY, "replay": False, "starts": 0, "judge": "model"}  # and nothing that was learnt before


def near(query: Any, cosine: float, rng: Any) -> Any:
    """Return a unit vector with this cosine to a question's."""
    aside = rng.normal(size=len(query))
    aside -= (aside @ query) * query
    return np.asarray(cosine * query + np.sqrt(1 - cosine**2) * aside / np.linalg.norm(aside), dtype=np.float32)


def touch(client: HGMem, touches: list[tuple[Any, bool]]) -> None:
    """Let so many learnings, by the vectors of their questions, touch each trail of the corpus."""
    trails = [row["uid"] for row in nodes(client, "Trail")]

    def write(transaction: Any) -> None:
        for number, (asked, effective) in enumerate(touches, start=100):
            uid = f"{client.corpus} {number}"
            learning = {
                "uid": uid, "key": uid, "question": uid, "owner": "", "memory": uid, "penalty": "fade", "starts": [],
                "number": number, "vector": vector(asked),
            }  # fmt: skip
            rows = [{"uid": trail, "effective": effective, "chunks": "", "beside": 0.0} for trail in trails]
            parts: Any = {"layer_key": "0", "learning": learning, "touches": rows}
            transaction.run("put_learning", corpus=client.corpus, **parts)

    client._services(None).database.write(write)


def strong(client: HGMem, query: Any) -> dict[str, float]:
    database = client._services(None).database
    found = strong_trails(database, corpus=client.corpus, owners=[""], query=query, config=DEFAULT)
    return {trail.uid: trail.score for trail in found}


def test_scores_are_those_of_exact_computing_while_no_more_are_near_than_are_looked_at(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    query = client.embedder.embed([QUESTION], kind="query")[0]
    rng = np.random.default_rng(5)
    touches = [(near(query, rng.uniform(0.72, 1), rng), bool(rng.random() < 0.8)) for _ in range(MOST - 10)]
    touches += [(near(query, 0.3, rng), False) for _ in range(200)]
    touch(client, touches)
    numbered = [(100 + at, float(asked @ query), effective) for at, (asked, effective) in enumerate(touches)]
    known = [Touch(near=at, effective=use, own=False, number=number) for number, at, use in numbered if at > 0.7]
    first = {"near": 1.0, "own": False, "number": 1}
    expected = {
        row["uid"]: max(
            relevance(row["alike"], nearest_use([Touch(effective=use, **first), *known]), alpha=DEFAULT.alpha)
            for use in (True, False)
        )
        for row in nodes(client, "Trail")
    }
    found = strong(client, query)
    assert found
    assert found == pytest.approx({uid: score for uid, score in expected.items() if score > DEFAULT.strong}, abs=1e-4)


def test_a_trail_with_hundreds_of_touches_is_followed_by_as_many_rows_within_its_tokens(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    query, rng = client.embedder.embed([QUESTION], kind="query")[0], np.random.default_rng(6)
    touch(client, [(near(query, rng.uniform(0.75, 0.95), rng), True) for _ in range(600)])
    database = client._services(None).database
    rows = database.run("near_touches", corpus=client.corpus, owners=[""], vector=vector(query), least=0.7, most=MOST)
    assert {len(row["touches"]) for row in rows} == {MOST}
    assert all(max(row["touches"])[0] == pytest.approx(1, abs=1e-5) for row in rows)  # the same question is among them
    for recall in ("touches", "vector"):
        answer = client.ask(QUESTION, system="remindrag", settings={**WAY, "recall": recall, "replay_tokens": 400})
        assert answer.steps[0].strategy == "replay"
    assert client.remindrag.unlearn(question=QUESTION).learnings == 1


def test_very_many_near_trails_of_everybody_hide_none_of_an_owner(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hgmem.systems.remindrag.touches._TRAILS", 3)
    client = walked_town(open_client, Guide(KEY).model())
    query, database = client.embedder.embed([QUESTION], kind="query")[0], client._services(None).database
    rng, uids = np.random.default_rng(7), [row["uid"] for row in nodes(client, "Entity")]

    def put(owner: str, ends: list[str], *, cosine: float, length: float) -> str:
        key = trail_key(owner, ends)
        uid = built_uid(client.corpus, "remindrag", kind="Trail", key=key)
        row = {"uid": uid, "key": key, "tie": "RELATES", "ends": ends, "length": length, "alike": 0.5, "kept": ""}
        row["vector"] = np.float32(length) * near(query, cosine, rng)
        database.write(put_trails, corpus=client.corpus, owner=owner, rows=[row])
        return uid

    for other in uids[2:]:
        put("", [uids[0], other], cosine=1, length=LEARNT_ONCE)
    longer = put("ann", uids[:2], cosine=0.95, length=0.98)
    config = replace(DEFAULT, recall="vector")
    found = strong_trails(database, corpus=client.corpus, owners=["", "ann"], query=query, config=config)
    assert len(found) == 3
    assert found[0].uid == longer


@pytest.mark.parametrize("recall", ["touches", "vector"])
def test_owners_who_contradict_each_other_follow_what_each_found(
    open_client: Callable[..., HGMem], recall: str
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    useless = walked_town(open_client, Guide(KEY).model(useful=lambda task: UsefulReply(useful=())))
    way = {**WAY, "recall": recall}
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=ALONE).memory)
    for _ in "123":
        hers = client.ask(QUESTION, system="remindrag", owner="ann", settings=ALONE)
        his = useless.ask(QUESTION, system="remindrag", owner="bob", settings=ALONE)
        client.remindrag.learn(memory=hers.memory)
        useless.remindrag.learn(memory=his.memory)
    for owner, strategy in (("ann", "replay"), ("bob", "seeds"), (None, "replay")):
        answer = client.ask(QUESTION, system="remindrag", owner=owner, settings={**way, "starts": 0})
        assert (owner, answer.steps[0].strategy) == (owner, strategy)
    assert client.check().findings == ()


def test_a_memory_learnt_and_corrected_twice_and_deleted_between_leaves_what_its_last_lesson_said(
    open_client: Callable[..., HGMem],
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    memory = client.ask(QUESTION, system="remindrag", settings=WAY).memory
    client.remindrag.learn(memory=memory)
    before = nodes(client, "Built")
    with pytest.raises(UsageError, match="was learnt before"):
        client.remindrag.learn(memory=memory)
    assert nodes(client, "Built") == before
    client.remindrag.unlearn(memory=memory, wrong=True)
    corrected = nodes(client, "Built")
    with pytest.raises(UsageError, match="was recorded as wrong before"):
        client.remindrag.unlearn(memory=memory, wrong=True)
    client.delete(memory=memory)
    for again in (
        lambda: client.remindrag.learn(memory=memory),
        lambda: client.remindrag.unlearn(memory=memory, wrong=True),
    ):
        with pytest.raises(UsageError, match="not found"):
            again()
    assert nodes(client, "Built") == corrected
    assert client.check().findings == ()
    assert client.remindrag.unlearn(memory=memory).learnings == 1
    assert nodes(client, "Trail") == nodes(client, "Learning") == []


@pytest.mark.parametrize("change", ["chunks = coalesce(t.chunks, '') + ' more'", "vector = [x IN t.vector | -x]"])
def test_a_trail_that_is_not_what_its_learnings_say_is_found_and_taking_one_back_mends_it(
    open_client: Callable[..., HGMem], change: str
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    memories = [client.ask(QUESTION, system="remindrag", settings=ALONE).memory for _ in "12"]  # the same walk
    for memory in memories:
        client.remindrag.learn(memory=memory)
    damaged = next(row["uid"] for row in nodes(client, "Trail") if row["length"])
    assert client.check().findings == ()
    with driver(client.settings) as opened:
        opened.execute_query(
            f"MATCH (t:Built {{uid: $uid, corpus: $corpus}}) SET t.{change}", uid=damaged, corpus=client.corpus
        )
    [finding] = client.check().findings
    assert (finding.name, finding.uids) == ("remindrag:learnt", (damaged,))
    client.remindrag.unlearn(memory=memories[0])
    assert client.check().findings == ()


def test_a_trail_that_lost_an_end_is_found(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    damaged = next(row["uid"] for row in nodes(client, "Trail") if row["tie"] != "PASSAGE")
    lost = "MATCH (:Built {uid: $uid, corpus: $corpus})-[r:BETWEEN]->() WITH r LIMIT 1 DELETE r"
    with driver(client.settings) as opened:
        opened.execute_query(lost, uid=damaged, corpus=client.corpus)
    assert {finding.name: finding.uids for finding in client.check().findings}["remindrag:ends"] == (damaged,)

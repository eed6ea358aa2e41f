"""Decisions on entities, and their classes: decided, undone, asleep, and told where they contradict each other."""

import re
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from dumping import driver
from letters import LETTERS, QUESTION
from test_provenance import AGAIN, insertion

from hgmem import ConflictError, Document, HGMem, Settings, UsageError
from hgmem.models.metering import measuring
from hgmem.systems.hgmem.replies import EvolveReply, Joining
from hgmem.text.identity import key, uid

Stored = dict[frozenset[str], str]
CLASSES = """
MATCH (e:Entity {corpus: $corpus}) WHERE e.canonical_uid IS NOT NULL
RETURN e.canonical_uid AS class, collect(e.uid) AS uids, collect(e.name) AS names,
       sum(COUNT { (e)-[:ALIAS_OF]->(:Entity {uid: e.canonical_uid}) }) AS aliases
"""


@pytest.fixture
def stored(settings: Settings, corpus: str) -> Callable[[], set[frozenset[str]]]:
    """Returns the names of each stored class, and checks its uid and its ties."""

    def read() -> set[frozenset[str]]:
        with driver(settings) as opened:
            rows = opened.execute_query(CLASSES, corpus=corpus).records
        for row in rows:
            assert row["class"] == min(row["uids"])
            assert row["aliases"] == len(row["uids"]) - 1
        return {frozenset(row["names"]) for row in rows}

    return read


def names(*classes: str) -> set[frozenset[str]]:
    return {frozenset(each.split()) for each in classes}


@pytest.fixture
def hg(client: HGMem) -> HGMem:
    """A client on the letters."""
    client.add_graph(LETTERS)
    return client


def state(hg: HGMem, uid_: str) -> tuple[str, str]:
    return next((one.state, one.why) for one in hg.decisions() if one.decision.uid == uid_)


def test_a_decision_makes_a_class_and_its_undoing_ends_it(hg: HGMem, stored: Any) -> None:
    first = hg.same("Anna", "bo", reason="one of the letters says so")
    hg.same("Bo", "Cleo")
    assert stored() == names("Anna Bo Cleo")
    assert (first.state, first.decision.by, first.decision.reason) == ("stands", "person", "one of the letters says so")

    assert [one.uid for one in hg.undo(first.decision.uid)] == [first.decision.uid]
    assert stored() == names("Bo Cleo")
    hg.undo("cleo", "Bo")
    assert stored() == set()
    assert hg.decisions() == []
    assert hg.check().ok


def test_a_repeated_decision_replaces_the_same_persons_earlier_one(hg: HGMem, stored: Any) -> None:
    hg.same("Anna", "Bo")
    hg.different("Bo", "Anna")
    assert stored() == set()
    assert [one.decision.kind for one in hg.decisions()] == ["different"]


def test_a_decision_that_must_not_replace_another_is_refused(hg: HGMem) -> None:
    hg.same("Anna", "Bo", reason="a letter")
    before = hg.decisions()
    with pytest.raises(ConflictError, match=r"were decided 'same' by a person at .* ago \(a letter\)"):
        hg.different("Bo", "Anna", replace_others=False)
    assert hg.decisions() == before


def test_a_decision_reads_the_decisions_of_its_classes_alone(hg: HGMem) -> None:
    hg.same("Anna", "Bo")
    with measuring() as meter:
        hg.different("Anna", "Bo")
    assert "every_decision" not in meter.usage().calls["neo4j"]


def test_a_contradiction_is_told_with_what_is_void_and_why(hg: HGMem, stored: Any) -> None:
    hg.different("Anna", "Cleo")
    ends = [hg.same("Anna", "Bo"), hg.same("Bo", "Cleo")]
    void = [one for one in hg.decisions() if one.state == "void"]
    assert len(void) == 1
    assert ends[-1].state in ("stands", "void")
    assert "'Anna'" in void[0].why
    assert "'Cleo'" in void[0].why
    assert "are different, as a person decided" in void[0].why
    assert len(stored()) == 1


def test_a_decision_tells_which_others_it_makes_void(hg: HGMem) -> None:
    hg.same("Anna", "Bo")
    hg.same("Bo", "Cleo")
    last = hg.different("Anna", "Cleo")
    assert last.state == "stands"
    assert re.match(r"makes void: '\w+' and '\w+' are same, by a person \(\w+\)$", last.why)


def test_a_point_merged_of_two_names_has_both_and_the_corpus_is_sound_after_an_undo(letters: Any) -> None:
    def evolve(task: Any) -> EvolveReply:
        if task.memory.points:
            return EvolveReply(merge=(Joining(points=(0, 1), description="All of it."),))
        return EvolveReply(insert=(insertion(0, entities=("Anna", "Mill")), insertion(1, entities=("Bo", "Mill"))))

    hg = letters(evolve=evolve)
    answer = hg.ask(QUESTION, steps=1)
    hg.same("Anna", "Bo")
    hg.ask("What of them both?", memory=answer.memory, steps=2, settings=AGAIN)
    (point,) = [one for one in hg.memory(answer.memory).points if one.died is None]
    assert len(point.entities) == 2
    assert hg.check().findings == ()
    hg.undo("Anna", "Bo")
    assert hg.check().findings == ()
    (point,) = [one for one in hg.memory(answer.memory).points if one.died is None]
    assert {one.name for one in point.entities} == {"Anna", "Bo", "Mill"}


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        (("Anna", "Anne"), "has no entity 'Anne' (similar: 'Anna'"),
        (("An", "Xyzzyx"), "has no entity 'An' (similar: 'Anna'), 'Xyzzyx': name two"),
        (("Anna", "anna"), "name one entity"),
        (
            ("Xyzzyx", f"m{'0' * 16}-{'0' * 32}"),
            f"'Xyzzyx', 'm{'0' * 16}-{'0' * 32}' (a provisional entity of one memory: "
            "index a document that names it): name two",
        ),
        (("Anna", uid("another", "entity", key("Bo"))), "name two entities of one corpus"),
    ],
)
def test_what_cannot_be_decided_on_is_refused_in_one_line(hg: HGMem, ends: tuple[str, str], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        hg.same(*ends)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
    assert hg.decisions() == []


@pytest.mark.parametrize("name", [None, 5])
def test_a_name_that_is_not_text_is_refused(hg: HGMem, name: Any) -> None:
    with pytest.raises(UsageError, match="is not text"):
        hg.same("Anna", name)


def test_a_decision_for_no_reason_is_exported_and_read_back(hg: HGMem, tmp_path: Path) -> None:
    hg.same("Anna", "Bo", reason=None)  # type: ignore[arg-type]
    assert hg.export_decisions(tmp_path / "all.json") == 1
    assert [one.reason for one in hg.import_decisions(tmp_path / "all.json")] == [""]


def test_a_pair_is_undone_by_a_uid_and_a_name(hg: HGMem) -> None:
    made = hg.same("Anna", "Bo").decision
    name = "Bo" if made.name_a == "Anna" else "anna"
    with pytest.raises(UsageError, match="no such decision"):
        hg.undo(made.a, made.a)
    assert hg.undo(name, made.a) == [made]


def test_an_unknown_decision_is_not_undone(hg: HGMem) -> None:
    with pytest.raises(UsageError, match="has no decision 'x'"):
        hg.undo("x")
    with pytest.raises(UsageError, match="no such decision"):
        hg.undo("Anna", "Bo")
    with pytest.raises(UsageError, match="nothing to undo is named"):
        hg.undo()


def test_decisions_sleep_while_an_entity_is_gone_and_count_again_when_it_returns(client: HGMem, stored: Any) -> None:
    texts = {
        "one": "Captain Rhee commands the ferry Aurora.",
        "two": "Arvid Rhee was born in Tamswell.",
        "three": "Captain Rhee met Marian Dace in Tamswell.",
    }
    client.add([Document(id=id_, text=text) for id_, text in texts.items()])
    client.same("Captain Rhee", "Arvid Rhee")
    client.same("Arvid Rhee", "Marian Dace")
    whole = {frozenset(("Captain Rhee", "Arvid Rhee", "Marian Dace"))}
    assert stored() == whole

    client.delete(document="two")
    assert stored() == set()
    assert {one.state for one in client.decisions()} == {"asleep"}
    assert client.check().ok
    client.add(Document(id="two", text=texts["two"]))
    assert stored() == whole

    client.add(Document(id="two", text="Nobody else was there, it says."))  # re-indexed without the name
    assert stored() == set()
    client.add(Document(id="two", text=texts["two"]))
    assert stored() == whole
    assert client.check().ok


def test_a_corpus_takes_its_decisions_with_it(hg: HGMem, settings: Settings, corpus: str) -> None:
    hg.same("Anna", "Bo")
    hg.delete()
    with driver(settings) as opened:
        [row] = opened.execute_query("MATCH (d:Decision {corpus: $corpus}) RETURN count(*) AS n", corpus=corpus).records
    assert row["n"] == 0


def test_two_who_decide_at_once_leave_the_class_of_both(
    hg: HGMem, open_client: Callable[..., HGMem], stored: Any
) -> None:
    people = ("Anna", "Bo", "Cleo", "Dag", "Eve", "Mill", "Boat", "Harbour", "Pier")
    pairs = list(pairwise(people))
    others = [hg, open_client(), open_client()]
    errors: list[Exception] = []

    def work(at: int) -> None:
        try:
            for a, b in pairs[at::3]:
                others[at].same(a, b)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(at,)) for at in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert stored() == {frozenset(people)}
    assert hg.check().ok


def test_a_wrong_class_is_found(hg: HGMem, settings: Settings, corpus: str) -> None:
    hg.same("Anna", "Bo")
    with driver(settings) as opened:
        opened.execute_query("MATCH (e:Entity {corpus: $corpus, name: 'Anna'}) SET e.canonical_uid = e.uid + 'x'",
                             corpus=corpus)  # fmt: skip
    [finding] = hg.check().findings
    assert (finding.name, finding.count) == ("entity-class", 1)


def test_decisions_travel_with_an_archive(hg: HGMem, tmp_path: Path, stored: Any) -> None:
    hg.same("Anna", "Bo", reason="why")
    hg.different("Anna", "Cleo")
    before = hg.decisions()
    hg.export(tmp_path / "a.gz")
    hg.delete()
    hg.import_archive(tmp_path / "a.gz")
    assert hg.decisions() == before
    assert stored() == names("Anna Bo")
    assert hg.check().ok


def test_a_corpus_that_is_not_ready_takes_no_decision(hg: HGMem, settings: Settings, corpus: str) -> None:
    with driver(settings) as opened:
        opened.execute_query("MATCH (k:Corpus {name: $corpus}) SET k.status = 'importing'", corpus=corpus)
    with pytest.raises((UsageError, ConflictError), match="not ready"):
        hg.same("Anna", "Bo")
    with driver(settings) as opened:
        opened.execute_query("MATCH (k:Corpus {name: $corpus}) SET k.status = 'ready'", corpus=corpus)

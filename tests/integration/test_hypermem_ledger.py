"""HyperMem's ledger on a real Neo4j: what changed and since when, whatever the order in which messages arrive."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from dumping import dump
from test_hypermem import nodes, scripted

from hgmem import Conversation, HGMem, Message, UsageError
from hgmem.systems.hypermem import standing
from hgmem.systems.hypermem.ledger import ledger
from hgmem.systems.hypermem.replies import ComparedReply, ComparisonsReply, EpisodeReply, FactReply

START = datetime(2024, 3, 1, 9, 0)
SAID = (
    ("Ann", "I work for Norden Ferries.", 0),
    ("Bo", "The wedding of Liv is on 5 May.", 1),
    ("Ann", "I live in Lund.", 2),
    ("Ann", "I quit Norden Ferries yesterday.", 10),
    ("Bo", "Actually, the wedding of Liv is on 12 May.", 11),
    ("Ann", "I moved to Malmö on Saturday.", 20),
    ("Ann", "I am working at Sundlink now.", 30),
)
CHANGES = {
    ("Ann quit Norden Ferries yesterday.", "Ann works for Norden Ferries."): "2024-03-10",
    ("Bo: Actually, the wedding of Liv is on 12 May.", "Bo: The wedding of Liv is on 5 May."): "2024-03-12T09:00:00",
    ("Ann moved to Malmö on Saturday.", "Ann lives in Lund."): "2024-03-16",
    ("Ann is working at Sundlink now.", "Ann works for Norden Ferries."): "2024-03-31T09:00:00",
}


def said(*numbers: int) -> list[Message]:
    """Return the messages of these numbers, all by default."""
    chosen = [SAID[at] for at in numbers] if numbers else SAID
    return [Message(who, text, START + timedelta(days=day), id=f"m{day}") for who, text, day in chosen]


def changes(client: HGMem) -> dict[tuple[str, str], str]:
    """Return what supersedes what, with the time from which it holds."""
    facts = {uid: one["content"] for uid, one in nodes(client, "Fact").items()}
    ties = dump(client.settings, client.corpus).joined("SUPERSEDES")
    assert all(tie["guess"] for _, _, tie in ties)
    return {(facts[source], facts[target]): tie["since"] for source, target, tie in ties}


def test_what_changed_is_known_with_the_time_from_which_it_holds(client: HGMem) -> None:
    client.add(Conversation(id="talk", messages=said()), graph=False)
    client.build("hypermem")
    assert changes(client) == CHANGES
    assert client.check().findings == ()


def built(client: HGMem, *messages: Message) -> HGMem:
    client.add(Conversation(id="talk", messages=list(messages) or said()), graph=False)
    client.build("hypermem")
    return client


def test_a_message_that_arrives_late_or_goes_leaves_the_ledger_of_messages_in_order(client: HGMem) -> None:
    built(client, *said(0, 1, 2, 4, 5, 6))
    assert ("Ann quit Norden Ferries yesterday.", "Ann works for Norden Ferries.") not in changes(client)
    client.append("talk", said(3))
    client.build("hypermem")
    assert changes(client) == CHANGES
    client.append("talk", said(3))  # twice
    client.build("hypermem")
    assert changes(client) == CHANGES
    assert client.check().findings == ()
    client.hypermem.forget(conversation="talk", message="m10")
    client.build("hypermem")
    assert changes(client) == {pair: since for pair, since in CHANGES.items() if "quit" not in pair[0]}
    assert client.build("hypermem").made == 0


def test_facts_are_those_that_held_at_a_day(client: HGMem) -> None:
    built(client)

    def held(day: str) -> set[str]:
        return {one.fact for one in client.hypermem.facts(about="Ann", as_of=day)}

    assert held("2024-02-01") == set()
    assert held("2024-03-05") == {"Ann works for Norden Ferries.", "Ann lives in Lund."}
    assert held("2024-03-12") == {"Ann quit Norden Ferries yesterday.", "Ann lives in Lund."}
    assert "Ann lives in Lund." not in held("2024-04-30")
    [home] = client.hypermem.facts(about="Lund")
    assert (home.until, home.notes) == ("2024-03-16", ("until 2024-03-16, it seems: Ann moved to Malmö on Saturday.",))
    with pytest.raises(UsageError, match="invalid as_of='spring'"):
        client.hypermem.facts(as_of="spring")


def test_changes_are_listed_newest_first_and_by_subject(client: HGMem) -> None:
    built(client)
    listed = client.hypermem.changes()
    assert [(one.fact, one.before) for one in listed][-1] == min(CHANGES, key=CHANGES.__getitem__)
    assert {(one.fact, one.before): one.since for one in listed} == CHANGES
    assert all(one.guess and one.kind == "supersedes" and one.conversation == "talk" for one in listed)
    assert {one.before for one in client.hypermem.changes(about="wedding")} == {"Bo: The wedding of Liv is on 5 May."}
    assert client.hypermem.changes(since="2024-05-01") == []


def told(client: HGMem, question: str, **settings: Any) -> str:
    """Return what the answer's prompt tells beside the messages, for a model that did not write the facts."""
    rules, client.model = client.model, (model := scripted())
    client.ask(question, system="hypermem", settings=settings)
    client.model = rules
    if not model.tasks:  # nothing was found
        return ""
    [task] = model.tasks
    return "\n".join((*task.memory.statements, *(one.text for one in task.passages if hasattr(one, "kind"))))


def test_an_answer_is_told_what_holds_now_or_then_and_what_held_before(client: HGMem) -> None:
    built(client)
    now = told(client, "Where did Ann live and work?")
    assert "until 2024-03-16, it seems)" in now  # without what ended it, which is told beside it
    assert now.count("Ann moved to Malmö on Saturday.") == 1
    assert "before that, it seems: Ann works for Norden Ferries." in now
    assert "Ann is working at Sundlink now." in now
    then = told(client, "Where does Ann work?", as_of="2024-03-05")
    assert "until" not in then
    assert "Sundlink" not in then
    assert told(client, "Where does Ann work?", as_of="2024-01-01") == ""


def test_a_question_about_a_time_is_told_facts_of_that_time_with_their_days(client: HGMem) -> None:
    said_ = [
        Message("Ann", f"I sailed to island {at} yesterday.", START + timedelta(days=at), id=str(at))
        for at in range(40)
    ]
    built(client, *said_)
    hits = client.ask("Where did Ann sail on 7 March?", system="hypermem").steps[0].retrieved[0].built
    facts = [hit.text for hit in hits if hit.kind == "Fact"]
    assert facts[0] == "Ann sailed to island 7 yesterday."
    days = {one["content"]: (one["starts"], one["ends"]) for one in nodes(client, "Fact").values()}
    assert days["Ann sailed to island 7 yesterday."] == ("2024-03-07", "2024-03-07")
    last = client.ask("Where did Ann sail last week?", system="hypermem").steps[0].retrieved[0].built
    assert next(hit.text for hit in last if hit.kind == "Fact").split()[4] in map(str, range(32, 40))


def test_a_list_counts_an_event_once(client: HGMem) -> None:
    won = [
        Message("Ann", f"I won the tournament in town {at} yesterday.", START + timedelta(days=at), id=f"a{at}")
        for at in range(6)
    ]
    again = [
        Message(
            "Bo", f"Ann won the tournament in town {at} yesterday!", START + timedelta(days=at, minutes=2), id=f"b{at}"
        )
        for at in range(6)
    ]
    built(client, *won, *again)
    hits = client.ask("How many tournaments did Ann win?", system="hypermem").steps[0].retrieved[0].built
    assert len([hit for hit in hits if hit.kind == "Fact"]) == 6


def comparing(relation: str) -> Callable[[Any], ComparisonsReply]:
    """Return a reply by which each new fact stands so to the one before it."""
    odd = (ComparedReply(number=999, earlier=0, relation=relation), ComparedReply(number=0, earlier=5, relation="odd"))
    return lambda task: ComparisonsReply(
        pairs=(*(ComparedReply(number=at, earlier=at - 1, relation=relation) for at in task.new if at), *odd)
    )


@pytest.mark.parametrize(
    ("relation", "type_"),
    [("updates", "SUPERSEDES"), ("same", "REPEATS"), ("contradicts", "CONTRADICTS"), ("adds", "")],
)
def test_what_a_model_judges_is_kept_and_is_no_guess(
    open_client: Callable[..., HGMem], relation: str, type_: str
) -> None:
    def episode(task: Any) -> EpisodeReply:
        texts = [said.text for said in task.messages]
        return EpisodeReply(
            subject="A day",
            summary="s",
            narrative="n",
            facts=tuple(FactReply(content=text, messages=(at,)) for at, text in enumerate(texts)),
        )

    client = open_client(model=scripted(episode=episode, fact_changes=comparing(relation)))
    built(
        client,
        *(Message("Ann", f"The boat is number {at}.", START + timedelta(days=at), id=f"d{at}m0") for at in range(3)),
    )
    held = dump(client.settings, client.corpus)
    ties = {kind: held.joined(kind) for kind in ("SUPERSEDES", "REPEATS", "CONTRADICTS")}
    assert {kind for kind, found in ties.items() if found} == ({type_} if type_ else set())
    assert not any(tie["guess"] for found in ties.values() for _, _, tie in found)
    assert client.check().findings == ()


def test_the_ledger_moves_with_an_archive(client: HGMem, tmp_path: Any) -> None:
    built(client)
    client.export(tmp_path / "talk.jsonl.gz")
    client.delete()
    client.import_archive(tmp_path / "talk.jsonl.gz")
    assert changes(client) == CHANGES
    assert client.build("hypermem").made == 0
    assert client.check().findings == ()


def test_what_comes_back_holds_anew_and_two_of_one_time_contradict_each_other() -> None:
    moments = {name: (f"2024-03-0{at}", "d", at) for at, name in enumerate("abc", start=1)}
    judged = [
        ("b", "a", "updates", False, False),
        ("c", "b", "updates", False, False),
        ("c", "a", "same", False, False),
    ]
    found = {(one.fact, one.kind, one.earlier) for one in ledger(judged, moments, {})}  # type: ignore[arg-type]
    assert found == {("b", "SUPERSEDES", "a"), ("c", "SUPERSEDES", "b")}
    same_time = {"a": ("2024-03-01", "d", 1), "b": ("2024-03-01", "e", 1)}
    [one] = ledger([("b", "a", "updates", False, False)], same_time, {})
    assert one.kind == "CONTRADICTS"


def test_many_facts_about_one_thing_leave_the_last(client: HGMem) -> None:
    moved = [Message("Ann", f"I moved to Town{at}.", START + timedelta(hours=at), id=str(at)) for at in range(200)]
    built(client, *moved)
    assert [one.fact for one in client.hypermem.facts(about="Ann", as_of="2025-01-01")] == ["Ann moved to Town199."]


def test_facts_about_a_person_include_those_that_call_them_by_another_name(client: HGMem) -> None:
    built(
        client,
        Message("Caroline", "Hey Mel, how are you?", START, id="1"),
        Message("Melanie", "I bought a canoe.", START + timedelta(minutes=1), id="2"),
        Message("Caroline", "My brother saw Mel on the lake.", START + timedelta(minutes=2), id="3"),
    )
    found = {one.fact for one in client.hypermem.facts(about="Melanie")}
    assert found == {"Melanie bought a canoe.", "Caroline's brother saw Mel on the lake."}


def test_the_verbs_that_everybody_may_call_by_http_list_at_most_ten_thousand(client: HGMem) -> None:
    for verb in (client.hypermem.facts, client.hypermem.changes):
        for limit in (0, 10_001):
            with pytest.raises(UsageError, match=f"invalid argument 'limit' of verb .* got {limit}"):
                verb(limit=limit)


def test_an_answer_by_rules_prefers_what_holds_and_tells_until_when_the_rest_held(client: HGMem) -> None:
    built(client)

    def answer(question: str, **settings: Any) -> str:
        return client.ask(question, system="hypermem", settings=settings).text

    assert answer("Where does Ann live?").startswith("I moved to Malmö on Saturday. [1]")
    assert "I live in Lund" not in answer("Where does Ann live?")
    assert answer("Where did Ann live earlier?").startswith("I live in Lund (until 2024-03-16, it seems). [1]")
    assert answer("Where does Ann live?", as_of="2024-03-05").startswith("I live in Lund. [1]")


def test_the_last_place_of_one_thing_is_known_though_fewer_candidates_are_kept(
    client: HGMem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standing, "_CHAIN", 1)
    places = [
        Message("Ann", f"Kestrel is at Berth {at}.", START + timedelta(minutes=at), id=str(at)) for at in range(120)
    ]
    built(client, *places)
    [change] = client.hypermem.changes(about="Kestrel", limit=1)
    assert change.fact == "Ann: Kestrel is at Berth 119."
    for as_of, last in (("", 119), ("2024-03-01T09:20", 20)):
        answer = client.ask("Where is Kestrel?", system="hypermem", settings={"facts": 10, "as_of": as_of})
        facts = [hit.text for hit in answer.steps[0].retrieved[0].built if hit.kind == "Fact"]
        assert facts[0] == f"Ann: Kestrel is at Berth {last}."
        assert answer.text.startswith(f"Kestrel is at Berth {last}. ")

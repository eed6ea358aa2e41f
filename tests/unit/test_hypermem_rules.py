"""HyperMem's rules for a ledger without a model: the days of facts, what ends what, and what is a list."""

import pytest

from hgmem.models.extractive.english import absolute_times
from hgmem.systems.hypermem.dialogues import Dialogue, DialogueMessage, lines
from hgmem.systems.hypermem.names import called, spelled_out
from hgmem.systems.hypermem.shown import Wanted, in_force, listed
from hgmem.systems.hypermem.standing import Linked, Recalled, Standing
from hgmem.systems.hypermem.states import is_planned, relation
from hgmem.systems.hypermem.times import days_asked, days_of, overlap

MONDAY = "2023-05-08T10:00:00"


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("We went last spring.", "last spring (2022-03 to 2022-05)"),
        ("It was cold last winter.", "last winter (2022-12 to 2023-02)"),
        ("I'll go this summer.", "this summer (2023-06 to 2023-08)"),
        ("Next winter I will ski.", "Next winter (2023-12 to 2024-02)"),
        ("I have been here for two weeks.", "for two weeks (2023-04-24 to 2023-05-08)"),
        ("I'll be away for two weeks.", "for two weeks (2023-05-08 to 2023-05-22)"),
        ("I was sick for the past three days.", "for the past three days (2023-05-05 to 2023-05-08)"),
        ("We met in March.", "in March (2023-03)"),
        ("We'll meet in September.", "in September (2023-09)"),
        ("On June 3rd, 2022 we sailed.", "On June 3rd, 2022 (2022-06-03)"),
        ("The wedding is on 12 June.", "on 12 June (2023-06-12)"),
        ("I was born in 1990.", "in 1990 (1990)"),
    ],
)
def test_seasons_dates_and_spans_are_told_with_the_days_that_they_mean(sentence: str, told: str) -> None:
    assert absolute_times(sentence, MONDAY) == [told]


def test_a_span_that_may_have_ended_at_any_time_has_no_days() -> None:
    assert absolute_times("I lived there for two years.", MONDAY) == []


@pytest.mark.parametrize(
    ("time", "said_at", "words", "days"),
    [
        ("yesterday (2023-05-07)", MONDAY, "yesterday", ("2023-05-07", "2023-05-07")),
        ("last week (week of 2023-05-01)", MONDAY, "last week", ("2023-05-01", "2023-05-07")),
        ("for two weeks (2023-04-24 to 2023-05-08)", MONDAY, "", ("2023-04-24", "2023-05-08")),
        ("in February (2024-02)", MONDAY, "in February", ("2024-02-01", "2024-02-29")),
        ("1990", MONDAY, "born in 1990", ("1990-01-01", "1990-12-31")),
        ("30 years ago (1993)", MONDAY, "30 years ago", ("1993-01-01", "1993-12-31")),
        ("in May (1823-05)", MONDAY, "in May", ("", "")),  # a year that nobody said
        ("in May (2023-05)", "", "in May", ("", "")),
        ("2023-02-30", MONDAY, "", ("", "")),
        ("some day", MONDAY, "some day", ("", "")),
    ],
)
def test_the_days_of_a_fact_are_those_that_were_said(
    time: str, said_at: str, words: str, days: tuple[str, str]
) -> None:
    assert days_of(time, said_at=said_at, words=words) == days


def test_a_question_tells_days_as_seen_from_the_last_day() -> None:
    assert days_asked("What did she do last week?", last=MONDAY) == ("2023-05-01", "2023-05-07")
    assert days_asked("What happened in May 2022?", last=MONDAY) == ("2022-05-01", "2022-05-31")
    assert days_asked("Who paints?", last=MONDAY) == ("", "")
    assert overlap(("2023-05-01", "2023-05-07"), ("2023-05-07", "2023-05-09"))
    assert not overlap(("2023-05-01", "2023-05-07"), ("2023-05-08", "2023-05-09"))
    assert not overlap(("", ""), ("", ""))


@pytest.mark.parametrize(
    ("earlier", "later", "kind"),
    [
        ("Ann works for Norden Ferries.", "Ann quit Norden Ferries.", "updates"),
        ("Ann works for Norden Ferries.", "Ann started working at Sundlink last week.", "updates"),
        ("Ann works at the harbour.", "Ann quit her job.", "updates"),
        ("Ann lives in Lund.", "Ann moved to Malmö in June.", "updates"),
        ("Ann bought a red boat yesterday.", "Ann sold the boat.", "updates"),
        ("Ann likes coffee.", "Ann doesn't like coffee any more.", "updates"),
        ("Ann plays tennis.", "Ann stopped playing tennis.", "updates"),
        ("Ann: The wedding is on 5 May.", "Bo: Actually, the wedding is on 6 May.", "updates"),
        ("Ann's wedding is on 5 May.", "Ann's wedding was moved to 12 June.", "updates"),
        ("The boat is called Aurora.", "The boat is called Borealis now.", "updates"),
        ("Ann: Kestrel is at Berth 3.", "Bo: Kestrel's now at berth 7, I see.", "updates"),
        ("The party is in Room 4.", "The party is in Room 12 now.", "updates"),
        ("Ann is at Mateo's.", "Ann is at Hathe Museum.", "updates"),
        ("Ann: Kestrel is at Berth 3.", "Bo: Kestrel is still at Berth 3.", "same"),
        ("Ann moved to Lund.", "Ann lives in Lund now.", "same"),
        ("Ann: The wedding is on 5 May.", "Bo: The wedding is on 5 May.", "same"),
        ("Ann bought a boat.", "Ann bought a car.", None),
        ("Ann's brother works for Norden.", "Ann quit Norden.", None),
        ("Ann lives in Lund.", "Ann's mother lives in Oslo.", None),
        ("The boat is 5 years old.", "The boat is 9 metres long.", None),
        ("Ann has a dog.", "Ann lost her keys.", None),
        ("Ann is in the garden.", "Ann is in love.", None),
        ("Ann is in Lund.", "Ann is in Sweden.", None),
        ("Ann is on Facebook.", "Ann is on Mastodon.", None),
        ("Ann is at least 5 years older.", "Ann is at least 9 metres away.", None),
        ("The party is at Mateo's.", "The party is at Easter.", None),
        ("Ann: It is at Berth 3.", "Ann: It is at Berth 7.", None),
        ("Kestrel is at Berth 3.", "Kestrel was at Berth 7 in May.", None),
        ("Kestrel is at Berth 3.", "Kestrel is on Pier 7.", None),
        ("Ann's boat is at Berth 3.", "Ann's barge is at Berth 7.", None),
    ],
)
def test_one_subject_and_role_end_what_was_before(earlier: str, later: str, kind: str | None) -> None:
    assert relation(earlier, later) == kind


def test_a_plan_is_no_change_yet() -> None:
    assert is_planned("Ann is moving to Malmö in June.")
    assert not is_planned("Ann moved to Malmö.")


@pytest.mark.parametrize(
    ("question", "of"),
    [
        ("How many tournaments has Ann won?", "tournament"),
        ("Which books did Ann read?", "book"),
        ("What kinds of pets does Ann have?", "pet"),
        ("Where does Ann live?", None),
        ("What is the boat called?", None),
        ("What does Ann do?", None),
    ],
)
def test_what_counts_or_lists_is_told_apart(question: str, of: str | None) -> None:
    found = listed(question)
    assert (found is None) == (of is None)
    assert of is None or of in {stem.strip() for stem in found or ()}


def test_who_is_called_by_another_name_is_known() -> None:
    def dialogue(*said: tuple[str, str]) -> Dialogue:
        messages = tuple(
            DialogueMessage(id=str(at), speaker=who, time="", text=text) for at, (who, text) in enumerate(said)
        )
        return Dialogue(document="d", title="", heading="", messages=messages)

    names = called(
        dialogue(("Caroline", "Hey Mel, how are you?"), ("Melanie", "Fine, Caro!"), ("Melanie", "Wow, Oslo!"))
    )
    assert names == {"mel": "Melanie", "caro": "Caroline"}
    assert spelled_out("Caroline's brother saw Mel.", names) == ["Melanie"]
    assert spelled_out("Melanie, or Mel, paints.", names) == []


def test_messages_are_shown_with_the_weekday_by_which_a_model_reads_next_saturday() -> None:
    said = [DialogueMessage(id="m1", speaker="Ann", time=time, text="See you on Saturday.") for time in (MONDAY, "")]
    assert lines(said, start=3).splitlines() == [
        "[3] (Mon 2023-05-08 10:00) Ann: See you on Saturday.",
        "[4] Ann: See you on Saturday.",
    ]


def test_the_last_of_many_changes_comes_before_what_it_ended_long_ago() -> None:
    homes = [Recalled(uid=f"{at:02}", kind="Fact", score=0.0, properties={}, chunks=()) for at in range(12)]
    standing = {
        fact.uid: Standing(ended=[Linked(fact=by, since=by.uid, guess=True) for by in homes[at + 1 : at + 4]])
        for at, fact in enumerate(homes)
    }
    ranked = in_force([homes[2], homes[1]], standing, Wanted())
    assert [fact.uid for fact in ranked] == ["11", "05", "04", "03", "02", "01"]


def test_what_is_told_beside_a_fact_is_not_repeated_but_that_they_clash_or_that_it_ended_is() -> None:
    by = [Recalled(uid=uid, kind="Fact", score=0.0, properties={"content": uid}, chunks=()) for uid in ("b", "c")]
    ended = Standing(
        ended=[Linked(fact=one, since=f"2023-0{at}-01", guess=False) for at, one in enumerate(by, start=2)]
    )
    assert ended.notes(frozenset("bc")) == ["until 2023-02-01"]
    assert ended.notes(frozenset("b")) == ["until 2023-02-01", "until 2023-03-01: c"]
    untimed = Standing(ended=[Linked(fact=by[0], since="", guess=True)])
    assert untimed.notes(frozenset("b")) == ["until, it seems: b"]
    clash = Standing(against=[Linked(fact=by[0], since="", guess=False)])
    assert clash.notes(frozenset("b")) == ["contradicted by: b"]

"""Facts that rules make of messages: the third person, the days that words mean, and what is no fact."""

import pytest

from hgmem.models.extractive.english import absolute_times, asks_before, in_third_person
from hgmem.systems.hypermem import extractive
from hgmem.systems.hypermem.dialogues import DialogueMessage

MONDAY = "2023-05-01T10:00"


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("I visited Rome on Friday.", "on Friday (2023-04-28)"),
        ("I will visit Rome on Friday.", "on Friday (2023-05-05)"),
        ("I’ll visit Rome on Friday.", "on Friday (2023-05-05)"),
        ("I am going to see the dentist on Sunday.", "on Sunday (2023-05-07)"),
        ("I was going to see the dentist on Sunday.", "on Sunday (2023-04-30)"),
        ("We plan to sail on Monday.", "on Monday (2023-05-08)"),
        ("Shall we sail on Monday?", "on Monday (2023-05-08)"),
        ("I will tell you what I saw last Friday.", "last Friday (2023-04-28)"),
        ("I will tell you what I saw on Friday.", "on Friday (2023-04-28)"),
        ("The willow fell on Monday.", "on Monday (2023-04-24)"),
        ("Paul starts on Monday.", "on Monday (2023-05-08)"),
        ("I'm seeing her on Friday.", "on Friday (2023-05-05)"),
        ("I’m seeing her on Friday.", "on Friday (2023-05-05)"),
        ("I was seeing her on Friday.", "on Friday (2023-04-28)"),
        ("I'm happy I met her on Friday.", "on Friday (2023-04-28)"),
        ("On Friday I met her.", "On Friday (2023-04-28)"),
        ("It'll be done on Friday.", "on Friday (2023-05-05)"),
        ("I've got an appointment on Friday.", "on Friday (2023-05-05)"),
        ("I told her that we are leaving on Friday.", "on Friday (2023-05-05)"),
    ],
)
def test_a_day_of_the_week_is_the_last_one_only_beside_a_past_tense(sentence: str, told: str) -> None:
    assert absolute_times(sentence, MONDAY) == [told]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("I really feel good.", "Melanie really feels good."),
        ("I carry it and I wash it.", "Melanie carries it and Melanie washes it."),
        ("I don't know, but I do care.", "Melanie doesn't know, but Melanie does care."),
        ("I haven't seen it, and I still have the key.", "Melanie hasn't seen it, and Melanie still has the key."),
        ("I, too, need it.", "Melanie, too, needs it."),
        (
            "I can swim, I felt it, I quit, I never walked.",
            "Melanie can swim, Melanie felt it, Melanie quit, Melanie never walked.",
        ),
        ("I’m here, and I was there.", "Melanie is here, and Melanie was there."),
        ("My brother and I like it.", "Melanie's brother and Melanie like it."),
        ("I came home and I feel good.", "Melanie came home and Melanie feels good."),
        ("Did I tell you?", "Did Melanie tell you?"),
    ],
)
def test_the_verb_after_a_replaced_i_is_inflected(said: str, told: str) -> None:
    assert in_third_person(said, "Melanie") == told


def facts(*texts: str) -> list[str]:
    """Return the facts of messages that Ann and Caroline say in turn."""
    return [
        fact.content
        for fact in extractive.facts(
            [
                DialogueMessage(id=str(at), speaker=("Ann", "Caroline")[at % 2], time=MONDAY, text=text)
                for at, text in enumerate(texts)
            ]
        )
    ]


def test_greetings_thanks_and_cheering_are_no_facts() -> None:
    assert (
        facts("Thanks a ton, Caroline!", "Wow, Ann, that's awesome!", "Glad to hear that, Caro.", "Take care, bye!")
        == []
    )


def test_what_courtesy_tells_besides_is_a_fact() -> None:
    said = (
        "Thanks for the lift to Oslo.",
        "Congrats on the new job!",
        "Last night was amazing!",
        "I had a lovely day.",
    )
    told = ("Ann: Thanks for the lift to Oslo.", "Caroline: Congrats on the new job!", "Ann: Last night was amazing!")
    assert facts(*said) == [*told, "Caroline had a lovely day."]


def test_what_was_in_may_is_a_fact_as_what_was_in_june_is() -> None:
    assert facts("The regatta was in May.", "It was in May.") == ["Ann: The regatta was in May."]


@pytest.mark.parametrize(
    ("question", "before"),
    [
        ("Where is Kestrel?", False),
        ("Where does Ann live now?", False),
        ("What is the boat called?", False),
        ("Where is Ann this week?", False),
        ("Where did Ann live?", True),
        ("Where was Kestrel?", True),
        ("Where is Kestrel in May?", True),
        ("Who is the former owner?", True),
        ("Which boat sank?", True),
    ],
)
def test_a_question_for_what_was_is_told_from_one_for_what_holds(question: str, before: bool) -> None:
    assert asks_before(question) == before

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from hgmem.errors import ModelError
from hgmem.extraction.replies import Extraction
from hgmem.models.extractive import ExtractiveModel
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.rendering import PromptMemory
from hgmem.testing import DeterministicEmbedder
from hgmem.text.segmentation import collapse
from hgmem.values.conversations import MessagePlace
from hgmem.values.evidence import Ended
from hgmem.values.graph_elements import Chunk, Entity
from hgmem.values.records import MemoryPoint

QUESTION = "Why did Ilse Maron buy the lighthouse?"
TEXTS = (
    "Ilse Maron bought the lighthouse because\nher brother had drowned below it. Rain fell on the empty roads all day.",
    "Nobody else would buy it, the lighthouse being old. A tram runs there now, painted green and white.",
)


def answer(texts: Sequence[str], *, question: str = QUESTION, points: Sequence[MemoryPoint] = (), **chunk: int) -> str:
    chunks = tuple(
        Chunk(uid=f"c{at}", document=f"d{at}", text=text, tokens=50, **{"position": 0, **chunk})
        for at, text in enumerate(texts)
    )
    task = AnswerQuestion(question=question, memory=PromptMemory(points=tuple(points)), passages=chunks)
    return ExtractiveModel(DeterministicEmbedder(256)).reply(task).text


def test_where_nothing_is_looked_for_eight_central_sentences_stand_for_all() -> None:
    things = ("anchor", "barrel", "candle", "dagger", "engine", "fiddle", "garnet", "hammer")
    texts = [
        " ".join(f"The {thing} of {place} was sold to {thing} makers by the harbour." for place in ("Arbor", "Briar"))
        for thing in things
    ]
    aside = "Nobody remembers why rain fell on empty roads. "
    chunks = [Chunk(uid=thing, document="d", position=at, text=aside * (at == 3) + texts[at], tokens=50, start=0)
              for at, thing in enumerate(things)]  # fmt: skip
    task = AnswerQuestion(question="Sum up.", memory=PromptMemory(), passages=tuple(chunks), theme=False)
    found = quotes(ExtractiveModel(DeterministicEmbedder(256)).reply(task).text)
    assert [marker for _, marker in found] == list(range(1, 9))  # one of each two, in order, and not the aside
    assert all(quote in texts[marker - 1] for quote, marker in found)


def quotes(text: str) -> list[tuple[str, int]]:
    return [(quote.strip(), int(marker)) for quote, marker in re.findall(r"(.+?) \[(\d+)\]", text)]


def test_each_sentence_is_verbatim_from_the_chunk_that_its_marker_names() -> None:
    found = quotes(answer(TEXTS))
    assert found
    assert all(quote in collapse(TEXTS[marker - 1]) for quote, marker in found)


def test_the_sentence_nearest_to_the_question_comes_first_and_idle_ones_stay_out() -> None:
    found = answer(TEXTS)
    assert found.startswith("Ilse Maron bought the lighthouse because her brother had drowned below it. [1]")
    assert "tram" not in found


def test_a_sentence_about_him_follows_the_one_that_names_him() -> None:
    told = "At last they met Odo Krag. He is the old miller of Brandt Hill. Rain fell on the empty roads all day."
    both = "At last they met Odo Krag. [1] He is the old miller of Brandt Hill. [1]"
    assert answer([told], question="Who is the old miller of Brandt Hill?") == both
    assert answer([told], question="Who fell on the empty roads?").startswith("Rain fell")


def test_a_question_about_something_else_gets_the_nearest_sentences_and_a_note() -> None:
    chunks = tuple(Chunk(uid=text, document="d", position=0, text=text, tokens=50) for text in TEXTS)
    for question, noted in ((QUESTION, False), ("Which planet has the most moons?", True)):
        task = AnswerQuestion(question=question, memory=PromptMemory(), passages=chunks)
        reply = ExtractiveModel(DeterministicEmbedder(256)).reply(task)
        assert quotes(reply.text)
        assert [note.startswith("no passage has much in common") for note in reply.notes] == [True] * noted


def of_messages(question: str, *told: tuple[str, str], ended: Sequence[Ended] = ()) -> str:
    """Return the answer from a chunk of messages of speakers, of one day."""
    places, text = [], ""
    for at, (by, said) in enumerate(told):
        start = len(text) + len(by) + 2
        text += f"{by}: {said}\n"
        places.append(MessagePlace(id=str(at), speaker=by, time="2023-05-08T10:00", start=start, end=len(text) - 1))
    chunk = Chunk(uid="c", document="d", position=0, text=text, tokens=9, messages=tuple(places))
    task = AnswerQuestion(question=question, memory=PromptMemory(ended=tuple(ended)), passages=(chunk,))
    return ExtractiveModel(DeterministicEmbedder(256)).reply(task).text


def test_a_short_message_is_quoted_where_others_say_more() -> None:
    told = (("A", "My kayak is yellow."), ("B", "Oh."), ("B", "The stoat eats eggs."))
    assert of_messages("What colour is my kayak?", *told) == "My kayak is yellow. [1]"


def test_a_question_for_a_time_gets_the_day_that_yesterday_means() -> None:
    told = ("Ann", "I sold my kayak yesterday.")
    assert of_messages("When did Ann sell her kayak?", told) == "I sold my kayak yesterday (2023-05-07). [1]"
    assert of_messages("What did Ann sell?", told) == "I sold my kayak yesterday. [1]"
    told = ("Ann", "I sold my kayak in May 2022.")
    assert of_messages("When did Ann sell her kayak?", told) == "I sold my kayak in May 2022. [1]"


def test_what_holds_comes_before_what_has_ended_and_that_is_told_with_its_end() -> None:
    told = (("Ann", "I live in Lund."), ("Bo", "The stoat eats eggs."), ("Ann", "I moved to Malmö, at last!"))
    moved, lund = "Ann moved to Malmö, at last!", "Ann lives in Lund."
    ended = [Ended(text=lund, until="2024-03-16T09:00", by=moved, guess=True)]
    assert of_messages("Where does Ann live?", *told).startswith("I live in Lund. [1]")
    assert of_messages("Where does Ann live?", *told, ended=ended) == "I moved to Malmö, at last! [1]"
    before = of_messages("Where did Ann live?", *told, ended=ended)
    assert before.startswith("I live in Lund (until 2024-03-16, it seems). [1]")
    alone = of_messages("Where does Ann live?", *told[:2], ended=[replace(ended[0], until="", guess=False)])
    assert alone.startswith("I live in Lund (no longer). [1]")


def test_what_two_speakers_say_in_the_same_words_is_quoted_of_the_one_who_is_asked_about() -> None:
    places = [MessagePlace(id="1", speaker=by, time="", start=5, end=20) for by in ("Dan", "Ann")]
    chunks = tuple(
        Chunk(uid=each.speaker, document="d", position=0, text=f"{each.speaker}: I live in Lund.", tokens=9,
              messages=(each,))
        for each in places
    )  # fmt: skip
    task = AnswerQuestion(question="Where does Ann live?", memory=PromptMemory(), passages=chunks)
    assert ExtractiveModel(DeterministicEmbedder(256)).reply(task).text.startswith("I live in Lund. [2]")


def test_what_memory_holds_is_preferred() -> None:
    texts = ("The lighthouse was one that Ilse Maron loved.", "The lighthouse was one that Ilse Maron hated.")
    held = MemoryPoint(uid="p", description=texts[1], entities=(Entity(uid="e", name="Ilse Maron"),))
    assert answer(texts, points=[held]).startswith(f"{texts[1]} [2]")


def test_a_sentence_is_near_where_the_point_that_holds_it_has_what_is_asked() -> None:
    texts = (
        "Otto Falk lent her the whole sum without any interest.",
        "The lighthouse looks grey on most days of winter.",
    )
    bought = "Ilse Maron had to buy the lighthouse."
    held = MemoryPoint(uid="p", description=f"{bought} {texts[0]}", entities=(Entity(uid="e", name="Ilse Maron"),))
    found = [quote for quote, _ in quotes(answer(texts, points=[held]))]
    assert found[0] == texts[0]


@pytest.mark.parametrize(
    "heading",
    [
        "# Why Ilse Maron bought the lighthouse",
        "### Why Ilse Maron bought the lighthouse.",
        "Why Ilse Maron bought the lighthouse\n===",
        "Why Ilse Maron bought the lighthouse",
    ],
)
def test_a_heading_is_never_quoted_beside_sentences(heading: str) -> None:
    found = answer((f"{heading}\n\nHer brother had drowned below the lighthouse.", TEXTS[1]))
    assert "drowned" in found
    assert "Why" not in found


def test_a_sentence_of_two_overlapping_chunks_is_quoted_once() -> None:
    found = answer((TEXTS[0], f"{TEXTS[0]} More followed."))
    assert len([quote for quote, _ in quotes(found) if quote.startswith("Ilse Maron bought")]) == 1


def test_a_cut_off_sentence_gives_way_to_the_whole_one() -> None:
    whole = "In that year Ilse Maron bought the lighthouse because her brother had drowned."
    texts = ("Ilse Maron bought the lighthouse because her brother had drowned.", f"It rained a lot. {whole}")
    found = answer(texts, position=3)
    assert quotes(found)[0] == (whole, 2)
    assert found.count("drowned") == 1


def test_the_edge_of_a_chunk_is_not_quoted_where_there_are_whole_sentences() -> None:
    found = answer(
        ("lse Maron had to buy the lighthouse. Ilse Maron had the lighthouse. Ilse Maron had to",), position=3
    )
    assert [quote for quote, _ in quotes(found)] == ["Ilse Maron had the lighthouse."]


def test_a_sentence_with_a_marker_of_its_own_is_passed_over() -> None:
    found = answer(("Ilse Maron bought the lighthouse for love. [2] It was said that Ilse Maron bought it late.",))
    assert quotes(found) == [("Ilse Maron bought the lighthouse for love.", 1)]


def test_an_answer_stays_short() -> None:
    texts = [f"Ilse Maron bought lighthouse {n} because of cause {n * 7919}." for n in range(50)]
    assert len(quotes(answer(texts))) <= 5


@pytest.mark.parametrize("text", ["no stop here", "x" * 10**6, "Maron\0bought\0it", "为什么。", "Ilse " * 10**5])
def test_whatever_words_there_are_can_be_quoted(text: str) -> None:
    found = answer((text,))
    assert found.endswith("[1]")
    assert found.removesuffix(" [1]") in collapse(text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("鲁迅在哪里任教？", "天气很好，大家都出去了。鲁迅在北京大学任教，学生很多。"),
        ("أين يعيش أحمد؟", "الطقس جميل اليوم في البلاد. يعيش أحمد في القاهرة مع أمه."),
        ("Где живёт Анна?", "Погода была хорошая весь день. Анна живёт в старой Москве."),
        (
            'title:("a b"~2) AND Maron && {lighthouse} [*..3] // DROP',
            "It rained all day long. Maron had the lighthouse.",
        ),
    ],
)
def test_questions_in_any_script_or_syntax_find_their_sentence(question: str, text: str) -> None:
    first, _ = quotes(answer((text,), question=question))[0]
    assert first == collapse(text[len(text.split("。")[0]) + 1 :] if "。" in text else text.split(". ")[1])


def test_no_words_to_quote_give_an_empty_answer() -> None:
    assert answer(()) == ""
    assert answer(("-----",)) == ""


def test_a_task_of_an_unknown_type_is_refused() -> None:
    @dataclass(frozen=True)
    class Sing:
        name: str = "sing"
        reply_type: type[Extraction] = Extraction

    with pytest.raises(ModelError, match="'sing'"):
        ExtractiveModel(DeterministicEmbedder()).reply(Sing())

"""Tests of what counts as found evidence, and of attempts to fool it."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.evaluation.asking import Prompts
from hgmem.evaluation.formats import Evidence
from hgmem.evaluation.quotes import CorpusChunks, joined, plain, plain_prompt, restated, stands
from hgmem.evaluation.recall import FIGURES, Figure, Sought, Statement, View, curves, measure
from hgmem.retrieval import rendering
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.rendering import PromptMemory
from hgmem.text.identity import uid
from hgmem.values.graph_elements import Chunk

QUOTE = "the harbour master sold the lighthouse lamp to a stranger from Holm"
OTHERS = "Rain fell all week. The ferry stayed in port, and nobody came to the market in the square."


def chunk(text: str, position: int = 0, document: str = "d") -> Chunk:
    return Chunk(
        uid=f"{document}{position}",
        document=uid("c", "document", document),
        position=position,
        text=text,
        tokens=len(text.split()),
    )


def corpus(*chunks: Chunk) -> CorpusChunks:
    return CorpusChunks(corpus="c", chunks=chunks)


def evidence(text: str = QUOTE, document: str = "d") -> Evidence:
    return Evidence(document=document, text=text)


def prompt(*chunks: Chunk, question: str = "Who sold it?") -> str:
    watcher = Prompts()
    watcher.call(AnswerQuestion(question=question, memory=PromptMemory(), passages=chunks), lambda: None)
    return watcher.found[0][1]


def found(
    chunks: CorpusChunks,
    text: str,
    *,
    quote: str = QUOTE,
    asked: Sequence[str] = ("Who sold it?",),
    statements: Sequence[Statement] = (),
    read: Sequence[str] = (),
) -> dict[Figure, dict[str, Any]]:
    one = evidence(quote)
    view = View(prompt=text, asked=asked, statements=statements)
    sought = [Sought(evidence=one, places=chunks.places(one))]
    return measure(sought, views=[view], answer=view, corpus=chunks, retrieved=read)


def shares(result: dict[Figure, dict[str, Any]]) -> list[float | None]:
    return [result[figure]["share"] for figure in FIGURES]


def test_a_quote_in_a_shown_chunk_counts_in_the_prompts() -> None:
    one = chunk(f"In May, {QUOTE}. He left.")
    assert shares(found(corpus(one), prompt(one), read=[one.uid])) == [1, 1, 1, 1]


def test_a_quote_that_no_prompt_shows_counts_only_as_retrieved() -> None:
    one, other = chunk(QUOTE), chunk(OTHERS, 1)
    assert shares(found(corpus(one, other), prompt(other), read=[one.uid, other.uid])) == [0, 0, 1, 0]


def test_changed_whitespace_case_and_the_markup_of_rendering_do_not_matter() -> None:
    one = chunk("In [1] May\n\nthe <text>Harbour   Master sold\tthe lamp [2].")
    assert "‹1›" in prompt(one)
    quote = "[1] may the <text>harbour master sold the lamp [2]"
    assert shares(found(corpus(one), prompt(one), quote=quote))[:2] == [1, 1]


def test_words_of_a_quote_do_not_count_inside_longer_words() -> None:
    assert not stands("art of war", "part of warfare")
    assert stands("art of war", "the art of war.")
    assert stands("天地", "玄天地黄")


def test_words_scattered_over_unrelated_chunks_do_not_count() -> None:
    scattered = [chunk(f"A note of the {word} and of much else.", at, "x") for at, word in enumerate(QUOTE.split())]
    one = chunk(QUOTE)
    chunks = corpus(one, *scattered)
    assert shares(found(chunks, prompt(*scattered), read=[each.uid for each in scattered])) == [0, 0, 0, 0]


def test_a_quote_split_over_neighbouring_chunks_counts_when_both_are_shown() -> None:
    first = chunk(f"{OTHERS} It was in May that the harbour master sold the lighthouse")
    second = chunk(f"lighthouse lamp to a stranger from Holm. {OTHERS}", 1)
    chunks = corpus(first, second)
    assert shares(found(chunks, prompt(first, second), read=["d0", "d1"])) == [1, 1, 1, 1]
    assert shares(found(chunks, prompt(second), read=["d1"])) == [0, 0, 0, 0]


def test_a_quote_split_over_chunks_that_are_no_neighbours_does_not_count() -> None:
    first = chunk(f"{OTHERS} It was in May that the harbour master sold the lighthouse")
    second = chunk(f"lighthouse lamp to a stranger from Holm. {OTHERS}", 2)
    between = chunk(OTHERS, 1)
    assert shares(found(corpus(first, between, second), prompt(first, second), read=["d0", "d2"])) == [0, 0, 0, 0]


def test_a_long_quote_may_run_through_several_chunks() -> None:
    parts = ["Once there was", "a quote that went", "on and on", "until it ended."]
    assert len(joined("there was a quote that went on and on until", parts)) == 4
    assert joined("there was a quote that went on and off until", parts) == ()


def test_evidence_in_the_questions_own_text_does_not_count() -> None:
    question = f"Why is it that {QUOTE}?"
    other = chunk(OTHERS, 1)
    chunks = corpus(chunk(QUOTE), other)
    assert shares(found(chunks, prompt(other, question=question), asked=[question])) == [0, 0, 0, 0]


def test_evidence_in_a_shown_chunk_counts_even_if_the_question_repeats_it() -> None:
    question = f"Why is it that {QUOTE}?"
    one = chunk(f"It is told: {question} Nobody knows.")
    assert shares(found(corpus(one), prompt(one, question=question), asked=[question]))[:2] == [1, 1]


def test_a_statement_that_rests_on_the_evidence_counts_with_most_of_its_content_words() -> None:
    one = chunk(QUOTE)
    said = "A stranger from Holm was sold the lamp of the lighthouse by the harbour master."
    point = Statement(text=said, chunks=frozenset({one.uid}))
    assert shares(found(corpus(one), f"<memory>\n- {said}\n</memory>", statements=[point])) == [1, 1, 0, 1]
    elsewhere = Statement(text=said, chunks=frozenset({"x9"}))
    assert shares(found(corpus(one), f"<memory>\n- {said}\n</memory>", statements=[elsewhere])) == [0, 0, 0, 0]


def test_a_statement_that_no_prompt_shows_does_not_count() -> None:
    one = chunk(QUOTE)
    point = Statement(text=f"So {QUOTE}.", chunks=frozenset({one.uid}))
    assert shares(found(corpus(one), "<memory>\n(empty)\n</memory>", statements=[point])) == [0, 0, 0, 0]


def test_a_summary_over_everything_rests_on_all_and_shows_nothing() -> None:
    one = chunk(QUOTE)
    summary = "The documents tell of a small port, its trade and the people who lived from it."
    point = Statement(text=summary, chunks=frozenset({one.uid}))
    assert shares(found(corpus(one), summary, statements=[point])) == [0, 0, 0, 1]


def test_a_long_summary_with_all_words_far_apart_shows_nothing() -> None:
    one = chunk(QUOTE)
    summary = " ".join(f"{word} {OTHERS}" for word in QUOTE.split())
    point = Statement(text=summary, chunks=frozenset({one.uid}))
    assert shares(found(corpus(one), summary, statements=[point])) == [0, 0, 0, 1]


def test_all_evidence_is_found_only_with_every_piece() -> None:
    one, other = chunk(QUOTE), chunk(OTHERS, 1)
    chunks, view = corpus(one, other), View(prompt=prompt(one))
    sought = [
        Sought(evidence=each, places=chunks.places(each)) for each in (evidence(), evidence("Rain fell all week"))
    ]
    result = measure(sought, views=[view], answer=view, corpus=chunks, retrieved=[])
    assert (result["answer_prompt"]["share"], result["answer_prompt"]["all"]) == (0.5, False)


def test_a_question_without_evidence_or_without_an_answer_prompt_has_plain_figures() -> None:
    one = chunk(QUOTE)
    chunks = corpus(one)
    none = measure([], views=[], answer=None, corpus=chunks, retrieved=[])
    assert shares(none) == [None] * 4
    sought = [Sought(evidence=evidence(), places=chunks.places(evidence()))]
    unanswered = measure(sought, views=[View(prompt=prompt(one))], answer=None, corpus=chunks, retrieved=[])
    assert shares(unanswered) == [0, 1, 0, 0]


def test_a_quote_of_an_unknown_document_is_sought_in_all() -> None:
    one = chunk(QUOTE)
    (place,) = corpus(one).places(evidence(document="another id"))
    assert (place.chunks, place.own) == (("d0",), True)
    assert corpus(one).places(evidence("nowhere to be found")) == ()


def test_curves_count_equal_characters_and_chunks() -> None:
    ranked = [*(chunk("word " * 800, at, "x") for at in range(4)), chunk(QUOTE), chunk("end", 1)]
    chunks = corpus(*ranked)
    found = curves([Sought(evidence=evidence(), places=chunks.places(evidence()))], ranked)
    assert found is not None
    assert found["characters"] == {"5000": 0, "10000": 0, "20000": 1, "40000": 1}
    assert found["chunks"] == {"5": 1, "10": 1, "20": 1, "40": 1}
    assert curves([], ranked) is None


def test_prompts_are_recorded_as_they_are_sent() -> None:
    one = chunk("See [3].")
    text = prompt(one)
    assert rendering.passages([one], start=1) in text
    assert text.startswith("You answer a question")


@given(st.text(max_size=80))
def test_plain_text_stays_plain(text: str) -> None:
    assert plain(plain(text)) == plain(text)


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_too_few_content_words_do_not_restate_a_quote(share: float) -> None:
    words = ["harbour", "master", "sold", "lighthouse", "lamp", "stranger", "holm"]
    assert not restated(QUOTE, " ".join(words[: int(share * len(words))]))


def test_a_quote_that_runs_on_into_a_passage_without_the_words_before_is_shown() -> None:
    text = "The mill stood by the river until spring. The miller sold it to Bo. Bo painted it green."
    chunks = [
        Chunk(uid=f"c{at}", document="d", position=at, text=text[start:end], tokens=9, start=start, end=end)
        for at, (start, end) in enumerate(((0, 67), (42, 88)))
    ]
    quote = plain("The miller sold it to Bo. Bo painted it green.")
    assert stands(quote, plain_prompt(rendering.passages(chunks)))
    assert not stands(quote, plain_prompt(rendering.passages(chunks[:1])))

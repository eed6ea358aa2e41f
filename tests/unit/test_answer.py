import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.retrieval.answer import cite
from hgmem.values.graph_elements import Chunk

TEXTS = (
    "Anna sold the mill. The miller left in May.",
    "Bo bought a boat. It was green and old.",
    "磨坊在河边。安娜卖掉了磨坊。",
)


def chunk(at, text, *, start=100):
    return Chunk(
        uid=f"c{at}",
        document="d",
        position=at,
        text=text,
        tokens=9,
        start=start,
        end=None if start is None else start + len(text),
        title="Letters",
        source_id=f"s{at}",
    )


CHUNKS = tuple(chunk(at, text) for at, text in enumerate(TEXTS))


def markers(text):
    return [int(found) for found in re.findall(r"\[(\d+)\]", text)]


def test_markers_are_renumbered_in_order_of_first_use():
    cited = cite("Bo has a boat [2]. Anna sold the mill [1]. A boat Bo has [2].", CHUNKS)

    assert cited.text == "Bo has a boat [1]. Anna sold the mill [2]. A boat Bo has [1]."
    assert [(citation.marker, citation.chunk) for citation in cited.citations] == [(1, "c1"), (2, "c0")]
    assert cited.notes == ()


def test_two_claims_on_different_sentences_of_one_chunk_get_a_marker_each():
    one = chunk(0, "Anna sold the mill in May. Bo bought the green boat in June.")
    cited = cite("Anna sold the mill [1]. Bo bought a green boat [1].", [one])

    assert cited.text == "Anna sold the mill [1]. Bo bought a green boat [2]."
    assert [citation.quote for citation in cited.citations] == [
        "Anna sold the mill in May.",
        "Bo bought the green boat in June.",
    ]


@pytest.mark.parametrize(
    ("answer", "markers_"),
    [
        ("Anna sold the mill in May, as all of the harbour know: [1] `Bo` bought a boat. [1]", [1, 2]),
        ("Anna sold the mill in May, as all of the harbour know. [1] bo bought a boat. [1]", [1, 2]),
        ("Anna sold the mill in May.[1][1] Bo bought the boat.[1]", [1, 1, 2]),
        ("Anna sold the mill [1] in May, all the harbour knows [1].", [1, 1]),  # one claim goes on
    ],
)
def test_a_marker_cites_what_its_own_claim_says_and_not_what_an_earlier_marker_ended(answer, markers_):
    one = chunk(
        0, "Anna sold the mill in May, as all the people of the harbour know. Bo bought the green boat in June."
    )
    cited = cite(answer, [one])

    assert markers(cited.text) == markers_
    assert [citation.quote[:4].strip() for citation in cited.citations] == ["Anna", "Bo b"][: len(cited.citations)]


@pytest.mark.parametrize("number", ["0", "4", "00", "999", "999999999999", "9" * 5000])
def test_a_marker_that_names_no_evidence_is_removed_and_noted(number):
    cited = cite(f"Anna sold the mill [{number}].", CHUNKS)

    assert cited.text == "Anna sold the mill."
    assert cited.citations == ()
    assert cited.notes == (f"marker [{number}] was removed: no evidence has that number",)


def test_known_markers_stay_where_unknown_ones_beside_them_are_removed():
    cited = cite("Anna sold the mill [9][1][0]. Bo [7] bought a boat [2][8].", CHUNKS)

    assert markers(cited.text) == [1, 2]
    assert cited.text.endswith("a boat [2].")
    assert len(cited.notes) == 4


@pytest.mark.parametrize("text", ["see[1]this", "[1]", "x[1]y[1]z", "([1])", "[[1]]"])
def test_a_marker_is_a_marker_wherever_it_stands(text):
    cited = cite(text, CHUNKS)

    assert cited.text == text
    assert [citation.chunk for citation in cited.citations] == ["c0"]


@pytest.mark.parametrize("text", ["[[9]1]", "[1[9]]", "[[9][9]2]", "[1[9][0]]", "[2[0]3]"])
def test_removing_a_marker_makes_no_other_one_of_what_stood_around_it(text):
    cited = cite(text, CHUNKS)

    assert markers(cited.text) == []
    assert cited.citations == ()


@pytest.mark.parametrize("text", ["[a]", "[-1]", "[1.5]", "[]", "[ 1 ]", "1]", "[1", "(1)"])
def test_brackets_that_hold_no_number_are_left_alone(text):
    cited = cite(text, CHUNKS)

    assert cited.text == text
    assert cited.citations == ()


def test_a_quote_is_the_sentence_of_the_chunk_that_says_most_of_what_the_answer_says():
    cited = cite("The miller went away in May [1]. Green it was [2].", CHUNKS)

    assert [citation.quote for citation in cited.citations] == ["The miller left in May.", "It was green and old."]


def test_the_claim_of_a_marker_ends_at_the_marker_and_begins_at_its_sentence():
    cited = cite("The boat is green. The mill was sold [1].", CHUNKS)

    assert cited.citations[0].quote == "Anna sold the mill."


def test_a_quote_lies_in_the_document_where_its_offsets_say():
    (citation,) = cite("The miller left [1].", CHUNKS).citations
    document = "·" * 100 + TEXTS[0]

    assert document[citation.start : citation.end] == citation.quote
    assert (citation.document, citation.title, citation.source_id) == ("d", "Letters", "s0")


def test_a_chunk_without_offsets_gives_a_quote_without_offsets():
    (citation,) = cite("The miller left [1].", [chunk(0, TEXTS[0], start=None)]).citations

    assert (citation.start, citation.end) == (None, None)
    assert citation.quote == "The miller left in May."


def test_chinese_is_quoted_by_its_sentences():
    (citation,) = cite("安娜卖掉了磨坊[3]。", CHUNKS).citations

    assert citation.quote == "安娜卖掉了磨坊。"
    assert citation.start == 106


def test_a_claim_that_shares_no_word_with_its_chunk_quotes_all_of_it():
    (citation,) = cite("nothing alike [2]", CHUNKS).citations

    assert citation.quote == TEXTS[1]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_an_empty_answer_is_empty_and_cites_nothing(text):
    cited = cite(text, CHUNKS)

    assert (cited.text, cited.citations, cited.notes) == ("", (), ())


def test_where_there_is_no_evidence_every_marker_is_removed():
    cited = cite("Anna [1] and Bo [2].", ())

    assert markers(cited.text) == []
    assert len(cited.notes) == 2


pieces = st.one_of(
    st.integers(0, 12).map(lambda number: f"[{number}]"),
    st.sampled_from(
        ["[", "]", "1", "[1", "2]", "[99", " ", ".", "Anna sold the mill", "。", "\n", "٣", "[٢]", "[000000000001]"]
    ),
    st.text(max_size=4),
)


@given(st.lists(pieces, max_size=25).map("".join), st.integers(0, 3))
def test_every_marker_has_its_citation_and_every_citation_its_marker(text, count):
    cited = cite(text, CHUNKS[:count])
    used = list(dict.fromkeys(markers(cited.text)))

    assert used == [citation.marker for citation in cited.citations] == list(range(1, len(used) + 1))
    assert len({(citation.chunk, citation.start, citation.end) for citation in cited.citations}) == len(cited.citations)
    for citation in cited.citations:
        source = CHUNKS[int(citation.chunk[1:])]
        assert citation.quote
        assert source.text[citation.start - 100 : citation.end - 100] == citation.quote

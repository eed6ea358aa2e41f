"""Prompts: what is numbered, titles, and the words of overlapping chunks once."""

from dataclasses import replace

import pytest

from hgmem.retrieval.answer import cite
from hgmem.retrieval.rendering import (
    PromptMemory,
    evidence,
    heading,
    overlap,
    passages,
    remembered,
    tokens_of,
    traced,
    trimmed,
    unsaid,
)
from hgmem.values.evidence import BuiltPassage, Evidence, Hit, Retrieved, Source, Subquery
from hgmem.values.graph_elements import Chunk, Entity, Relation
from hgmem.values.records import MemoryPoint

TEXT = "The mill stood by the river until spring. The miller sold it to Bo. Bo painted it green."
TOPIC = BuiltPassage(
    uid="t1", kind="Topic", title="Mills", text="The mill was sold. It is green now.", chunks=("c1", "c0")
)


def chunk(position: int, start: int, end: int, *, known: bool = True, document: str = "d") -> Chunk:
    return Chunk(
        uid=f"c{position}",
        document=document,
        position=position,
        text=TEXT[start:end],
        tokens=9,
        start=start if known else None,
        end=end if known else None,
        title="Letters",
    )


def test_words_that_neighbouring_chunks_share_are_shown_once() -> None:
    shown = passages([chunk(0, 0, 67), chunk(1, 42, 88)], start=1)
    assert shown == f"[1] Letters\n{TEXT[:67]}\n\n[2] Letters, chunk 2\n… {TEXT[68:]}"


def test_the_overlap_of_chunks_without_offsets_is_found_in_their_texts() -> None:
    assert overlap(chunk(0, 0, 67, known=False), chunk(1, 42, 88, known=False)) == 25
    assert overlap(chunk(0, 0, 41, known=False), chunk(1, 42, 88, known=False)) == 0


def test_chunks_of_other_documents_and_places_keep_their_words() -> None:
    between = [chunk(0, 0, 67), chunk(5, 0, 20), chunk(1, 42, 88)]
    for others in ([chunk(0, 0, 67), chunk(2, 42, 88)], [chunk(0, 0, 67, document="other"), chunk(1, 42, 88)], between):
        assert TEXT[42:88] in passages(others)


def test_a_chunk_inside_the_one_before_it_keeps_its_words() -> None:
    assert overlap(chunk(0, 0, 67), chunk(1, 42, 67)) == 0


def test_a_built_row_is_a_passage_with_its_title_and_a_citation_names_it_and_the_chunks_behind_it() -> None:
    assert passages([chunk(0, 0, 41), TOPIC], start=1).endswith("[2] Mills\nThe mill was sold. It is green now.")
    (citation,) = cite("Today it is green [2].", [chunk(0, 0, 41), TOPIC]).citations
    assert (citation.built, citation.chunk, citation.title) == ("t1", "", "Mills")
    assert (citation.quote, citation.behind) == ("It is green now.", ("c1", "c0"))


def test_statements_of_systems_without_points_are_lines_of_memory() -> None:
    assert remembered(PromptMemory(statements=("Bo owns\nthe mill.",)), []) == "- Bo owns the mill."


ADA, BO = Entity(uid="e1", name="Ada", description="Says [7] things."), Entity(uid="e2", name="Bo")
TIE = Relation(uid="r1", source="e1", target="e2", source_name="Ada", target_name="Bo", description="Both row.")
FAR = Source(uid="c9", document="d", position=9, title="Letters")


def found(**behind: tuple[str, ...]) -> Evidence:
    near = Source(uid="c0", document="d", position=0, title="Letters")
    shown = (chunk(0, 0, 41), chunk(1, 42, 67))
    return Evidence(entities=(ADA, BO), relations=(TIE,), chunks=shown, sources=(near, FAR), behind=behind)


def test_lines_end_with_the_numbers_of_the_chunks_behind_them() -> None:
    text = evidence(traced(found(e1=("c1", "c0"), r1=("c0",))))
    assert "- Ada: Says ‹7› things. [0][1]\n- Bo\n" in text
    assert "- Ada — Bo: Both row. [0]\n" in text
    assert "Chunks not shown" not in text


def test_a_line_without_a_chunk_on_show_names_its_nearest_one_as_a_source() -> None:
    traced_to = traced(found(e1=("c9", "c8"), r1=("c9", "c1"), gone=("c7",)))
    assert traced_to.numbered == (*traced_to.chunks, FAR)
    text = evidence(traced_to)
    assert "- Ada: Says ‹7› things. [2]\n" in text
    assert "- Ada — Bo: Both row. [1]\n" in text
    assert text.endswith("\n\nChunks not shown\n[2] Letters, chunk 10")


def test_points_in_an_answers_prompt_name_the_passages_that_they_rest_on() -> None:
    points = (
        MemoryPoint(uid="p", description="They say [5].", entities=(ADA, BO), chunks=("c1", "c0", "c9")),
        MemoryPoint(uid="q", description="Bo rows.", entities=(BO,)),
    )
    text = remembered(PromptMemory(points=points, more=2), [chunk(0, 0, 41), chunk(1, 42, 67)])
    assert text == "- They say ‹5›. [1][2]\n- Bo rows.\n(and 2 more points that are not shown)"


def test_a_source_of_a_document_that_was_named_refers_to_it() -> None:
    title = "A ledger of the works, kept by the treasurer. 1861"
    shown = replace(chunk(0, 0, 41), title=title)
    sources = tuple(Source(uid=f"s{at}", document=name, position=at, title=title) for at, name in enumerate("dee"))
    behind = {"e1": ("s0",), "e2": ("s1",), "r1": ("s2",)}
    text = evidence(Evidence(entities=(ADA, BO), relations=(TIE,), chunks=(shown,), sources=sources, behind=behind))
    ending = f"[1] (same document as [0]), chunk 1\n[2] {title}, chunk 2\n[3] (same document as [2]), chunk 3"
    assert text.endswith(f"Chunks not shown\n{ending}")


def test_a_title_is_not_said_twice() -> None:
    own = replace(
        chunk(0, 0, 9, document="o"),
        uid="o",
        text="A ledger of the works. 1861\nFive pounds.",
        title="A ledger of the works. 1861",
    )
    following = replace(own, uid="o1", position=4, text="Ten pounds.")
    after = replace(own, uid="o2", position=9, text="Twenty.")
    text = passages([chunk(0, 0, 41), own, following, after], start=3)
    assert text.splitlines()[0] == "[3] Letters"
    assert (
        "\n\n[4]\nA ledger of the works. 1861\nFive pounds.\n\n[5] (same document as [4]), chunk 5\nTen pounds.\n"
        in text
    )
    assert text.endswith("[6] (same document as [4]), chunk 10\nTwenty.")


def test_a_passage_says_what_it_is_and_from_when_unless_its_title_does() -> None:
    told = replace(chunk(0, 0, 41), title="To the board", date="1874-03-12", type="letter", position=2)
    assert passages([told]).splitlines()[0] == "[0] To the board, 1874-03-12, letter, chunk 3"
    assert heading(told) == "To the board, 1874-03-12, letter, chunk 3"
    telling = replace(told, title="Letter to the board, 12 March 1874", position=0)
    assert passages([telling]).splitlines()[0] == "[0] Letter to the board, 12 March 1874"
    assert heading(told, place=False) == "To the board, 1874-03-12, letter"
    assert heading(told, text="To the board: we sold it.") == "1874-03-12, letter, chunk 3"
    source = Source(uid="s", document="x", position=0, title="Log", date="1874-05", type="diary")
    assert evidence(Evidence(sources=(source,))).endswith("[0] Log, 1874-05, diary, chunk 1")


@pytest.mark.parametrize(
    ("title", "date", "told"),
    [
        ("To the board", "", False),
        ("To the board", "1874-03-12", True),
        ("To the board, 12 March 1874", "1874-03-12", False),
        ("To the board, 1874-03-12", "1874-03-12", False),
        ("Letter of 02.03.1874", "1874-03-02", False),
        ("To the board, March 1874", "1874-03-12", True),  # no day
        ("To the board, 112 March 1874", "1874-03-12", True),
        ("To the board, 12 March", "1874-03-12", True),  # no year
        ("Log of 1874", "1874-05", True),
        ("Log of May 1874", "1874-05", True),  # not literally
        ("Log of 1874-05", "1874-05", False),
    ],
)
def test_a_date_follows_a_title_that_does_not_tell_it(title: str, date: str, told: bool) -> None:
    shown = heading(replace(chunk(0, 0, 9), title=title, date=date))
    assert shown == (f"{title}, {date}" if told else title)


def test_the_heading_of_a_built_row_says_which_document_it_is_of() -> None:
    of = f"To the board of the {'northern ' * 20}works, 1874-03-12, letter"
    fact = BuiltPassage(uid="f", kind="Fact", text="Bo rows.", origin=of, document="d")
    other = replace(fact, uid="g", text="Ada rows.")
    episode = replace(fact, uid="h", kind="Episode", title="Rowing", text="They row.", document="e")
    lines = passages([fact, other, episode], start=1).splitlines()
    assert lines[::3] == [f"[1] Fact, from {of}", "[2] Fact, from (same document as [1])", f"[3] Rowing, from {of}"]


# What a prompt shows of evidence ---------------------------------------------------------------------------------


def test_chunks_that_were_read_give_way_to_others() -> None:
    hits = tuple(Hit(uid=f"c{at}", rank=at + 1) for at in range(2))
    whole = replace(found(), retrieved=(Retrieved(subquery=Subquery(text="Who rows?"), chunks=hits),))
    few = tokens_of(whole.chunks[0])
    assert [one.uid for one in trimmed(whole, tokens=few).chunks] == ["c0"]
    assert [one.uid for one in trimmed(whole, tokens=few, read_uids={"c0"}).chunks] == ["c1"]
    assert [one.uid for one in trimmed(whole, tokens=100, read_uids={"c0"}).chunks] == ["c0", "c1"]


def test_what_chunks_on_show_say_themselves_is_left_out() -> None:
    stated = replace(found(e1=("c1",), e2=("c9",), r1=("c0",)), relations=(replace(TIE, chunks=("c0",)),))
    left = unsaid(stated)
    assert [one.description for one in left.entities] == ["", BO.description]
    assert left.relations == ()
    elsewhere = replace(found(e1=("c9", "c0"), r1=("c0",)), relations=(replace(TIE, chunks=("c0", "c8")),))
    assert unsaid(elsewhere) == elsewhere  # the chunk nearest to the sub-queries is not on show

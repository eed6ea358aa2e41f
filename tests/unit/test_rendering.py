"""Prompts: what is numbered, titles, and the words of overlapping chunks once."""

from dataclasses import replace

import pytest

from hgmem.retrieval.answer import cite
from hgmem.retrieval.rendering import (
    PromptMemory,
    evidence,
    heading,
    memory,
    overlap,
    passages,
    remembered,
    tokens_of,
    trimmed,
    unsaid,
)
from hgmem.values.evidence import BuiltPassage, Evidence, Hit, Retrieved, Subquery
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


def found(**nearest: tuple[str, ...]) -> Evidence:
    shown = (chunk(0, 0, 41), chunk(1, 42, 67))
    return Evidence(entities=(ADA, BO), relations=(TIE,), chunks=shown, nearest=nearest)


def test_numbers_stay_for_a_whole_question() -> None:
    earlier = (replace(chunk(4, 0, 9), uid="x"), replace(chunk(7, 0, 9), uid="y"))
    again = (Retrieved(subquery=Subquery(text="Who rows?"), chunks=(Hit(uid="y", rank=1), Hit(uid="c0", rank=2))),)
    later = replace(found(), shown=earlier, retrieved=again)
    assert [one.uid for one in later.numbered] == ["x", "y", "c0", "c1"]
    text = evidence(later)
    assert "\n\nChunks\n[2] Letters\nThe mill" in text
    assert text.endswith("\n\nFound again, shown in an earlier round\n[1] Letters, chunk 8")
    long = tuple(replace(one, title="The letters of Ada and Bo, 1871 to 1874") for one in earlier)
    both = (Retrieved(subquery=Subquery(text="Who?"), chunks=(Hit(uid="x", rank=1), Hit(uid="y", rank=2))),)
    text = evidence(replace(later, shown=long, retrieved=both))
    assert text.endswith("[0] The letters of Ada and Bo, 1871 to 1874, chunk 5\n[1] (same document as [0]), chunk 8")
    assert "[" not in evidence(later, numbered=False)
    point = MemoryPoint(uid="p", description="Ada rows.", entities=(ADA, BO), chunks=("y", "c1", "gone"))
    assert memory(PromptMemory(points=(point,)), later.numbered) == "(0) Ada rows. — Ada; Bo [1][3]"


def test_points_in_an_answers_prompt_name_the_passages_that_they_rest_on() -> None:
    points = (
        MemoryPoint(uid="p", description="They say [5].", entities=(ADA, BO), chunks=("c1", "c0", "c9")),
        MemoryPoint(uid="q", description="Bo rows.", entities=(BO,)),
    )
    text = remembered(PromptMemory(points=points, more=2), [chunk(0, 0, 41), chunk(1, 42, 67)])
    assert text == "- They say ‹5›. [1][2]\n- Bo rows.\n(and 2 more points that are not shown)"


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
    long = replace(told, title=f"To the board of the {'northern ' * 20}works, 12 March 1874")
    assert heading(long).endswith(" …, 1874-03-12, letter, chunk 3")  # the title is cut off before its date


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


def test_the_first_chunks_of_an_order_that_fit_are_shown_where_they_stand() -> None:
    few = tokens_of(found().chunks[0])
    assert [one.uid for one in trimmed(found(), ["c1", "c0"], tokens=few).chunks] == ["c1"]
    assert [one.uid for one in trimmed(found(), ["gone", "c1", "c0"], tokens=100).chunks] == ["c0", "c1"]


def test_what_chunks_on_show_say_themselves_is_left_out() -> None:
    stated = replace(found(e1=("c9", "c1"), e2=("c9",)), relations=(replace(TIE, chunks=("c0",)),))
    assert (unsaid(stated, ()).entities, unsaid(stated, ()).relations) == ((BO,), ())
    elsewhere = replace(found(e1=("c9",)), relations=(replace(TIE, chunks=("c0", "c8")),))
    assert unsaid(elsewhere, ()) == elsewhere  # no chunk that is nearest to a sub-query is on show
    before = [Chunk(uid=uid, document="d", position=at, text="Told.", tokens=2) for at, uid in enumerate(("c8", "c9"))]
    assert (unsaid(stated, before).entities, unsaid(elsewhere, before).relations) == ((), ())

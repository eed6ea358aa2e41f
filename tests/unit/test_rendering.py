"""Passages in prompts: numbers, titles, and the words of overlapping chunks once."""

from hgmem.retrieval.citations import cite
from hgmem.retrieval.rendering import Shown, memory, overlap, passages
from hgmem.values.evidence import BuiltPassage
from hgmem.values.graph_elements import Chunk

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
    assert shown == f"[1] Letters\n{TEXT[:67]}\n\n[2] Letters\n… {TEXT[68:]}"


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
    assert memory(Shown(statements=("Bo owns\nthe mill.",)), numbered=False) == "- Bo owns the mill."

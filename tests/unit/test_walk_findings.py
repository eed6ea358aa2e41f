"""What a reply of a walk found: which sentences are kept, whole."""

from hgmem.systems.remindrag.findings import KEPT, Seen
from hgmem.systems.remindrag.tasks import ChooseMove
from hgmem.systems.remindrag.walk_record import Walk
from hgmem.values.graph_elements import Chunk


def kept(found: str) -> list[str]:
    """Return the findings that a walk keeps of a reply."""
    walk = Walk(question="Who threw the clod?")
    walk.fresh = [Seen(text="Dorcas said that the clod was hers.", title="Diary", chunks=("c",))]
    walk.take_in(found)
    assert all(finding.chunks == ("c",) for finding in walk.findings)
    return [finding.text for finding in walk.findings]


def test_a_quotation_of_several_sentences_is_one_finding() -> None:
    assert kept('Dorcas said: "We threw something. I think mine was a clod" [1]. Garth knew it [1].') == [
        'Dorcas said: "We threw something. I think mine was a clod".',
        "Garth knew it.",
    ]


def test_without_markers_each_sentence_is_one() -> None:
    assert kept("Dorcas threw it. Garth knew it.") == ["Dorcas threw it.", "Garth knew it."]


def test_long_sentences_of_many_facts_are_all_kept() -> None:
    sentence = "Dorcas threw it" + ", and Garth saw it" * 45
    found = kept(f"{sentence} [1]. {sentence} [1]. {sentence} [1].")
    assert found == [f"{sentence}."] * 3
    assert sum(map(len, found)) < KEPT


def test_what_is_too_long_is_cut_and_what_still_fits_is_kept() -> None:
    long = "Dorcas threw it" + ", and Garth saw it" * 130
    found = kept(f"{long} [1]. {long} [1]. It was hers [1].")
    assert found[0] == f"{long}."
    assert found[1].endswith(" …")
    assert sum(map(len, found)) <= KEPT
    assert kept(f"{long}. {long} [1].")[0].startswith(f"{long}. Dorcas")  # one quotation, cut and not dropped


def read_chunk(position: int, text: str, start: int) -> Chunk:
    place = {"position": position, "start": start, "end": start + len(text)}
    return Chunk(uid=f"c{position}", document="d", title="Minutes of the vestry", text=text, tokens=9, **place)


def test_a_finding_rests_on_each_chunk_of_its_text_that_says_a_part_of_it() -> None:
    vote = "The Rector asked who was against, and twelve hands went up for the motion. "
    first = read_chunk(4, f"The vestry met on a Monday. {vote}", 0)
    second = read_chunk(5, f"{vote}Old Margery sat at the window and counted no tankard on the shelf.", 28)
    walk = Walk(question="Who voted?")
    walk.quoted["anchor"] = (first, second)
    walk.fresh = [Seen(text=second.text, title="Minutes", chunks=("c5",))]
    walk.take_in("Twelve hands went up for the motion [1]. Margery counted no tankard on the shelf [1].")
    assert [one.chunks for one in walk.findings] == [("c4",), ("c5",)]  # prompts show in c4 what both have
    walk.fresh = [Seen(text=f"{first.text}{second.text}", title="Minutes", chunks=("c4", "c5"))]
    walk.take_in("Twelve hands went up for the motion, and Margery counted no tankard on the shelf [1].")
    assert set(walk.findings[-1].chunks) == {"c4", "c5"}


def test_the_next_prompt_says_which_text_each_finding_is_from_and_the_limit_counts_that() -> None:
    walk = Walk(question="Who voted?")
    walk.quoted["anchor"] = (read_chunk(0, "Twelve hands went up.", 0), read_chunk(7, "Margery counted.", 90))
    walk.fresh = [Seen(text=chunk.text, chunks=(uid,)) for uid, chunk in walk.read_chunks.items()]
    walk.take_in("Twelve hands went up [1]. Margery counted [2]. Margery counted twelve [1, 2]. Somebody knew.")
    task = ChooseMove(question="", findings=tuple(walk.findings), fresh=(), known=(), options=(), left=0)
    assert task.fields()["found"].splitlines() == [
        "- Twelve hands went up. (Minutes of the vestry)",
        "- Margery counted. (Minutes of the vestry, chunk 8)",
        "- Margery counted twelve. (Minutes of the vestry; Minutes of the vestry, chunk 8)",
        "- Somebody knew.",
    ]
    walk.fresh = walk.known[:]
    walk.take_in("Margery counted [2]. " * 200)
    assert sum(len(finding.text) + len(finding.title) for finding in walk.findings[4:]) < KEPT + 60

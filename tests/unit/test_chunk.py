import base64
import random
import time
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hgmem.errors import DocumentError, UsageError
from hgmem.extraction.chunking import PAPER, ChunkOptions, chunks, split
from hgmem.extraction.sections import sections
from hgmem.text.tokens import count

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SENTENCE = "The harbour master counted seven lamps along the pier before the fog came in. "
PARAGRAPHS = "\n\n".join(f"Paragraph {n}. {SENTENCE * (n % 7 + 1)}" for n in range(400))
AWKWARD = [
    "a",
    "Zoë ",
    "e\u0301",
    "漢字。",
    "👩‍👩‍👧‍👦",
    "🇫🇷",
    "\r\n",
    "\n\n",
    "\n",
    " ",
    "\t",
    "\0",
    "\u2028",
    "\ufeff",
    "‮x",
    ".",
]


def check(text, pieces, *, tokens=200):
    assert all(text[piece.start : piece.end] == piece.text for piece in pieces)
    assert all(piece.text.strip() and piece.tokens == count(piece.text) <= tokens for piece in pieces)
    pairs = list(pairwise(pieces))
    assert all(one.start < two.start and one.end < two.end for one, two in pairs)
    gaps = [text[: pieces[0].start], text[pieces[-1].end :]] if pieces else [text]
    gaps += [text[one.end : two.start] for one, two in pairs]
    assert not "".join(gaps).strip()


@settings(deadline=None)
@given(st.lists(st.sampled_from(AWKWARD) | st.text(max_size=8), max_size=300), st.integers(1, 20), st.data())
def test_offsets_are_exact_and_nothing_but_blanks_is_lost(parts, tokens, data):
    text = "".join(parts)
    overlap = data.draw(st.integers(0, tokens - 1))
    check(text, split(text, ChunkOptions(tokens=tokens, overlap=overlap)), tokens=tokens)


@pytest.mark.parametrize("unit", [*AWKWARD, "\x85", "\u2029", "\n\u2028 ", "  \n", "\n" * 180 + "z"])
def test_long_runs_of_one_thing_are_cut_exactly(unit):
    text = "x" + unit * (30_000 // len(unit)) + "y"
    began = time.process_time()
    check(text, split(text))
    assert time.process_time() - began < 5


def test_a_text_longer_than_the_window_overlaps_everywhere():
    text = SENTENCE * 500
    pieces = split(text, ChunkOptions(tokens=60, overlap=30))
    check(text, pieces, tokens=60)
    shared = [count(text[two.start : one.end]) for one, two in pairwise(pieces)]
    assert len(text) > 10 * 60 * 32
    assert 0 < min(shared) <= max(shared) <= 30


def test_no_overlap_means_that_no_character_is_in_two_pieces():
    pieces = split(PARAGRAPHS, ChunkOptions(tokens=60, overlap=0))
    check(PARAGRAPHS, pieces, tokens=60)
    assert all(one.end <= two.start for one, two in pairwise(pieces))


def test_the_moving_window_cuts_as_one_look_at_the_whole_does():
    from semantic_text_splitter import TextSplitter

    whole = TextSplitter.from_callback(count, 200, 50).chunk_indices(PARAGRAPHS)
    assert len(PARAGRAPHS) > 10 * 200 * 32
    assert [(piece.start, piece.text) for piece in split(PARAGRAPHS, PAPER)] == whole


def test_blanks_longer_than_the_window_are_passed_over():
    text = "start" + " " * 100_000 + "middle" + "\n" * 100_000 + "end"
    pieces = split(text)
    check(text, pieces)
    assert {word for piece in pieces for word in piece.text.split()} == {"start", "middle", "end"}


@pytest.mark.parametrize("text", ["", " ", "\r\n \t", "\u3000\x1c"])
def test_blank_text_has_no_pieces(text):
    assert split(text) == []


@pytest.mark.parametrize(("tokens", "overlap"), [(10, 10), (10, 11), (10, -1), (0, 0), (-5, -6)])
def test_an_overlap_that_does_not_fit_is_refused(tokens, overlap):
    with pytest.raises(UsageError, match="overlap must be at least 0 and less than tokens"):
        ChunkOptions(tokens=tokens, overlap=overlap)


def test_half_a_surrogate_pair_is_refused_with_its_place():
    with pytest.raises(DocumentError, match="character 3"):
        split("abc\ud83d")


@pytest.mark.parametrize("kind", ["one letter", "base64"])
def test_megabytes_without_a_blank_take_bounded_time(kind):
    noise = base64.b64encode(random.Random(7).randbytes(750_000)).decode()
    text = noise if kind == "base64" else "a" * 1_000_000
    began = time.process_time()
    check(text, split(text))
    assert time.process_time() - began < 15


def test_a_chunk_keeps_its_uid_when_others_come_and_go():
    before = chunks(split(PARAGRAPHS), corpus="c", document="d", title="T")
    after = chunks(split(PARAGRAPHS)[5:], corpus="c", document="d", title="T")
    assert {chunk.uid for chunk in after} <= {chunk.uid for chunk in before}
    assert [chunk.position for chunk in after] == list(range(len(after)))
    assert {(chunk.document, chunk.title) for chunk in after} == {("d", "T")}


def test_equal_texts_in_one_document_are_different_chunks():
    text = "Ring the bell twice.\n\n" * 3
    found = chunks(split(text, ChunkOptions(tokens=6, overlap=0)), corpus="c", document="d")
    assert [chunk.text for chunk in found] == ["Ring the bell twice."] * 3
    assert len({chunk.uid for chunk in found}) == 3
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in found)


def test_chunks_of_other_documents_and_corpora_have_other_uids():
    pieces = split("One text.")
    places = [("c", "d"), ("c", "e"), ("b", "d")]
    assert len({chunks(pieces, corpus=c, document=d)[0].uid for c, d in places}) == 3


def test_books_are_cut_exactly_and_quickly():
    books = sorted(DATA.glob("*/*.txt"))
    if not books:
        pytest.skip(f"no books in {DATA}")
    for book in books:
        text = book.read_bytes().decode("utf-8-sig")
        began = time.process_time()
        pieces = split(text)
        assert time.process_time() - began < 3 * max(1, len(text) / 182_000)
        check(text, pieces)


def test_headings_and_long_stretches_begin_chunks_and_no_piece_reaches_over_them():
    text = f"{SENTENCE * 3}\n# One\n{SENTENCE}\n```\n# no heading\n```\n{SENTENCE}\n## Two\n{PARAGRAPHS}"
    found = [text[section.start :].lstrip()[:12] for section in sections(text, tokens=2_000)]
    assert found[:3] == ["The harbour ", "# One\nThe ha", "## Two\nParag"]
    assert len(found) > 10
    assert all(start.startswith("Paragraph") for start in found[3:])
    borders = {section.start for section in sections(text, tokens=2_000)}
    assert not any(piece.start < border < piece.end for piece in split(text) for border in borders)


@given(st.lists(st.sampled_from([*AWKWARD, "# h\n", "```\n", "\n\n\n"]) | st.text(max_size=30), max_size=60))
def test_sections_are_the_whole_text_in_order(parts):
    text = "".join(parts)
    found = list(sections(text, tokens=8))
    assert "".join(text[section.start : section.end] for section in found) == text
    assert all(section.start < section.end for section in found)


def test_a_section_ends_at_the_latest_at_the_first_paragraph_after_its_limit():
    for section in sections(PARAGRAPHS, tokens=2_000):
        *before, _ = PARAGRAPHS[section.start : section.end].rstrip().split("\n\n")
        assert sum(map(count, before)) < 2_000


def test_an_insertion_leaves_the_pieces_of_other_sections_as_they_were():
    paragraphs = PARAGRAPHS.split("\n\n")
    before = {piece.text for piece in split(PARAGRAPHS)}
    for at in range(5, 400, 37):
        text = "\n\n".join([*paragraphs[:at], SENTENCE * 20, *paragraphs[at:]])
        assert len({piece.text for piece in split(text)} - before) < 0.2 * len(before)


def test_a_word_in_the_middle_of_a_book_makes_few_pieces_anew():
    book = DATA / "a_christmas_carol" / "carol.txt"
    if not book.exists():
        pytest.skip(f"no {book}")
    text = book.read_bytes().decode("utf-8-sig")
    before = {piece.text for piece in split(text)}
    middle = text.index(" ", len(text) // 2)
    after = {piece.text for piece in split(f"{text[:middle]} verily{text[middle:]}")}
    assert 1 <= len(after - before) <= 20

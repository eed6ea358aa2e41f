"""What a walk keeps of the texts it came upon: sentences of a reply, each with the chunks that say it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten

from hgmem.models.extractive.key_phrases import stems
from hgmem.retrieval.rendering import heading, overlap
from hgmem.text.segmentation import collapse, sentence_texts
from hgmem.values.graph_elements import Chunk

FINDING = 3_000  # characters of what a reply is asked to say that it found
KEPT = 4_500  # characters that are kept of that, with where each sentence is from
_SOURCE, _SOURCES = 60, 2  # characters of a place that a finding is from, and how many are told
_SEVERAL = 3  # words of a finding that make another chunk of its text one that it rests on
_MARKER = r"\s*\[w?\d{1,9}(?:\s*[,;]\s*w?\d{1,9})*\]"
_MARKERS = re.compile(rf"(?<=[.!?]){_MARKER}(?:\.(?=\s|$))?|{_MARKER}")  # after a stop, with a second one
_FIGURES = re.compile(r"\d+")
_NUMBER = re.compile(r"(?<=[\[,;])\s*(\d{1,9})(?=\s*[\],;])")
_HINTED = re.compile(r"(?<=[\[,;])\s*w(\d{1,9})(?=\s*[\],;])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A text that the walk came upon, with the chunks (uids) that state it.

    It is a passage with its title, a relation's sentence, a node, or a finding that bears on the question, whose title
    is that of the texts that its reply named.
    """

    text: str
    title: str = ""
    chunks: tuple[str, ...] = ()


def found_in(
    reply: str, fresh: Sequence[Seen], *, hints: Sequence[Sequence[str]], read: Mapping[str, Chunk]
) -> Iterator[Seen]:
    """Yield the sentences of a reply without their markers, each with the chunks that say it.

    A marker `[n]` names the n-th new text, from 1, and `[wn]` what is said of the n-th way, from 0, whose chunks are in
    `hints`. Each sentence gets the chunks of each text it names that have its words, else those of all. One without a
    marker belongs to the next that has one, as in a quotation of several sentences. `read` are all chunks that the walk
    read.
    """
    left = KEPT
    for sentence in _with_markers(sentence_texts(reply)):
        text = shorten(collapse(_MARKERS.sub("", sentence)), max(left, 2), placeholder=" …")
        if text in ("", "…"):
            continue
        named = [fresh[at - 1] for at in map(int, _NUMBER.findall(sentence)) if 0 < at <= len(fresh)]
        hinted = [hints[at] for at in map(int, _HINTED.findall(sentence)) if at < len(hints)]
        best = [*(_stating(text, [seen], read) for seen in named), *hinted] or [_stating(text, fresh, read)]
        chunks = tuple(dict.fromkeys(uid for uids in best for uid in uids))
        sources = dict.fromkeys(heading(read[uid]) for uid in chunks if uid in read and (named or hinted))
        title = "; ".join(shorten(one, _SOURCE, placeholder=" …") for one in [*filter(None, sources)][:_SOURCES])
        left -= len(text) + len(title)
        yield Seen(text=text, title=title, chunks=chunks)


def hinted(reply: str) -> dict[int, str]:
    """Return by number of a way, from 0, what a reply found in its hint: the sentences with its marker `[wn]`."""
    told: dict[int, str] = {}
    for sentence in _with_markers(sentence_texts(reply)):
        for at in map(int, _HINTED.findall(sentence)):
            told[at] = f"{told.get(at, '')} {collapse(_MARKERS.sub('', sentence))}".lstrip()
    return told


def _with_markers(sentences: Iterable[str]) -> Iterator[str]:
    """Yield sentences, those without a marker together with the next that has one, or alone if there is none."""
    before: list[str] = []
    for sentence in sentences:
        before.append(sentence)
        if _MARKERS.search(sentence):
            yield " ".join(before)
            before = []
    yield from before


def _stating(text: str, among: Sequence[Seen], read: Mapping[str, Chunk]) -> Sequence[str]:
    """Return the chunk (uid) of these texts that has most of a sentence's words, and each that has several more.

    What two neighbours share counts for the first of them, where prompts show it.
    """
    left, words = _telling(text), dict[str, set[str]]()
    places = {(chunk.document, chunk.position): chunk for chunk in read.values()}
    for seen in among:
        for uid in seen.chunks:
            chunk = read.get(uid)
            before = places.get((chunk.document, chunk.position - 1)) if chunk else None
            shared = overlap(before, chunk) if chunk else 0
            if before and shared:
                words.setdefault(before.uid, _telling(before.text))
            words[uid] = _telling(chunk.text[shared:] if chunk else seen.text)
    chosen: list[str] = []
    while words:
        best = max(words, key=lambda uid: len(left & words[uid]))
        if chosen and len(left & words[best]) < _SEVERAL:
            break
        chosen.append(best)
        left -= words.pop(best)
    return chosen


def _telling(text: str) -> set[str]:
    """Return what tells one text from another: the stems of its words, and its figures."""
    return {*stems(text), *_FIGURES.findall(text)}

"""Clues: texts that search the documents for a question, written by a model that knows what the corpus holds.

The task of MemoRAG (Qian et al., WWW 2025, equation 2) and of HGMem's first look.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.extractive.entity_recognition import aspects
from hgmem.models.extractive.selection import diverse, highest, nearness_to_centre
from hgmem.models.extractive.sentences import Passage, passages, quotable, rank
from hgmem.models.prompts import PromptTask, flag
from hgmem.models.reply import Leniently, Reply, named, with_fields
from hgmem.retrieval import rendering
from hgmem.retrieval.rendering import Text
from hgmem.text.language import counted
from hgmem.text.segmentation import collapse, sentence_texts, words
from hgmem.text.tokens import count
from hgmem.values.evidence import Citable

ClueKind: TypeAlias = Literal["draft", "spans", "queries", "key_points"]
LABELS: dict[ClueKind, str] = {
    "draft": "draft answer",
    "spans": "text span",
    "queries": "surrogate query",
    "key_points": "key point",
}
_MARKER = re.compile(r"^\s*(?:[-*•‣▪–—]+|#{1,6}|\(?(?:\d{1,3}[.)、．:]|[a-zA-Z]\)))\s+|^\s*\d{1,3}[、．]\s*")
_QUOTES = "\"'“”‘’«»„「」『』"
_LONGEST = 128  # tokens of a clue; longer ones are split at sentences (official code: 128 new tokens for each call)
_CONSIDERED = 40  # sentences of memory that share most words with the question
_MOST_SENTENCES = 2_000  # of one passage or memory
_LOOKED_INTO = 3
_NEAR_QUESTION = 0.5  # share of nearness to the question in a key point; the rest is how central it is

_LINES = Leniently(sentences=True)
_DRAFT = named("draft", "answer", "rough_answer", "draft_answer")
_SPANS = named("spans", "passages", "text_spans", "recall")
_QUERIES = named("queries", "questions", "surrogate_queries", "surrogates", "subqueries")
_KEY_POINTS = named("key_points", "points", "keypoints")
_LOOK = named("look", "gists", "numbers", "look_into")


class CluesReply(Reply):
    """Clues by kind. `look` are numbers of gists, as the prompt has them, to look into before."""

    draft: Annotated[str, _DRAFT] = ""
    spans: Annotated[tuple[str, ...], _SPANS, _LINES] = ()
    queries: Annotated[tuple[str, ...], _QUERIES, _LINES] = ()
    key_points: Annotated[tuple[str, ...], _KEY_POINTS, _LINES] = ()
    look: Annotated[tuple[int, ...], _LOOK] = ()


@dataclass(frozen=True, kw_only=True)
class WriteClues(PromptTask):
    """Ask for clues of some kinds (paper, equation 2: y = Θ_mem(q | θ_mem)), at most `most` of each.

    `overview` says what the corpus holds near the question. `parts` are what was looked into, numbered on from
    `memory`. With `look`, the reply may name gists to look into. It has at most `limit` tokens, if that is not 0.
    `leads` are names that the corpus ties to the question: the rule-based model writes queries with them. With `theme`
    false, the question says nothing to look for.
    """

    question: Text
    memory: tuple[Citable, ...]
    kinds: tuple[ClueKind, ...]
    most: Annotated[int, str]
    overview: Annotated[str, str] = ""
    parts: tuple[Citable, ...] = ()
    look: Annotated[bool, flag] = False
    limit: Annotated[int, lambda limit: str(limit or "")] = 0
    leads: tuple[str, ...] = ()
    theme: bool = True
    name = "clues"
    reply_type = CluesReply

    def fields(self) -> dict[str, str]:
        """Return the values of the prompt's placeholders. Memory comes first and is the same for all questions."""
        return {
            **super().fields(),
            **{kind: flag(kind in self.kinds) for kind in LABELS},
            "memory": rendering.passages(self.memory) if self.memory else "",
            "parts": rendering.passages(self.parts, start=len(self.memory)) if self.parts else "",
            "form": _form(self.kinds, look=self.look),
        }

    def narrowed(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of the reply with the fields that the prompt names, and no others."""
        return with_fields(schema, (*self.kinds, *(("look",) if self.look else ())))

    def extractive(self, vectors: CheckedEmbedder) -> CluesReply:
        """Return sentences of memory near the question, and its key phrases, without a language model.

        It has no draft, and key points only where nothing else is asked for: its clues tell less, so they are fewer.
        """
        few = max(1, self.most // 2)
        found = quotable(passages((*self.memory, *self.parts)))[:_MOST_SENTENCES]
        alone = {"spans", "queries"}.isdisjoint(self.kinds)
        spans = rank(found, [self.question], vectors, limit=_CONSIDERED, prior={}) if "spans" in self.kinds else ()
        return CluesReply(
            spans=tuple(each.passage.text for each in spans[:few]),
            queries=(*_phrases(self.question)[: self.most], *self.leads)[:few] if "queries" in self.kinds else (),
            key_points=self._key_points(found, vectors) if alone and "key_points" in self.kinds else (),
            look=self._nearest_gists(vectors) if self.look else (),
        )

    def _key_points(self, found: Sequence[Passage], vectors: CheckedEmbedder) -> tuple[str, ...]:
        """Return sentences that are near the question and stand for all of memory, unlike each other."""
        if not found:
            return ()
        every = vectors.of([sentence.text for sentence in found])
        worth = nearness_to_centre(every)
        if self.theme:
            asked = vectors.of([self.question], kind="query")[0]
            worth = _NEAR_QUESTION * (every @ asked) + (1 - _NEAR_QUESTION) * worth
        return tuple(found[at].text for at in diverse(every, worth, [1] * len(found), budget=self.most))

    def _nearest_gists(self, vectors: CheckedEmbedder) -> tuple[int, ...]:
        """Return the numbers of the gists nearest to the question, nearest first, of the parts if there are any."""
        start, gists = (len(self.memory), self.parts) if self.parts else (0, self.memory)
        near = vectors.of([gist.text for gist in gists]) @ vectors.of([self.question], kind="query")[0]
        return tuple(start + at for at in highest(near, _LOOKED_INTO))


def _phrases(question: str) -> tuple[str, ...]:
    """Return the names and key phrases of a question, all together first."""
    phrases = [aspect.text for aspect in aspects(question)]
    return (", ".join(phrases), *phrases) if phrases else ()


def _form(kinds: Sequence[ClueKind], *, look: bool) -> str:
    parts = [f'"{kind}": "…"' if kind == "draft" else f'"{kind}": ["…"]' for kind in kinds]
    return "{" + ", ".join([*parts, *(['"look": [0]'] if look else [])]) + "}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A text that searches the documents, and its kind."""

    text: str
    kind: ClueKind

    @property
    def key(self) -> str:
        """What makes two clues the same."""
        return collapse(self.text).casefold()


def cleaned(reply: CluesReply, task: WriteClues, *, most: int, shortest: int) -> tuple[list[Clue], list[str]]:
    """Return the clues of a reply, of each kind `most` at most, and notes on those that were dropped.

    Each line is a clue, without list markers and quotation marks. Clues of fewer than `shortest` words, that repeat
    another or the question, are dropped without a note: the question searches anyway.
    """
    taken = {collapse(task.question).casefold()}
    found: list[Clue] = []
    notes: list[str] = []
    for kind in task.kinds:
        given: Sequence[str] = (reply.draft,) if kind == "draft" else getattr(reply, kind)
        fresh: list[Clue] = []
        for text in (piece for whole in given for piece in _pieces(whole)):
            clue = Clue(text=text, kind=kind)
            if clue.key not in taken and len(words(text)) >= shortest:
                taken.add(clue.key)
                fresh.append(clue)
        if len(fresh) > most:
            more = counted(len(fresh) - most, "clue", "clues")
            notes.append(f"{more} of kind {LABELS[kind]!r} beyond {most} dropped")
        found += fresh[:most]
    return found, notes


def _pieces(text: str) -> Iterator[str]:
    """Yield the lines of a text without markers and quotation marks, long ones as groups of sentences."""
    for line in text.splitlines():
        bare = collapse(_MARKER.sub("", line)).strip(_QUOTES).strip()
        if not bare:
            continue
        if count(bare) <= _LONGEST:
            yield bare
        else:
            yield from _packed(sentence_texts(bare))


def _packed(parts: Sequence[str]) -> Iterator[str]:
    """Yield sentences, as many together as fit into a clue."""
    packed = ""
    for part in parts:
        longer = f"{packed} {part}".strip()
        if packed and count(longer) > _LONGEST:
            yield packed
            packed = part
        else:
            packed = longer
    if packed:
        yield packed

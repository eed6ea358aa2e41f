"""Clues: the texts by which a question searches beside itself, cleaned of what models put around them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hgmem.systems.memorag.recipes import Kind, MemoRAGConfig
from hgmem.systems.memorag.tasks import CluesReply, WriteClues
from hgmem.text.plurals import counted
from hgmem.text.segmentation import collapse, sentences, words
from hgmem.text.tokens import count
from hgmem.values.evidence import BuiltHit

LABELS: dict[Kind, str] = {
    "draft": "draft answer",
    "spans": "text span",
    "queries": "surrogate query",
    "key_points": "key point",
}
_MARKER = re.compile(r"^\s*(?:[-*•‣▪–—]+|#{1,6}|\(?(?:\d{1,3}[.)、．:]|[a-zA-Z]\)))\s+|^\s*\d{1,3}[、．]\s*")
_QUOTES = "\"'“”‘’«»„「」『』"
_LONGEST = 128  # tokens of a clue; longer ones are split at sentences (official code: 128 new tokens for each call)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A text that searches the documents, and its kind."""

    text: str
    kind: Kind

    @property
    def key(self) -> str:
        """What makes two clues the same."""
        return collapse(self.text).casefold()


@dataclass(frozen=True, slots=True, kw_only=True)
class Clues:
    """The clues of a question, the gists that were read for them, and notes."""

    clues: tuple[Clue, ...] = ()
    read: tuple[BuiltHit, ...] = ()
    notes: tuple[str, ...] = ()


def cleaned(reply: CluesReply, task: WriteClues, *, config: MemoRAGConfig) -> tuple[list[Clue], list[str]]:
    """Return the clues of a reply, of each kind `most_clues` at most, and notes on those that were dropped.

    Each line is a clue, without list markers and quotation marks. Clues that are too short, that repeat another or the
    question, are dropped without a note: the question searches anyway.
    """
    taken = {collapse(task.question).casefold()}
    found: list[Clue] = []
    notes: list[str] = []
    for kind in task.kinds:
        texts: Sequence[str] = (reply.draft,) if kind == "draft" else getattr(reply, kind)
        fresh: list[Clue] = []
        for text in (piece for one in texts for piece in _pieces(one)):
            clue = Clue(text=text, kind=kind)
            if clue.key not in taken and len(words(text)) >= config.shortest:
                taken.add(clue.key)
                fresh.append(clue)
        if len(fresh) > config.most_clues:
            more = counted(len(fresh) - config.most_clues, "clue", "clues")
            notes.append(f"{more} of kind {LABELS[kind]!r} beyond {config.most_clues} dropped")
        found += fresh[: config.most_clues]
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
            yield from _packed([bare[one.start : one.end] for one in sentences(bare)])


def _packed(parts: Sequence[str]) -> Iterator[str]:
    held = ""
    for part in parts:
        longer = f"{held} {part}".strip()
        if held and count(longer) > _LONGEST:
            yield held
            held = part
        else:
            held = longer
    if held:
        yield held

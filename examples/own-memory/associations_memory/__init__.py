"""A memory of which words stand together: it widens a question by what the documents associate with its words.

It counts, for each document by itself, how many sentences hold a word and how many hold two of them. Words are
associated as far as they share more sentences than chance would have it (the log-likelihood ratio of Dunning, 1993).
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import log
from pathlib import Path

from hgmem.systems.memorag.own_memories import MemoryDocument
from hgmem.text.segmentation import sentence_texts, words

_SHORTEST = 4  # letters of a word that counts
_MOST = 60  # first words of a sentence that count, for their pairs are many
_COMMON = 0.2  # share of the sentences from which on a word tells nothing
_LEAST = 6.6  # log-likelihood ratio from which on two words are associated (p < 0.01)
_BESIDE = 4  # associated words of a clue
_CLUES = 8


@dataclass
class _Counts:
    """How many sentences there are, how many hold a word, and how many hold both words of a pair (in order)."""

    sentences: int = 0
    words: Counter[str] = field(default_factory=Counter)
    pairs: Counter[tuple[str, str]] = field(default_factory=Counter)

    def read(self, text: str) -> None:
        """Count the sentences of a text."""
        for sentence in sentence_texts(text):
            found = dict.fromkeys(word for word in words(sentence) if len(word) >= _SHORTEST)
            held = sorted(list(found)[:_MOST])
            self.sentences += 1
            self.words.update(held)
            self.pairs.update(combinations(held, 2))

    def add(self, other: "_Counts") -> None:
        """Add the counts of another text."""
        self.sentences += other.sentences
        self.words.update(other.words)
        self.pairs.update(other.pairs)

    def strengths(self) -> Iterator[tuple[float, str, str]]:
        """Yield pairs that are associated, with how strongly."""
        common = max(2.0, _COMMON * self.sentences)
        for (one, other), both in self.pairs.items():
            ones, others = self.words[one], self.words[other]
            if both > 1 and ones <= common and others <= common and both * self.sentences > ones * others:
                strength = _likelihood(both, ones - both, others - both, self.sentences - ones - others + both)
                if strength >= _LEAST:
                    yield strength, one, other


def _likelihood(*cells: int) -> float:
    """Return Dunning's log-likelihood ratio of a table of two by two."""
    a, b, c, d = cells
    rows, columns = (a + b, c + d), (a + c, b + d)
    found = zip(cells, (rows[0], rows[0], rows[1], rows[1]), (*columns, *columns), strict=True)
    return 2 * sum(seen * log(seen * sum(cells) / (row * column)) for seen, row, column in found if seen)


class Associations:
    """The memory: counts by document, so that a changed document is counted anew and a deleted one is forgotten."""

    version = "1"

    def __init__(self) -> None:
        self._documents: dict[str, _Counts] = {}

    def form(self, documents: Sequence[MemoryDocument], *, gone: Collection[str]) -> None:
        """Count documents that are new or changed, and forget those that are gone."""
        for uid in gone:
            self._documents.pop(uid, None)
        for document in documents:
            self._documents[document.uid] = _Counts()
            self._documents[document.uid].read(document.text)

    def save(self, folder: Path) -> None:
        """Write a file for each document."""
        for uid, counts in self._documents.items():
            pairs = [[*pair, number] for pair, number in counts.pairs.items()]
            held = {"sentences": counts.sentences, "words": counts.words, "pairs": pairs}
            (folder / f"{uid}.counts.json").write_text(json.dumps(held), encoding="utf-8")

    def load(self, folder: Path) -> None:
        """Read the files of all documents."""
        for path in sorted(folder.glob("*.counts.json")):
            held = json.loads(path.read_text(encoding="utf-8"))
            pairs = Counter({(one, other): number for one, other, number in held["pairs"]})
            counts = _Counts(sentences=held["sentences"], words=Counter(held["words"]), pairs=pairs)
            self._documents[path.name.removesuffix(".counts.json")] = counts

    def clues(
        self, question: str, kinds: Sequence[str], *, documents: Collection[str] | None
    ) -> Mapping[str, Sequence[str]]:
        """Return each word of the question with its strongest associates, or else the strongest of all."""
        counts = _Counts()
        for uid, held in self._documents.items():
            if documents is None or uid in documents:
                counts.add(held)
        beside: dict[str, list[str]] = {}
        for _, one, other in sorted(counts.strengths(), key=lambda found: (-found[0], *found[1:])):
            beside.setdefault(one, []).append(other)
            beside.setdefault(other, []).append(one)
        asked = [word for word in words(question) if word in beside] or list(beside)
        found = [" ".join([word, *beside[word][:_BESIDE]]) for word in dict.fromkeys(asked)][:_CLUES]
        kind = next((kind for kind in ("queries", "key_points") if kind in kinds), "")
        return {kind: found} if kind else {}

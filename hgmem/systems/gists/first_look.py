"""The first look at a corpus: what a question's first step searches for beside the question itself.

The papers of the systems that use it search for the question alone. Why they look first: docs/decisions/0033.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Database
from hgmem.graph.retrieval import Scope, to_chunk, to_entity
from hgmem.graph.values import vector
from hgmem.retrieval import rendering
from hgmem.retrieval.clues import LABELS, ClueKind, WriteClues, cleaned
from hgmem.services import Services
from hgmem.systems.gists.reading import nearest_gists
from hgmem.text.segmentation import sentence_texts
from hgmem.text.tokens import count
from hgmem.values.evidence import Subquery

_OF_GISTS = 0.6  # of the overview's tokens at most, so that titles and entities have room too
_SHORTEST = 2  # words of a clue: a single one finds what is common
_NEAREST = 100  # documents and entities, nearest to the question, of which those are shown that there is room for
_LIMITS = {"documents": _NEAREST, "entities": _NEAREST, "over_chunks": 1_000, "over_entities": 400}
_NAMES = 10  # tokens of the names of the two parts
_OF_DOCUMENTS = 0.4  # of the tokens at most, so that the rest has room too


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLook:
    """How a question first looks at a corpus: kinds of clues, how many of a kind, and the overview's tokens."""

    kinds: tuple[ClueKind, ...]
    most: int
    tokens: int

    def __call__(
        self, services: Services, scope: Scope, *, question: str, query: Any
    ) -> tuple[tuple[Subquery, ...], tuple[str, ...]]:
        """Return what to ask first, the question (with its unit vector) and clues from an overview, and notes.

        It calls the model once, but not where there is nothing to see.
        """
        gists = nearest_gists(services.database, scope, query, tokens=round(_OF_GISTS * self.tokens))
        left = self.tokens - sum(count(gist.text) for gist in gists)
        seen = overview(services.database, scope=scope, query=query, tokens=left)
        if not gists and not seen:
            return (Subquery(text=question),), ()
        task = WriteClues(question=question, memory=tuple(gists), overview=seen, kinds=self.kinds, most=self.most)
        reply, notes = services.attempt(task)
        clues, dropped = cleaned(reply, task, most=self.most, shortest=_SHORTEST) if reply else ([], [])
        found = (Subquery(text=clue.text, concern=LABELS[clue.kind]) for clue in clues)
        return (Subquery(text=question), *found), (*notes, *dropped)


def is_clue(subquery: Subquery) -> bool:
    """Whether a sub-query is a clue of a first look, and not what a plan asked for."""
    return subquery.concern in LABELS.values()


def overview(database: Database, *, scope: Scope, query: Any, tokens: int) -> str:
    """Return what is nearest to a unit vector and fits into `tokens`: documents and entities, a line each.

    Documents are in the order of their titles. In a corpus without entities, the first sentence of each document's
    nearest chunk stands for them.
    """
    [row] = database.run("overview", corpus=scope.corpus, documents=scope.uids, vector=vector(query), limits=_LIMITS)
    nearest = [to_chunk(chunk) for chunk in row["documents"]]
    named = dict.fromkeys(f"- {rendering.heading(chunk, place=False)}" for chunk in nearest if chunk.title.strip())
    documents = _fitting(named, round(_OF_DOCUMENTS * tokens))
    left = tokens - sum(count(line) + 1 for line in documents) - _NAMES
    found = [rendering.entities([to_entity(entity)]) for entity in row["entities"]]
    told = found or [rendering.listed([text]) for chunk in nearest for text in sentence_texts(chunk.text)[:1]]
    parts = {
        "Documents": sorted(documents),
        "Entities" if found else "What they say": _fitting(told, left),
    }
    return "\n\n".join("\n".join([name, *lines]) for name, lines in parts.items() if lines)


def _fitting(lines: Iterable[str], tokens: int) -> list[str]:
    """Return the first lines that fit into so many tokens."""
    kept = []
    for line in lines:
        tokens -= count(line) + 1
        if tokens < 0:
            break
        kept.append(line)
    return kept

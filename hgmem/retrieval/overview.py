"""An overview of a corpus: what it holds near a question, as a first look shows it before anything is searched."""

from collections.abc import Iterable
from typing import Any

from hgmem.graph.database import Database
from hgmem.graph.retrieval import Scope, to_chunk, to_entity
from hgmem.graph.values import vector
from hgmem.retrieval import rendering
from hgmem.text.segmentation import sentence_texts
from hgmem.text.tokens import count

_NEAREST = 100  # documents and entities, nearest to the question, of which those are shown that there is room for
_LIMITS = {"documents": _NEAREST, "entities": _NEAREST, "over_chunks": 1_000, "over_entities": 400}
_NAMES = 10  # tokens of the names of the two parts
_OF_DOCUMENTS = 0.4  # of the tokens at most, so that the rest has room too


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

"""Typed wrapper for `cypher/full_text.cypher`, and the words of texts as it counts them."""

import re
import unicodedata
from dataclasses import asdict, dataclass
from operator import itemgetter

from hgmem.graph.database import Row
from hgmem.graph.lucene import LONGEST_TERM, MOST_TERMS, lucene, telling
from hgmem.graph.retrieval import Scope, to_chunk
from hgmem.graph.values import Runner
from hgmem.text.segmentation import pieces, unspaced
from hgmem.values.graph_elements import Chunk

_JOINERS = "\u200c\u200d"  # inside words of Persian and Indian languages
_IN_WORDS = frozenset("LNM")  # Unicode's categories of letters, numbers and marks, as in the statement
_ENDING = re.compile(r"(?<=\w)['’](?:s|t|d|m|ll|re|ve)(?!\w)")  # of English; the index keeps it as a part of the word


OVER, K1, B = 10_000, 1.5, 0.75  # what the full-text index proposes, and parameters of BM25


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How BM25 ranks: `k` chunks of `over` that the index proposes, with its parameters k1 and b.

    Ranks are exact where at most `over` chunks hold a word of the question. k1 and b are those of the library bm25s,
    within what Manning et al. (2008, section 11.4.3) recommend untuned.
    """

    k: int
    over: int = OVER
    k1: float = K1  # how soon repeats of a word stop counting: 0 ignores them
    b: float = B  # how much a long chunk is discounted: 0 not at all, 1 fully


def worded_chunks(database: Runner, *, scope: Scope, text: str, ranking: Ranking) -> list[tuple[Chunk, float]]:
    """Return the chunks that fit a text's words best by BM25, with their scores. Without words there are none."""
    wanted = searched_words(text)
    if not wanted:
        return []
    rows = database.run(
        "worded_chunks",
        corpus=scope.corpus,
        documents=scope.uids,
        lucene=lucene(as_indexed(wanted), corpus=scope.corpus, documents=scope.documents),
        words=wanted,
        ranking=asdict(ranking),
    )
    needed = itemgetter("uid", "text")  # null in a chunk that was deleted while the statement ran
    return [(to_chunk(row["chunk"]), row["score"]) for row in rows if None not in needed(row["chunk"])]


def searched_words(text: str) -> list[Row]:
    """Return the words of a text to search for, each once: function words only if there are no others.

    A word of a script without spaces is in pairs of characters, which are not whole words.
    """
    found: dict[str, bool] = {}
    for word in split_words(_ENDING.sub("", text.lower())):
        parts = [part for part in pieces(word) if any(map(str.isalnum, part))]  # a mark alone is no word
        for part in parts:
            found.setdefault(part, parts == [word] and not unspaced(part))
    return [{"text": one, "whole": found[one]} for one in telling(list(found))[:MOST_TERMS]]


def split_words(text: str) -> list[str]:
    """Return the runs of letters, digits and marks in a text. None has a character of Lucene's syntax."""
    between = (one if one in _JOINERS or unicodedata.category(one)[0] in _IN_WORDS else " " for one in text)
    return [word for word in "".join(between).split() if len(word) <= LONGEST_TERM and any(map(str.isalnum, word))]


def as_indexed(wanted: list[Row]) -> list[str]:
    """Return the words in the forms in which the index may hold them, and pairs of characters also within words."""
    forms = {True: ("{}", "{}'s", "{}’s"), False: ("{}", "*{}*")}
    return [form.format(word["text"]) for word in wanted for form in forms[word["whole"]]]

"""Typed wrapper for `cypher/full_text.cypher`, with the queries of the full-text index."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from hgmem.graph.corpus import corpus_language
from hgmem.graph.database import Row
from hgmem.graph.retrieval import Scope, Words, to_chunk
from hgmem.graph.values import Runner
from hgmem.text.identity import layer_key
from hgmem.text.stems import searched_stems
from hgmem.values.graph_elements import Chunk

OVER, K1, B = 10_000, 1.5, 0.75  # what the full-text index proposes, and parameters of BM25
FIRST = 2  # times as many are proposed where many documents are left out afterwards
MOST_TERMS = 64  # of a query
MOST_DOCUMENTS = 500  # documents that a query can name: Lucene accepts 1,024 clauses


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """How BM25 ranks: the best `k` of the rows that the index proposes, with its parameters k1 and b.

    The first `scored` of `over` rows are ranked, and those of documents whose titles hold a word. If these are all rows
    that hold one, how many hold each is exact. Lengths are characters of stems, beside their mean in the rows ranked.
    k1 and b are those of the library bm25s, within what Manning et al. (2008, section 11.4.3) recommend untuned.
    """

    k: int
    over: int = OVER
    scored: int | None = None  # all
    k1: float = K1  # how soon repeats of a word stop counting: 0 ignores them
    b: float = B  # how much a long row is discounted: 0 not at all, 1 fully
    titles: bool = True  # whether words of a document's title count in each of its chunks


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """The texts (by number) that search one layer: chunks, or one kind of the rows that a system has built.

    With `among`, these rows (uids) alone are searched.
    """

    texts: Mapping[int, str]
    system: str = ""
    kind: str = ""
    among: Sequence[str] | None = None
    whole: bool = False  # whether rows are returned with what they hold


def searched_words(database: Runner, *, scope: Scope, layers: Sequence[Texts], ranking: Ranking) -> Words:
    """Return the texts' words as statements search for them. Texts without words have no query.

    It reads the corpus's language, unless the scope tells it or there is no layer.
    """
    language = scope.language
    if language is None:
        language = corpus_language(database, corpus=scope.corpus) if layers else ""
    first = FIRST * ranking.over if len(scope.documents or ()) > MOST_DOCUMENTS else ranking.over
    return Words(
        layers=[_layer(layer, scope, language) for layer in layers], ranking={**asdict(ranking), "first": first}
    )


def worded(database: Runner, *, scope: Scope, layers: Sequence[Texts], ranking: Ranking) -> list[Row]:
    """Return the rows that fit the words of each text best: kind, number, uid, score and `row`, best first.

    Texts without words find nothing.
    """
    words = searched_words(database, scope=scope, layers=layers, ranking=ranking)
    if not any(layer["queries"] for layer in words.layers):
        return []
    found = database.run(
        "worded", corpus=scope.corpus, documents=scope.uids, layers=words.layers, ranking=words.ranking
    )
    rows = [
        {"kind": query["kind"], "number": query["number"], **hit}
        for query in found
        for hit in query["hits"]
        if hit["uid"] is not None
    ]
    return sorted(rows, key=lambda row: (row["kind"], row["number"], -row["score"], row["uid"]))


def _layer(layer: Texts, scope: Scope, language: str) -> Row:
    key = layer_key(scope.corpus, layer.system, layer.kind)
    beginning, parts = within(key, scope.documents)
    stems = {number: searched_stems(text, language, most=MOST_TERMS) for number, text in layer.texts.items()}
    return {
        "system": layer.system,
        "kind": layer.kind,
        "among": None if layer.among is None else list(layer.among),
        "whole": layer.whole,
        "within": beginning,
        "parts": parts,
        "queries": [
            {
                "number": number,
                "stems": [f" {stem} " for stem in some],  # as they are stored
                "lucene": lucene(some),
            }
            for number, some in stems.items()
            if some
        ],
    }


def worded_chunks(database: Runner, *, scope: Scope, text: str, ranking: Ranking) -> list[tuple[Chunk, float]]:
    """Return the chunks that fit a text's words best by BM25, with their scores. Without words there are none."""
    rows = worded(database, scope=scope, layers=[Texts(texts={0: text}, whole=True)], ranking=ranking)
    return [(to_chunk(row["row"]), row["score"]) for row in rows if row["row"]["text"] is not None]


def lucene(stems: Sequence[str]) -> str:
    """Return the end of a query, which says what to search for: any of the stems, or `''` without stems.

    Stems have no character of Lucene's syntax, and the field's name makes and/or/not plain words.
    """
    return f"+({' '.join(f'stems:{stem}' for stem in stems)})" if stems else ""


def within(layer: str, documents: Sequence[str] | None = None) -> tuple[str, list[str]]:
    """Return the beginning of a query within one layer (a `layer_key`), and beginnings for parts of these documents.

    The first names the documents (uids), and there are no parts, unless there are more than `MOST_DOCUMENTS`: each part
    names as many at most. Beginnings don't change what the index thinks of a hit.
    """
    whole = f"+layer_key:{layer}^0 "
    named = [
        f"{whole}+({' '.join(f'document:{uid}' for uid in documents[at : at + MOST_DOCUMENTS])})^0 "
        for at in range(0, len(documents or ()), MOST_DOCUMENTS)
        if documents
    ]
    return (named[0], []) if len(named) == 1 else (whole, named)

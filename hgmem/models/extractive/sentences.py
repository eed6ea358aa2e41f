"""Quotable sentences of chunks and built rows: whole sentences, once each despite overlapping chunks."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hgmem.models.embedding import CheckedEmbedder, Vectors
from hgmem.models.extractive.key_phrases import stems
from hgmem.text.segmentation import NamesIn, collapse, is_question, sentences
from hgmem.values.evidence import Citable
from hgmem.values.graph_elements import Chunk

_LONGEST = 600
_PIECE = 400
_MOST = 200
_FEWEST_STEMS = 3
_MANY_CAPITALS = 0.7
_ENDED = re.compile(r"[.!?…。！？｡؟۔।॥:;][\"'”’»›)\]}』」）】_*]*$")
_CUT_OFF = re.compile(r"[,;:.!?)\]…。，、；]|[\-–—]+ |[\"'”’] |[^\"“”]*[^\s\"“”(—–-][\"”]")
_BREAKS = ("\n", "; ", ", ", "。", "，", "、", " ")
_MARKED = re.compile(r"#{1,6} |.* [=-]{3,}$")  # a heading of Markdown, whose mark may be a line beneath
_WORDS = 0.6
_AROUND = 0.5
_LATER_QUERIES = 0.9
_BRIDGE = 0.25
_BRIDGED = 2
_BELOW_BEST = 0.95
_RARE = 3


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence of a chunk. `chunk` is the chunk's index, `at` the sentence's index in the chunk.

    `around` holds the stems of the sentence, its two neighbours, and the chunk's title and entities. A sentence of a
    message has its `speaker` and `time`. `said` tells of a message's that it is neither a question nor without content.
    """

    chunk: int
    at: int
    text: str
    stems: frozenset[str]
    whole: bool
    around: frozenset[str] = frozenset()
    speaker: str = ""
    time: str = ""
    said: bool = False


def passages(chunks: Sequence[Citable]) -> list[list[Passage]]:
    """Return the passages of each chunk in order. Headings, and what the chunk's edge cuts off, have `whole=False`."""
    told = [
        [(collapse(piece), speaker, time) for text, speaker, time in _texts(chunk) for piece in _pieces(text)]
        for chunk in chunks
    ]
    every = [text for row in told for text, *_ in row]
    return [_row(chunk, index, told[index], every=every) for index, chunk in enumerate(chunks)]


def _row(chunk: Citable, index: int, told: list[tuple[str, str, str]], *, every: list[str]) -> list[Passage]:
    entities = chunk.entities if isinstance(chunk, Chunk) else ()
    named = frozenset(stem for text in (chunk.title, *(each.name for each in entities)) for stem in stems(text))
    texts = [text for text, _, _ in told]
    plain = [frozenset(stems(text)) for text in texts]
    own = [words.union(stems(speaker)) for words, (_, speaker, _) in zip(plain, told, strict=True)]
    return [
        Passage(
            chunk=index,
            at=at,
            text=text,
            stems=own[at],
            whole=not (_heading(text) or _titles(chunk, at, texts) or _cut_off(chunk, at, texts, every)),
            around=named.union(*own[max(0, at - 1) : at + 2]),
            speaker=speaker,
            time=time,
            said=bool(speaker and plain[at]) and not is_question(text),
        )
        for at, (text, speaker, time) in enumerate(told)
    ]


def quotable(rows: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Return the quotable passages, each text of a speaker once: whole sentences, or all passages if there are none.

    A sentence of few words is left out, but where it is what a message says.
    """
    found: dict[tuple[str, str], Passage] = {}
    for passage in sorted((each for row in rows for each in row), key=lambda each: not each.whole):
        found.setdefault((passage.text.casefold(), passage.speaker), passage)
    every = list(found.values())
    plain = [passage for passage in every if not _heading(passage.text)]
    whole = [passage for passage in plain if passage.whole]
    full = [passage for passage in whole if passage.said or len(passage.stems) >= _FEWEST_STEMS]
    return full or whole or plain or every


def known_by(found: Iterable[Passage], asked: Iterable[str], classes: Iterable[Sequence[str]]) -> list[Passage]:
    """Return the passages, those that name an entity also with the words of the name by which it is asked for.

    `classes` are names of one entity each. One that none of the questions `asked` names is known by its first name.
    """
    questions = NamesIn(asked)
    known = [(stems(next((name for name in names if name in questions), names[0])), names) for names in classes]

    def words_of(passage: Passage) -> frozenset[str]:
        said = NamesIn([passage.text])
        return passage.stems.union(*(first for first, names in known if any(name in said for name in names)))

    return [replace(passage, stems=words_of(passage)) for passage in found] if known else list(found)


def _texts(chunk: Citable) -> list[tuple[str, str, str]]:
    """Return a text, or what each message says, with its speaker, whose name counts as a word, and its time."""
    if isinstance(chunk, Chunk) and chunk.messages:
        return [(chunk.text[place.start : place.end], place.speaker, place.time) for place in chunk.messages]
    return [(chunk.text, "", "")]


def _pieces(text: str) -> Iterator[str]:
    for span in sentences(text)[:_MOST]:
        piece = text[span.start : span.end]
        if len(piece) <= _LONGEST:
            yield piece
        else:
            yield from _broken(piece)


def _broken(text: str) -> Iterator[str]:
    """Yield pieces of a text without full stops, split at line ends, commas or spaces."""
    start = 0
    for _ in range(_MOST):
        if len(text) - start <= _PIECE:
            break
        window = text[start : start + _PIECE]
        cuts = [at + len(mark) for mark in _BREAKS if (at := window.rfind(mark)) > _PIECE // 4]
        end = start + (cuts[0] if cuts else _PIECE)
        yield text[start:end]
        start = end
    yield text[start : start + _PIECE]


def _cut_off(chunk: Citable, at: int, row: list[str], every: list[str]) -> bool:
    """Whether the chunk's edge cuts off a text of its row, or another chunk has more of it."""
    text = row[at]
    if at == 0 and not _opens(chunk):
        begun = not text[0].islower() and not _CUT_OFF.match(text)
        if not begun or any(len(text) < len(other) and other.endswith(text) for other in every):
            return True
    if at < len(row) - 1 or (isinstance(chunk, Chunk) and chunk.messages):
        return False
    return not _ENDED.search(text) or any(len(text) < len(other) and other.startswith(text) for other in every)


def _opens(chunk: Citable) -> bool:
    """Whether the text begins a document, or is whole by itself as a built row or a message is."""
    if not isinstance(chunk, Chunk):
        return True
    return chunk.start == 0 or (chunk.start is None and chunk.position == 0) or bool(chunk.messages)


def _titles(chunk: Citable, at: int, row: list[str]) -> bool:
    """Whether a text of the chunk's row, no sentence, is of its document's title, or the line that begins it."""
    first = at == 0 < len(row) - 1 and isinstance(chunk, Chunk) and not chunk.messages and _opens(chunk)
    return not _ENDED.search(row[at]) and (first or row[at] in chunk.title)


def _heading(text: str) -> bool:
    """Whether a text is a heading or a table of contents: marked, or mostly capitalised words, no full sentence."""
    if _MARKED.match(text):
        return True
    parts = [part for part in text.split() if part[0].isalpha()]
    capitals = sum(part[0].isupper() for part in parts)
    return sum(map(str.islower, text)) * 2 < sum(map(str.isupper, text)) or (
        capitals > _MANY_CAPITALS * len(parts) and len(parts) > 2
    )


@dataclass(frozen=True, slots=True)
class Ranked:
    """A passage with its score in about [0, 1], its vector and the index of its nearest query."""

    passage: Passage
    score: float
    vector: Vectors
    query: int


def rank(
    found: Sequence[Passage],
    queries: Sequence[str],
    vectors: CheckedEmbedder,
    *,
    limit: int,
    prior: Mapping[Passage, float],
) -> list[Ranked]:
    """Return the `limit` passages nearest to `queries`, best first. The first query weighs most.

    `prior` maps passages to additions to their scores.
    """
    if not found:
        return []
    shared = _shared(found, queries)
    order = sorted(range(len(found)), key=lambda at: (-max(shared[at]) - prior.get(found[at], 0.0), at))[:limit]
    fresh = vectors.of([found[at].text for at in order])
    near = fresh @ vectors.of(queries, kind="query").T
    ranked = []
    for row, at in enumerate(order):
        scores = [
            ((1 - _WORDS) * float(near[row, column]) + _WORDS * shared[at][column]) * (_LATER_QUERIES if column else 1)
            for column in range(len(queries))
        ]
        query = max(range(len(scores)), key=scores.__getitem__)
        ranked.append(Ranked(found[at], scores[query] + prior.get(found[at], 0.0), fresh[row], query))
    return sorted(ranked, key=lambda each: (-each.score, each.passage.chunk, each.passage.at))


def in_common(found: Sequence[Passage], query: str) -> float:
    """Return the largest share of a query's words in one passage, weighted by rarity, in [0, 1].

    It is 1 for a query without words that count.
    """
    return max((share for (share,) in _shared(found, [query])), default=0.0) if stems(query) else 1.0


def bridge(ranked: Sequence[Ranked], named: Callable[[str], Iterable[str]]) -> list[Ranked]:
    """Return `ranked` with passages moved up that share a rare name with the nearest ones, for two-hop questions.

    The second hop may be described in a passage that shares only a name with the first. `named` returns the names in a
    text. A name in more than a few passages does not count.
    """
    held = [frozenset(name.casefold() for name in named(each.passage.text)) for each in ranked]
    frequency = Counter(name for names in held for name in names)
    lifted = list(ranked)
    for at, names in enumerate(held):
        shared = [
            ranked[other].score / (frequency[name] - 1)
            for other in range(min(at, _BRIDGED))
            for name in names & held[other]
            if frequency[name] <= _RARE
        ]
        if shared:
            score = min(ranked[at].score + _BRIDGE * max(shared), _BELOW_BEST * ranked[0].score)
            lifted[at] = replace(ranked[at], score=max(ranked[at].score, score))
    return sorted(lifted, key=lambda each: (-each.score, each.passage.chunk, each.passage.at))


def _shared(found: Sequence[Passage], queries: Sequence[str]) -> list[list[float]]:
    """Return for each passage and query the share of the query's words in the passage, weighted by rarity.

    Words of neighbouring sentences weigh less: they resolve pronouns.
    """
    frequency = Counter(stem for passage in found for stem in passage.stems)
    wanted = [sorted(set(stems(query))) for query in queries]
    weight = {stem: math.log(1 + len(found) / (1 + frequency[stem])) for row in wanted for stem in row}
    totals = [sum(weight[stem] for stem in row) or 1.0 for row in wanted]
    return [
        [
            sum(weight[stem] * _held(stem, passage) for stem in row) / total
            for row, total in zip(wanted, totals, strict=True)
        ]
        for passage in found
    ]


def _held(stem: str, passage: Passage) -> float:
    if stem in passage.stems:
        return 1.0
    return _AROUND if stem in passage.around else 0.0

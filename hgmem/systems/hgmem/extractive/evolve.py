"""What a step's evidence adds to memory: the sentences nearest to what is asked, and merges."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from hgmem.models.embedding import CheckedEmbedder, Vectors
from hgmem.models.extractive.entity_recognition import TITLES, aspects, names
from hgmem.models.extractive.key_phrases import STOPWORDS, key_phrases, stem, stems
from hgmem.models.extractive.sentences import Passage, Ranked, bridge, known_by, passages, quotable, rank
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.replies import Additions, EvolveReply, Insertion, Joining, MergeReply, Revision
from hgmem.text.identity import key
from hgmem.text.segmentation import collapse, sentences, words
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Chunk, Entity
from hgmem.values.records import MemoryPoint

_LONGEST_NAME = 8  # words of an entity's name
_NARRATORS = frozenset({"narrator", "the narrator", "protagonist", "the protagonist", "the speaker", "speaker"})
_UNSPACED = re.compile("[\u3040-\u9fff\u0e00-\u0eff]")  # writing without spaces between words
_FIRST_PERSON = frozenset({"i", "me", "my", "myself", "mine"})
_SHORTEST_SURNAME = 4
# Of statements:
_LONGEST = 600
_CONSIDERED = 32
_INSERTS = 6
_QUERIES = 6
_ENOUGH_TIES = 3
_MOST_TIES = 12
_FARTHEST = 0.2
_BELOW_BEST = 0.45
_ALIKE = 0.85
_SAME_MATTER = 0.4
_MOSTLY_SHARED = 0.6
_SUPPORT = 0.1
# Of merges:
_LONGEST_MERGED = 900
_MOST_TIES_MERGED = 14
_MOST_PARTS = 3
_MERGES = 3
_WORTH = 0.5


class EntityMentions:
    """Finds entity names in texts, at word boundaries and with any ending. The longest name wins.

    Names are also found without "the" and without a title, and a person by a last name that is unique.
    """

    def __init__(self, entities: Iterable[Entity]) -> None:
        self._names: dict[tuple[str, ...], str] = {}
        self._unspaced: dict[str, str] = {}
        known = {entity.name: entity.type for entity in entities}
        for name in known:
            self._add(name)
        for alias, name in _aliases(name for name, kind in known.items() if kind.casefold() == "person").items():
            self._names.setdefault(alias, name)
        self._longest = min(_LONGEST_NAME, max(map(len, self._names), default=0))

    def named(self, text: str) -> list[str]:
        """Return the names of the entities that `text` names, in order of mention, each once."""
        found = dict.fromkeys(self._walk(_key(text)))
        if self._unspaced:
            low = text.casefold()
            found.update(dict.fromkeys(name for key, name in self._unspaced.items() if key in low))
        return list(found)

    def _add(self, name: str) -> None:
        low = name.casefold()
        if not low.isascii() and _UNSPACED.search(low):
            self._unspaced.setdefault(low, name)
            return
        key = _key(name)
        if key and len(key) <= _LONGEST_NAME and not all(word in STOPWORDS for word in words(name)):
            self._names.setdefault(key, name)

    def _walk(self, tokens: Sequence[str]) -> Iterator[str]:
        at = 0
        while at < len(tokens):
            for length in range(min(self._longest, len(tokens) - at), 0, -1):
                name = self._names.get(tuple(tokens[at : at + length]))
                if name is not None:
                    yield name
                    at += length
                    break
            else:
                at += 1


def _key(text: str) -> tuple[str, ...]:
    tokens = [stem(word) for word in words(text)]
    return tuple(tokens[1:] if len(tokens) > 1 and tokens[0] == "the" else tokens)


def _aliases(people: Iterable[str]) -> dict[tuple[str, ...], str]:
    found: dict[tuple[str, ...], set[str]] = {}
    for name in people:
        tokens = words(name)
        if tokens and tokens[0] in TITLES and len(tokens) > 1:
            tokens = tokens[1:]
            found.setdefault(tuple(map(stem, tokens)), set()).add(name)
        if len(tokens) in (2, 3) and len(tokens[-1]) >= _SHORTEST_SURNAME and name.split()[0].casefold() != "the":
            found.setdefault((stem(tokens[-1]),), set()).add(name)
    return {key: next(iter(names)) for key, names in found.items() if len(names) == 1}


@dataclass(frozen=True, slots=True)
class _Statement:
    """One or a few neighbouring sentences, as a point would hold them."""

    parts: tuple[str, ...]
    entities: tuple[str, ...]
    chunk: int
    vector: Vectors

    @property
    def text(self) -> str:
        return " ".join(self.parts)


def evolve(
    queries: Sequence[str], *, memory: PromptMemory, evidence: Evidence, vectors: CheckedEmbedder
) -> EvolveReply:
    """Return the revisions of points and the insertions that the sentences nearest to the queries make.

    `queries` are the question and the sub-queries of the step; the first ones count.
    """
    rows = passages(evidence.chunks)
    known = _Known(memory.points, vectors)
    queries = list(dict.fromkeys(queries))[:_QUERIES]
    classes = [*memory.classes, *(entity.names for entity in evidence.entities if entity.names)]
    found = known_by(quotable(rows), queries, classes)
    ranked = rank(found, queries, vectors, limit=_CONSIDERED, prior=_prior(found, evidence))
    statements = _statements(ranked, rows, evidence, known=known)
    update, rest = known.revisions(statements)
    start = len(evidence.shown)  # numbers of chunks go on from those shown before
    numbered = [each.model_copy(update={"chunks": (start + each.chunks[0],)}) for each in update]
    inserted = [
        Insertion(entities=each.entities, description=each.text, chunks=(start + each.chunk,))
        for each in rest[:_INSERTS]
    ]
    points = memory.numbers_of(each.point for each in update)
    update = [each.model_copy(update={"point": point}) for each, point in zip(numbered, points, strict=True)]
    return EvolveReply(update=tuple(update), insert=tuple(inserted))


def after(memory: PromptMemory, evolved: Additions) -> PromptMemory:
    """Return the points as they read after the updates, those inserted behind them, with their numbers."""
    numbers = memory.numbers_of(range(len(memory.points)))
    changed = dict(zip(numbers, memory.points, strict=True))
    for revision in evolved.update:
        old = changed[revision.point]
        entities = (*old.entities, *map(_entity, revision.entities))
        changed[revision.point] = replace(old, description=revision.description, entities=entities)
    for number, added in enumerate(evolved.insert, start=len(memory.numbered)):
        entities = tuple(map(_entity, added.entities))
        changed[number] = MemoryPoint(uid=f"new-{number}", description=added.description, entities=entities)
    return PromptMemory(points=tuple(changed.values()), numbers=tuple(changed))


def _entity(name: str) -> Entity:
    return Entity(uid=key(name), name=name)


def _prior(found: Sequence[Passage], evidence: Evidence) -> Mapping[Passage, float]:
    """Return what the ranks of the chunks say of their passages: a little, most for the first."""
    best: dict[str, int] = {}
    for retrieved in evidence.retrieved:
        for hit in retrieved.chunks:
            best[hit.uid] = min(hit.rank, best.get(hit.uid, hit.rank))
    support = [_SUPPORT / best[chunk.uid] if chunk.uid in best else 0.0 for chunk in evidence.chunks]
    return {passage: support[passage.chunk] for passage in found}


class _Known:
    """What memory says already, and which point a statement would revise."""

    def __init__(self, points: Sequence[MemoryPoint], vectors: CheckedEmbedder) -> None:
        self._texts = [point.description for point in points]
        self._stems = [frozenset(stems(text)) for text in self._texts]
        self._entities = [{entity.name.casefold() for entity in point.entities} for point in points]
        self._vectors = vectors.of(self._texts)

    def says(self, text: str, words: frozenset[str]) -> bool:
        """Whether a point holds `text` already, or all but a few of its words."""
        return any(
            text in known or len(words & known_words) >= _ALIKE * len(words)
            for known, known_words in zip(self._texts, self._stems, strict=True)
        )

    def revisions(self, statements: Sequence[_Statement]) -> tuple[list[Revision], list[_Statement]]:
        """Return one revision for each point that a statement fits, and the statements that fit none."""
        revised: dict[int, Revision] = {}
        rest = []
        for each in statements:
            at = self._fitting(each)
            if at is None:
                rest.append(each)
            elif at not in revised:
                revised[at] = self._revision(at, each)
        return list(revised.values()), rest

    def _fitting(self, statement: _Statement) -> int | None:
        wanted = {name.casefold() for name in statement.entities}
        best, nearest = None, _SAME_MATTER
        for at, ties in enumerate(self._entities):
            shared = len(wanted & ties)
            room = len(self._texts[at]) + len(statement.text) < _LONGEST and len(wanted | ties) <= _MOST_TIES
            if not room or shared < _MOSTLY_SHARED * min(len(wanted), len(ties)) or not shared:
                continue
            near = float(self._vectors[at] @ statement.vector)
            if near > nearest:
                best, nearest = at, near
        return best

    def _revision(self, at: int, statement: _Statement) -> Revision:
        fresh = [part for part in statement.parts if part not in self._texts[at]]
        return Revision(
            point=at,
            description=" ".join([self._texts[at], *fresh]),
            replaces=True,
            entities=tuple(name for name in statement.entities if name.casefold() not in self._entities[at]),
            chunks=(statement.chunk,),
        )


def _statements(
    ranked: Sequence[Ranked], rows: Sequence[Sequence[Passage]], evidence: Evidence, *, known: _Known
) -> list[_Statement]:
    """Return new statements with their entities, best first, without near repetitions."""
    ties = EntityMentions([*evidence.entities, *(entity for chunk in evidence.chunks for entity in chunk.entities)])
    ranked = bridge(ranked, ties.named)
    made: list[_Statement] = []
    used: set[str] = set()
    least = max(_FARTHEST, _BELOW_BEST * ranked[0].score) if ranked else 0.0
    for each in ranked:
        passage = each.passage
        if len(made) >= 2 * _INSERTS or each.score < least:
            break
        repeats = any(float(each.vector @ other.vector) > _ALIKE for other in made)
        if passage.text in used or known.says(passage.text, passage.stems) or repeats:
            continue
        parts = _with_neighbours(passage, rows[passage.chunk], ties)
        fresh = [part for part in parts if part == passage.text or part not in used]
        entities = _entities(" ".join(fresh), evidence.chunks[passage.chunk], ties)
        if entities:
            used.update(fresh)
            made.append(_Statement(tuple(fresh), tuple(entities), passage.chunk, each.vector))
    return made


def _with_neighbours(passage: Passage, row: Sequence[Passage], ties: EntityMentions) -> list[str]:
    """Return the passage, with the sentences before and after it while it names too few entities."""
    parts = [passage.text]
    for at in (passage.at - 1, passage.at + 1):
        text = " ".join(parts)
        named = ties.named(text)
        if len(named) >= _ENOUGH_TIES:
            break
        if not 0 <= at < len(row) or not row[at].whole or len(text) + len(row[at].text) > _LONGEST - 100:
            continue
        if set(ties.named(row[at].text)) - set(named):
            parts = [row[at].text, *parts] if at < passage.at else [*parts, row[at].text]
    return parts


def _entities(text: str, chunk: Chunk, ties: EntityMentions) -> list[str]:
    """Return the entities that `text` names, or what looks like a name if the evidence has none of them."""
    found = ties.named(text)
    if _FIRST_PERSON.intersection(words(text)):
        found += [entity.name for entity in chunk.entities if entity.name.casefold() in _NARRATORS][:1]
    if not found and not chunk.entities:
        found = [name.text for name in names([text])[0]] or key_phrases(text, limit=2, repeated=False)
    return list(dict.fromkeys(found))[:_MOST_TIES]


def merge(question: str, memory: PromptMemory, *, vectors: CheckedEmbedder) -> MergeReply:
    """Return the merges worth making, best first, with each point in one at most."""
    points = memory.points
    if len(points) < 2:
        return MergeReply()
    board = _Board(question, points, vectors)
    groups: list[list[int]] = []
    for pair in board.pairs():
        if len(groups) == _MERGES:
            break
        if not any(at in group for group in groups for at in pair):
            groups.append(board.widened(pair, taken={at for group in groups for at in group}))
    return MergeReply(
        merge=tuple(
            Joining(
                points=memory.numbers_of(group),
                description=joined([points[at].description for at in group]),
                replaces=True,
            )
            for group in groups
        )
    )


def joined(texts: Sequence[str]) -> str:
    """Return the sentences of `texts` in order, each once, as one text of limited length."""
    parts: list[str] = []
    for text in texts:
        for span in sentences(text):
            part = collapse(text[span.start : span.end])
            if part not in parts and len(part) + sum(map(len, parts)) < _LONGEST_MERGED:
                parts.append(part)
    return " ".join(parts)


class _Board:
    """What each point ties and covers, and what two of them would gain together."""

    def __init__(self, question: str, points: Sequence[MemoryPoint], vectors: CheckedEmbedder) -> None:
        texts = [point.description for point in points]
        self._lengths = [len(text) for text in texts]
        self._ties = [frozenset(entity.name for entity in point.entities) for point in points]
        self._popularity = Counter(name for ties in self._ties for name in ties)
        stems_of = [set(stems(f"{point.description} {' '.join(self._ties[at])}")) for at, point in enumerate(points)]
        wanted = aspects(question)
        self._covers = [frozenset(at for at, each in enumerate(wanted) if each.covered_by(row)) for row in stems_of]
        found = vectors.of(texts)
        self._near = found @ found.T
        self._asked = found @ vectors.of([question], kind="query")[0]

    def pairs(self) -> list[tuple[int, int]]:
        """Return the pairs worth merging, best first."""
        worth = {pair: self._worth(pair) for pair in combinations(range(len(self._ties)), 2)}
        good = [pair for pair in worth if worth[pair] >= _WORTH]
        return sorted(good, key=lambda pair: (-worth[pair], pair))

    def widened(self, pair: tuple[int, int], *, taken: set[int]) -> list[int]:
        """Return the pair with a further point that belongs to both, in the order of the points."""
        group = list(pair)
        for at in range(len(self._ties)):
            if len(group) == _MOST_PARTS:
                break
            fits = at not in taken and at not in group and self._fits([*group, at])
            if fits and min(self._worth((at, other)) for other in group) >= _WORTH:
                group.append(at)
        return sorted(group)

    def _worth(self, pair: tuple[int, int]) -> float:
        """Return how much two points belong together, 0 where they share no entity or would be too long."""
        one, other = pair
        shared = self._ties[one] & self._ties[other]
        if not shared or not self._fits(pair):
            return 0.0
        # An entity of nearly every point ties nothing in particular.
        rare = sum(1.0 / self._popularity[name] for name in sorted(shared))
        smaller = min(len(self._ties[one]), len(self._ties[other]))
        gain = bool(self._covers[one] - self._covers[other] and self._covers[other] - self._covers[one])
        relevant = float(np.sqrt(max(self._asked[one], 0.0) * max(self._asked[other], 0.0)))
        return (
            0.5 * float(self._near[one, other])
            + 0.3 * len(shared) / smaller
            + 0.2 * min(rare, 1.0)
            + 0.25 * gain * relevant
        )

    def _fits(self, group: Sequence[int]) -> bool:
        ties = frozenset[str]().union(*(self._ties[at] for at in group))
        return len(ties) <= _MOST_TIES_MERGED and sum(self._lengths[at] for at in group) <= _LONGEST_MERGED

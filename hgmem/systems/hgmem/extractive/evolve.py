"""What a step's evidence adds to memory: the sentences nearest to what is asked, and the entities they name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hgmem.models.embedding import Vectors
from hgmem.models.extractive.entity_mentions import EntityMentions, narrators
from hgmem.models.extractive.entity_recognition import names
from hgmem.models.extractive.key_phrases import key_phrases, stems
from hgmem.models.extractive.sentence_ranking import Ranked, bridge, rank
from hgmem.models.extractive.sentences import Passage, passages, quotable
from hgmem.models.extractive.vector_cache import VectorCache
from hgmem.systems.hgmem.replies import Additions, EvolveReply, Insertion, Revision
from hgmem.text.identity import key
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Chunk, Entity
from hgmem.values.records import MemoryPoint

LONGEST = 600
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


@dataclass(frozen=True, slots=True)
class _Statement:
    """One or a few neighbouring sentences, as a point would hold them."""

    parts: tuple[str, ...]
    entities: tuple[str, ...]
    chunk: int
    score: float
    vector: Vectors

    @property
    def text(self) -> str:
        return " ".join(self.parts)


def evolve(
    queries: Sequence[str], *, points: Sequence[MemoryPoint], evidence: Evidence, vectors: VectorCache
) -> EvolveReply:
    """Return the revisions of points and the insertions that the sentences nearest to the queries make.

    `queries` are the question and the sub-queries of the step; the first ones count.
    """
    rows = passages(evidence.chunks)
    known = _Known(points, vectors)
    queries = list(dict.fromkeys(queries))[:_QUERIES]
    found = quotable(rows)
    ranked = rank(found, queries, vectors, limit=_CONSIDERED, prior=_prior(found, evidence))
    statements = _statements(ranked, rows, evidence, known=known)
    update, rest = known.revisions(statements)
    return EvolveReply(
        update=tuple(update),
        insert=tuple(
            Insertion(entities=each.entities, description=each.text, chunks=(each.chunk,)) for each in rest[:_INSERTS]
        ),
    )


def after(points: Sequence[MemoryPoint], evolved: Additions) -> tuple[MemoryPoint, ...]:
    """Return the points as they read after the updates, those inserted behind them."""
    changed = list(points)
    for revision in evolved.update:
        old = changed[revision.point]
        added = tuple(_entity(name) for name in revision.entities)
        changed[revision.point] = replace(old, description=revision.description, entities=(*old.entities, *added))
    inserted = (
        MemoryPoint(uid=f"new-{at}", description=one.description, entities=tuple(map(_entity, one.entities)))
        for at, one in enumerate(evolved.insert)
    )
    return (*changed, *inserted)


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

    def __init__(self, points: Sequence[MemoryPoint], vectors: VectorCache) -> None:
        self._texts = [point.description for point in points]
        self._said = [frozenset(stems(text)) for text in self._texts]
        self._entities = [{entity.name.casefold() for entity in point.entities} for point in points]
        self._vectors = vectors.of(self._texts)

    def says(self, text: str, words: frozenset[str]) -> bool:
        """Whether a point holds `text` already, or all but a few of its words."""
        return any(
            text in known or len(words & said) >= _ALIKE * len(words)
            for known, said in zip(self._texts, self._said, strict=True)
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
        for at, held in enumerate(self._entities):
            shared = len(wanted & held)
            room = len(self._texts[at]) + len(statement.text) < LONGEST and len(wanted | held) <= _MOST_TIES
            if not room or shared < _MOSTLY_SHARED * min(len(wanted), len(held)) or not shared:
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
        if passage.text in used or known.says(passage.text, passage.stems) or _repeats(each, made):
            continue
        parts = _with_neighbours(passage, rows[passage.chunk], ties)
        fresh = [part for part in parts if part == passage.text or part not in used]
        entities = _entities(" ".join(fresh), evidence.chunks[passage.chunk], ties)
        if entities:
            used.update(fresh)
            made.append(_Statement(tuple(fresh), tuple(entities), passage.chunk, each.score, each.vector))
    return made


def _repeats(each: Ranked, made: Sequence[_Statement]) -> bool:
    return any(float(each.vector @ other.vector) > _ALIKE for other in made)


def _with_neighbours(passage: Passage, row: Sequence[Passage], ties: EntityMentions) -> list[str]:
    """Return the passage, with the sentences before and after it while it names too few entities."""
    parts = [passage.text]
    for at in (passage.at - 1, passage.at + 1):
        text = " ".join(parts)
        if len(ties.named(text)) >= _ENOUGH_TIES:
            break
        if 0 <= at < len(row) and _helps(row[at], text, ties):
            parts = [row[at].text, *parts] if at < passage.at else [*parts, row[at].text]
    return parts


def _helps(neighbour: Passage, text: str, ties: EntityMentions) -> bool:
    if not neighbour.whole or len(text) + len(neighbour.text) > LONGEST - 100:
        return False
    return bool(set(ties.named(neighbour.text)) - set(ties.named(text)))


def _entities(text: str, chunk: Chunk, ties: EntityMentions) -> list[str]:
    """Return the entities that `text` names, or what looks like a name if the evidence has none of them."""
    found = [*ties.named(text), *narrators(text, chunk.entities)]
    if not found and not chunk.entities:
        found = [name.text for name in names([text])[0]] or key_phrases(text, limit=2, repeated=False)
    return list(dict.fromkeys(found))[:_MOST_TIES]

"""A walk in the record of its question, and read back from it.

A place that was entered is a hit with the uid of the place that led there as `source`. The hit of a passage has its
anchor's uid as both. The first hit of a walk's beginning has strategy `seeds`, and its sub-query is the question.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hgmem.systems.remindrag.places import Way
from hgmem.systems.remindrag.tasks import told
from hgmem.systems.remindrag.walk import Walk
from hgmem.values.evidence import BuiltHit, Hit, Retrieved, Subquery
from hgmem.values.records import Step

SEEDS, REPLAY, WALK, PASSAGE, SUMMARY = "seeds", "replay", "walk", "Passage", "Summary"


def begun(walk: Walk, *, scores: Mapping[str, float]) -> tuple[Retrieved, ...]:
    """Return the beginning of a walk: its seeds with their passages, and each place that a strong trail reached."""
    nodes = walk.nodes.values()
    starts = [node for node in nodes if node.uid not in walk.came]
    seeds = Retrieved(
        subquery=Subquery(text=walk.question, strategy=SEEDS),
        entities=_entities([node.uid for node in starts], walk),
        chunks=_chunks(walk, [node.uid for node in starts]),
        built=(
            *(
                BuiltHit(
                    uid=node.uid, kind=node.kind, rank=rank, text=node.text, score=round(scores.get(node.uid, 0), 4)
                )
                for rank, node in enumerate(starts, start=1)
            ),
            *_passages(walk, [node.uid for node in starts]),
        ),
    )
    if not walk.came:
        return (seeds,)
    trails = [
        Retrieved(
            subquery=Subquery(text=told(way), concern="a strong trail", strategy=REPLAY),
            entities=_entities([way.node.uid], walk),
            relations=_relations([way]),
            chunks=_chunks(walk, [way.node.uid]),
            built=(_hit(way, rank), *_passages(walk, [way.node.uid])),
        )
        for rank, way in enumerate(walk.came.values(), start=1)
    ]
    return seeds, *trails


def arrived(walk: Walk, way: Way, why: str) -> Retrieved:
    """Return an arrival at a node, with its passage if it was read at once."""
    uid = way.node.uid
    return Retrieved(
        subquery=Subquery(text=told(way), concern=why, strategy=WALK),
        entities=_entities([uid], walk),
        relations=_relations([way]),
        chunks=_chunks(walk, [uid], () if walk.quoted.get(uid) else way.chunks),
        built=(_hit(way, 1), *_passages(walk, [uid])),
    )


def read(walk: Walk, way: Way, why: str) -> Retrieved:
    """Return the reading of a passage."""
    uid = way.node.uid
    return Retrieved(
        subquery=Subquery(text=told(way), concern=why, strategy=WALK),
        chunks=_chunks(walk, [uid]),
        built=tuple(_passages(walk, [uid])),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that a recorded walk entered, from the place `source`. `passage`: it was read.

    `chunks` (uids) are those that were retrieved there, none for the passages of seeds. `replayed`: no model chose it.
    """

    uid: str
    source: str
    text: str
    passage: bool
    chunks: tuple[str, ...] = ()
    replayed: bool = False


@dataclass(slots=True, kw_only=True)
class Recorded:
    """A walk as it was recorded: its question, its seeds, its places in order, and summaries by anchor (uid)."""

    question: str
    seeds: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    summaries: dict[str, str] = field(default_factory=dict)

    @property
    def walked(self) -> bool:
        """Whether the model chose a way, beyond seeds and replayed trails."""
        return any(not place.replayed for place in self.places)

    @property
    def followed(self) -> bool:
        """Whether trails of earlier questions were followed."""
        return any(place.replayed and not place.passage for place in self.places)

    def roots(self, places: Iterable[Place]) -> list[str]:
        """Return the seeds (uids) from which these places were reached."""
        found = dict.fromkeys(self.before(place)[-1].source for place in places)
        return [uid for uid in found if uid in self.seeds]

    @property
    def stops(self) -> list[list[Place]]:
        """The places in order, an arrival at an anchor together with the reading of its passage."""
        found: list[list[Place]] = []
        for place in self.places:
            if place.passage and found and found[-1][0].uid == place.uid:
                found[-1].append(place)
            else:
                found.append([place])
        return found

    def before(self, place: Place) -> list[Place]:
        """Return a place and those that led to it from a seed, the latest first."""
        came = {one.uid: one for one in self.places if not one.passage}
        found = [place]
        at = came.get(place.source)
        while at is not None and at not in found:
            found.append(at)
            at = came.get(at.source)
        return found


def recorded(steps: Sequence[Step]) -> list[Recorded]:
    """Return the walks of a question's steps. One begins at each search for seeds."""
    walks: list[Recorded] = []
    for one in (one for step in steps for one in step.retrieved):
        if one.subquery.strategy == SEEDS:
            walks.append(Recorded(question=one.subquery.text))
        if one.subquery.strategy not in (SEEDS, REPLAY, WALK) or not walks:
            continue
        walk = walks[-1]
        chunks = tuple(hit.uid for hit in one.chunks) if one.subquery.strategy != SEEDS else ()
        for hit in one.built:
            if hit.kind == SUMMARY:
                walk.summaries[hit.source] = hit.text
            elif not hit.source:
                walk.seeds.append(hit.uid)
            else:
                walk.places.append(
                    Place(
                        uid=hit.uid,
                        source=hit.source,
                        text=hit.text,
                        passage=hit.kind == PASSAGE,
                        chunks=chunks,
                        replayed=one.subquery.strategy != WALK,
                    )
                )
    return walks


def _hit(way: Way, rank: int) -> BuiltHit:
    node = way.node
    return BuiltHit(
        uid=node.uid, kind=node.kind, rank=rank, text=node.text, score=round(way.score, 4), source=way.source
    )


def _passages(walk: Walk, uids: Sequence[str]) -> list[BuiltHit]:
    """Return the passages of these anchors that were read, each followed by its summary."""
    found = []
    for rank, uid in enumerate((uid for uid in uids if uid in walk.entered), start=1):
        way = walk.entered[uid]
        score = round(way.score, 4)
        found.append(BuiltHit(uid=uid, kind=PASSAGE, rank=rank, text=way.node.text, score=score, source=uid))
        if summary := walk.summaries.get(uid):
            found.append(BuiltHit(uid=uid, kind=SUMMARY, rank=rank, text=summary, source=uid))
    return found


def _entities(uids: Sequence[str], walk: Walk) -> tuple[Hit, ...]:
    nodes = [walk.nodes[uid] for uid in uids if walk.nodes[uid].kind == "Entity"]
    return tuple(Hit(uid=node.uid, rank=rank, name=node.text) for rank, node in enumerate(nodes, start=1))


def _relations(ways: Iterable[Way]) -> tuple[Hit, ...]:
    uids = dict.fromkeys(way.relation for way in ways if way.relation)
    return tuple(Hit(uid=uid, rank=rank) for rank, uid in enumerate(uids, start=1))


def _chunks(walk: Walk, uids: Sequence[str], stating: Sequence[str] = ()) -> tuple[Hit, ...]:
    """Return the chunks of these anchors' passages, and those that state a relation."""
    read = (chunk for uid in uids for chunk in (*walk.passages.get(uid, ()), *walk.quoted.get(uid, ())))
    found = {chunk.uid: chunk.source_id for chunk in read}
    found |= {uid: "" for uid in stating if uid not in found}
    return tuple(Hit(uid=uid, rank=rank, source_id=origin) for rank, (uid, origin) in enumerate(found.items(), start=1))

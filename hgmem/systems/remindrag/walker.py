"""Walking: seeds and strong trails first, then move after move as the model chooses (paper, sections 3.2 and 3.3)."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hgmem.builds.chunk_runs import joined_text
from hgmem.graph.retrieval import Scope, chunks_of_entities
from hgmem.memory.recording import Recording
from hgmem.models.metering import measuring
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST
from hgmem.services import Services
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.statements import (
    Asker,
    Reached,
    Rule,
    passage_chunks,
    quoted_chunks,
    replay,
    seeds,
    starts,
    ways,
)
from hgmem.systems.remindrag.tasks import (
    ChooseMove,
    ChooseNext,
    JudgeEnough,
    MoveReply,
    NextReply,
    SummarisePassage,
    told,
)
from hgmem.systems.remindrag.trail_vectors import LEARNT_ONCE, least_cosine
from hgmem.systems.remindrag.walk_record import Node, Option, Walk, Way, passage_of
from hgmem.text.language import counted
from hgmem.values.evidence import BuiltHit, Hit, Retrieved, Subquery
from hgmem.values.records import Judgement, Step

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


_ASKED_AGAIN = 2  # times that an invalid choice is asked again


@dataclass(slots=True, kw_only=True)
class Walker:
    """One walk of a question, recorded in steps: one for its beginning, and one for each place that it enters."""

    services: Services
    record: Recording
    config: ReMindRAGConfig
    walk: Walk
    query: Any  # the question's unit vector
    history: str = ""
    notes: list[str] = field(default_factory=list)
    _pending: Step | None = None  # what was found there is only known from the next reply

    def run(self) -> Walk:
        """Walk until what is known is enough, nothing is left to go to, or a limit is reached."""
        began = time.perf_counter()
        with measuring() as meter:
            retrieved = self._begin()
        self._hold("replay" if self.walk.came else "seeds", retrieved, began, meter.usage())
        if self.walk.nodes:
            (self._together if self.config.calls == "together" else self._each)()
        self._flush(None)
        return self.walk

    def _begin(self) -> tuple[Retrieved, ...]:
        """Visit the seeds and what strong trails reach from them, and read the passages that seeds and trails name."""
        database, scope, config = self.services.database, self._scope, self.config
        found = seeds(database, scope=scope, query=self.query, k=config.seeds, over=PROPOSED_NEAREST)
        if config.trails and config.replay and config.starts:
            least = least_cosine(1.0, LEARNT_ONCE, alpha=config.alpha, strong=config.strong)
            more = starts(database, scope=scope, asker=self._asker, k=config.starts, least=least)
            known = {node.uid for node, _ in found}
            found += [(node, score) for node, score in more if node.uid not in known]
        reached = [Reached(node=node, way=None) for node, _ in found]
        if found and config.trails and config.replay:
            start = [node.uid for node, _ in found]
            reached = replay(database, scope=scope, asker=self._asker, start=start, rule=self._rule)
        for one in reached:
            self.walk.visit(one.node, one.way, described=not config.quotes)
        self.walk.current = next(iter(self.walk.nodes), None)
        strong = [
            (one, passage_of(one.node, score=one.passage or 1.0))
            for one in reached
            if one.node.kind == "Anchor" and (one.way is None or one.passage is not None)
        ]
        self._read([way for _, way in strong], {one.node.uid: one.summary for one, _ in strong})
        for one in reached:
            self._quote(one.node, one.way, kept=one.chunks)
        self._look([one.node.uid for one in reached])
        return begun(self.walk, scores={node.uid: round(score, 4) for node, score in found})

    def _together(self) -> None:
        """Ask once a move: what was found, whether it is enough, and where to go."""
        while True:
            options = self._options() if self.walk.jumps < self.config.max_jumps else []
            reply = self._asked(options)
            if reply is None:
                return
            self.walk.shown(reply.found)
            self.walk.enough = reply.enough
            self._flush(reply.found, judgement="sufficient" if reply.enough else None)
            if reply.enough or not self._go_on(options):
                return
            self._go(options[reply.next or 0], why=reply.why)

    def _asked(self, options: Sequence[Option]) -> MoveReply | None:
        """Return the reply to the places that are new, or None where there is no call left or no valid choice."""
        task = ChooseMove(
            question=self.walk.question,
            findings=tuple(self.walk.findings),
            fresh=tuple(self.walk.fresh),
            known=tuple(self.walk.known),
            options=tuple(options),
            left=max(0, self.config.max_jumps - self.walk.jumps - 1),
            followed=bool(self.walk.came) and not self.walk.jumps,
            history=self.history,
        )
        for _ in range(1 + _ASKED_AGAIN):
            if not self._may_call():
                return None
            reply = self.services.reply(task)
            if reply.enough or not options or _valid(reply.next, options):
                return reply
            task = replace(task, refused=_refused(reply.next, options))
        self._stopped(f"the model chose no way that exists, {counted(1 + _ASKED_AGAIN, 'time')} in a row")
        self.walk.shown(reply.found)
        self._flush(reply.found)
        return None

    def _each(self) -> None:
        """Ask in two calls a move: whether all is enough, and where to go (paper)."""
        while True:
            self.walk.shown("")
            if not self._may_call():
                return
            known = tuple(self.walk.known)
            judge = JudgeEnough(question=self.walk.question, known=known, history=self.history)
            self.walk.enough = enough = self.services.reply(judge).enough
            self._flush("", judgement="sufficient" if enough else None)
            options = self._options()
            if enough or not self._go_on(options):
                return
            while (chosen := self._chosen(options)) is not None and not isinstance(chosen[0], Way):
                self.walk.current = chosen[0].uid  # going back is no jump
                options = self._options()
            if chosen is None:
                return
            self._go(chosen[0], why=chosen[1])

    def _chosen(self, options: Sequence[Option]) -> tuple[Option, str] | None:
        """Return the option that the model chooses, and why, or None where there is no call left or no valid choice."""
        here = self.walk.current
        if here is not None and self.walk.unread(here):
            return passage_of(self.walk.nodes[here], score=1.0), "its passage"
        task = ChooseNext(
            question=self.walk.question,
            known=tuple(self.walk.known),
            visited=tuple(node.text for node in self.walk.nodes.values()),
            options=tuple(options),
            history=self.history,
        )
        for _ in range(1 + _ASKED_AGAIN):
            if not self._may_call():
                return None
            reply: NextReply = self.services.reply(task)
            if _valid(reply.next, options):
                return options[reply.next or 0], reply.why
            task = replace(task, refused=_refused(reply.next, options))
        self._stopped(f"the model chose no way that exists, {counted(1 + _ASKED_AGAIN, 'time')} in a row")
        return None

    def _go(self, way: Option, *, why: str) -> None:
        """Go a way. An anchor's passage is read on arrival."""
        if not isinstance(way, Way):
            raise AssertionError("only a way is gone")
        began = time.perf_counter()
        with measuring() as meter:
            self.walk.jumps += 1
            if way.is_passage:
                self._read([way], {})
            else:
                self.walk.visit(way.node, way, described=not self.config.quotes)
                self._quote(way.node, way)
                self._look([way.node.uid])
                if way.node.kind == "Anchor":
                    self.walk.jumps += self.config.frontier == "current"  # the paper counts the passage as well
                    self._read([passage_of(way.node, score=way.score)], {})
            self.walk.current = way.node.uid if self.config.frontier == "all" or not way.is_passage else None
        found = read(self.walk, way, why) if way.is_passage else arrived(self.walk, way, why)
        self._hold("walk", (found,), began, meter.usage())

    def _read(self, ways_in: Sequence[Way], kept: dict[str, str]) -> None:
        """Read passages of anchors. A long one is summarised for the question, unless a summary was kept of it."""
        if not ways_in:
            return
        uids = [way.node.uid for way in ways_in]
        found = passage_chunks(self.services.database, corpus=self._scope.corpus, uids=uids)
        for way in ways_in:
            chunks, summary = found.get(way.node.uid, []), kept.get(way.node.uid, "")
            least = self.config.summary_tokens
            long = least and sum(chunk.tokens for chunk in chunks) >= least
            if long and not summary and self._may_call():
                task = SummarisePassage(question=self.walk.question, title=way.node.text, text=joined_text(chunks))
                summary = self.services.reply(task).text
            self.walk.read(way, chunks, summary)

    def _quote(self, node: Node, way: Way | None, *, kept: Sequence[str] = ()) -> None:
        """Read the chunks nearest to the question that state the relation gone, or else that mention the entity.

        Those that were `kept` (uids) of an earlier walk are read again.
        """
        if not self.config.quotes or node.kind != "Entity":
            return
        database, scope, k = self.services.database, self._scope, self.config.quotes
        held = self.walk.read_chunks
        stating = [uid for uid in (kept or (way.chunks if way else ())) if uid not in held]
        k = max(k, len(kept))
        if stating:
            found = quoted_chunks(database, scope=scope, uids=stating, query=self.query, k=k)
        else:
            found = chunks_of_entities(database, scope=scope, uids=[node.uid], query=self.query, k=k + len(held))
        self.walk.quote(node.uid, [chunk for chunk in found if chunk.uid not in held][:k])

    def _look(self, uids: Sequence[str]) -> None:
        """Find the ways from nodes that were not looked at."""
        database, scope, asker = self.services.database, self._scope, self._asker
        for uid in uids:
            if uid not in self.walk.around:
                self.walk.around[uid] = ways(database, scope=scope, asker=asker, uid=uid, rule=self._rule)

    def _options(self) -> list[Option]:
        return self.walk.options(everywhere=self.config.frontier == "all", most=self.config.ways)

    def _go_on(self, options: Sequence[Option]) -> bool:
        if self.walk.jumps >= self.config.max_jumps:
            self._stopped(f"it had made {counted(self.walk.jumps, 'jump')} (max_jumps)")
        elif not options:
            self._stopped("nothing more is within reach")
        else:
            return True
        return False

    def _may_call(self) -> bool:
        """Count a call of the model, or note that none is left."""
        if self.walk.calls >= self.config.max_calls:
            self._stopped(f"it had made {counted(self.walk.calls, 'model call')} (max_calls)")
            return False
        self.walk.calls += 1
        return True

    def _stopped(self, why: str) -> None:
        note = f"the walk ended before what it found was enough: {why}"
        if note not in self.notes:
            self.notes.append(note)

    def _hold(self, strategy: str, retrieved: tuple[Retrieved, ...], began: float, usage: Any) -> None:
        """Keep a step until it is known what was found there."""
        self._pending = Step(
            number=self.record.number,
            question=self.record.question,
            strategy=strategy,
            filters=self.record.filters,
            retrieved=retrieved,
            seconds=round(time.perf_counter() - began, 4),
            usage=usage,
        )

    def _flush(self, found: str | None, *, judgement: Judgement | None = None) -> None:
        """Write the step that is kept, with what was found there."""
        if self._pending is None:
            return
        notes = (f"found: {found}",) if found else ()
        self.record.step(replace(self._pending, notes=notes, judgement=judgement))
        self._pending = None

    @property
    def _scope(self) -> Scope:
        return self.record.scope

    @property
    def _asker(self) -> Asker:
        """Whose trails count: everybody's, and those of the owner who asks."""
        owners = tuple(dict.fromkeys(("", self.services.owner or ""))) if self.config.trails else ()
        return Asker(query=self.query, owners=owners)

    @property
    def _rule(self) -> Rule:
        skipped = {*(() if self.config.chain else ("NEXT_ANCHOR",)), *(() if self.config.synonyms else ("SYNONYM_OF",))}
        ties = tuple(tie for tie in ("RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF") if tie not in skipped)
        return Rule(alpha=self.config.alpha, strong=self.config.strong, ties=ties, most=self.config.ways)


def _valid(number: int | None, options: Sequence[Option]) -> bool:
    return number is not None and 0 <= number < len(options)


def _refused(number: int | None, options: Sequence[Option]) -> str:
    named = "no way" if number is None else f"way {number}"
    return f"You named {named}. Name one of the ways 0 to {len(options) - 1}, or say that what is known is enough."

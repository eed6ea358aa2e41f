"""Walking: seeds and strong trails first, then move after move as the model chooses (paper, section 3, appendix B)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hgmem.builds.chunk_runs import joined_text
from hgmem.graph.database import Row
from hgmem.graph.retrieval import chunks_of_entities, to_chunk
from hgmem.graph.values import vector
from hgmem.memory.recording import Recording
from hgmem.models.metering import measuring
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST
from hgmem.services import Services
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.tasks import ChooseMove, ChooseNext, JudgeEnough, MoveReply, SummarisePassage
from hgmem.systems.remindrag.trails import LEARNT_ONCE, least_cosine, rule
from hgmem.systems.remindrag.walk_record import (
    REPLAY,
    SEEDS,
    WALK,
    Node,
    Option,
    Walk,
    Way,
    beginning,
    move,
    passage_chunks,
    passage_of,
    passage_title,
    to_node,
    to_way,
)
from hgmem.text.language import counted
from hgmem.values.evidence import Retrieved
from hgmem.values.records import Judgement, Step

ASKED = 3  # times that a choice is asked for, where it is invalid


@dataclass(slots=True, kw_only=True)
class Walker:
    """One walk of a question, recorded in steps: one for its beginning, and one for each place that it enters."""

    services: Services
    record: Recording
    config: ReMindRAGConfig
    walk: Walk
    query: Any  # the question's unit vector
    notes: list[str] = field(default_factory=list)
    _pending: Step | None = None  # to be written: what was found there is only known from the next reply

    def run(self) -> Walk:
        """Walk until what is known is enough, nothing is left to go to, or a limit is reached."""
        with measuring() as meter:
            retrieved = self._begin()
        self._pending = self.record.new_step(REPLAY if self.walk.came else SEEDS, retrieved, meter)
        if self.walk.nodes:
            (self._together if self.config.calls == "few" else self._each)()
        self._flush(None)
        return self.walk

    def _begin(self) -> tuple[Retrieved, ...]:
        """Visit the seeds and what strong trails reach from them, and read the passages that seeds and trails name."""
        config = self.config
        found = self._rows_near("seeds", k=config.seeds, over=max(config.seeds, PROPOSED_NEAREST))
        if config.trails and config.replay and config.starts:
            least = least_cosine(1.0, LEARNT_ONCE, alpha=config.alpha, strong=config.strong)
            more = self._rows_near("starts", owners=self._owners, k=config.starts, least=least)
            known = {row["uid"] for row in found}
            found += [row for row in more if row["uid"] not in known]
        reached: list[tuple[Node, Way | None, Row]] = [(to_node(row), None, {}) for row in found]
        if found and config.trails and config.replay:
            seeds = [row["uid"] for row in found]
            nearest: dict[str, Row] = {}  # those nearer to a seed come first
            for row in self._rows_near("replay", owners=self._owners, seeds=seeds, rule=self._rule):
                nearest.setdefault(row["uid"], row)
            reached = [(to_node(row), _way_of_trail(row), row) for row in nearest.values()]
        for node, way, _ in reached:
            self.walk.visit(node, way, described=not config.quotes)
        self.walk.current = next(iter(self.walk.nodes), None)
        anchors = [(node, way, row.get("passage")) for node, way, row in reached if node.kind == "Anchor"]
        strong = [(node, trail or {}) for node, way, trail in anchors if way is None or trail]
        self._read(
            [passage_of(node, score=trail.get("score") or 1.0) for node, trail in strong],
            {node.uid: trail.get("summary") or "" for node, trail in strong},
        )
        for node, way, row in reached:
            self._quote(node, way, kept=(row.get("chunks") or "").split())
        self._look([node.uid for node, _, _ in reached])
        return beginning(self.walk, scores={row["uid"]: row["score"] for row in found})

    def _together(self) -> None:
        """Ask once a move: what was found, whether it is enough, and where to go."""
        while True:
            left = self.walk.jumps < self.config.max_jumps
            options = [option for option in self._options() if left and isinstance(option, Way)]
            task = ChooseMove(
                question=self.walk.question,
                findings=tuple(self.walk.findings),
                fresh=tuple(self.walk.fresh),
                known=tuple(self.walk.known),
                options=tuple(options),
                left=max(0, self.config.max_jumps - self.walk.jumps - 1),
                followed=bool(self.walk.came) and not self.walk.jumps,
            )
            reply, valid = self._asked(task, options)
            if reply is None:
                return
            self.walk.take_in(reply.found)
            self.walk.enough = reply.enough
            self._flush(reply.found, judgement="sufficient" if reply.enough else None)
            if reply.enough or not valid or not self._go_on(options):
                return
            self._go(options[reply.next or 0], why=reply.why)

    def _asked(self, task: ChooseMove | ChooseNext, options: Sequence[Option]) -> tuple[Any, bool]:
        """Return the latest reply, None where there is no call left, and whether it chose an option if it has to."""
        reply: Any = None
        for _ in range(ASKED):
            if not self._may_call():
                return None, False
            reply = self.services.reply(task)
            ends = isinstance(reply, MoveReply) and (reply.enough or not options)
            if ends or (reply.next is not None and 0 <= reply.next < len(options)):
                return reply, True
            named = "no way" if reply.next is None else f"way {reply.next}"
            ways = f"Name one of the ways 0 to {len(options) - 1}, or say that what is known is enough."
            task = replace(task, refused=f"You named {named}. {ways}")
        self._stopped(f"the model chose no way that exists, {counted(ASKED, 'time')} in a row")
        return reply, False

    def _each(self) -> None:
        """Ask in two calls a move: whether all is enough, and where to go (paper, appendix B.3)."""
        while True:
            self.walk.take_in("")
            if not self._may_call():
                return
            known = tuple(self.walk.known)
            judge = JudgeEnough(question=self.walk.question, known=known)
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
        )
        reply, valid = self._asked(task, options)
        return (options[reply.next], reply.why) if valid else None

    def _go(self, way: Option, *, why: str) -> None:
        """Go a way. An anchor's passage is read on arrival."""
        if not isinstance(way, Way):
            raise AssertionError("only a way is gone")
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
        self._pending = self.record.new_step(WALK, (move(self.walk, way, why),), meter)

    def _read(self, ways_in: Sequence[Way], kept: dict[str, str]) -> None:
        """Read passages of anchors. A long one is summarised for the question, unless a summary was kept of it."""
        if not ways_in:
            return
        uids = [way.node.uid for way in ways_in]
        found = passage_chunks(self.services.database, corpus=self.record.scope.corpus, uids=uids)
        for way in ways_in:
            chunks, summary = found.get(way.node.uid, []), kept.get(way.node.uid, "")
            least = self.config.summary_tokens
            long = least and sum(chunk.tokens for chunk in chunks) >= least
            if long and not summary and self._may_call():
                title, text = passage_title(way, chunks), joined_text(chunks)
                task = SummarisePassage(question=self.walk.question, title=title, text=text)
                summary = self.services.reply(task).text
            self.walk.read(way, chunks, summary)

    def _quote(self, node: Node, way: Way | None, *, kept: Sequence[str] = ()) -> None:
        """Read the chunks nearest to the question that state the relation gone, or else that mention the entity.

        Those that were `kept` (uids) of an earlier walk are read again.
        """
        if not self.config.quotes or node.kind != "Entity":
            return
        database, scope, k = self.services.database, self.record.scope, self.config.quotes
        read = self.walk.read_chunks
        stating = [uid for uid in (kept or (way.chunks if way else ())) if uid not in read]
        k = max(k, len(kept))
        if stating:
            found = [to_chunk(row["chunk"]) for row in self._rows_near("quoted_chunks", uids=stating, k=k)]
        else:
            found = chunks_of_entities(database, scope=scope, uids=[node.uid], query=self.query, k=k + len(read))
        self.walk.quote(node.uid, [chunk for chunk in found if chunk.uid not in read][:k])

    def _look(self, uids: Sequence[str]) -> None:
        for uid in uids:
            if uid not in self.walk.around:
                rows = self._rows_near("ways", owners=self._owners, uid=uid, rule=self._rule)
                self.walk.around[uid] = [to_way(row, source=uid, relation=row["relation"]) for row in rows]

    def _rows_near(self, name: str, **more: Any) -> list[Row]:
        """Return the rows of a statement that looks for what is near the question, in its scope."""
        scope = self.record.scope
        return self.services.database.run(
            name, corpus=scope.corpus, documents=scope.uids, vector=vector(self.query), **more
        )

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

    def _flush(self, found: str | None, *, judgement: Judgement | None = None) -> None:
        if self._pending is None:
            return
        notes = (f"found: {found}",) if found else ()
        self.record.write_step(replace(self._pending, notes=notes, judgement=judgement))
        self._pending = None

    @property
    def _owners(self) -> list[str]:
        """Whose trails count: everybody's, and those of the owner who asks."""
        return list(dict.fromkeys(("", self.services.owner or ""))) if self.config.trails else []

    @property
    def _rule(self) -> Row:
        skipped = {*(() if self.config.chain else ("NEXT_ANCHOR",)), *(() if self.config.synonyms else ("SYNONYM_OF",))}
        ties = [tie for tie in ("RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF") if tie not in skipped]
        return {**rule(self.config.alpha, self.config.strong), "ties": ties, "most": self.config.ways}


def _way_of_trail(row: Row) -> Way | None:
    """Return the way by which a replay reached a node, None for a seed."""
    source = row["source"]
    return to_way(row, source=source, relation=next(iter(row["relations"]), None)) if source else None

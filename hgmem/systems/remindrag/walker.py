"""Walking: seeds and strong trails first, then move after move as the model chooses (paper, section 3, appendix B)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hgmem.builds.chunk_runs import joined_text
from hgmem.graph.database import Row
from hgmem.graph.full_text import Ranking
from hgmem.graph.values import vector
from hgmem.memory.recording import Recording
from hgmem.models.metering import measuring
from hgmem.retrieval.rendering import tokens_of, within
from hgmem.retrieval.step_evidence import PROPOSED_NEAREST, RetrievalConfig, Scene, gather, hybrid_chunks
from hgmem.services import Services
from hgmem.systems.gists.first_look import FirstLook
from hgmem.systems.remindrag.reached import (
    Reached,
    best_found,
    cited_before,
    followed,
    hint_chunks,
    passage_scores,
    reached_by,
    strongest,
    texts_at,
    within_tokens,
)
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.tasks import ChooseMove, ChooseNext, JudgeEnough, MoveReply, SummarisePassage
from hgmem.systems.remindrag.touches import MOST, StrongTrail, near_learnings, standing, strong_trails
from hgmem.systems.remindrag.trails import LEARNT_ONCE, least_cosine
from hgmem.systems.remindrag.walk_record import (
    LOOK,
    REPLAY,
    SEEDS,
    WALK,
    Node,
    Option,
    Walk,
    Way,
    anchors_of,
    beginning,
    in_words,
    looked,
    move,
    passage_of,
    passage_title,
    searched,
    to_anchor,
    to_node,
    to_way,
)
from hgmem.text.language import counted
from hgmem.text.segmentation import collapse
from hgmem.values.evidence import Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.records import Judgement, Step

_LOOK = RetrievalConfig(entities=1, relations=0, chunks=0, searched_chunks=20, exclude=False)
_STRONGEST = 200  # places of strong trails whose texts are found, to choose those that fit
_AGAIN = "what the answers to learnt questions cite that need the same evidence"
_CLUES = 5  # of a kind
OVERVIEW = 2_000  # tokens of what clues are written from
_SEARCHED = 20  # chunks that words and vector each bring to a search
FOUND = 2  # passages that a search reads
_WORDS = 200  # characters of what is searched for, or still to be found
_PARTS = 6  # of the question that are still to be found
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
    began: bool = False  # whether a question near this one was learnt
    answered: set[str] = field(default_factory=set)  # chunks that learnt answers to this very question cite
    _strong: tuple[StrongTrail, ...] = ()  # for the question
    _learnt: Sequence[Row] = ()  # learnings of near questions whose answers did not mislead
    _brought: int = 0  # tokens that strong trails brought
    _told: str = ""  # what the next prompt says of the latest search
    _pending: Step | None = None  # to be written: what was found there is only known from the next reply

    def begin(self) -> Walk:
        """Come to the seeds and to what strong trails reach from them."""
        with measuring() as meter:
            retrieved = self._begin()
        self._pending = self.record.new_step(REPLAY if self.walk.came else SEEDS, retrieved, meter)
        return self.walk

    @property
    def replayed(self) -> bool:
        """Whether the walk begins with what near questions taught."""
        return self.began or bool(self.walk.came)

    def run(self) -> Walk:
        """Walk until what is known is enough, nothing is left to go to, or a limit is reached."""
        if self.walk.nodes:
            (self._together if self.config.calls == "few" else self._each)()
        self.end()
        return self.walk

    def end(self, *, enough: bool = False) -> None:
        """Write the step that is not written yet."""
        self._flush(None, judgement="sufficient" if enough else None)

    def _begin(self) -> tuple[Retrieved, ...]:
        """Visit the seeds and what strong trails reach from them, and read the passages that seeds and trails name."""
        config = self.config
        scope, database = self.record.scope, self.services.database
        self._strong = strong_trails(
            database, corpus=scope.corpus, owners=self._owners, query=self.query, config=config
        )
        self._learnt = self._standing()
        found = self._rows_near("seeds", k=config.seeds, over=max(config.seeds, PROPOSED_NEAREST))
        nearest_ones = {row["uid"] for row in found}
        if config.trails and config.replay and config.starts:
            least = least_cosine(1.0, LEARNT_ONCE, alpha=config.alpha, strong=config.strong)
            more = self._rows_near("starts", owners=self._owners, k=config.starts, least=least, most=MOST)
            known = {row["uid"] for row in found}
            found += [row for row in more if row["uid"] not in known]
            self.began = bool(more)
        passages = passage_scores(self._strong)
        reached = [
            Reached(node=to_node(row), way=None, row={**row, "passage": passages.get(row["uid"])}) for row in found
        ]
        if found and config.trails and config.replay:
            reached += self._replay([row["uid"] for row in found])
        texts = self._texts([place.asked(quotes=config.quotes) for place in reached])
        chosen = within_tokens(reached, texts, first=nearest_ones, tokens=config.replay_tokens)
        brought = (place.node.uid for place in chosen if place.node.uid not in nearest_ones)
        self._brought = tokens_of(*{chunk.uid: chunk for uid in brought for chunk in texts.get(uid, ())}.values())
        for place in chosen:
            self.walk.visit(place.node, place.way, described=not config.quotes)
        self.walk.current = next(iter(self.walk.nodes), None)
        for place in sorted(chosen, key=lambda place: (place.way is not None, -place.score)):  # the strongest first
            if place.reads:
                self._read([passage_of(place.node, score=place.row.get("passage") or 1.0)], texts)
            elif place.node.kind == "Entity":
                self._quote(place.node, texts)
        return beginning(self.walk, scores={row["uid"]: row["score"] for row in found})

    def _replay(self, seeds: Sequence[str]) -> list[Reached]:
        """Return what strong trails reach from the seeds, the strongest of it."""
        scope, database = self.record.scope, self.services.database
        within = None
        if scope.uids is not None:
            ends = sorted({uid for trail in self._strong for uid in trail.ends})
            rows = database.run("places_within", corpus=scope.corpus, documents=scope.uids, uids=ends)
            within = {row["uid"] for row in rows}
        hops = strongest(followed(self._strong, seeds=seeds, ties=self._ties, within=within), most=_STRONGEST)
        by_uid = {hop.uid: hop for hop in hops}
        asked = [{"uid": hop.uid, "source": hop.source} for hop in hops]
        rows = database.run("replay", corpus=scope.corpus, documents=scope.uids, hops=asked) if hops else []
        return [reached_by(row, by_uid[row["uid"]]) for row in rows]

    def recall(self) -> bool:
        """Search for the question alone, and read what it finds where that is much of what a learnt answer cites.

        The rest of what that answer cites is read first. No model is called. Returns whether it was so.
        """
        return bool(self._learnt and self.config.look_tokens) and self._looked(clues=False)

    def look(self) -> bool:
        """Search for the question and for clues, and read the best of what all of them find.

        The passages that have it are places from which the walk goes on. Returns whether it is much of what a learnt
        answer cites, as in `recall`.
        """
        if not self.config.look_tokens:
            return False
        self._flush(None)
        return self._looked(clues=True)

    def _looked(self, *, clues: bool) -> bool:
        config, walk = self.config, self.walk
        with measuring() as meter:
            asked, notes = self._clues() if clues else ((Subquery(text=walk.question),), ())
            vectors = np.vstack([self.query, self.services.embed([each.text for each in asked], kind="query")[1:]])
            scene = Scene(scope=self.record.scope, covered=0, entities=0, narrow=self.record.choice.narrow)
            searching = replace(_LOOK, titles=config.titles)
            found, _ = gather(self.services.database, asked, vectors, scene=scene, config=searching)
            read = walk.read_chunks
            best = best_found(found, read, tokens=config.look_tokens)
            near = {*read, *(chunk.uid for chunk in best)}
            cited = cited_before(self.services.database, self._learnt, near, scope=scene.scope)
            if not (clues or cited):
                return False
            best.sort(key=lambda chunk: chunk not in cited)
            new = [chunk for chunk in cited if chunk.uid not in near]
            again = within(new, tokens=max(0, config.replay_tokens - self._brought), least=0)
            self.answered = {uid for row in self._learnt if row["question"] == walk.question for uid in row["cited"]}
            walk.quote(LOOK if clues else _AGAIN, [*again, *best])
            nodes = self._come_to([*again, *best])
            hits = tuple(Hit(uid=chunk.uid, rank=rank) for rank, chunk in enumerate(again, start=1))
            told = (Retrieved(subquery=Subquery(text=walk.question, concern=_AGAIN), chunks=hits),) if hits else ()
            retrieved = looked((*found.retrieved, *told), nodes, {chunk.uid for chunk in (*again, *best)})
        self._flush(None)
        self._pending = self.record.new_step(LOOK, retrieved, meter, notes=notes)
        return bool(cited)

    def _come_to(self, chunks: Sequence[Chunk]) -> list[Node]:
        """Make the passages that have these chunks places of the walk. Those of which they are all were read."""
        rows = anchors_of(self.services.database, corpus=self.record.scope.corpus, chunks=[one.uid for one in chunks])
        nodes = [to_anchor(row) for row in rows]
        for node, row in zip(nodes, rows, strict=True):
            self.walk.nodes.setdefault(node.uid, node)
            if row["whole"]:
                self.walk.passages.setdefault(node.uid, ())
        return nodes

    def _standing(self) -> list[Row]:
        """Return the learnings of near questions whose answers did not mislead, if they are used."""
        config, owners = self.config, self._owners
        if not (config.trails and config.replay and config.starts):
            return []
        near = near_learnings(self.services.database, corpus=self.record.scope.corpus, owners=owners, query=self.query)
        return standing(near, owner=owners[-1])

    def _clues(self) -> tuple[tuple[Subquery, ...], tuple[str, ...]]:
        """Return what a first look searches for, the question and clues, and notes."""
        config = self.config
        if not config.clues or not self._may_call():
            return (Subquery(text=self.walk.question),), ()
        look = FirstLook(kinds=config.clues, most=_CLUES, tokens=OVERVIEW)
        return look(self.services, self.record.scope, question=self.walk.question, query=self.query)

    def _found(self, words: str, query: Any) -> list[Chunk]:
        """Return the chunks nearest to words and their unit vector."""
        ranking = Ranking(k=_SEARCHED, titles=self.config.titles)
        found = hybrid_chunks(self.services.database, (words, query), scope=self.record.scope, ranking=ranking)
        return [chunk for chunk, _ in found]

    def _search(self, words: str, why: str) -> Retrieved:
        """Search the text for words: the passages of what is found become places, the first one the current."""
        walk = self.walk
        walk.jumps += 1
        walk.searched.add(words.casefold())
        found = self._found(words, self.services.embed([words], kind="query")[0])
        fresh = [chunk.uid for chunk in found if chunk.uid not in walk.read_chunks]
        rows = anchors_of(self.services.database, corpus=self.record.scope.corpus, chunks=fresh)
        new = [row for row in rows if row["uid"] not in walk.passages][:FOUND]
        nodes = [to_anchor(row) for row in new]
        texts = self._texts([{"uid": node.uid, "passage": True, "chunks": [], "k": 0} for node in nodes])
        for node in nodes:
            walk.nodes.setdefault(node.uid, node)
            self._read([passage_of(node, score=1.0)], texts)
        walk.current = nodes[0].uid if nodes else walk.current
        self._told = "" if nodes else f"The search for {words!r} found nothing that was not read before."
        return searched(walk, words, nodes, why=why)

    def _texts(self, places: Sequence[Row], near: Any = None) -> dict[str, list[Chunk]]:
        """Return by place (uid) the chunks that are read there. Of an entity's these are nearest to a unit vector."""
        near, read = self.query if near is None else near, list(self.walk.read_chunks)
        return texts_at(self.services.database, places, scope=self.record.scope, near=near, read=read)

    def _together(self) -> None:
        """Ask once a move: what was found, whether it is enough, and where to go."""
        while True:
            left = self.walk.jumps < self.config.max_jumps
            options: list[Way] = [option for option in self._options() if left and isinstance(option, Way)]
            task = ChooseMove(
                question=self.walk.question,
                findings=tuple(self.walk.findings),
                fresh=tuple(self.walk.fresh),
                known=tuple(self.walk.known),
                options=tuple(options),
                left=max(0, self.config.max_jumps - self.walk.jumps - 1),
                missing=self.walk.missing,
                followed=bool(self.walk.came) and not self.walk.jumps,
                more=self._room - 1 if left else 0,
                search=self.config.search and left,
                refused=self._told,
            )
            self._told = ""
            self.walk.offered.update(option.node.uid for option in options)
            reply, valid = self._asked(task, options)
            if reply is None:
                return
            found = self.walk.take_in(
                reply.found, hint_chunks(self.services, reply.found, options, scope=self.record.scope)
            )
            self.walk.enough = reply.enough
            self.walk.missing = (
                () if reply.enough else tuple(collapse(part)[:_WORDS] for part in reply.missing[:_PARTS])
            )
            self._flush(found, judgement="sufficient" if reply.enough else None)
            if reply.enough or not valid:
                return
            words = self._words(reply)
            if not words and not self._go_on(options):
                return
            chosen = dict.fromkeys(at for at in (reply.next, *reply.also) if at is not None and 0 <= at < len(options))
            ways = [options[at] for at in [*chosen][: self._room - bool(words)]]
            self._enter(ways, why=reply.why, words=words)

    @property
    def _room(self) -> int:
        """How many moves the next call may take."""
        return min(self.config.moves, self.config.max_jumps - self.walk.jumps)

    def _words(self, reply: MoveReply) -> str:
        """Return the words that a reply searches for, if it may and has not done so before."""
        words = collapse(reply.search)[:_WORDS] if self.config.search and self._room > 0 else ""
        return "" if words.casefold() in self.walk.searched else words

    def _enter(self, ways: Sequence[Option], *, why: str, words: str = "") -> None:
        """Go these ways and search for words, in one step that is written once it is known what was found."""
        with measuring() as meter:
            found = [self._go(way, why=why) for way in ways]
            found += [self._search(words, why)] if words else []
        self._pending = self.record.new_step(WALK, tuple(found), meter)

    def _asked(self, task: ChooseMove | ChooseNext, options: Sequence[Option]) -> tuple[Any, bool]:
        """Return the latest reply, None where there is no call left, and whether it chose an option if it has to."""
        reply: Any = None
        for _ in range(ASKED):
            if not self._may_call():
                return None, False
            reply = self.services.reply(task)
            ends = isinstance(reply, MoveReply) and (reply.enough or not options or bool(self._words(reply)))
            named = [at for at in (reply.next, *getattr(reply, "also", ())) if at is not None]
            if ends or any(0 <= at < len(options) for at in named):
                return reply, True
            task = replace(task, refused=self._refusal(reply, len(options)))
        new = " and no search that is new" if self.config.search else ""
        self._stopped(f"the model chose no way that exists{new}, {counted(ASKED, 'time')} in a row")
        return reply, False

    def _refusal(self, reply: Any, ways: int) -> str:
        """Return what a prompt says of a reply that names no way and no new search."""
        again = getattr(reply, "search", "")
        named = "a search that was made before" if again else "no way" if reply.next is None else f"way {reply.next}"
        other = ", search for other words" if again and self.config.search else ""
        return f"You named {named}. Name one of the ways 0 to {ways - 1}{other}, or say that what is known is enough."

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
            self._enter([chosen[0]], why=chosen[1])

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

    def _go(self, way: Option, *, why: str) -> Retrieved:
        """Go a way, and return the arrival. An anchor's passage is read on arrival."""
        assert isinstance(way, Way)  # nothing else is offered
        self.walk.jumps += 1
        place = Reached(node=way.node, way=way, row={"passage": way.score if way.node.kind == "Anchor" else None})
        asked = place.asked(quotes=self.config.quotes)
        sought = ", ".join([in_words(way), *(self.walk.missing or [self.walk.question])])  # why it was chosen
        near = self.services.embed([sought], kind="query")[0] if asked["k"] else None
        texts = self._texts([asked], near)
        if way.is_passage:
            self._read([way], texts)
        else:
            self.walk.visit(way.node, way, described=not self.config.quotes)
            if way.node.kind == "Entity":
                self._quote(way.node, texts)
            if way.node.kind == "Anchor":
                self.walk.jumps += self.config.frontier == "current"  # the paper counts the passage as well
                self._read([passage_of(way.node, score=way.score)], texts)
        self.walk.current = way.node.uid if self.config.frontier == "all" or not way.is_passage else None
        return move(self.walk, way, why)

    def _read(self, ways_in: Sequence[Way], texts: Mapping[str, Sequence[Chunk]]) -> None:
        """Read passages of anchors. A long one is summarised for the question."""
        for way in ways_in:
            chunks, summary = texts.get(way.node.uid, ()), ""
            least = self.config.summary_tokens
            if least and sum(chunk.tokens for chunk in chunks) >= least and self._may_call():
                title, text = passage_title(way, chunks), joined_text(chunks)
                task = SummarisePassage(question=self.walk.question, title=title, text=text)
                summary = self.services.reply(task).text
            self.walk.read(way, chunks, summary)

    def _quote(self, node: Node, texts: Mapping[str, Sequence[Chunk]]) -> None:
        """Read the chunks behind an entity that were not read yet."""
        read = self.walk.read_chunks
        self.walk.quote(node.uid, [chunk for chunk in texts.get(node.uid, ()) if chunk.uid not in read])

    def _look(self) -> None:
        """Find the ways from the visited places, by one statement. With `few` calls, anew for what is to be found."""
        walk, few = self.walk, self.config.calls == "few"
        if few:
            walk.around.clear()
        found: dict[str, list[Way]] = {uid: [] for uid in walk.nodes if uid not in walk.around}
        if found:
            wanted = self.services.embed([", ".join(walk.missing)], kind="query")[0] if walk.missing else self.query
            rows = self.services.database.run(
                "ways",
                corpus=self.record.scope.corpus,
                documents=self.record.scope.uids,
                uids=list(found),
                wanted=vector(wanted),
                read=list(walk.read_chunks) if few else None,
                rule=self._rule,
            )
            for row in rows:
                found[row["start"]].append(to_way(row, source=row["start"], relation=row["relation"]))
            walk.around.update(found)

    def _rows_near(self, name: str, **more: Any) -> list[Row]:
        """Return the rows of a statement that looks for what is near the question, in its scope."""
        scope = self.record.scope
        return self.services.database.run(
            name, corpus=scope.corpus, documents=scope.uids, vector=vector(self.query), **more
        )

    def _options(self) -> list[Option]:
        self._look()
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
        notes = (*self._pending.notes, *((f"found: {found}",) if found else ()))
        self.record.write_step(replace(self._pending, notes=notes, judgement=judgement, open=self.walk.missing))
        self._pending = None

    @property
    def _owners(self) -> list[str]:
        """Whose trails count: everybody's, and those of the owner who asks."""
        return list(dict.fromkeys(("", self.services.owner or ""))) if self.config.trails else []

    @property
    def _ties(self) -> list[str]:
        skipped = {*(() if self.config.chain else ("NEXT_ANCHOR",)), *(() if self.config.synonyms else ("SYNONYM_OF",))}
        return [tie for tie in ("RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF") if tie not in skipped]

    @property
    def _rule(self) -> Row:
        strong = {trail.uid: trail.score for trail in self._strong}
        return {"strong": strong, "ties": self._ties, "most": self.config.ways}

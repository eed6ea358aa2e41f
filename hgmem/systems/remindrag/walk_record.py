"""A walk: the nodes and passages that it came to, where it can go next, and how rows and steps tell of it."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from textwrap import shorten
from typing import Literal, TypeAlias

from hgmem.builds.chunk_runs import joined_text
from hgmem.graph.database import Row
from hgmem.graph.retrieval import to_chunk
from hgmem.graph.values import Runner
from hgmem.retrieval.rendering import heading
from hgmem.systems.remindrag.findings import Seen, found_in
from hgmem.text.tokens import count
from hgmem.values.evidence import BuiltHit, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk, with_others
from hgmem.values.records import Step

NodeKind: TypeAlias = Literal["Entity", "Anchor"]
Tie: TypeAlias = Literal["RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF", "PASSAGE"]
SYSTEM = "remindrag"
SEEDS, REPLAY, WALK, SEARCH = "seeds", "replay", "walk", "search"  # strategies of steps and of what they retrieved
LOOK = "first look"
PASSAGE, SUMMARY = "Passage", "Summary"  # kinds of hits beside those of nodes
_DESCRIPTION = 400  # characters of the description of a node or relation
_STATING = 3  # chunks that are named for a relation, where more state it
_HINT = 180  # characters of what is said of a way
WAYS_TOKENS = 20_000  # of the ways from one place in a prompt, the nearest first (paper: all)
_TITLE = 60  # characters of the title of a way's document
_GOING_ON = 4  # of the ways, one in so many at most goes on from a new text though others are nearer
_STALE = 2  # prompts that had a way which was not gone, after which others come first


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An entity, with its name and description, or an anchor, with its title.

    An entity of a class has the class's uid, the name that is shown, and all `names` of the class. The `span` of an
    anchor is its document (uid) and the places there of the first and the last chunk of its passage.
    """

    uid: str
    kind: NodeKind
    text: str
    description: str = ""
    names: tuple[str, ...] = ()
    span: tuple[str, int, int] | None = None

    @property
    def called(self) -> str:
        """The text, with other names of the entity."""
        return with_others(self.text, self.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way from a visited node (uid) to another, or into the passage of an anchor (`PASSAGE`, to the anchor itself).

    `sentence` is that of a relation, `chunks` are those (uids) that state it. `score` says how near the way is to what
    is to be found, or how strong its trail. Of an anchor, `date` is that of its document. Where a part of this was
    read, `place` says where the passage stands in it, `begun` is whether a part of the passage was read, and `after`
    whether the chunk before it was.
    """

    source: str
    node: Node
    tie: Tie
    sentence: str = ""
    relation: str = ""
    chunks: tuple[str, ...] = ()
    score: float = 0.0
    date: str = ""
    place: str = ""
    begun: bool = False
    after: bool = False

    @property
    def is_passage(self) -> bool:
        """Whether the way leads into a passage."""
        return self.tie == "PASSAGE"


Option: TypeAlias = Way | Node  # a way to go, or a visited node to go back to


def to_node(row: Row) -> Node:
    """Return the node of a row."""
    names = tuple(row["names"])
    text = names[0] if names else row["text"] or ""
    span = tuple(row["span"]) if row.get("span") else None
    return Node(
        uid=row["uid"], kind=row["kind"], text=text, description=row["description"] or "", names=names, span=span
    )


def to_way(row: Row, *, source: str, relation: Row | None) -> Way:
    """Return the way from a node (uid) to that of a row, along a relation if there is one."""
    stated = relation or {}
    return Way(
        source=source,
        node=to_node(row),
        tie=row["tie"],
        sentence=stated.get("description") or "",
        relation=stated.get("uid") or "",
        chunks=tuple(stated.get("chunks") or ()),
        score=row["score"] or 0.0,
        date=row.get("date") or "",
    )


def passage_chunks(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, list[Chunk]]:
    """Return by anchor (uid) the chunks of its passage, in the order of the text."""
    found: dict[str, list[Chunk]] = {}
    for row in database.run("passage_chunks", corpus=corpus, uids=list(uids)):
        found.setdefault(row["uid"], []).append(to_chunk(row["chunk"]))
    return found


def anchors_of(database: Runner, *, corpus: str, chunks: Sequence[str]) -> list[Row]:
    """Return the anchors whose passages have one of these chunks, in their order, each with those that it has."""
    return database.run("anchors_of_chunks", corpus=corpus, uids=list(chunks))


def to_anchor(row: Row) -> Node:
    """Return the node of a row of `anchors_of`."""
    return Node(uid=row["uid"], kind="Anchor", text=row["text"], span=tuple(row["span"]) if row["span"] else None)


def passage_of(node: Node, *, score: float) -> Way:
    """Return the way into an anchor's passage."""
    return Way(source=node.uid, node=replace(node, description=""), tie="PASSAGE", score=score)


def passage_title(way: Way, chunks: Sequence[Chunk]) -> str:
    """Return the title of the passage that a way leads into, and where it is from."""
    return ", from ".join(filter(None, [way.node.text, *map(heading, chunks[:1])]))


def in_words(option: Option) -> str:
    """Return in words where an option leads."""
    if not isinstance(option, Way):
        return f"back to {option.text}"
    node = option.node
    if node.kind == "Anchor":
        which = "the rest of the passage" if option.begun else "the next passage" if option.after else "the passage"
        about = ", ".join(filter(None, [option.date, option.place]))
        read = "read " if option.is_passage and not option.begun else ""
        return f"{read}{which} {node.text!r}{f' ({about})' if about else ''}"
    hint = shorten(option.sentence or node.description, _HINT, placeholder=" …")
    return f"{node.called}: {hint}" if hint else node.called


@dataclass(slots=True, kw_only=True)
class Walk:
    """The state of one walk. Visited nodes and read passages (by their anchors' uids) are in order."""

    question: str
    nodes: dict[str, Node] = field(default_factory=dict)
    came: dict[str, Way] = field(default_factory=dict)
    entered: dict[str, Way] = field(default_factory=dict)
    passages: dict[str, Sequence[Chunk]] = field(default_factory=dict)
    summaries: dict[str, str] = field(default_factory=dict)
    quoted: dict[str, Sequence[Chunk]] = field(default_factory=dict)
    around: dict[str, Sequence[Way]] = field(default_factory=dict)
    findings: list[Seen] = field(default_factory=list)
    fresh: list[Seen] = field(default_factory=list)
    known: list[Seen] = field(default_factory=list)
    missing: tuple[str, ...] = ()  # what is still to be found, by the latest reply
    searched: set[str] = field(default_factory=set)  # words, without their case
    offered: Counter[str] = field(default_factory=Counter)  # how many prompts had a way to a node (uid)
    current: str | None = None
    jumps: int = 0
    calls: int = 0
    enough: bool = False

    def visit(self, node: Node, way: Way | None, *, described: bool) -> None:
        """Come to a node, by a way unless it is a seed. Its description names no source, so it may be left out."""
        self.nodes[node.uid] = node
        if way is not None:
            self.came[node.uid] = way
            if way.sentence:
                self.fresh.append(Seen(text=_shortened(way.sentence), chunks=way.chunks[:_STATING]))
        if node.description and described:
            self.fresh.append(Seen(text=f"{node.called}: {_shortened(node.description)}"))

    def read(self, way: Way, chunks: Sequence[Chunk], summary: str) -> None:
        """Read the passage of an anchor, or what a summary says of it. Chunks read before are not shown again."""
        uid, before = way.node.uid, self.read_chunks
        self.entered[uid] = way
        self.passages[uid] = chunks
        if summary:
            self.summaries[uid] = summary
        new = [chunk for chunk in chunks if chunk.uid not in before]
        uids = tuple(chunk.uid for chunk in new or chunks)
        if new or summary:
            self.fresh.append(Seen(text=summary or joined_text(new), title=passage_title(way, new), chunks=uids))

    def quote(self, uid: str, chunks: Sequence[Chunk]) -> None:
        """Read the chunks behind a node."""
        self.quoted[uid] = chunks
        self.fresh += [Seen(text=chunk.text, title=heading(chunk) or "quote", chunks=(chunk.uid,)) for chunk in chunks]

    def take_in(self, found: str, hints: Sequence[Sequence[str]] = ()) -> str:
        """Take what is new as known, with the sentences that were found in it. Return these, without their markers.

        `hints` are by way the chunks (uids) that say its hint.
        """
        findings = list(found_in(found, self.fresh, hints=hints, read=self.read_chunks))
        self.findings += findings
        self.known += self.fresh
        self.fresh = []
        return " ".join(finding.text for finding in findings)

    def unread(self, uid: str) -> bool:
        """Return whether a node is an anchor whose passage has not been read."""
        return uid in self.nodes and self.nodes[uid].kind == "Anchor" and uid not in self.passages

    def ahead(self, uids: Iterable[str]) -> Iterator[Way]:
        """Return the ways from these visited nodes to others not visited, and into passages not wholly read."""
        known = {(chunk.document, chunk.position): chunk for chunk in self.read_chunks.values()}
        return (_placed(way, known) for way in self._ahead(uids) if not (way.tie == "PASSAGE" and _read(way, known)))

    def _ahead(self, uids: Iterable[str]) -> Iterator[Way]:
        near: dict[str, float] = {}
        for way in (each for ways in self.around.values() for each in ways):
            near[way.node.uid] = max(way.score, near.get(way.node.uid, -1.0))
        for uid in uids:
            if self.unread(uid):
                came = self.came.get(uid)
                score = came.score if came else near.get(uid, 0.0)
                yield passage_of(self.nodes[uid], score=score)
            for way in self.around.get(uid, ()):
                if way.node.uid not in self.nodes:
                    yield way

    def options(self, *, everywhere: bool, most: int) -> list[Option]:
        """Return where the walk can go, best first, at most so many.

        With `everywhere`, it goes on from any visited node. Else it goes on from the current one or into a passage of a
        visited anchor, or back to a visited node (paper, appendix B.3).
        """
        current = [self.current] if self.current is not None else []
        here = _distinct(self.ahead(current))
        if everywhere:
            near = {way.node.uid for way in here}
            every = _distinct(self.ahead(dict.fromkeys([*current, *self.nodes])))  # the best way to each place
            own = _mixed([way for way in every if way.node.uid in near], most // 2)
            own += [way for way in every if way not in own and self._goes_on(way)][: most // _GOING_ON]
            taken = {way.node.uid for way in own}
            others = [way for way in every if way.node.uid not in taken]
            others.sort(key=lambda way: self.offered[way.node.uid] >= _STALE)
            return [*own, *_mixed(others, most - len(own))]
        ways = _fitting(_mixed(here, most))
        read = [way for uid in self.nodes if uid != self.current and self.unread(uid) for way in self.ahead([uid])]
        passages = [way for way in read if way.is_passage]
        back = [node for uid, node in self.nodes.items() if uid != self.current and any(self.ahead([uid]))]
        return [*ways, *passages, *back]

    def _goes_on(self, way: Way) -> bool:
        """Whether a way leads to the rest or to the next of a passage of which the new texts have a part."""
        if way.node.span is None or not (way.begun or way.after):
            return False
        document, first, last = way.node.span
        read = self.read_chunks
        fresh = [read[uid] for seen in self.fresh for uid in seen.chunks if uid in read]
        return any(chunk.document == document and first - 1 <= chunk.position <= last for chunk in fresh)

    @property
    def read_chunks(self) -> Mapping[str, Chunk]:
        """The chunks that were read, by uid: of passages in the order of reading, then quotes."""
        every = (*self.passages.values(), *self.quoted.values())
        return {chunk.uid: chunk for chunks in every for chunk in chunks}


def _read(way: Way, read: Mapping[tuple[str, int], Chunk]) -> bool:
    """Return whether all chunks of the passage that a way leads into were read."""
    if way.node.span is None:
        return False
    document, first, last = way.node.span
    return all((document, at) in read for at in range(first, last + 1))


def _placed(way: Way, read: Mapping[tuple[str, int], Chunk]) -> Way:
    """Return a way to a passage with where it stands in a document of which these chunks were read, by their places."""
    if way.node.span is None:
        return way
    document, first, last = way.node.span
    shown = next((chunk for (uid, _), chunk in read.items() if uid == document), None)
    if shown is None:
        return way
    title = "" if shown.title in way.node.text else f" of {shorten(shown.title, _TITLE, placeholder=' …')!r}"
    place = f"chunk {first + 1}{title}" if first == last else f"chunks {first + 1} to {last + 1}{title}"
    begun = [str(at + 1) for at in range(first, last + 1) if (document, at) in read]
    if begun:
        place += f", of which {' and '.join(filter(None, [', '.join(begun[:-1]), begun[-1]]))} "
        place += "was read" if len(begun) == 1 else "were read"
    date = way.date or shown.date
    return replace(way, date=date, place=place, begun=bool(begun), after=(document, first - 1) in read)


def _shortened(description: str) -> str:
    return shorten(description, _DESCRIPTION, placeholder=" …")


def _distinct(ways: Iterable[Way]) -> list[Way]:
    """Return the best way to each place, best first, of equal ones that along the text."""
    found: dict[tuple[str, bool], Way] = {}
    for way in sorted(ways, key=lambda way: (-way.score, way.tie != "NEXT_ANCHOR")):
        found.setdefault((way.node.uid, way.is_passage), way)
    return list(found.values())


def _mixed(ways: Sequence[Way], most: int) -> list[Way]:
    """Return the best ways, in their order, about as many to passages as to entities where there are enough.

    A title and a relation's sentence are not equally near to a question, so the two kinds don't compete.
    """
    kinds = [[way for way in ways if (way.node.kind == "Anchor") is anchor] for anchor in (True, False)]
    anchors = min(len(kinds[0]), max(most // 2, most - len(kinds[1])))
    kept = {id(way) for way in [*kinds[0][:anchors], *kinds[1][: most - anchors]]}
    return [way for way in ways if id(way) in kept]


def _fitting(ways: Sequence[Way]) -> list[Way]:
    """Return the best ways whose words fit into a prompt."""
    sums = accumulate(count(in_words(way)) for way in ways)
    return [way for way, used in zip(ways, sums, strict=True) if used <= WAYS_TOKENS]


def beginning(walk: Walk, *, scores: Mapping[str, float]) -> tuple[Retrieved, ...]:
    """Return the beginning of a walk: its seeds with their passages, and each place that a strong trail reached."""
    seeds = [node for node in walk.nodes.values() if node.uid not in walk.came]
    hits = [
        BuiltHit(uid=node.uid, kind=node.kind, rank=rank, text=node.text, score=round(scores.get(node.uid, 0), 4))
        for rank, node in enumerate(seeds, start=1)
    ]
    began = _retrieved(walk, Subquery(text=walk.question, strategy=SEEDS), seeds, hits)
    followed = [
        _arrival(walk, way, Subquery(text=in_words(way), concern="a strong trail", strategy=REPLAY), rank=rank)
        for rank, way in enumerate(walk.came.values(), start=1)
    ]
    return began, *followed


def move(walk: Walk, way: Way, why: str) -> Retrieved:
    """Return the arrival at a node, with its passage if it was read at once, or the reading of a passage."""
    stating = () if walk.quoted.get(way.node.uid) else way.chunks
    subquery = Subquery(text=in_words(way), concern=why, strategy=WALK)
    return _arrival(walk, way, subquery, stating=stating)


def searched(walk: Walk, words: str, nodes: Sequence[Node], *, why: str) -> Retrieved:
    """Return the anchors that a search came to, with their passages. Like seeds, nothing led to them."""
    hits = [
        BuiltHit(uid=each.uid, kind=each.kind, rank=rank, text=each.text) for rank, each in enumerate(nodes, start=1)
    ]
    return _retrieved(walk, Subquery(text=words, concern=why, strategy=SEARCH), nodes, hits)


def looked(found: Sequence[Retrieved], nodes: Sequence[Node], chunks: Collection[str]) -> tuple[Retrieved, ...]:
    """Return what a first look searched for and read (chunks by uid). Of its anchors a part was read."""
    hits = tuple(
        BuiltHit(uid=node.uid, kind=node.kind, rank=rank, text=node.text) for rank, node in enumerate(nodes, start=1)
    )
    return tuple(
        Retrieved(
            subquery=replace(each.subquery, strategy=LOOK),
            chunks=tuple(hit for hit in each.chunks if hit.uid in chunks),
            built=() if at else hits,
        )
        for at, each in enumerate(found)
    )


def _arrival(walk: Walk, way: Way, subquery: Subquery, *, rank: int = 1, stating: Sequence[str] = ()) -> Retrieved:
    node, score = way.node, round(way.score, 4)
    hit = BuiltHit(uid=node.uid, kind=node.kind, rank=rank, text=node.text, score=score, source=way.source)
    found = _retrieved(walk, subquery, [node], [] if way.is_passage else [hit], stating=stating)
    return replace(found, relations=(Hit(uid=way.relation, rank=1),)) if way.relation else found


def _retrieved(
    walk: Walk, subquery: Subquery, nodes: Sequence[Node], hits: Sequence[BuiltHit], *, stating: Sequence[str] = ()
) -> Retrieved:
    """Return nodes, by their hits, with the chunks read there, and the chunks (uids) that state a relation."""
    uids = [node.uid for node in nodes]
    names = [node for node in nodes if node.kind == "Entity"]
    read = (chunk for uid in uids for chunk in (*walk.passages.get(uid, ()), *walk.quoted.get(uid, ())))
    origins = {chunk.uid: chunk.source_id for chunk in read}
    origins |= {uid: "" for uid in stating if uid not in origins}
    return Retrieved(
        subquery=subquery,
        entities=tuple(Hit(uid=node.uid, rank=rank, name=node.text) for rank, node in enumerate(names, start=1)),
        chunks=tuple(
            Hit(uid=uid, rank=rank, source_id=origin) for rank, (uid, origin) in enumerate(origins.items(), start=1)
        ),
        built=(*hits, *_passages(walk, uids)),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place that a recorded walk entered, from the place `source`. `passage`: it was read.

    `chunks` (uids) are those that were retrieved there, none for the passages of seeds. `replayed`: no model chose it.
    `told` is where it leads in words, and `found` what the model found there.
    """

    uid: str
    source: str
    text: str
    passage: bool
    chunks: tuple[str, ...] = ()
    replayed: bool = False
    told: str = ""
    found: str = ""


@dataclass(slots=True, kw_only=True)
class RecordedWalk:
    """A walk as it was recorded: its question, its seeds, its places in order, and summaries by anchor (uid)."""

    question: str
    seeds: list[str] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    summaries: dict[str, str] = field(default_factory=dict)

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
        came = {each.uid: each for each in self.places if not each.passage}
        found = [place]
        at = came.get(place.source)
        while at is not None and at not in found:
            found.append(at)
            at = came.get(at.source)
        return found


def recorded_walk(steps: Sequence[Step]) -> RecordedWalk | None:
    """Return the walk of a question's steps, or None if there was none."""
    walk: RecordedWalk | None = None
    for step, retrieved in ((one, each) for one in steps for each in one.retrieved):
        strategy = retrieved.subquery.strategy
        if strategy == SEEDS:
            walk = RecordedWalk(question=retrieved.subquery.text)
        if walk is None or strategy not in (SEEDS, REPLAY, LOOK, WALK, SEARCH):
            continue
        chunks = tuple(hit.uid for hit in retrieved.chunks) if strategy != SEEDS else ()
        for hit in retrieved.built:
            if hit.kind == SUMMARY:
                walk.summaries[hit.source] = hit.text
            elif not hit.source:
                walk.seeds.append(hit.uid)
            else:
                place = Place(
                    uid=hit.uid,
                    source=hit.source,
                    text=hit.text,
                    passage=hit.kind == PASSAGE,
                    chunks=chunks,
                    replayed=strategy not in (WALK, SEARCH),
                    told=hit.text if strategy == SEEDS else retrieved.subquery.text,
                    found=" ".join(step.notes) if strategy in (WALK, SEARCH) else "",
                )
                walk.places.append(place)
    return walk

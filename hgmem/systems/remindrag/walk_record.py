"""A walk: the nodes that it visited, how it came to each, the passages that it read, and where it can go next."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Literal, TypeAlias

from hgmem.builds.chunk_runs import joined_text
from hgmem.values.graph_elements import Chunk

NodeKind: TypeAlias = Literal["Entity", "Anchor"]
Tie: TypeAlias = Literal["RELATES", "MENTIONS", "NEXT_ANCHOR", "SYNONYM_OF", "PASSAGE"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An entity, with its name and description, or an anchor, with its title."""

    uid: str
    kind: NodeKind
    text: str
    told: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way from a visited node (uid) to another, or into the passage of an anchor (`PASSAGE`, to the anchor itself).

    `told` is the sentence of a relation, `chunks` are those (uids) that state it. `score` says how near the way is to
    the question, or how strong its trail.
    """

    source: str
    node: Node
    tie: Tie
    told: str = ""
    relation: str = ""
    chunks: tuple[str, ...] = ()
    score: float = 0.0

    @property
    def is_passage(self) -> bool:
        """Whether the way leads into a passage."""
        return self.tie == "PASSAGE"


Option: TypeAlias = Way | Node  # a way to go, or a visited node to go back to
_TOLD = 400  # characters of the description of a node or relation
_STATING = 3  # chunks that are named for a relation, where more state it


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found at a place that bears on the question, and the chunks (uids) that state it."""

    text: str
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A text that the walk came upon: a passage with its title, a relation's sentence, or a node."""

    text: str
    title: str = ""
    chunks: tuple[str, ...] = ()


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
    findings: list[Finding] = field(default_factory=list)
    fresh: list[Seen] = field(default_factory=list)
    known: list[Seen] = field(default_factory=list)
    current: str | None = None
    jumps: int = 0
    calls: int = 0
    enough: bool = False

    def visit(self, node: Node, way: Way | None, *, described: bool) -> None:
        """Come to a node, by a way unless it is a seed. Its description names no source, so it may be left out."""
        self.nodes[node.uid] = node
        if way is not None:
            self.came[node.uid] = way
            if way.told:
                self.fresh.append(Seen(text=shorten(way.told, _TOLD, placeholder=" …"), chunks=way.chunks[:_STATING]))
        if node.told and described:
            self.fresh.append(Seen(text=f"{node.text}: {shorten(node.told, _TOLD, placeholder=' …')}"))

    def read(self, way: Way, chunks: Sequence[Chunk], summary: str) -> None:
        """Read the passage of an anchor, or what a summary says of it."""
        uid = way.node.uid
        self.entered[uid] = way
        self.passages[uid] = chunks
        if summary:
            self.summaries[uid] = summary
        uids = tuple(chunk.uid for chunk in chunks)
        self.fresh.append(Seen(text=summary or joined_text(chunks), title=way.node.text, chunks=uids))

    def quote(self, uid: str, chunks: Sequence[Chunk]) -> None:
        """Read the chunks behind a node, those of them that no passage or quote has shown."""
        held = self.read_chunks
        fresh = [chunk for chunk in chunks if chunk.uid not in held]
        self.quoted[uid] = fresh
        self.fresh += [Seen(text=chunk.text, title=chunk.title or "quote", chunks=(chunk.uid,)) for chunk in fresh]

    def shown(self, finding: str) -> None:
        """Take what is new as known, with what it told of the question."""
        if finding:
            uids = dict.fromkeys(uid for seen in self.fresh for uid in seen.chunks)
            self.findings.append(Finding(text=finding, chunks=tuple(uids)))
        self.known += self.fresh
        self.fresh = []

    def unread(self, uid: str) -> bool:
        """Return whether a node is an anchor whose passage has not been read."""
        return uid in self.nodes and self.nodes[uid].kind == "Anchor" and uid not in self.passages

    def ahead(self, uids: Iterable[str]) -> Iterator[Way]:
        """Yield the ways from these visited nodes to others that were not visited, and into unread passages."""
        for uid in uids:
            if self.unread(uid):
                yield passage_of(self.nodes[uid], score=self.came[uid].score if uid in self.came else 1.0)
            for way in self.around.get(uid, ()):
                if way.node.uid not in self.nodes:
                    yield way

    def options(self, *, everywhere: bool, most: int) -> list[Option]:
        """Return where the walk can go, best first, at most so many.

        With `everywhere`, it goes on from any visited node. Else it goes on from the current one or into a passage of a
        visited anchor, or back to a visited node (paper, section 3.2).
        """
        current = [self.current] if self.current is not None else []
        here = _distinct(self.ahead(current))
        if everywhere:
            near = {way.node.uid for way in here}
            every = _distinct(self.ahead(dict.fromkeys([*current, *self.nodes])))  # the best way to each place
            own = _mixed([way for way in every if way.node.uid in near], most // 2)
            taken = {way.node.uid for way in own}
            others = [way for way in every if way.node.uid not in taken]
            return [*own, *_mixed(others, most - len(own))]
        ways = _mixed(here, most)
        read = [way for uid in self.nodes if uid != self.current and self.unread(uid) for way in self.ahead([uid])]
        passages = [way for way in read if way.is_passage]
        back = [node for uid, node in self.nodes.items() if uid != self.current and any(self.ahead([uid]))]
        return [*ways, *passages, *back]

    @property
    def read_chunks(self) -> Mapping[str, Chunk]:
        """The chunks that were read, by uid: of passages in the order of reading, then quotes."""
        every = (*self.passages.values(), *self.quoted.values())
        return {chunk.uid: chunk for chunks in every for chunk in chunks}


def _distinct(ways: Iterable[Way]) -> list[Way]:
    """Return the best way to each place, best first."""
    found: dict[tuple[str, bool], Way] = {}
    for way in sorted(ways, key=lambda way: -way.score):
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


def passage_of(node: Node, *, score: float) -> Way:
    """Return the way into an anchor's passage."""
    return Way(source=node.uid, node=replace(node, told=""), tie="PASSAGE", score=score)

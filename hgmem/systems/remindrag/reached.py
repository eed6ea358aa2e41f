"""What seeds and strong trails reach, how much of it the first prompt of a walk is given, and what is read there."""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.retrieval import Scope, find_chunks, to_chunk
from hgmem.graph.values import Runner, vector
from hgmem.retrieval.rendering import within
from hgmem.retrieval.step_evidence import fuse
from hgmem.services import Services
from hgmem.systems.remindrag.findings import hinted
from hgmem.systems.remindrag.touches import StrongTrail, cited_again
from hgmem.systems.remindrag.walk_record import Node, Way, to_node, to_way
from hgmem.text.tokens import count
from hgmem.values.evidence import Evidence
from hgmem.values.graph_elements import Chunk

_SPARE = 3  # chunks found for an entity beyond those read there, as others may be told the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A node (uid) to which a strong trail leads from another one, and how strong that into its own passage is."""

    uid: str
    source: str
    trail: StrongTrail
    passage: float | None

    @property
    def score(self) -> float:
        """How strong the trails are that led here and into the passage, the stronger one."""
        return max(self.trail.score, self.passage or 0.0)


def followed(
    trails: Sequence[StrongTrail], *, seeds: Sequence[str], ties: Collection[str], within: Collection[str] | None
) -> list[Hop]:
    """Return where strong trails lead from seeds (uids), breadth first, each node once.

    No hop leads to a node that is not `within`, if these are given.
    """
    around: dict[str, list[tuple[str, StrongTrail]]] = {}
    for trail in trails:
        if trail.tie in ties and len(trail.ends) == 2:
            one, other = trail.ends
            around.setdefault(one, []).append((other, trail))
            around.setdefault(other, []).append((one, trail))
    passages = passage_scores(trails)
    hops, known, left = [], {*seeds}, deque(seeds)
    while left:
        source = left.popleft()
        for uid, trail in around.get(source, ()):
            if uid not in known and (within is None or uid in within):
                known.add(uid)
                left.append(uid)
                hops.append(Hop(uid=uid, source=source, trail=trail, passage=passages.get(uid)))
    return hops


def passage_scores(trails: Sequence[StrongTrail]) -> dict[str, float]:
    """Return by anchor (uid) how strong the trail into its own passage is."""
    return {trail.ends[0]: trail.score for trail in reversed(trails) if trail.tie == "PASSAGE" and trail.ends}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A place that a walk comes to, by a way unless it is a seed.

    Of the row that was found, `passage` is how strong the trail into the place's own passage is, `chunks` are those
    (uids) that the latest useful learning read there, and `score` is how strong the trail or how near the seed is.
    """

    node: Node
    way: Way | None
    row: Row

    @property
    def said(self) -> str:
        """What is said of the place and of the way there, at most."""
        return f"{self.way.sentence if self.way else ''} {self.node.description}".strip()

    @property
    def reads(self) -> bool:
        """Whether the passage of an anchor is read: that of a seed, or one with a strong trail."""
        return self.node.kind == "Anchor" and (self.way is None or self.row.get("passage") is not None)

    @property
    def score(self) -> float:
        """How strong the trails are that led here and into the passage, the stronger one."""
        return max(self.way.score if self.way else self.row.get("score") or 0.0, self.row.get("passage") or 0.0)

    def asked(self, *, quotes: int) -> Row:
        """Return what is read here, as the statement takes it: at an entity `quotes` chunks, and all that were kept."""
        kept = (self.row.get("chunks") or "").split()
        k = max(quotes, len(kept)) if quotes and self.node.kind == "Entity" else 0
        chunks = kept or list(self.way.chunks if self.way else ())
        return {"uid": self.node.uid, "passage": self.reads, "chunks": chunks, "k": k}


def texts_at(
    database: Runner, places: Sequence[Row], *, scope: Scope, near: Any, read: Sequence[str]
) -> dict[str, list[Chunk]]:
    """Return by place (uid) the chunks that are read there, found by one statement. Entities share none.

    Of an entity's, these are the nearest to a unit vector that are not `read` (uids) yet.
    """
    wanted = [place for place in places if place["passage"] or place["k"]]
    if not wanted:
        return {}
    spare = min(len(wanted) - 1, _SPARE)
    asked = [
        {**place, "chunks": [uid for uid in place["chunks"] if uid not in read], "k": place["k"] + spare}
        for place in wanted
    ]
    rows = database.run(
        "texts_of_places", corpus=scope.corpus, documents=scope.uids, vector=vector(near), places=asked, read=[*read]
    )
    found: dict[str, list[Chunk]] = {}
    for row in rows:
        found.setdefault(row["uid"], []).append(to_chunk(row["chunk"]))
    taken = {chunk.uid for place in wanted if place["passage"] for chunk in found.get(place["uid"], ())}
    for place in (each for each in wanted if not each["passage"]):
        fresh = [chunk for chunk in found.get(place["uid"], ()) if chunk.uid not in taken]
        found[place["uid"]] = fresh[: place["k"]]
        taken |= {chunk.uid for chunk in found[place["uid"]]}
    return found


def hint_chunks(services: Services, found: str, ways: Sequence[Way], *, scope: Scope) -> list[Sequence[str]]:
    """Return by way the chunks (uids) that say what a reply found in its hint: that of its relation comes first.

    A description names no source: of the entity's chunks, it is the nearest to what was found.
    """
    hints: list[Sequence[str]] = [way.chunks[:1] for way in ways]
    for at, text in hinted(found).items():
        if at < len(ways) and not hints[at] and ways[at].node.kind == "Entity":
            near = services.embed([text], kind="query")[0]
            place = {"uid": ways[at].node.uid, "passage": False, "chunks": [], "k": 1}
            texts = texts_at(services.database, [place], scope=scope, near=near, read=[])
            hints[at] = [chunk.uid for chunks in texts.values() for chunk in chunks]
    return hints


def best_found(found: Evidence, read: Collection[str], *, tokens: int) -> list[Chunk]:
    """Return the best chunks that a search found, without those that were read (uids), of at most so many tokens."""
    texts = {chunk.uid: chunk for chunk in found.chunks}
    order = [uid for uid in fuse([[hit.uid for hit in each.chunks] for each in found.retrieved]) if uid not in read]
    return within([texts[uid] for uid in order], tokens=tokens, least=0)


def cited_before(database: Runner, learnt: Sequence[Row], found: Collection[str], *, scope: Scope) -> list[Chunk]:
    """Return what the answers to learnt questions cite of which enough is among the chunks (uids) found."""
    uids = dict.fromkeys(uid for cited in cited_again(learnt, found) for uid in cited)
    known = find_chunks(database, corpus=scope.corpus, uids=list(uids)) if uids else {}
    cited = (known[uid] for uid in uids if uid in known)
    return [chunk for chunk in cited if scope.documents is None or chunk.document in scope.documents]


def reached_by(row: Row, hop: Hop) -> Reached:
    """Return the node of a row, and the way by which a hop led there."""
    told = {**row, "tie": hop.trail.tie, "score": hop.trail.score}
    way = to_way(told, source=hop.source, relation=next(iter(row["relations"]), None))
    return Reached(node=to_node(row), way=way, row={"passage": hop.passage, "chunks": hop.trail.chunks})


def strongest(hops: Sequence[Hop], *, most: int) -> list[Hop]:
    """Return so many hops, the strongest, each with those that led to it."""
    sources, chosen = {hop.uid: hop.source for hop in hops}, set[str]()
    for hop in sorted(hops, key=lambda hop: -hop.score)[:most]:
        chosen |= _chain(hop.uid, sources, chosen).keys()
    return [hop for hop in hops if hop.uid in chosen]


def within_tokens(
    reached: Sequence[Reached], texts: Mapping[str, Sequence[Chunk]], *, first: Collection[str], tokens: int
) -> list[Reached]:
    """Return the places whose texts fit into `tokens`, the strongest first, each with those that led to it.

    The `first` ones (uids) are kept in any case, and not counted.
    """
    by_uid, chosen = {place.node.uid: place for place in reached}, {*first}
    sources = {uid: place.way.source if place.way else "" for uid, place in by_uid.items()}
    read = {chunk.uid for uid in chosen for chunk in texts.get(uid, ())}
    for place in sorted(reached, key=lambda place: -place.score):
        chain = _chain(place.node.uid, sources, chosen)
        fresh = {chunk.uid: chunk.tokens for uid in chain for chunk in texts.get(uid, ()) if chunk.uid not in read}
        size = sum(fresh.values()) + sum(count(by_uid[uid].said) for uid in chain)
        if size <= tokens:
            tokens -= size
            chosen |= chain.keys()
            read |= fresh.keys()
    return [place for place in reached if place.node.uid in chosen]


def _chain(uid: str, sources: Mapping[str, str], chosen: Collection[str]) -> dict[str, None]:
    """Return a place (uid) and those that led to it, as far as they are not chosen yet."""
    chain: dict[str, None] = {}
    while uid in sources and uid not in chosen and uid not in chain:
        chain[uid] = None
        uid = sources[uid]
    return chain

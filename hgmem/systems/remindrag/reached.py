"""What seeds and strong trails reach, and how much of it the first prompt of a walk is given."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.database import Row
from hgmem.systems.remindrag.walk_record import Node, Way
from hgmem.text.tokens import count
from hgmem.values.graph_elements import Chunk


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


def strongest(reached: Sequence[Reached], *, first: Collection[str], most: int) -> list[Reached]:
    """Return the `first` places (uids) and so many others, the strongest, each with those that led to it."""
    by_uid, chosen = {place.node.uid: place for place in reached}, {*first}
    for place in sorted(reached, key=lambda place: -place.score)[:most]:
        chosen |= _chain(place, by_uid, chosen).keys()
    return [place for place in reached if place.node.uid in chosen]


def within_tokens(
    reached: Sequence[Reached], texts: Mapping[str, Sequence[Chunk]], *, first: Collection[str], tokens: int
) -> list[Reached]:
    """Return the places whose texts fit into `tokens`, the strongest first, each with those that led to it.

    The `first` ones (uids) are kept in any case, and not counted.
    """
    by_uid, chosen = {place.node.uid: place for place in reached}, {*first}
    read = {chunk.uid for uid in chosen for chunk in texts.get(uid, ())}
    for place in sorted(reached, key=lambda place: -place.score):
        chain = _chain(place, by_uid, chosen)
        fresh = {chunk.uid: chunk.tokens for uid in chain for chunk in texts.get(uid, ()) if chunk.uid not in read}
        size = sum(fresh.values()) + sum(count(each.said) for each in chain.values())
        if size <= tokens:
            tokens -= size
            chosen |= chain.keys()
            read |= fresh.keys()
    return [place for place in reached if place.node.uid in chosen]


def _chain(place: Reached, by_uid: Mapping[str, Reached], chosen: Collection[str]) -> dict[str, Reached]:
    """Return by uid a place and those that led to it, as far as they are not chosen yet."""
    chain: dict[str, Reached] = {}
    at: Reached | None = place
    while at is not None and at.node.uid not in chosen and at.node.uid not in chain:
        chain[at.node.uid] = at
        at = by_uid.get(at.way.source) if at.way else None
    return chain

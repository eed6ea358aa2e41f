"""What of a replay the first prompt is given: the strongest within the tokens, with what led there."""

from types import SimpleNamespace
from typing import Any

from hgmem.systems.remindrag.reached import Hop, Reached, followed, strongest, within_tokens
from hgmem.systems.remindrag.touches import StrongTrail
from hgmem.systems.remindrag.walk_record import Node, Way


def place(uid: str, source: str = "", *, score: float = 0.0, passage: float | None = None) -> Reached:
    """Return a place, a seed where there is no source."""
    node = Node(uid=uid, kind="Anchor", text=uid)
    way = Way(source=source, node=node, tie="NEXT_ANCHOR", score=score) if source else None
    return Reached(node=node, way=way, row={"passage": passage, "score": None})


def texts(**tokens: int) -> dict[str, list[Any]]:
    """Return a chunk of so many tokens for each place."""
    return {uid: [SimpleNamespace(uid=f"chunk of {uid}", tokens=number)] for uid, number in tokens.items()}


def kept(tokens: int, reached: list[Reached], read: dict[str, list[Any]]) -> list[str]:
    return [one.node.uid for one in within_tokens(reached, read, first={"s"}, tokens=tokens)]


SEED = place("s")
CHAIN = [SEED, place("a", "s", score=0.6), place("b", "a", score=0.7, passage=0.9), place("c", "s", score=0.8)]


def test_the_strongest_come_first_with_those_that_led_there() -> None:
    read = texts(s=700, a=100, b=100, c=100)
    assert kept(0, CHAIN, read) == ["s"]
    assert kept(199, CHAIN, read) == ["s", "c"]
    assert kept(200, CHAIN, read) == ["s", "a", "b"]
    assert kept(300, CHAIN, read) == ["s", "a", "b", "c"]


def test_a_text_of_two_places_is_counted_once() -> None:
    read = texts(s=700, a=100, c=100)
    read["c"] = read["a"]
    assert kept(100, CHAIN, read) == ["s", "a", "b", "c"]


def test_places_in_a_ring_end() -> None:
    ring = [SEED, place("a", "b", score=0.9), place("b", "a", score=0.8)]
    assert kept(500, ring, texts(a=100, b=100)) == ["s", "a", "b"]


def trail(between: str, score: float = 0.6, tie: str = "RELATES") -> StrongTrail:
    ends = tuple(filter(None, between.split("/")))
    return StrongTrail(uid=between, ends=ends, tie=tie, score=score, chunks="")


TRAILS = (
    trail("a/b/", 0.9),
    trail("a/s/"),
    trail("b/s/", 0.6, "SYNONYM_OF"),
    trail("b/", tie="PASSAGE"),
    trail("x/y/"),
)


def told(hops: list[Hop]) -> list[str]:
    return [f"{hop.source}{hop.uid}" for hop in hops]


def test_strong_trails_are_followed_breadth_first_and_never_through_what_a_filter_leaves_out() -> None:
    ties = ("RELATES", "SYNONYM_OF")
    assert told(followed(TRAILS, seeds=["s"], ties=ties, within=None)) == ["sa", "sb"]
    assert told(followed(TRAILS, seeds=["s"], ties=("RELATES",), within=None)) == ["sa", "ab"]
    assert told(followed(TRAILS, seeds=["s"], ties=("RELATES",), within={"b", "s"})) == []
    assert told(followed(TRAILS, seeds=["s"], ties=ties, within={"b"})) == ["sb"]
    assert [hop.passage for hop in followed(TRAILS, seeds=["s"], ties=ties, within=None)] == [None, 0.6]


def test_so_many_of_the_strongest_are_looked_at() -> None:
    hops = followed(TRAILS, seeds=["s"], ties=("RELATES",), within=None)
    assert told(strongest(hops, most=1)) == ["sa", "ab"]
    assert told(strongest(hops[:1], most=1)) == ["sa"]
    assert strongest(hops, most=0) == []

"""Read the pyramid: gists in the order of the text, views that fit a budget, and the gists near a question."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hgmem.graph.built import Layer, near_built
from hgmem.graph.database import Row
from hgmem.graph.retrieval import Scope, to_chunk
from hgmem.graph.values import Runner
from hgmem.systems.gists.build import GIST, NAME
from hgmem.values.evidence import BuiltPassage
from hgmem.values.graph_elements import Chunk

_NEAREST = 200  # gists of all levels that are looked at for those near a question
_OF_TOPS = 0.25  # of the tokens at most, for the highest gists above the nearest ones


@dataclass(frozen=True, slots=True, kw_only=True)
class GistPlace:
    """A gist without its text. `above` are the uids of the gists that condense it."""

    uid: str
    level: int
    tokens: int
    above: tuple[str, ...] = ()


def gist_places(database: Runner, *, scope: Scope) -> list[GistPlace]:
    """Return every gist of the scope in the order of the text: by title, document and position of its first chunk."""
    rows = database.run("gist_places", corpus=scope.corpus, documents=scope.uids)
    return [
        GistPlace(uid=row["uid"], level=row["level"], tokens=row["tokens"], above=tuple(row["above"])) for row in rows
    ]


def whole_text(database: Runner, *, scope: Scope, budget: int) -> tuple[list[Chunk], int]:
    """Return the chunks of the scope in order, none if they exceed `budget` tokens, and how many tokens they have."""
    row = database.run("whole_text", corpus=scope.corpus, documents=scope.uids, budget=budget)[0]
    return [to_chunk(chunk) for chunk in row["chunks"]], row["tokens"]


def gist_texts(database: Runner, *, scope: Scope, uids: Sequence[str]) -> list[BuiltPassage]:
    """Return the gists of these uids, those that exist, in this order."""
    rows = {row["row"]["uid"]: row["row"] for row in database.run("gist_texts", corpus=scope.corpus, uids=list(uids))}
    return [_passage(rows[uid]) for uid in uids if uid in rows]


def texts_without_gist(database: Runner, *, scope: Scope, budget: int) -> tuple[list[Chunk], int]:
    """Return the chunks of chosen documents that only gists of several documents cover, and how many there are.

    They are in order, as far as they fit into `budget` tokens. Where no documents are chosen, there are none.
    """
    if scope.documents is None:
        return [], 0
    [row] = database.run("texts_without_gist", corpus=scope.corpus, documents=scope.uids, budget=budget)
    return [to_chunk(chunk) for chunk in row["chunks"]], row["many"]


class Pyramid:
    """The gists of a scope in the order of the text, without their texts."""

    def __init__(self, places: Sequence[GistPlace]) -> None:
        self._places = places
        self._by_uid = {place.uid: place for place in places}
        self._below: dict[str, list[str]] = defaultdict(list)
        for place in places:
            for above in place.above:
                self._below[above].append(place.uid)

    def fitting(self, budget: int, *, looking: int = 0) -> tuple[list[str], int]:
        """Return the gists (uids) of the most detailed view that fits into `budget` tokens, and how many are left out.

        A view at a level holds the gists of that level, and those below it that none of them condenses. One with
        further gists below it has to leave `looking` tokens free. If none fits so, it is the highest, as far as it fits
        into the whole budget.
        """
        views = [self._view(level) for level in sorted({place.level for place in self._places})]
        if not views:
            return [], 0
        for view in views:
            if self.tokens(view) <= budget - (looking if self.depth(view) else 0):
                return view, 0
        held = self.within(views[-1], budget)
        return held, len(views[-1]) - len(held)

    @property
    def highest(self) -> list[str]:
        """The gists (uids) that none condenses."""
        return self._view(max(place.level for place in self._places))

    def below(self, uid: str) -> Sequence[str]:
        """Return the gists that one condenses, in the order of the text."""
        return self._below.get(uid, ())

    def depth(self, uids: Iterable[str]) -> int:
        """Return how many levels lie below these gists, 0 if none of them condenses others."""
        return max((self._by_uid[uid].level - 1 for uid in uids if self._below.get(uid)), default=0)

    def tokens(self, uids: Iterable[str]) -> int:
        """Return how many tokens gists have together."""
        return sum(self._by_uid[uid].tokens for uid in uids)

    def within(self, uids: Iterable[str], budget: int) -> list[str]:
        """Return the first gists that fit into `budget` tokens."""
        kept: list[str] = []
        for uid in uids:
            budget -= self._by_uid[uid].tokens
            if budget < 0:
                break
            kept.append(uid)
        return kept

    def _view(self, level: int) -> list[str]:
        held = {place.uid for place in self._places if place.level <= level}
        return [place.uid for place in self._places if place.uid in held and held.isdisjoint(place.above)]


def nearest_gists(database: Runner, scope: Scope, vector: Any, *, tokens: int) -> list[BuiltPassage]:
    """Return the gists of documents nearest to a unit vector that fit into `tokens`, in the order of the text.

    Where not all fit, the highest ones above them come first, and take a part of the tokens. Without a build there are
    none. Under a filter, each rests on one of the chosen documents alone.
    """
    layer = Layer(scope=scope, system=NAME, kind=GIST)
    hits = near_built(database, layer=layer, query=vector, k=_NEAREST, over=_NEAREST)
    order = {row["uid"]: at for at, row in enumerate(row for row, _ in hits if row["level"] == 1)}
    if not order:
        return []
    found = database.run("nearest_gists", corpus=scope.corpus, documents=scope.uids, uids=list(order))
    rows = [one for one in found if one["row"]["uid"] in order]  # one that was deleted meanwhile reads as null
    nearest_first = sorted(rows, key=lambda row: order[row["row"]["uid"]])
    tops = {top["uid"]: top for row in nearest_first for top in row["tops"]}
    near = [row["row"] for row in nearest_first]
    crowded = sum(row["tokens"] or 0 for row in near) > tokens
    highest = _within(tops.values(), round(_OF_TOPS * tokens)) if crowded else []
    kept = {row["uid"] for row in _within(near, tokens - sum(row["tokens"] for row in highest))}
    in_order = (row["row"] for row in rows if row["row"]["uid"] in kept)
    return [_passage(row) for row in (*highest, *in_order)]


def _within(rows: Iterable[Row], tokens: int) -> list[Row]:
    """Return the rows that fit into `tokens`, in order, without those that do not."""
    kept = []
    for row in rows:
        if row["tokens"] is not None and row["tokens"] <= tokens:  # one that was deleted meanwhile reads as null
            tokens -= row["tokens"]
            kept.append(row)
    return kept


def _passage(row: Row) -> BuiltPassage:
    return BuiltPassage(
        uid=row["uid"], kind=row["kind"], text=row["text"], title=row["title"] or "", document=row["document"]
    )

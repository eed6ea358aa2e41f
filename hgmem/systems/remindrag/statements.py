"""Typed wrappers for `cypher/remindrag.cypher`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hgmem.graph.database import Row
from hgmem.graph.retrieval import Scope, to_chunk
from hgmem.graph.values import Runner, vector
from hgmem.models.embedding import Vectors
from hgmem.systems.remindrag.walk_record import Node, Way
from hgmem.text.identity import built_uid, layer_key
from hgmem.values.graph_elements import Chunk

SYSTEM = "remindrag"
_LEAST = 1e-6  # length below which a trail has no direction


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """When a trail is strong, which kinds of ties are followed, and how many ways of a node are returned at most."""

    alpha: float
    strong: float
    ties: tuple[str, ...]
    most: int = 0

    @property
    def least(self) -> float:
        """The length below which no trail is strong, since both products are at most 1 (paper, equation 2)."""
        return max((self.strong - self.alpha) / (1 - self.alpha), _LEAST) if self.alpha < 1 else _LEAST


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """A node that a replay reached, by which way (None for a seed), and how strong the trail of its passage is.

    `summary` is what the latest learning of that trail kept of the passage, `chunks` (uids) what one read at the node.
    """

    node: Node
    way: Way | None
    passage: float | None = None
    summary: str = ""
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who asks what: the question's unit vector, and whose trails count (`''`: everybody's)."""

    query: Any
    owners: tuple[str, ...]


def entities_of_anchors(database: Runner, *, corpus: str) -> dict[str, dict[str, str]]:
    """Return for each anchor (uid) the entities that its passage mentions, names by uid."""
    return {row["uid"]: dict(row["entities"]) for row in database.run("entities_of_anchors", corpus=corpus)}


def seeds(database: Runner, *, scope: Scope, query: Any, k: int, over: int) -> list[tuple[Node, float]]:
    """Return the k entities and anchors nearest to a unit vector, with their cosines."""
    rows = database.run(
        "seeds", corpus=scope.corpus, documents=scope.uids, vector=vector(query), k=k, over=max(k, over)
    )
    return [(_node(row), row["score"]) for row in rows]


def starts(database: Runner, *, scope: Scope, asker: Asker, k: int, least: float) -> list[tuple[Node, float]]:
    """Return the nodes from which the k learnings with the nearest questions began, with these questions' cosines."""
    rows = database.run(
        "starts",
        corpus=scope.corpus,
        documents=scope.uids,
        owners=list(asker.owners),
        vector=vector(asker.query),
        k=k,
        least=least,
    )
    return [(_node(row), row["score"]) for row in rows]


def replay(database: Runner, *, scope: Scope, asker: Asker, start: Sequence[str], rule: Rule) -> list[Reached]:
    """Return the seeds (uids) and all nodes that strong trails reach from them, each once, those nearer first."""
    rows = database.run(
        "replay",
        corpus=scope.corpus,
        documents=scope.uids,
        owners=list(asker.owners),
        seeds=list(start),
        vector=vector(asker.query),
        rule=_rule(rule),
    )
    found: dict[str, Reached] = {}
    for row in rows:
        passage = row["passage"] or {}
        node = _node(row)
        found.setdefault(
            node.uid,
            Reached(
                node=node,
                way=_way(row, node, relation=next(iter(row["relations"]), None)) if row["source"] else None,
                passage=passage.get("score"),
                summary=passage.get("summary") or "",
                chunks=tuple((row["chunks"] or "").split()),
            ),
        )
    return list(found.values())


def ways(database: Runner, *, scope: Scope, asker: Asker, uid: str, rule: Rule) -> list[Way]:
    """Return where a walk can go from a node, `rule.most` ways to entities and to anchors at most, each.

    Those nearest to the question come first. The strength of a strong trail counts for its way.
    """
    rows = database.run(
        "ways",
        corpus=scope.corpus,
        documents=scope.uids,
        owners=list(asker.owners),
        uid=uid,
        vector=vector(asker.query),
        rule=_rule(rule),
    )
    return [_way({**row, "source": uid}, _node(row), relation=row["relation"]) for row in rows]


def passage_chunks(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, list[Chunk]]:
    """Return by anchor (uid) the chunks of its passage, in the order of the text."""
    found: dict[str, list[Chunk]] = {}
    for row in database.run("passage_chunks", corpus=corpus, uids=list(uids)):
        found.setdefault(row["uid"], []).append(to_chunk(row["chunk"]))
    return found


def quoted_chunks(database: Runner, *, scope: Scope, uids: Sequence[str], query: Any, k: int) -> list[Chunk]:
    """Return the k of these chunks (uids) that are nearest to a unit vector, the nearest first."""
    rows = database.run(
        "quoted_chunks", corpus=scope.corpus, documents=scope.uids, uids=list(uids), vector=vector(query), k=k
    )
    return [to_chunk(row["chunk"]) for row in rows]


def draw_number(database: Runner, *, corpus: str, owner: str) -> int:
    """Return the number of an owner's next learning. Others wait until the transaction ends."""
    layer = layer_key(corpus, SYSTEM, "TrailScope")
    (row,) = database.run("draw_number", corpus=corpus, scope=scope_uid(corpus, owner), owner=owner, layer_key=layer)
    return int(row["number"])


def put_trails(database: Runner, *, corpus: str, owner: str, rows: Sequence[Row]) -> None:
    """Write trails: uid, key, tie, ends, length, alike, vector."""
    layer = layer_key(corpus, SYSTEM, "Trail")
    database.run("put_trails", corpus=corpus, owner=owner, layer_key=layer, rows=_packed(rows))


def put_learning(
    database: Runner, *, corpus: str, learning: Row, touches: Sequence[Row], summaries: Mapping[str, str]
) -> None:
    """Write a learning, with the trails (uid, effective, chunks) that it touched, and summaries by the anchor's uid."""
    layer = layer_key(corpus, SYSTEM, "Summary")
    database.run(
        "put_learning",
        corpus=corpus,
        layer_key=layer_key(corpus, SYSTEM, "Learning"),
        learning={**learning, "vector": vector(learning["vector"])},
        touches=list(touches),
        summaries=[
            {
                "uid": built_uid(corpus, SYSTEM, kind="Summary", key=f"{learning['key']}/{anchor}"),
                "key": f"{learning['key']}/{anchor}",
                "anchor": anchor,
                "summary": text,
                "layer_key": layer,
            }
            for anchor, text in summaries.items()
        ],
    )


def learnings(database: Runner, *, corpus: str, owner: str | None, uids: Sequence[str] | None = None) -> list[Row]:
    """Return the learnings that an owner sees (None: all), in the order of owners and numbers."""
    given = None if uids is None else list(uids)
    rows = database.run("learnings", corpus=corpus, owner=owner, uids=given)
    return [{**row["row"], "trails": row["trails"], "effective": row["effective"]} for row in rows]


def learning_of(database: Runner, *, corpus: str, uid: str) -> bool:
    """Return whether a learning exists."""
    return bool(database.run("learning_of", corpus=corpus, uid=uid))


def remove_learnings(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[str]:
    """Delete learnings with their summaries. Returns the trails (uids) that they touched."""
    rows = database.run("remove_learnings", corpus=corpus, uids=list(uids))
    return sorted({uid for row in rows for uid in row["trails"]})


def touches_of(database: Runner, *, corpus: str, uids: Sequence[str]) -> list[Row]:
    """Return for each trail what touched it, in order, and how alike its ends are."""
    return database.run("touches_of", corpus=corpus, uids=list(uids))


def learnt_questions(database: Runner, *, corpus: str, uids: Sequence[str]) -> dict[str, Any]:
    """Return the vectors of the questions whose learnings touched these trails (uids), by question."""
    rows = database.run("learnt_questions", corpus=corpus, uids=list(uids))
    return {row["question"]: np.asarray(row["vector"], dtype=np.float32) for row in rows}


def set_trails(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write what trails remember: uid, length, alike, vector."""
    database.run("set_trails", corpus=corpus, rows=_packed(rows))


def list_trails(
    database: Runner, *, corpus: str, owners: Sequence[str] | None, query: Vectors | None, k: int
) -> list[Row]:
    """Return the k strongest trails, for a question's unit vector if there is one, with their ends by name."""
    given = None if query is None else vector(query)
    rows = database.run(
        "list_trails", corpus=corpus, owners=None if owners is None else list(owners), vector=given, k=k, least=_LEAST
    )
    return [{**row["row"], "along": row["along"], "ends": row["ends"], "learnings": row["learnings"]} for row in rows]


def scope_uid(corpus: str, owner: str) -> str:
    """Return the uid of the node that numbers an owner's learnings."""
    return built_uid(corpus, SYSTEM, kind="TrailScope", key=owner)


def _node(row: Row) -> Node:
    return Node(uid=row["uid"], kind=row["kind"], text=row["text"] or "", description=row["description"] or "")


def _rule(rule: Rule) -> Row:
    return {**asdict(rule), "ties": list(rule.ties), "least": rule.least, "rest": 1 - rule.alpha}


def _way(row: Row, node: Node, *, relation: Row | None) -> Way:
    stated = relation or {}
    return Way(
        source=row["source"],
        node=node,
        tie=row["tie"],
        sentence=stated.get("description") or "",
        relation=stated.get("uid") or "",
        chunks=tuple(stated.get("chunks") or ()),
        score=row["score"] or 0.0,
    )


def _packed(rows: Iterable[Row]) -> list[Row]:
    return [{**row, "vector": vector(np.asarray(row["vector"], dtype=np.float32))} for row in rows]

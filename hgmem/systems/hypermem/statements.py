"""Typed wrappers for `cypher/hypermem.cypher`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hgmem.graph.database import Row
from hgmem.graph.full_text import K1, OVER, B, as_indexed, searched_words
from hgmem.graph.lucene import lucene
from hgmem.graph.retrieval import Scope, to_chunk
from hgmem.graph.values import Runner, vector
from hgmem.retrieval.fusion import FUSION
from hgmem.text.identity import layer_key
from hgmem.values.graph_elements import Chunk

SYSTEM = "hypermem"
KINDS = ("Topic", "Episode", "Fact")
_MEMBERSHIP = {"Episode": "IN_TOPIC", "Fact": "IN_EPISODE"}


def memberships(database: Runner, *, corpus: str, kind: str) -> dict[str, dict[str, float]]:
    """Return for each hyperedge the weights of its members of a kind by uid, by the uid of the row at its centre."""
    rows = database.run("memberships", corpus=corpus, type=_MEMBERSHIP[kind])
    return {row["uid"]: dict(row["members"]) for row in rows}


def entities_of_episodes(database: Runner, *, corpus: str) -> dict[str, dict[str, str]]:
    """Return for each episode (uid) the entities that its chunks mention, names by uid."""
    return {row["uid"]: dict(row["entities"]) for row in database.run("entities_of_episodes", corpus=corpus)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Depths:
    """How many rows of each level are kept (0: the level is not searched), and how a level is ranked.

    `inherit` is the weight of the rank of the row above, beside a weight of 1 of each of a row's own two. `depth` are
    the ranks of a level that count, `fusion` is the constant of reciprocal rank fusion (paper: 60). `as_of` and `since`
    are times as rows have them, or empty.
    """

    topics: int
    episodes: int
    facts: int
    inherit: float
    depth: int
    over: int
    fusion: int = FUSION
    as_of: str = ""
    since: str = ""
    speaker: str = ""
    over_words: int = OVER
    k1: float = K1
    b: float = B


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A row that a level kept, with its score, its properties, and the chunks (uids) that it rests on."""

    uid: str
    kind: str
    score: float
    properties: Mapping[str, Any]
    chunks: tuple[str, ...]


def recall(
    database: Runner, *, scope: Scope, asked: tuple[str, Any], depths: Depths, given: Mapping[str, Sequence[str]]
) -> dict[str, list[Recalled]]:
    """Return the topics, episodes and facts that a question (text and unit vector) finds, by kind, best first.

    `given` has the rows (uids) of the levels `topics` and `episodes` that were searched before.
    """
    text, query = asked
    wanted = searched_words(text)
    layers = [
        {
            "kind": kind,
            "lucene": lucene(as_indexed(wanted), corpus=scope.corpus, layer=layer_key(scope.corpus, SYSTEM, kind)),
        }
        for kind in KINDS
    ]
    rows = database.run(
        "recall",
        corpus=scope.corpus,
        documents=scope.uids,
        vector=vector(query),
        layers=layers,
        words=wanted,
        given={level: list(given[level]) if level in given else None for level in ("topics", "episodes")},
        limits=asdict(depths),
    )
    found: dict[str, list[Recalled]] = {kind: [] for kind in KINDS}
    for row in rows:
        if row["row"]["uid"] is not None:  # deleted while the statement ran
            found[KINDS[row["level"]]].append(_recalled(row, KINDS[row["level"]]))
    return found


def _recalled(row: Row, kind: str) -> Recalled:
    return Recalled(
        uid=row["row"]["uid"], kind=kind, score=row["score"], properties=row["row"], chunks=tuple(row["chunks"])
    )


def list_facts(database: Runner, *, corpus: str, depths: Depths) -> list[Recalled]:
    """Return facts by the time of their messages, the newest first."""
    rows = database.run("list_facts", corpus=corpus, limits=asdict(depths))
    return [_recalled(row, "Fact") for row in rows if row["row"]["uid"] is not None]


def unbuilt_chunks(database: Runner, *, scope: Scope) -> list[Chunk]:
    """Return the chunks of conversations that hold a message of no episode, the newest of each conversation first."""
    found = []
    for row in database.run("unbuilt_chunks", corpus=scope.corpus, documents=scope.uids):
        chunk, lasts = to_chunk(row["chunk"]), set(row["lasts"])
        ended = [at for at, place in enumerate(chunk.messages) if place.id in lasts]
        if not lasts or (ended and ended[-1] + 1 < len(chunk.messages)):
            found.append(chunk)
    return found

"""What holds of trails at any time: each has its ends, and is what its learnings made of it, in their order."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hgmem.corpus.own_invariants import OwnInvariant
from hgmem.graph.database import Row
from hgmem.graph.values import Runner
from hgmem.systems.remindrag.reembedding import trail_row
from hgmem.systems.remindrag.statements import learnt_questions, list_trails, touches_of

_AT_ONCE = 500
_ALL = 10_000_000


def _trails(database: Runner, corpus: str) -> Iterator[tuple[Row, str]]:
    """Yield each trail as its learnings see it, with its kind of tie."""
    ties = {row["uid"]: row["tie"] for row in list_trails(database, corpus=corpus, owners=None, query=None, k=_ALL)}
    uids = sorted(ties)
    for start in range(0, len(uids), _AT_ONCE):
        for row in touches_of(database, corpus=corpus, uids=uids[start : start + _AT_ONCE]):
            yield row, ties[row["uid"]]


def without_ends(database: Runner, corpus: str) -> Iterator[str]:
    """Yield the trails (uids) that do not have the ends of their tie."""
    return (row["uid"] for row, tie in _trails(database, corpus) if row["ends"] != (1 if tie == "PASSAGE" else 2))


def other_than_learnt(database: Runner, corpus: str) -> Iterator[str]:
    """Yield the trails (uids) whose vector is not that of their learnings in order, or that have none."""
    vectors: dict[str, Any] = {}
    for row, _ in _trails(database, corpus):
        if not row["touches"] or row["vector"] is None:
            yield row["uid"]
            continue
        if any(touch["question"] not in vectors for touch in row["touches"]):
            vectors |= learnt_questions(database, corpus=corpus, uids=[row["uid"]])
        again = trail_row(row, vectors, dimensions=len(row["vector"]))["vector"]
        if not np.array_equal(again, np.asarray(row["vector"], dtype=np.float32)):
            yield row["uid"]


INVARIANTS = (
    OwnInvariant(name="ends", meaning="a trail lacks an end", violated=without_ends),
    OwnInvariant(name="learnt", meaning="a trail is not what its learnings made of it", violated=other_than_learnt),
)

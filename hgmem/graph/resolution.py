"""Typed functions for `cypher/resolution.cypher`: decisions on entities, and the classes that follow from them.

An entity's class is always that of the decisions that stand: whoever decides, and whoever creates or deletes an entity
that a decision names, writes it in the same transaction. All of them lock the corpus first, so none misses another.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

from hgmem.errors import ConflictError
from hgmem.graph.corpus import lock_corpus
from hgmem.graph.database import Row
from hgmem.graph.values import Runner, uids_of
from hgmem.values.decisions import Classes, Decision, classes


def settle_known(transaction: Runner, *, corpus: str, uids: Sequence[str]) -> None:
    """Write the classes of entities (uids) that have come or gone, if a decision names them."""
    if decided := uids_of(transaction, "decided_entities", corpus=corpus, uids=list(uids)):
        lock_corpus(transaction, corpus=corpus)
        settle(transaction, corpus=corpus, uids=decided)


def settle(transaction: Runner, *, corpus: str, uids: Iterable[str]) -> list[Row]:
    """Write the classes of entities (uids), and of all that `same` decisions tie them to. The corpus is locked.

    Returns the decisions on these entities, as `all_decisions` does.
    """
    rows: list[Row] = []
    seen: set[str] = set()
    wave = set(uids)
    while wave:
        seen |= wave
        found = decisions_on(transaction, corpus=corpus, uids=wave)
        rows += found
        same = [row["decision"] for row in found if row["decision"]["kind"] == "same"]
        wave = {one[end] for one in same for end in ("a", "b")} - seen
    _write_classes(transaction, corpus, seen, classed(rows))
    return rows


def settle_all(transaction: Runner, *, corpus: str) -> int:
    """Write the classes of all decisions of a corpus, and return how many entities had another."""
    wrong = wrong_classes(transaction, corpus=corpus)
    _write_classes(transaction, corpus, wrong, classed(all_decisions(transaction, corpus=corpus)))
    return len(wrong)


def wrong_classes(database: Runner, *, corpus: str) -> list[str]:
    """Return the entities (uids) whose class is not that of the decisions."""
    wanted = classed(all_decisions(database, corpus=corpus)).of
    stored = {row["uid"]: row["canonical"] for row in database.run("classed_entities", corpus=corpus)}
    return sorted(uid for uid in wanted.keys() | stored.keys() if wanted.get(uid) != stored.get(uid))


def _write_classes(transaction: Runner, corpus: str, uids: Iterable[str], found: Classes) -> None:
    of = found.of
    rows = [{"uid": uid, "canonical": of.get(uid)} for uid in sorted(uids)]
    transaction.run("write_classes", corpus=corpus, rows=rows)


def decisions_on(database: Runner, *, corpus: str, uids: Iterable[str]) -> list[Row]:
    """Return the decisions on these entities, as `all_decisions` does."""
    return database.run("decisions_of", corpus=corpus, uids=sorted(uids))


def all_decisions(database: Runner, *, corpus: str) -> list[Row]:
    """Return all decisions: each as `decision`, and those of its entities (uids) that exist as `alive`."""
    return database.run("every_decision", corpus=corpus)


def classed(rows: Iterable[Row]) -> Classes:
    """Return the classes of decisions as their statements return them."""
    found, alive = read(rows)
    return classes(found.values(), alive)


def read(rows: Iterable[Row]) -> tuple[dict[str, Decision], set[str]]:
    """Return the decisions of rows by uid, and those of their entities (uids) that exist."""
    found = {row["decision"]["uid"]: row for row in rows}
    alive = {uid for row in found.values() for uid in row["alive"]}
    decisions = {uid: {**row["decision"], "evidence": tuple(row["decision"]["evidence"])} for uid, row in found.items()}
    return {uid: Decision(**fields) for uid, fields in decisions.items()}, alive


def lock_ready(transaction: Runner, *, corpus: str) -> None:
    """Lock the corpus, or raise `ConflictError` if it is not ready."""
    row = lock_corpus(transaction, corpus=corpus)
    if row is None or row.status != "ready":
        raise ConflictError(f"corpus {corpus!r} is not ready: try again when the operation on it has ended")


def write_decisions(transaction: Runner, *, corpus: str, decisions: Sequence[Decision]) -> list[Row]:
    """Write decisions and the classes that follow, and return what `settle` does. Corpus and entities are locked."""
    rows = [{**asdict(one), "created_at": one.created_at or None} for one in decisions]
    transaction.run("write_decisions", corpus=corpus, rows=rows)
    return settle(transaction, corpus=corpus, uids={end for one in decisions for end in (one.a, one.b)})


def delete_decisions(transaction: Runner, *, corpus: str, decisions: Sequence[Decision]) -> None:
    """Delete decisions, and write the classes that follow. The corpus is locked."""
    transaction.run("delete_decisions", corpus=corpus, uids=sorted(one.uid for one in decisions))
    settle(transaction, corpus=corpus, uids={end for one in decisions for end in (one.a, one.b)})


def entities_named(database: Runner, *, corpus: str, uids: Iterable[str]) -> dict[str, str]:
    """Return the names of those of the entities (uids) that exist."""
    rows = database.run("entities_named", corpus=corpus, uids=sorted(uids))
    return {row["uid"]: row["name"] for row in rows}

"""Delete what systems have built on a text, at any distance, in the transaction that deletes the text."""

from collections.abc import Sequence

from hgmem.graph.built import delete_built, dependents, empty_units, learnt_of_entities, release_extensions
from hgmem.graph.values import Runner

AT_ONCE = 5_000  # uids in one statement


def drop_dependents(transaction: Runner, *, corpus: str, uids: Sequence[str]) -> list[str]:
    """Delete the built and learnt rows that rest on these chunks, rows or units, and empty such units.

    Returns the uids of the rows and units. No model is called: the next build makes the units anew. The caller's
    transaction holds the lock on the corpus.
    """
    found = resting(transaction, corpus=corpus, uids=uids)
    for some in _parts(found):
        release_extensions(transaction, corpus=corpus, units=some)
        empty_units(transaction, corpus=corpus, uids=some)
        delete_built(transaction, corpus=corpus, uids=some)
    return found


def drop_learnt(transaction: Runner, *, corpus: str, entities: Sequence[str]) -> None:
    """Delete the learnt rows that are tied to one of these entities (uids), and what rests on such rows."""
    found = learnt_of_entities(transaction, corpus=corpus, uids=entities)
    if found:
        drop_dependents(transaction, corpus=corpus, uids=found)
        delete_built(transaction, corpus=corpus, uids=found)


def resting(transaction: Runner, *, corpus: str, uids: Sequence[str]) -> list[str]:
    """Return the uids of what rests on these, directly or through others, level by level."""
    found: dict[str, None] = {}
    level = list(uids)
    while level:
        above = [uid for some in _parts(level) for uid in dependents(transaction, corpus=corpus, uids=some)]
        level = list(dict.fromkeys(uid for uid in above if uid not in found))
        found |= dict.fromkeys(level)
    return list(found)


def _parts(uids: Sequence[str]) -> list[Sequence[str]]:
    return [uids[at : at + AT_ONCE] for at in range(0, len(uids), AT_ONCE)]

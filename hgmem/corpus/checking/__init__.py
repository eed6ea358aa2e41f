"""Check a corpus for violated invariants without writing anything.

Unfinished work is reported as a note. Concurrent writes can cause false findings, so check again.
"""

from collections.abc import Sequence

from hgmem.corpus.checking.contents import (
    check_builds,
    check_chunks,
    check_entities,
    check_memories,
    check_own,
    check_relations,
)
from hgmem.corpus.checking.findings import Tally
from hgmem.graph.database import Database
from hgmem.graph.invariants import OwnInvariants, violations
from hgmem.graph.schema import TYPES, differing, missing, show_indexes
from hgmem.graph.values import vector
from hgmem.services import Services, settled_corpus
from hgmem.values.reports import Checkup

# Statements that read violations, and take nothing but the corpus.
BROKEN = ("broken_documents", "broken_support", "crossings", "leaks", "orphans", "broken_citations")


def check(services: Services, *, own: Sequence[OwnInvariants] = ()) -> Checkup:
    """Return every violation in the corpus. `own` are invariants of installed systems.

    If the schema is invalid, nothing else is checked. Raises `UsageError` if the corpus is not ready.
    """
    tally = Tally()
    tally.add("schema", _schema(services.database))
    if not tally.checkup(services.corpus).ok:  # statements name their indexes and fail without them
        return tally.checkup(services.corpus)
    row = settled_corpus(services)
    database, corpus, zero = services.database, services.corpus, vector([0.0] * row.dimensions)
    for name in BROKEN:
        tally.take(violations(database, name, corpus=corpus))
    tally.take(violations(database, "broken_builds", corpus=corpus, ours=sorted(TYPES)))
    tally.take(violations(database, "broken_vectors", corpus=corpus, dimensions=row.dimensions, zero=zero))
    check_chunks(services, row, tally)
    check_entities(services, row, tally)
    check_relations(services, row, tally)
    check_memories(services, row, tally)
    check_builds(services, row, tally)
    check_own(services, own, tally)
    return tally.checkup(services.corpus)


def _schema(database: Database) -> list[str]:
    indexes = show_indexes(database)
    declared = [*missing(indexes), *differing(indexes)]
    return declared + [name for name, row in indexes.items() if row["state"] != "ONLINE" and name not in declared]

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
from hgmem.graph.invariants import (
    OwnInvariants,
    broken_builds,
    broken_citations,
    broken_documents,
    broken_support,
    broken_vectors,
    crossings,
    leaks,
    orphans,
)
from hgmem.graph.schema import differing, missing, show_indexes
from hgmem.services import Services, settled_corpus
from hgmem.values.reports import Checkup


def check(services: Services, *, own: Sequence[OwnInvariants] = ()) -> Checkup:
    """Return every violation in the corpus. `own` are invariants of installed systems.

    If the schema is invalid, nothing else is checked. Raises `UsageError` if the corpus is not ready.
    """
    tally = Tally()
    tally.add("schema", _schema(services.database))
    if not tally.checkup(services.corpus).ok:  # statements name their indexes and fail without them
        return tally.checkup(services.corpus)
    row = settled_corpus(services)
    for look in (broken_documents, broken_support, crossings, leaks, orphans, broken_citations, broken_builds):
        tally.take(look(services.database, corpus=services.corpus))
    tally.take(broken_vectors(services.database, corpus=services.corpus, dimensions=row.dimensions))
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

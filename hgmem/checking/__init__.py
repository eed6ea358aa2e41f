"""Looking through a corpus for promises that are broken; nothing is written.

What is unfinished is a note. Whoever writes meanwhile may be seen half-way: what is found then, look for again.
"""

from hgmem.checking.contents import check_chunks, check_entities, check_relations
from hgmem.checking.memories import check_memories
from hgmem.checking.promises import Checkup
from hgmem.checking.tally import Tally
from hgmem.errors import UsageError
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.database import Database
from hgmem.graph.invariants import (
    broken_citations,
    broken_documents,
    broken_support,
    broken_vectors,
    crossings,
    leaks,
    orphans,
)
from hgmem.graph.schema import differing, missing, show_indexes
from hgmem.services import Services, known_corpus


def check(services: Services) -> Checkup:
    """Return every promise that the corpus breaks; nothing but the schema is looked at where that is broken."""
    tally = Tally()
    tally.add("schema", _schema(services.database))
    if not tally.checkup(services.corpus).ok:  # statements name their indexes, and fail without them
        return tally.checkup(services.corpus)
    row = _whole_corpus(services)
    for look in (broken_documents, broken_support, crossings, leaks, orphans, broken_citations):
        tally.take(look(services.database, corpus=services.corpus))
    tally.take(broken_vectors(services.database, corpus=services.corpus, dimensions=row.dimensions))
    check_chunks(services, row, tally)
    check_entities(services, row, tally)
    check_relations(services, row, tally)
    check_memories(services, row, tally)
    return tally.checkup(services.corpus)


def _schema(database: Database) -> list[str]:
    indexes = show_indexes(database)
    declared = [*missing(indexes), *differing(indexes)]
    return declared + [name for name, row in indexes.items() if row["state"] != "ONLINE" and name not in declared]


def _whole_corpus(services: Services) -> CorpusRow:
    row = known_corpus(services)
    if row.status != "ready":
        raise UsageError(
            f"corpus {row.corpus!r} is {row.status}, there is nothing whole to check: wait until that is done, or "
            "start it again"
        )
    return row

"""Make the vectors of built rows again that are no embedding of a text, when the corpus gets another embedder."""

from collections.abc import Mapping, Sequence

from hgmem.builds.reading import stored_row
from hgmem.builds.stages import Reembedding
from hgmem.corpus.paging import pages
from hgmem.errors import HGMemError, UsageError
from hgmem.graph.built import clear_plain_vectors, put_plain_vectors
from hgmem.graph.database import Row
from hgmem.graph.embeddings import plain_vectors
from hgmem.graph.exporting import built_uids
from hgmem.graph.values import Runner
from hgmem.models.embedding import Vectors
from hgmem.services import Services

BATCH = 1_000  # rows read together


def renew_derived(services: Services, writer: Runner, hooks: Mapping[str, Reembedding]) -> None:
    """Write what each system's hook makes of its rows, and remove vectors for which no hook makes others.

    The texts of all rows have their new vectors. `writer` writes each batch in its own transaction.
    """
    corpus = services.corpus
    for uids in pages(services.database, built_uids, corpus=corpus, size=BATCH):
        found = plain_vectors(services.database, corpus=corpus, uids=uids)
        made: dict[str, Vectors] = {}
        for system in sorted({row["system"] for row in found} & hooks.keys()):
            made |= _made(services, system, hooks[system], [row for row in found if row["system"] == system])
        if made:
            put_plain_vectors(writer, corpus=corpus, rows=[{"uid": uid, "vector": made[uid]} for uid in made])
        if none := [row["uid"] for row in found if row["uid"] not in made]:
            clear_plain_vectors(writer, corpus=corpus, uids=none)


def _made(services: Services, system: str, hook: Reembedding, rows: Sequence[Row]) -> dict[str, Vectors]:
    try:
        made = hook(services, [stored_row(row) for row in rows])
    except HGMemError:
        raise
    except Exception as error:
        raise UsageError(
            f"system {system!r} raised {type(error).__name__} at re-embedding its rows: {error}: report this to the "
            "system's authors"
        ) from error
    known = {row["uid"] for row in rows}
    return {uid: vector for uid, vector in made.items() if uid in known}

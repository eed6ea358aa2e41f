"""Typed functions for the statements of a whole corpus and its leases."""

from dataclasses import dataclass
from typing import Any

from hgmem.graph.database import Database, Row, leased, remaining
from hgmem.graph.values import Runner, to_json
from hgmem.values.reports import CorpusStatus

SCHEMA_VERSION = 8
LOADING = "loading"  # the status of a corpus that Neo4j's importer has written, until `finish_loading`
DELETE_BATCH = 2_000
FILL_BATCH = 10_000
MOST_FAILURES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRow:
    """A corpus with its lease.

    `language` is None until the first document is written. `silent` is the age of the lease's last heartbeat in
    seconds, or None without a lease. `cleared` is None unless the corpus is being re-embedded, and True once no old
    vector is left.
    """

    corpus: str
    status: str
    embedding_model: str
    dimensions: int
    settings: str = "{}"
    imported: str | None = None
    archive: str | None = None
    cleared: bool | None = None
    schema_version: int = SCHEMA_VERSION
    language: str | None = None
    run: str | None = None
    silent: int | None = None


def all_corpora(database: Runner) -> list[Row]:
    """Return every corpus by name: corpus, status, embedding_model, dimensions, created_at."""
    rows = database.run("corpora")
    return remaining(rows, "corpus", "status", "embedding_model", "dimensions", "created_at")


def find_corpus(database: Runner, *, corpus: str) -> CorpusRow | None:
    """Return the corpus, or None."""
    rows = database.run("find_corpus", corpus=corpus)
    return CorpusRow(**rows[0]) if rows else None


def lock_corpus(database: Runner, *, corpus: str) -> CorpusRow | None:
    """Lock the corpus until the transaction ends, and return it, or None if there is none."""
    rows = database.run("lock_corpus", corpus=corpus)
    return CorpusRow(**rows[0]) if rows else None


def create_corpus(
    database: Runner, *, corpus: str, status: str, embedder: tuple[str, int], settings: dict[str, object]
) -> CorpusRow:
    """Create the corpus unless it exists, and return it."""
    model, dimensions = embedder
    rows = database.run(
        "create_corpus",
        corpus=corpus,
        status=status,
        embedding_model=model,
        dimensions=dimensions,
        settings=to_json(settings),
        schema_version=SCHEMA_VERSION,
    )
    return CorpusRow(**rows[0])


def corpus_identity(database: Runner, *, corpus: str) -> str:
    """Return what tells a corpus from those of its name in other databases, and from earlier ones."""
    rows = database.run("corpus_identity", corpus=corpus)
    return str(rows[0]["identity"]) if rows else ""


def corpus_language(database: Runner, *, corpus: str) -> str:
    """Return the two-letter code of the corpus's language, or `''` if nothing is written yet."""
    rows = database.run("corpus_language", corpus=corpus)
    return str(rows[0]["language"] or "") if rows else ""


def set_language(database: Runner, *, corpus: str, language: str) -> str:
    """Set the language of a corpus that has none, and return the one that it has."""
    rows = database.run("set_language", corpus=corpus, language=language)
    return str(rows[0]["language"]) if rows else language


def lease_corpus(database: Runner, *, corpus: str, run: str, status: str, timeout: float) -> bool:
    """Return whether this run has the lease on the corpus now."""
    return bool(database.run("lease_corpus", corpus=corpus, run=run, status=status, timeout=timeout))


def write_leased(database: Runner, name: str, /, *, corpus: str, run: str, **more: Any) -> None:
    """Run a write that checks the run's lease on the corpus, or raise `ConflictError` if it is lost."""
    leased(database.run(name, corpus=corpus, run=run, **more), what=f"corpus {corpus!r}")


def renew_corpus(database: Runner, *, corpus: str, run: str) -> None:
    """Renew the lease, or raise `ConflictError` if it is lost."""
    write_leased(database, "renew_corpus", corpus=corpus, run=run)


def release_corpus(database: Runner, *, corpus: str, run: str, status: str, imported: str | None = None) -> None:
    """Release the lease and set the corpus's status, or raise `ConflictError` if the lease is lost."""
    write_leased(database, "release_corpus", corpus=corpus, run=run, status=status, imported=imported)


def count_entities(database: Runner, *, corpus: str, most: int) -> int:
    """Return the number of the corpus's entities, or `most` if there are more."""
    return int(database.run("count_entities", corpus=corpus, most=most)[0]["entities"])


def leased_memories(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the uids of memories whose lease was renewed in the last `timeout` seconds."""
    return [row["uid"] for row in database.run("leased_memories", corpus=corpus, timeout=timeout)]


def leased_builds(database: Runner, *, corpus: str, timeout: float) -> list[str]:
    """Return the systems whose build's lease was renewed in the last `timeout` seconds."""
    return [row["system"] for row in database.run("leased_builds", corpus=corpus, timeout=timeout)]


def count_corpus(database: Runner, *, corpus: CorpusRow) -> CorpusStatus:
    """Return the corpus's counts of documents, chunks, entities and so on, and its failed chunks."""
    counts = database.run("count_corpus", corpus=corpus.corpus)[0]
    failures = database.run("failed_chunks", corpus=corpus.corpus, most=MOST_FAILURES) if counts["failed"] else []
    return CorpusStatus(
        corpus=corpus.corpus,
        status=corpus.status,
        embedding_model=corpus.embedding_model,
        dimensions=corpus.dimensions,
        failures=tuple(failures),
        **counts,
    )


def finish_loading(database: Database, *, corpus: str) -> None:
    """Write what the importer can't read, and let readers in."""
    database.run("fill_keywords", corpus=corpus, batch=FILL_BATCH)
    mark_corpus(database, corpus=corpus, status="ready")


def mark_corpus(database: Runner, *, corpus: str, status: str) -> None:
    """Set the status. Readers refuse every one but `ready`."""
    database.run("mark_corpus", corpus=corpus, status=status)


def delete_corpus_contents(database: Database, *, corpus: str) -> None:
    """Delete everything in the corpus but the corpus node, in bounded transactions."""
    database.run("delete_corpus_contents", corpus=corpus, batch=DELETE_BATCH)


def delete_corpus_node(database: Runner, *, corpus: str) -> None:
    """Delete the node of an empty corpus."""
    database.run("delete_corpus_node", corpus=corpus)

"""Typed twins of `cypher/corpus.cypher`."""

from dataclasses import dataclass

from hgmem.graph.database import Database, claimed
from hgmem.graph.values import Runner, to_json
from hgmem.model import CorpusStatus

SCHEMA_VERSION = 1
DELETE_BATCH = 2_000
MOST_FAILURES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusRow:
    """A corpus: `silent` is how many seconds ago its claim was renewed, None where nobody holds it."""

    corpus: str
    status: str
    embedding_model: str
    dimensions: int
    settings: str = "{}"
    imported: str | None = None
    archive: str | None = None
    run: str | None = None
    silent: int | None = None


def corpora(database: Runner) -> list[dict[str, str]]:
    """Return every corpus: name, status, embedding model, dimensions, time of creation."""
    return database.run("corpora")


def find_corpus(database: Runner, *, corpus: str) -> CorpusRow | None:
    """Return the corpus, or None."""
    rows = database.run("find_corpus", corpus=corpus)
    return CorpusRow(**rows[0]) if rows else None


def create_corpus(
    database: Runner, *, corpus: str, status: str, embedder: tuple[str, int], settings: dict[str, object]
) -> CorpusRow:
    """Return the corpus, created unless it was there."""
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


def claim_corpus(database: Runner, *, corpus: str, run: str, status: str, timeout: float) -> bool:
    """Return whether this run holds the corpus now."""
    return bool(database.run("claim_corpus", corpus=corpus, run=run, status=status, timeout=timeout))


def set_embedder(database: Runner, *, corpus: str, run: str, embedder: tuple[str, int]) -> None:
    """Write with which model (name and dimensions) the corpus is embedded from here on."""
    model, dimensions = embedder
    rows = database.run("set_embedder", corpus=corpus, run=run, embedding_model=model, dimensions=dimensions)
    claimed(rows, what=f"corpus {corpus!r}")


def renew_corpus(database: Runner, *, corpus: str, run: str) -> None:
    """Say that this run is alive; a lost claim is a `ConflictError`."""
    claimed(database.run("renew_corpus", corpus=corpus, run=run), what=f"corpus {corpus!r}")


def release_corpus(database: Runner, *, corpus: str, run: str, status: str, imported: str | None) -> None:
    """Give the claim back, leaving the corpus with `status`."""
    rows = database.run("release_corpus", corpus=corpus, run=run, status=status, imported=imported)
    claimed(rows, what=f"corpus {corpus!r}")


def count_corpus(database: Runner, *, corpus: CorpusRow) -> CorpusStatus:
    """Return how much of everything the corpus holds, and which chunks failed."""
    counts = database.run("count_corpus", corpus=corpus.corpus)[0]
    failures = failed_chunks(database, corpus=corpus.corpus) if counts["failed"] else []
    return CorpusStatus(
        corpus=corpus.corpus,
        status=corpus.status,
        embedding_model=corpus.embedding_model,
        dimensions=corpus.dimensions,
        failures=tuple(failures),
        **counts,
    )


def failed_chunks(database: Runner, *, corpus: str) -> list[dict[str, str]]:
    """Return the first chunks whose extraction failed: chunk, document, error, attempts."""
    return database.run("failed_chunks", corpus=corpus, most=MOST_FAILURES)


def mark_corpus(database: Runner, *, corpus: str, status: str) -> None:
    """Give the corpus another status; readers refuse every one but `ready`."""
    database.run("mark_corpus", corpus=corpus, status=status)


def delete_corpus_contents(database: Database, *, corpus: str) -> None:
    """Delete everything of the corpus but the corpus itself, in bounded transactions."""
    database.run("delete_corpus_contents", corpus=corpus, batch=DELETE_BATCH)


def delete_corpus_node(database: Runner, *, corpus: str) -> None:
    """Delete the corpus itself, once it is empty."""
    database.run("delete_corpus_node", corpus=corpus)

"""Importing a ready-made graph into an empty corpus: all of it or nothing, and refused by readers until it is whole."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from hgmem.claims import renewing
from hgmem.contributions import (
    EntityContribution,
    RelationContribution,
    chunks_of,
    dump,
    entity_fields,
    entity_text,
    relation_fields,
    relation_text,
)
from hgmem.corpus.adding import put_documents
from hgmem.corpus.fold import Report, batches, entity_row, relation_row
from hgmem.errors import ConflictError, HGMemError, UsageError
from hgmem.given import Prepared, prepare
from hgmem.graph.corpus import (
    CorpusRow,
    claim_corpus,
    count_corpus,
    create_corpus,
    delete_corpus_contents,
    delete_corpus_node,
    find_corpus,
    release_corpus,
    renew_corpus,
    set_embedder,
)
from hgmem.graph.database import Database, Row, Transaction
from hgmem.graph.entities import create_entities, create_relations
from hgmem.graph.values import to_json
from hgmem.identity import text_hash
from hgmem.inputs import Given
from hgmem.services import Services, readable_corpus

IMPORTING = "importing"


def import_graph(services: Services, given: Given, *, report: Report = lambda _, __: None) -> bool:
    """Return whether anything was written: the same graph again writes nothing.

    `report` hears how many entities and relations are written, of how many; they come after the chunks.
    """
    if not given.documents and not given.entities:
        raise UsageError("there is nothing to import: no documents, no entities")
    fingerprint = text_hash(to_json(asdict(given)))
    prepared = prepare(given, corpus=services.corpus)
    row = find_corpus(services.database, corpus=services.corpus)
    if row is not None and row.status != IMPORTING:
        readable_corpus(services)
        if row.imported == fingerprint:
            return False
        _refuse_contents(services, row)
    with _holding(services, fingerprint) as held:
        _write(services, held, prepared, report=report)
    return True


def _refuse_contents(services: Services, row: CorpusRow) -> None:
    counts = count_corpus(services.database, corpus=row)
    if counts.documents or counts.entities or counts.memories:
        raise UsageError(
            f"corpus {row.corpus!r} holds {counts.documents} documents, {counts.entities} entities and "
            f"{counts.memories} memories: import into a new one, or delete it first"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """The database, for writes that check in their own transaction that this run still holds the corpus."""

    database: Database
    corpus: str
    run_id: str

    def run(self, name: str, /, **parameters: Any) -> list[Row]:
        """Return the rows of a statement; a lost claim is a `ConflictError`, and nothing is written."""
        return self.database.write(_guarded, self, name, parameters)


def _guarded(transaction: Transaction, held: _Held, name: str, parameters: Row) -> list[Row]:
    renew_corpus(transaction, corpus=held.corpus, run=held.run_id)
    return transaction.run(name, **parameters)


@contextmanager
def _holding(services: Services, fingerprint: str) -> Iterator[_Held]:
    """Claim the corpus for the block, and yield how to write to it; whatever ends it early leaves no corpus."""
    database, corpus, run = services.database, services.corpus, secrets.token_hex(8)
    timeout = services.settings.claim_timeout
    if not database.write(_claim, services, run):
        raise ConflictError(f"corpus {corpus!r} is being imported by another process: wait for it, or {timeout:g} s")
    try:
        with renewing(lambda: renew_corpus(database, corpus=corpus, run=run), every=services.settings.heartbeat):
            delete_corpus_contents(database, corpus=corpus)  # what a killed import left
            yield _Held(database=database, corpus=corpus, run_id=run)
            release_corpus(database, corpus=corpus, run=run, status="ready", imported=fingerprint)
    except ConflictError:
        raise  # another run holds it now
    except BaseException:
        with suppress(HGMemError):
            renew_corpus(database, corpus=corpus, run=run)  # what another run holds now is not ours to delete
            delete_corpus_contents(database, corpus=corpus)
            delete_corpus_node(database, corpus=corpus)
        raise


def _claim(transaction: Transaction, services: Services, run: str) -> bool:
    """Return whether this run holds the corpus now; an import that was killed may have had another embedder."""
    corpus, timeout = services.corpus, services.settings.claim_timeout
    embedder = (services.embedder.name, services.embedder.dimensions)
    create_corpus(transaction, corpus=corpus, status=IMPORTING, embedder=embedder, settings={})
    if not claim_corpus(transaction, corpus=corpus, run=run, status=IMPORTING, timeout=timeout):
        return False
    set_embedder(transaction, corpus=corpus, run=run, embedder=embedder)
    return True


def _write(services: Services, held: _Held, prepared: Prepared, *, report: Report) -> None:
    done, total = 0, len(prepared.entities) + len(prepared.relations)
    report(done, total)
    put_documents(services, held, prepared, status=IMPORTING)
    for entities in batches(prepared.entities.items()):
        _create_entities(services, held, entities)
        report(done := done + len(entities), total)
    for relations in batches(prepared.relations.items()):
        _create_relations(services, held, relations)
        report(done := done + len(relations), total)


def _create_entities(
    services: Services, held: _Held, batch: Sequence[tuple[str, tuple[EntityContribution, ...]]]
) -> None:
    limit = services.settings.description_characters
    fields = [entity_fields(said, limit=limit) for _, said in batch]
    rows = [
        replace(entity_row(services.corpus, key, chunks_of(said)), given=dump(said), fields=values)
        for (key, said), values in zip(batch, fields, strict=True)
    ]
    vectors = services.embed([entity_text(values.name, values.description.text) for values in fields], kind="document")
    create_entities(held, corpus=services.corpus, rows=rows, vectors=vectors)


def _create_relations(
    services: Services, held: _Held, batch: Sequence[tuple[tuple[str, str], tuple[RelationContribution, ...]]]
) -> None:
    limit = services.settings.description_characters
    fields = [relation_fields(said, limit=limit) for _, said in batch]
    rows = [
        replace(relation_row(services.corpus, ends, chunks_of(said)), given=dump(said), fields=values)
        for (ends, said), values in zip(batch, fields, strict=True)
    ]
    texts = [
        relation_text(ends, values.description.text, values.keywords)
        for (ends, _), values in zip(batch, fields, strict=True)
    ]
    create_relations(held, corpus=services.corpus, rows=rows, vectors=services.embed(texts, kind="document"))

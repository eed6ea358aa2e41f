"""Write the stages of a folder into a live database.

An empty corpus is filled by several writers at a time: documents and chunks, entities, then what ties them, in rounds
whose writers have no node in common. Readers refuse the corpus until that is complete, and a killed run is resumed:
what is there is left out. A corpus that has contents already gets the documents as ordinary indexing writes them, with
the stored replies in place of a model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from hgmem.corpus.aggregation import ENTITY, RELATION, SEGMENT, Kind
from hgmem.corpus.documents import compared
from hgmem.corpus.guarded_writes import renewing
from hgmem.corpus.indexing import index
from hgmem.corpus.paging import batches
from hgmem.errors import ConflictError, HGMemError, UsageError
from hgmem.graph.builds import find_builds
from hgmem.graph.corpus import (
    CorpusRow,
    count_entities,
    delete_corpus_contents,
    find_corpus,
    lease_corpus,
    release_corpus,
    renew_corpus,
    set_language,
)
from hgmem.graph.database import Row
from hgmem.graph.documents import chunks_of_documents, create_chunks, create_documents, document_states, list_documents
from hgmem.graph.resolution import all_decisions
from hgmem.graph.stages import tie_mentions
from hgmem.graph.values import Runner, uids_of, with_some_vectors
from hgmem.services import Services, check_dimensions, check_schema, open_corpus, readable_corpus
from hgmem.stages.files import Folder, Header
from hgmem.stages.parallel_writes import Writers
from hgmem.stages.reading import documents_in
from hgmem.stages.replies import REPLIES, Stored
from hgmem.text.identity import text_hash
from hgmem.values.inputs import Document
from hgmem.values.reports import CountReport, IndexReport, Report, counting

WRITERS = 2
WRITING = "writing stages"  # begins the status of a corpus that is being filled; the input's hash follows
MENTIONS = 5_000  # rows in a transaction
DESCRIBED = ["uid", "id", "title", "source", "metadata", "sha256", "chunking", "stems", "date", "type", "messages"]


def write(
    folder: Folder, services: Services, *, report: Report = lambda _: None, writers: int = WRITERS
) -> IndexReport:
    """Write what the folder's last complete run made into the corpus, and return what was done.

    Raises `UsageError` if the folder is of another corpus, embedder or language.
    """
    header, current = folder.header(), folder.current()
    if header is None or current is None:
        raise UsageError(f"{folder.address!r} holds no complete stages: run `hgmem index … --stages` again")
    if header.corpus != services.corpus:
        raise UsageError(f"stage folder {folder.address!r} is of corpus {header.corpus!r}: pass that corpus")
    row = find_corpus(services.database, corpus=services.corpus)
    if row is None:
        row = open_corpus(services)
    filling = f"{WRITING} {text_hash(str(current))[:16]}"
    _check_same(header, row)
    if not is_being_written(row):
        check_dimensions(services, readable_corpus(services))
        if not _is_empty(services):
            return _merged(folder, services, current["documents"], report=report)
    with _leased(services, filling, row) as run:
        filled = _Filling(folder, services, Writers(services, run, writers), resumed=row.status == filling)
        return filled.fill(header, current, counting(report, "entities and relations"))


def is_being_written(row: CorpusRow) -> bool:
    """Return whether a run fills the corpus from stages, or was interrupted at that."""
    return row.status.startswith(WRITING)


def _check_same(header: Header, row: CorpusRow) -> None:
    check_schema(row)
    for what, made, has in (
        ("language", header.language, row.language or header.language),
        ("embedder", header.embedder, row.embedding_model),
    ):
        if made != has:
            raise UsageError(
                f"the stages of corpus {row.corpus!r} were made with {what} {made!r}, and the corpus has {has!r}: use "
                "another folder, or delete the corpus first"
            )


def _is_empty(services: Services) -> bool:
    database, corpus = services.database, services.corpus
    return not (
        list_documents(database, corpus=corpus, most=1)
        or count_entities(database, corpus=corpus, most=1)
        or all_decisions(database, corpus=corpus)
        or find_builds(database, corpus=corpus)
    )


@contextmanager
def _leased(services: Services, status: str, row: CorpusRow) -> Iterator[str]:
    """Lease the corpus for the block with this status, and yield the run's name. At the end it is ready.

    A run that begins again where this one was interrupted has the same name. What another left is deleted.
    """
    database, corpus, run = services.database, services.corpus, text_hash(status)[:16]

    def renew(transaction: Runner) -> None:
        renew_corpus(transaction, corpus=corpus, run=run)

    def release(status: str) -> None:
        release_corpus(database, corpus=corpus, run=run, status=status)

    if not lease_corpus(database, corpus=corpus, run=run, status=status, timeout=services.settings.claim_timeout):
        raise ConflictError(
            f"corpus {corpus!r} is being written by another process: wait until it ends; if it crashed, retry "
            f"{services.settings.claim_timeout:g} s after its last heartbeat"
        )
    try:
        with renewing(database, renew, every=services.settings.heartbeat):
            if is_being_written(row) and row.status != status:
                delete_corpus_contents(database, corpus=corpus)
            yield run
            release("ready")
    except BaseException:
        with suppress(HGMemError):
            release(status)
        raise


@dataclass(frozen=True, slots=True)
class _Filling:
    """One run that fills an empty corpus, or goes on with that."""

    folder: Folder
    services: Services
    writers: Writers
    resumed: bool

    def fill(self, header: Header, current: dict[str, list[str]], report: CountReport) -> IndexReport:
        """Write all parts, and return what was done."""
        services, done = self.services, IndexReport()
        set_language(services.database, corpus=services.corpus, language=header.language)
        with self.writers:
            tasks = [partial(self._write_documents, part) for part in current["documents"]]
            for documents, replies in self.writers.each(tasks):
                failed = sum(row["reply"] is None for row in replies)
                done.documents += documents
                done.chunks += len(replies) - failed
                done.failed += failed
                done.errors += _errors(replies)
            total, written = 2 * len(current["graph"]), 0
            for write in (self._write_entities, self._write_relations):
                for name in current["graph"]:
                    write(name)
                    report(written := written + 1, total)
        return done

    def _write_documents(self, part: str) -> tuple[int, list[Row]]:
        """Write the documents of a part and their chunks, and return how many documents, and the chunks' replies."""
        replies = {row["chunk"]: row for row in self.folder.rows(REPLIES, part)}
        chunks = self.folder.rows("chunks", part)
        failed = {row["document"] for row in chunks if replies[row["uid"]]["reply"] is None}
        documents = self.folder.rows("documents", part, DESCRIBED)
        uids = [row["uid"] for row in documents]
        there: set[str] = set()
        if self.resumed:
            there |= document_states(self.services.database, corpus=self.services.corpus, uids=uids).keys()
            known = chunks_of_documents(self.services.database, corpus=self.services.corpus, documents=uids)
            there |= {uid for statuses in known.values() for uid in statuses}
        rows = [_document_row(row, whole=row["uid"] not in failed) for row in documents if row["uid"] not in there]
        if rows:
            create_documents(self.writers, corpus=self.services.corpus, rows=rows)
        vectors = {uid: vector for (uid, _), vector in self.folder.vectors(part).items()}
        placed = (row for row in _placed(chunks) if row["uid"] not in there)
        for batch in batches(placed, size=SEGMENT):
            rows = [{**row, "more": _extracted(replies[row["uid"]])} for row in batch]
            good = [vectors[row["uid"]] if replies[row["uid"]]["reply"] is not None else None for row in rows]
            create_chunks(self.writers, corpus=self.services.corpus, rows=rows, vectors=good)
        return len(documents), list(replies.values())

    def _write_entities(self, name: str) -> None:
        rows = self.folder.rows("graph/entities", name)
        vectors = {uid: vector for (uid, _), vector in self.folder.vectors(name).items()}
        fresh = self._unknown(rows, ENTITY.known)
        tasks = [
            partial(self._create, ENTITY, vectors, batch)
            for batch in batches(({**row, "chunks": []} for row in fresh), size=SEGMENT)
        ]
        for _ in self.writers.each(tasks):
            pass
        mentions = [{"entity": row["uid"], "chunk": chunk} for row in rows for chunk in row["chunks"]]
        corpus, again = self.services.corpus, self.resumed
        tie = partial(tie_mentions, self.writers, corpus=corpus, again=again)
        self.writers.run_apart(mentions, tie, ends=("entity", "chunk"), size=MENTIONS)

    def _write_relations(self, name: str) -> None:
        rows = self._unknown(self.folder.rows("graph/relations", name), RELATION.known)
        vectors = {uid: vector for (uid, _), vector in self.folder.vectors(name).items()}
        self.writers.run_apart(
            rows,
            partial(self._create, RELATION, vectors),
            ends=("source", "target"),
            size=SEGMENT,
        )

    def _create(self, kind: Kind, vectors: Mapping[str, Any], rows: Sequence[Row]) -> None:
        self.writers.run(kind.create, corpus=self.services.corpus, rows=with_some_vectors(rows, vectors))

    def _unknown(self, rows: Sequence[Row], statement: str) -> list[Row]:
        """Return the rows that an interrupted run has not written."""
        if not self.resumed:
            return list(rows)
        database, corpus = self.services.database, self.services.corpus
        uids = [row["uid"] for row in rows]
        known = {uid for some in batches(uids) for uid in uids_of(database, statement, corpus=corpus, uids=some)}
        return [row for row in rows if row["uid"] not in known]


def _document_row(row: Row, *, whole: bool) -> Row:
    properties = {name: row[name] for name in DESCRIBED if name not in ("uid", "messages")}
    properties |= {"message_number": row["messages"]}
    if not whole:  # the next run finishes it
        properties |= {"status": "pending", "indexed_at": None}
    return {"uid": row["uid"], "properties": properties}


def _placed(chunks: Iterable[Row]) -> Iterator[Row]:
    """Yield chunks in order, each with the one before it in its document."""
    before: Row = {}
    for row in chunks:
        yield {**row, "before": before.get("uid") if before.get("document") == row["document"] else None}
        before = row


def _extracted(reply: Row) -> Row:
    """Return what ordinary indexing leaves at a chunk after its call."""
    if reply["reply"] is None:
        return {"attempts": 1, "status": "failed", "error": reply["error"]}
    return {"attempts": 1, "extraction": reply["reply"]}


def _errors(replies: Iterable[Row]) -> Iterator[str]:
    for row in replies:
        if row["error"]:
            how = " failed" if row["reply"] is None else ": gleaning is incomplete"
            yield f"chunk {row['chunk']}{how}: {row['error']}"


def _merged(folder: Folder, services: Services, parts: Iterable[str], *, report: Report) -> IndexReport:
    """Index the documents of parts as ordinary indexing does, with the stored replies."""
    stored = Stored()

    def documents() -> Iterator[Document]:
        for part in parts:
            found = documents_in(folder, part)
            if not all(each.finished for each in compared(services, found, graph=True)):
                stored.add(folder, part)
            yield from found.values()

    return index(services, documents(), report=report, extract=stored)

"""Index documents: chunk, extract, and aggregate into entities and relations.

The state of each chunk is stored in Neo4j, so no work is repeated: unchanged documents are not written again, and
stored extractions are not computed again. A killed run resumes where it stopped. Model calls run all the time: while
some are running, finished ones are saved and aggregated, and the next documents are written.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from hgmem.corpus.aggregation import ENTITY, RELATION, aggregate, finish_interrupted, refresh, rows_of
from hgmem.corpus.documents import (
    DOCUMENTS,
    ComparedDocument,
    bounded,
    chunked,
    compared,
    replaced_messages,
    withdraw_support,
    write_description,
    write_document,
)
from hgmem.corpus.guarded_writes import check_embedder, embedding, marking
from hgmem.corpus.paging import batches
from hgmem.corpus.parallel_calls import Calls, Ended
from hgmem.corpus.summarization import condense
from hgmem.errors import (
    AccessError,
    BadReplyError,
    BudgetError,
    ConflictError,
    HGMemError,
    ModelError,
    UnreachableError,
)
from hgmem.extraction.contributions import entities_of, new_in
from hgmem.extraction.replies import Extraction
from hgmem.extraction.tasks import Extract, Glean
from hgmem.graph.builds import ADDED, APPENDED, CHANGED, EXTRACTED
from hgmem.graph.database import Transaction
from hgmem.graph.documents import (
    EMBEDDED,
    OpenChunk,
    chunk_texts,
    embed_chunks,
    fail_chunks,
    failed_documents,
    finish_documents,
    lock_chunks,
    open_chunks,
    save_extractions,
)
from hgmem.models.embedding import Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm import LanguageModel
from hgmem.models.llm.task_routing import serving
from hgmem.retrieval.rendering import heading
from hgmem.services import Services, check_dimensions, open_corpus, ready_corpus
from hgmem.text.segmentation import words
from hgmem.values.graph_elements import DocumentUid, EntityUid, RelationUid
from hgmem.values.inputs import Document, Skipped
from hgmem.values.reports import IndexReport, Progress, Report, counting

FEW_WORDS = 5  # shorter texts may name no entity
TEXTS = 128  # chunks embedded and stored together without a graph: at most this much is repeated after a kill


def index(
    services: Services,
    items: Iterable[Document | Skipped],
    *,
    graph: bool = True,
    report: Report = lambda _: None,
    extract: "Extractor | None" = None,
) -> IndexReport:
    """Add documents to the corpus, and return what was done.

    `report` receives the progress. If the model budget is spent or the model is unreachable, finished extractions are
    aggregated before the error is raised. Without `graph`, chunks are embedded and not extracted. `extract` takes the
    place of the model.
    """
    done = IndexReport()
    batches_to_index = _write_batches(services, items, done, graph=graph)
    if not graph:
        return _embedded(services, batches_to_index, done=done, report=report)
    return _indexed(services, batches_to_index, done=done, report=report, extract=extract)


def retry_failed(services: Services, *, report: Report = lambda _: None) -> IndexReport:
    """Extract the chunks that failed before, finish their documents, and return what was done."""
    ready_corpus(services)
    done = IndexReport()
    failed = failed_documents(services.database, corpus=services.corpus)
    open_batches = (_open_batch(services, documents) for documents in batches(failed, size=DOCUMENTS))
    done.documents = len(failed)
    return _indexed(services, open_batches, done=done, report=report)


def extract_open(services: Services, document: DocumentUid, *, report: Report) -> IndexReport:
    """Extract the chunks of a stored document (uid) that are not extracted, and return what was done."""
    open_batch = _open_batch(services, [document])
    found = open_batch[0].extractions or open_batch[1]
    done = IndexReport(documents=1 if found else 0, unchanged=0 if found else 1)
    return _indexed(services, iter([open_batch] if found else []), done=done, report=report)


def _indexed(
    services: Services,
    open_batches: "_OpenBatches",
    *,
    done: IndexReport,
    report: Report,
    extract: "Extractor | None" = None,
) -> IndexReport:
    call = extract or partial(extracted, services)

    def called(waiting: _Open) -> Extracted:
        return call(waiting[1])

    with Calls(called, workers=services.settings.workers) as calls:
        _Indexing(services, calls, done=done, report=report).run(open_batches)
    if services.settings.condense and (done.documents or done.unchanged):  # an earlier run may have been interrupted
        done.errors += condense(services, report=counting(report, "descriptions"))
    return done


def _embedded(services: Services, open_batches: "_OpenBatches", *, done: IndexReport, report: Report) -> IndexReport:
    """Embed the chunks of all batches. Only what earlier runs have extracted is aggregated, without a model."""
    known = ended = 0
    for batch, waiting in open_batches:
        left = [chunk for chunk in waiting if chunk.status != EMBEDDED]
        known += len(left)
        for chunks in batches(left, size=TEXTS):
            _store_texts(services, chunks)
            ended += len(chunks)
            done.chunks += len(chunks)
            report(Progress(done=ended, total=known, document=chunks[-1].title))
        _check_finished(services, batch, _finish(services, batch, done=done, report=report))
    return done


@dataclass(slots=True, kw_only=True)
class _Batch:
    """Documents (uids) that are written together, with the outcome of their chunks.

    `left` counts chunks whose call has not ended. `change` is what the builds of the corpus are told.
    """

    documents: Sequence[DocumentUid]
    left: int
    extractions: dict[str, Extraction]
    change: str
    failed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """One chunk's extraction, and the error that ended gleaning early, if any."""

    extraction: Extraction
    error: str = ""


Extractor: TypeAlias = Callable[[OpenChunk], Extracted]
_Open: TypeAlias = tuple[_Batch, OpenChunk]
_OpenBatches: TypeAlias = Iterator[tuple[_Batch, list[OpenChunk]]]


def _write_batches(
    services: Services, items: Iterable[Document | Skipped], done: IndexReport, *, graph: bool
) -> _OpenBatches:
    """Write the documents in batches, and yield each unfinished batch with the chunks to extract."""
    row = None
    for batch in bounded(services.corpus, items, skipped=done.skipped):
        row = row or open_corpus(services)
        documents = compared(services, batch, graph=graph)
        unfinished = [document for document in documents if not document.finished]
        if unfinished:
            check_dimensions(services, row)  # loads the embedder, so only if there is work
        changes = {_write(services, document, done) for document in unfinished}
        if any(document.stored and not document.stored.sha256 for document in documents):
            finish_interrupted(services)  # an earlier write or delete was interrupted
        done.unchanged += len(documents) - len(unfinished)
        done.documents += len(unfinished)
        change = next((each for each in (CHANGED, ADDED, APPENDED) if each in changes), EXTRACTED)
        yield _open_batch(services, [document.uid for document in unfinished], change=change)


def _write(services: Services, document: ComparedDocument, done: IndexReport) -> str:
    """Write a new or changed document, and return what has changed: nothing if an earlier run has written it as it is.

    If its text was another, it is noted in the report, with how many messages went.
    """
    if document.same_content:
        write_description(services, document)
        return document.change
    done.replaced |= replaced_messages(services, document)
    with_chunks = chunked(services, document)
    write_document(services, with_chunks)
    return with_chunks.change


def _open_batch(
    services: Services, documents: Sequence[DocumentUid], *, change: str = EXTRACTED
) -> tuple[_Batch, list[OpenChunk]]:
    waiting = open_chunks(services.database, corpus=services.corpus, documents=documents)
    stored = {chunk.uid: Extraction.model_validate_json(chunk.extraction) for chunk in waiting if chunk.extraction}
    if any(
        chunk.has_messages for chunk in waiting if chunk.extraction
    ):  # taking back an outdated one may have been cut short
        finish_interrupted(services)
    left = list({chunk.uid: chunk for chunk in waiting if chunk.uid not in stored}.values())  # each is called for once
    return _Batch(documents=documents, left=len(left), extractions=stored, change=change), left


class _Indexing:
    """One run, which starts batches while there is capacity and aggregates finished ones."""

    def __init__(
        self, services: Services, calls: Calls[_Open, Extracted], *, done: IndexReport, report: Report
    ) -> None:
        self._services = services
        self._calls = calls
        self._done = done
        self._report = report
        self._begun: list[_Batch] = []
        self._waiting: deque[_Open] = deque()
        self._unsaved: list[Ended[_Open, Extracted]] = []
        self._known = self._ended = 0  # chunks

    def run(self, open_batches: _OpenBatches) -> None:
        """Index all batches, and save every finished call before raising an error."""
        try:
            stop = self._work(open_batches)
        except KeyboardInterrupt:
            self._save(self._calls.rest())
            raise
        except HGMemError as error:  # such as one of `report`, by which a caller ends the run
            if not isinstance(error, UnreachableError):
                with suppress(HGMemError):
                    self._save(self._calls.rest())
            raise
        if stop is None:
            return
        self._save(self._calls.rest())
        if isinstance(stop, Exception):  # after an interrupt, the next run aggregates
            for batch in self._begun:
                self._finish(batch, meanwhile=_nothing)
        raise stop

    def _work(self, open_batches: _OpenBatches) -> BaseException | None:
        """Return the error that stopped the work, or None once all is done."""
        more = True
        while more or self._begun:
            try:
                more = more and (not self._hungry or self._begin(next(open_batches, None)))
            except HGMemError as error:
                return error
            self._turn(wait=not (more and self._hungry))
            if self._calls.stop is not None:
                return self._calls.stop
            self._aggregate_finished()
        return self._calls.stop

    @property
    def _hungry(self) -> bool:
        return not self._waiting and self._calls.room

    def _begin(self, begun: tuple[_Batch, list[OpenChunk]] | None) -> bool:
        """Start a batch, and return whether there was one."""
        if begun is None:
            return False
        batch, chunks = begun
        self._begun.append(batch)
        self._waiting.extend((batch, chunk) for chunk in chunks)
        self._known += len(chunks) + len(batch.extractions)
        self._ended += len(batch.extractions)
        self._fill()
        return True

    def _turn(self, *, wait: bool = False) -> None:
        """Refill the calls, and save the finished ones."""
        self._unsaved += self._calls.ended(wait=wait)
        self._fill()
        self._save()

    def _fill(self) -> None:
        while self._waiting and self._calls.room:
            self._calls.submit(self._waiting.popleft())

    def _save(self, ended: Sequence[Ended[_Open, Extracted]] = ()) -> None:
        """Save finished calls, including those that an interrupt left unsaved."""
        self._unsaved += ended
        if not self._unsaved:
            return
        chunks = [call.item[1] for call in self._unsaved]
        found = {call.item[1].uid: call.result.extraction for call in self._unsaved if call.result}
        stored = _store(self._services, chunks, found)
        errors = {call.item[1].uid: str(call.error) for call in self._unsaved if call.error}
        if errors:
            fail_chunks(self._services.database, corpus=self._services.corpus, errors=errors)
        for call in self._unsaved:
            self._count(call, stored)
        self._unsaved = []
        self._ended += len(chunks)
        self._report(Progress(done=self._ended, total=self._known, document=chunks[-1].title))

    def _count(self, ended: Ended[_Open, Extracted], stored: dict[str, Extraction]) -> None:
        batch, chunk = ended.item
        batch.left -= 1
        if ended.error:
            batch.failed += 1
            self._done.errors.append(f"chunk {chunk.uid} failed: {ended.error}")
        elif ended.result and ended.result.error:
            self._done.errors.append(f"chunk {chunk.uid}: gleaning is incomplete: {ended.result.error}")
        if chunk.uid in stored:
            batch.extractions[chunk.uid] = stored[chunk.uid]

    def _aggregate_finished(self) -> None:
        for batch in [each for each in self._begun if not each.left]:
            _check_finished(self._services, batch, self._finish(batch, meanwhile=self._turn))
            self._begun.remove(batch)

    def _finish(self, batch: _Batch, *, meanwhile: Callable[[], None]) -> int:
        return _finish(self._services, batch, done=self._done, report=self._report, meanwhile=meanwhile)


def _nothing() -> None:
    return None


def _finish(
    services: Services,
    batch: _Batch,
    *,
    done: IndexReport,
    report: Report,
    meanwhile: Callable[[], None] = _nothing,
) -> int:
    """Aggregate a batch into the graph, and return how many of its documents are done."""
    database, corpus = services.database, services.corpus
    if batch.extractions:
        report_counts = counting(report, "entities and relations")
        aggregate(services, extractions=batch.extractions, report=report_counts, meanwhile=meanwhile)
        marking(services, batch.change).run("finish_chunks", corpus=corpus, uids=sorted(batch.extractions))
    done.chunks += len(batch.extractions)
    done.failed += batch.failed
    return len(finish_documents(database, corpus=corpus, uids=batch.documents)) if batch.documents else 0


def _check_finished(services: Services, batch: _Batch, finished: int) -> None:
    """Raise `ConflictError` if a batch without failed chunks has documents that are not finished."""
    gone = len(batch.documents) - finished
    if gone and not batch.failed:
        raise ConflictError(
            f"{gone} documents of corpus {services.corpus!r} were deleted or taken over by another run: index them "
            "again"
        )


def is_language_model(model: LanguageModel) -> bool:
    """Return whether a language model extracts, rather than the built-in rule-based model."""
    return serving(model, Extract.name).name != ExtractiveModel.name


def extracted(services: Services, chunk: OpenChunk) -> Extracted:
    """Return the chunk's extraction, including what gleaning added before it failed.

    Raises `BadReplyError` if the model extracted nothing from a text of at least `FEW_WORDS` words.
    """
    types = services.settings.entity_types
    told = heading(chunk, place=False)
    found = services.reply(Extract(text=chunk.text, heading=told, entity_types=types))
    error = ""
    try:
        for _ in range(services.settings.gleaning):
            task = Glean(text=chunk.text, heading=told, entity_types=types, found=found)
            more = new_in(services.reply(task), found)
            if not more.entities and not more.relations:
                break
            found = Extraction(
                entities=(*found.entities, *more.entities), relations=(*found.relations, *more.relations)
            )
    except (AccessError, BudgetError):
        raise  # the run ends; the next one reads the extraction from the response cache and gleans again
    except ModelError as failed:
        error = str(failed)
    if not entities_of(found) and is_language_model(services.model) and _says_something(chunk.text):
        raise BadReplyError("the extraction is empty", task=Extract.name)
    return Extracted(extraction=found, error=error)


def _says_something(text: str) -> bool:
    return sum(any(map(str.isalpha, word)) for word in words(text)) >= FEW_WORDS


def _store_texts(services: Services, chunks: Sequence[OpenChunk]) -> None:
    """Store the vectors of chunks that get no extraction."""
    texts = {chunk.uid: chunk.text for chunk in chunks}
    vectors = services.embed(list(texts.values()), kind="document")
    embed_chunks(embedding(services), corpus=services.corpus, texts=texts, vectors=vectors)


def _store(services: Services, chunks: Sequence[OpenChunk], found: Mapping[str, Extraction]) -> dict[str, Extraction]:
    """Store the extractions, and return what is stored for these chunks now.

    Another run may have stored its own extraction first, or deleted or changed a chunk.
    """
    outdated = [chunk for chunk in chunks if chunk.outdated and chunk.uid in found]
    others = [chunk for chunk in chunks if not chunk.outdated and chunk.uid in found]
    stored = {}
    if others:
        vectors = services.embed([chunk.text for chunk in others], kind="document")
        written = {chunk.uid: (chunk.text, found[chunk.uid].model_dump_json()) for chunk in others}
        stored = save_extractions(embedding(services), corpus=services.corpus, extractions=written, vectors=vectors)
    if outdated:
        vectors = services.embed([chunk.text for chunk in outdated], kind="document")
        again, entities, relations = services.database.write(_store_again, services, outdated, (found, vectors))
        refresh(services, entities, relations)
        stored |= again
    return {chunk: Extraction.model_validate_json(text) for chunk, text in stored.items()}


def _store_again(
    transaction: Transaction,
    services: Services,
    chunks: Sequence[OpenChunk],
    results: tuple[Mapping[str, Extraction], Vectors],
) -> tuple[dict[str, str], list[EntityUid], list[RelationUid]]:
    """Replace extractions of shorter texts, and take back what they alone contributed.

    Returns what is stored, and the entities and relations to refresh.
    """
    corpus, (found, vectors) = services.corpus, results
    check_embedder(transaction, services)
    lock_chunks(transaction, corpus=corpus, uids=[chunk.uid for chunk in chunks])
    texts = chunk_texts(transaction, corpus=corpus, uids=[chunk.uid for chunk in chunks])
    kept = {}
    for chunk in chunks:
        now = texts.get(chunk.uid)
        if now is not None and now.text == chunk.text and now.status not in ("extracted", "done"):
            again = {chunk.uid: found[chunk.uid]}
            entities, relations = ([row["uid"] for row in rows_of(corpus, kind, again)] for kind in (ENTITY, RELATION))
            kept[chunk.uid] = entities, relations
    stale = withdraw_support(transaction, corpus=corpus, kept=kept)
    written = {chunk.uid: (chunk.text, found[chunk.uid].model_dump_json()) for chunk in chunks}
    return save_extractions(transaction, corpus=corpus, extractions=written, vectors=vectors), *stale

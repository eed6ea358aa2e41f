"""Indexing: documents → chunks → extractions → entities and relations, with the state of each chunk in Neo4j.

What is done is never done again: a document whose text and cutting are the same is not written, and a chunk whose
extraction is stored is not extracted. Killed at any moment, the next run goes on from there. Model calls are under way
all the time: while some run, what others gave is saved and folded, and the next documents are written.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from hgmem.corpus.calls import Calls, Ended
from hgmem.corpus.condensing import condense
from hgmem.corpus.extracting import Extracted, extracted, save
from hgmem.corpus.fold import batches, fold
from hgmem.corpus.writing import DOCUMENTS, bounded, write_changed
from hgmem.errors import ConflictError, HGMemError
from hgmem.extract import Extraction
from hgmem.graph.documents import (
    OpenChunk,
    fail_chunks,
    failed_documents,
    finish_chunks,
    finish_documents,
    open_chunks,
)
from hgmem.inputs import Document, Skipped
from hgmem.services import Services, open_corpus, ready_corpus

Unit: TypeAlias = Literal["chunks", "entities and relations", "descriptions", "records", "vectors"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far indexing is: so many done of those known so far, of chunks, then of what is made of them."""

    done: int
    total: int
    document: str = ""
    unit: Unit = "chunks"


@dataclass(slots=True, kw_only=True)
class IndexReport:
    """What an indexing run did; `failed` counts chunks whose extraction failed."""

    documents: int = 0
    unchanged: int = 0
    chunks: int = 0
    failed: int = 0
    errors: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


Report: TypeAlias = Callable[[Progress], None]


def index(services: Services, items: Iterable[Document | Skipped], *, report: Report = lambda _: None) -> IndexReport:
    """Return what was done to add documents to the corpus; `report` hears of it as it goes.

    What was skipped on the way in is passed on in the report. Where the model's budget is spent, or nobody answers,
    what was extracted by then is folded, and the error raised.
    """
    done = IndexReport()
    return _indexed(services, _stretches(services, items, done), done=done, report=report)


def retry_failed(services: Services, *, report: Report = lambda _: None) -> IndexReport:
    """Return what was done to extract the chunks that failed before, and the rest of their documents."""
    ready_corpus(services)
    done = IndexReport()
    failed = failed_documents(services.database, corpus=services.corpus)
    stretches = (_stretch(services, documents) for documents in batches(failed, size=DOCUMENTS))
    done.documents = len(failed)
    return _indexed(services, stretches, done=done, report=report)


def _indexed(services: Services, stretches: "_Stretches", *, done: IndexReport, report: Report) -> IndexReport:
    with Calls(partial(_extracted, services), workers=services.settings.workers) as calls:
        _Indexing(services, calls, done=done, report=report).run(stretches)
    if services.settings.condense and (done.documents or done.unchanged):  # an earlier run may have been cut short
        heard = partial(_heard, report, "descriptions")
        done.errors += condense(services, report=heard)
    return done


@dataclass(slots=True, kw_only=True)
class _Stretch:
    """Documents (uids) that are written together, and what came of their chunks: `left` have not ended yet."""

    documents: Sequence[str]
    left: int
    extractions: dict[str, Extraction]
    failed: int = 0


_Open: TypeAlias = tuple[_Stretch, OpenChunk]
_Stretches: TypeAlias = Iterator[tuple[_Stretch, list[OpenChunk]]]


def _stretches(services: Services, items: Iterable[Document | Skipped], done: IndexReport) -> _Stretches:
    """Write the documents, and yield those that are not done, some at a time, with the chunks to extract."""
    row = None
    for batch in bounded(services.corpus, items, skipped=done.skipped):
        row = row or open_corpus(services)
        documents = write_changed(services, row, batch)
        done.unchanged += len(batch) - len(documents)
        done.documents += len(documents)
        yield _stretch(services, documents)


def _stretch(services: Services, documents: Sequence[str]) -> tuple[_Stretch, list[OpenChunk]]:
    waiting = open_chunks(services.database, corpus=services.corpus, documents=documents)
    stored = {chunk.uid: Extraction.model_validate_json(chunk.extraction) for chunk in waiting if chunk.extraction}
    return (
        _Stretch(documents=documents, left=len(waiting) - len(stored), extractions=stored),
        [chunk for chunk in waiting if chunk.uid not in stored],
    )


def _extracted(services: Services, waiting: _Open) -> Extracted:
    return extracted(services, waiting[1])


class _Indexing:
    """One run: stretches are begun as long as there is room for calls, and folded when their last call has ended."""

    def __init__(
        self, services: Services, calls: Calls[_Open, Extracted], *, done: IndexReport, report: Report
    ) -> None:
        self._services = services
        self._calls = calls
        self._done = done
        self._report = report
        self._begun: list[_Stretch] = []
        self._waiting: deque[_Open] = deque()
        self._unsaved: list[Ended[_Open, Extracted]] = []
        self._known = self._ended = 0  # chunks

    def run(self, stretches: _Stretches) -> None:
        """Index the documents of all stretches; what ends the work early is raised once all that ended is saved."""
        try:
            stop = self._work(stretches)
        except KeyboardInterrupt:
            self._save(self._calls.rest())
            raise
        if stop is None:
            return
        self._save(self._calls.rest())
        if isinstance(stop, Exception):  # an interrupt leaves folding to the next run
            for stretch in self._begun:
                self._finish(stretch, meanwhile=lambda: None)
        raise stop

    def _work(self, stretches: _Stretches) -> BaseException | None:
        """Return once all is done, or what ends the work early."""
        more = True
        while more or self._begun:
            try:
                more = more and (not self._hungry or self._begin(next(stretches, None)))
            except HGMemError as error:
                return error
            self._turn(wait=not (more and self._hungry))
            if self._calls.stop is not None:
                return self._calls.stop
            self._fold_ended()
        return self._calls.stop

    @property
    def _hungry(self) -> bool:
        return not self._waiting and self._calls.room

    def _begin(self, begun: tuple[_Stretch, list[OpenChunk]] | None) -> bool:
        """Begin a stretch, if there is one."""
        if begun is None:
            return False
        stretch, chunks = begun
        self._begun.append(stretch)
        self._waiting.extend((stretch, chunk) for chunk in chunks)
        self._known += len(chunks) + len(stretch.extractions)
        self._ended += len(stretch.extractions)
        self._fill()
        return True

    def _turn(self, *, wait: bool = False) -> None:
        """Save the calls that ended, others taking their place first."""
        self._unsaved += self._calls.ended(wait=wait)
        self._fill()
        self._save()

    def _fill(self) -> None:
        while self._waiting and self._calls.room:
            self._calls.submit(self._waiting.popleft())

    def _save(self, ended: Sequence[Ended[_Open, Extracted]] = ()) -> None:
        """Save what ended, with what an interrupt kept from being saved before."""
        self._unsaved += ended
        if not self._unsaved:
            return
        chunks = [one.item[1] for one in self._unsaved]
        found = {one.item[1].uid: one.result.extraction for one in self._unsaved if one.result}
        stored = save(self._services, chunks, found)
        errors = {one.item[1].uid: str(one.error) for one in self._unsaved if one.error}
        if errors:
            fail_chunks(self._services.database, corpus=self._services.corpus, errors=errors)
        for one in self._unsaved:
            self._count(one, stored)
        self._unsaved = []
        self._ended += len(chunks)
        self._report(Progress(done=self._ended, total=self._known, document=chunks[-1].title))

    def _count(self, ended: Ended[_Open, Extracted], stored: dict[str, Extraction]) -> None:
        stretch, chunk = ended.item
        stretch.left -= 1
        if ended.error:
            stretch.failed += 1
            self._done.errors.append(f"chunk {chunk.uid} failed: {ended.error}")
        elif ended.result and ended.result.error:
            self._done.errors.append(f"chunk {chunk.uid} was gleaned in part: {ended.result.error}")
        if chunk.uid in stored:
            stretch.extractions[chunk.uid] = stored[chunk.uid]

    def _fold_ended(self) -> None:
        for stretch in [each for each in self._begun if not each.left]:
            gone = len(stretch.documents) - self._finish(stretch, meanwhile=self._turn)
            if gone and not stretch.failed:
                raise ConflictError(
                    f"{gone} documents of corpus {self._services.corpus!r} were deleted or taken over while they were "
                    "indexed: index them again"
                )
            self._begun.remove(stretch)

    def _finish(self, stretch: _Stretch, *, meanwhile: Callable[[], None]) -> int:
        """Fold a stretch into the graph; return how many of its documents are done."""
        database, corpus = self._services.database, self._services.corpus
        if stretch.extractions:
            heard = partial(_heard, self._report, "entities and relations")
            fold(self._services, extractions=stretch.extractions, report=heard, meanwhile=meanwhile)
            finish_chunks(database, corpus=corpus, uids=sorted(stretch.extractions))
        self._done.chunks += len(stretch.extractions)
        self._done.failed += stretch.failed
        return len(finish_documents(database, corpus=corpus, uids=stretch.documents)) if stretch.documents else 0


def folded(done: int, total: int) -> Progress:
    """Return the progress of entities and relations."""
    return Progress(done=done, total=total, unit="entities and relations")


def _heard(report: Report, unit: Unit, done: int, total: int) -> None:
    report(Progress(done=done, total=total, unit=unit))

"""Index in stages in one process: parts are read while the model is asked, and finished as their replies come in."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from hgmem.corpus.documents import bounded, compared
from hgmem.graph.corpus import corpus_language, find_corpus
from hgmem.graph.database import Row
from hgmem.graph.stages import stored_replies
from hgmem.services import LANGUAGE_SAMPLE, Services, readable_corpus
from hgmem.stages.files import CURRENT, Folder, Header
from hgmem.stages.folding import GRAPH_STAGES, buckets_for, contribute_part, embed_part, fold_bucket
from hgmem.stages.locking import held
from hgmem.stages.reading import chunks_in, header_of, part_name, read_part
from hgmem.stages.replies import REPLIES, Answered, ask, holders, keep_replies, take_over
from hgmem.stages.writing import WRITERS, is_being_written, write
from hgmem.text.identity import text_hash
from hgmem.text.language import language_of
from hgmem.values.graph_elements import DocumentUid
from hgmem.values.inputs import Document, Skipped
from hgmem.values.reports import IndexReport, Progress, Report, counting


@dataclass(slots=True, kw_only=True)
class Made:
    """What a run's input consists of: parts in order, documents that the corpus has, and what was unusable or failed.

    `chunks` counts those of the parts, and `asked` the replies that came in this run.
    """

    parts: list[str] = field(default_factory=list)
    unchanged: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    chunks: int = 0
    asked: int = 0


def index_in_stages(
    services: Services, items: Iterable[Document | Skipped], *, address: str, report: Report, writers: int = WRITERS
) -> IndexReport:
    """Make the stages of these documents in the folder at an address, write them, and return what was done."""
    folder = Folder(address)
    with held(folder, services.settings):
        made = make(folder, services, items, report=report)
        done = write(folder, services, report=report, writers=writers) if made.parts else IndexReport()
    done.unchanged += made.unchanged
    done.skipped += made.skipped
    done.errors += made.errors
    return done


def make(folder: Folder, services: Services, items: Iterable[Document | Skipped], *, report: Report) -> Made:
    """Make all stages but the writing, and say in the folder what the input consists of."""
    made = Made()
    read = iter(items)
    first = first_of(read, made.skipped)
    if first is None:
        return made
    header = begin(folder, services, first)

    def arrived(row: Row) -> None:
        made.asked += 1
        report(Progress(done=made.asked, total=made.chunks))

    parts = _read(folder, services, header, (chain([first], read), made))
    ask(folder, services, parts, arrived=arrived, whole=lambda part: embed_part(folder, services, part))
    if made.parts:
        made.errors += finish(folder, services, made.parts, report=report)
    return made


def first_of(items: Iterator[Document | Skipped], skipped: list[Skipped]) -> Document | None:
    """Return the first document, and append what is skipped before it."""
    for item in items:
        if isinstance(item, Document):
            return item
        skipped.append(item)
    return None


def begin(folder: Folder, services: Services, first: Document) -> Header:
    """Return the folder's header, written now if it is new. The first document tells the language of a new corpus."""
    found = folder.header()
    if found:
        return folder.begin(header_of(services, language=found.language, dimensions=found.dimensions))
    language = corpus_language(services.database, corpus=services.corpus) or services.settings.language
    return folder.begin(header_of(services, language=language or language_of(first.text[:LANGUAGE_SAMPLE])))


def _read(
    folder: Folder, services: Services, header: Header, reading: tuple[Iterable[Document | Skipped], Made]
) -> Iterator[str]:
    """Read the documents into parts, and yield the name of each. Documents that the corpus has alone make no part.

    A part that is new here gets the replies that other parts, or the corpus, have to its chunks.
    """
    items, made = reading
    supply = Supply(folder, services, made)
    for batch in bounded(services.corpus, items, skipped=made.skipped):
        name = part_name(batch, services.settings)
        fresh = folder.part("chunks", name) is None
        if fresh and supply.has(batch):
            continue
        read_part(folder, header, batch, settings=services.settings)
        supply.take(name, fresh=fresh)
        yield name


class Supply:
    """The parts that were read, each taken into the input with the replies that are known of its chunks."""

    def __init__(self, folder: Folder, services: Services, made: Made) -> None:
        self._folder, self._services, self._made = folder, services, made
        self.known = _is_filled(services)
        self._where: dict[Answered, str] | None = None

    def has(self, batch: Mapping[DocumentUid, Document]) -> bool:
        """Return whether the corpus has these documents already, and count them if so."""
        there = self.known and all(each.finished for each in compared(self._services, batch, graph=True))
        self._made.unchanged += len(batch) if there else 0
        return there

    def take(self, name: str, *, fresh: bool) -> None:
        """Take in a part. A fresh one gets the replies that other parts, or the corpus, have to its chunks."""
        folder = self._folder
        if fresh or folder.part(REPLIES, name) is None:
            self._where = holders(folder) if self._where is None else self._where
            take_over(folder, name, self._where)
            if self.known:
                _take_stored(folder, self._services, name)
        self._made.parts.append(name)
        self._made.chunks += rows_in(folder, name)


def _is_filled(services: Services) -> bool:
    """Return whether documents may be compared with those of the corpus. Raises `UsageError` for another embedder."""
    row = find_corpus(services.database, corpus=services.corpus)
    if row is None or is_being_written(row):
        return False
    readable_corpus(services)
    return True


def rows_in(folder: Folder, name: str) -> int:
    """Return how many chunks a part has."""
    part = folder.part("chunks", name)
    return part.rows if part else 0


def _take_stored(folder: Folder, services: Services, name: str) -> None:
    """Keep for a part the extractions that the corpus has of its chunks."""
    uids = [chunk.uid for chunk in chunks_in(folder, name)]
    rows = [
        {
            "chunk": row["uid"],
            "model": "",
            "prompt": "",
            "text_sha256": text_hash(row["text"]),
            "reply": row["extraction"],
            "error": None,
        }
        for row in stored_replies(services.database, corpus=services.corpus, uids=uids)
    ]
    if rows:
        keep_replies(folder, name, rows)


def finish(folder: Folder, services: Services, parts: Iterable[str], *, report: Report = lambda _: None) -> list[str]:
    """Fold the replies of parts, and say what the input consists of. Returns the errors of summaries that failed."""
    names = list(dict.fromkeys(parts))
    buckets = buckets_for(sum(rows_in(folder, name) for name in names))
    for name in names:
        contribute_part(folder, name, buckets=buckets)
    listed = folder.parts("contributions")
    sources = [listed[name] for name in names]
    errors: list[str] = []
    graph: list[str] = []
    count = counting(report, "entities and relations")
    for bucket in range(buckets):
        name, failed = fold_bucket(folder, services, sources, bucket=bucket, buckets=buckets)
        graph.append(name)
        errors += failed
        count(bucket + 1, buckets)
    set_current(folder, names, graph)
    return errors


def set_current(folder: Folder, parts: list[str], graph: list[str]) -> None:
    """Say what the last complete run's input consists of, and delete the graph that it had before."""
    before = folder.current() or {}
    current = {"documents": parts, "chunks": parts, "graph": graph, "vectors": [*parts, *graph]}
    if current != before:
        folder.write_json(CURRENT, current)
    for name in set(before.get("graph", ())) - set(graph):
        for stage in GRAPH_STAGES:
            folder.drop(stage, name)

"""Index in stages on a Ray cluster: every stage but the writing, which the driver does, is the work of actors."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from hgmem.corpus.documents import DOCUMENTS, bounded
from hgmem.corpus.paging import batches
from hgmem.distributed.cluster import capacity, connected
from hgmem.distributed.limiter import SharedGates, end_limiters
from hgmem.distributed.pools import CPU, USABLE, Does, Job, Pool, rows_of
from hgmem.errors import UsageError
from hgmem.graph.database import Row
from hgmem.models.llm.rate_limits import Limits
from hgmem.services import Services
from hgmem.settings import portable
from hgmem.sources.files import discover, items_of, load, once
from hgmem.sources.files.converter_process import ConverterProcess
from hgmem.stages.files import Folder, Part
from hgmem.stages.folding import buckets_for, contribute_part, embed_part, fold_bucket
from hgmem.stages.locking import held
from hgmem.stages.reading import documents_in, part_name, read_part
from hgmem.stages.replies import ask
from hgmem.stages.running import Made, Supply, begin, first_of, rows_in, set_current
from hgmem.stages.writing import WRITERS, write
from hgmem.values.inputs import Document, Skipped
from hgmem.values.reports import IndexReport, Progress, Report, counting

GPU = 0.5  # of an embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """What is to be indexed: documents that the caller has, and paths that workers can read too."""

    documents: Iterable[Document | Skipped]
    paths: Sequence[str | os.PathLike[str]]
    writers: int = WRITERS


def job_of(services: Services, folder: str, make: Callable[[Job, SharedGates], Services], *, gpu: bool) -> Job:
    """Return what actors are told: `make` makes the services of each. `gpu`: whether the embedder can use one."""
    settings = services.settings
    limits = Limits(
        concurrency=settings.workers,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        attempts=settings.model_attempts,
    )
    return Job(
        folder=Folder(folder if "://" in folder else os.path.abspath(folder)),
        corpus=services.corpus,
        settings=portable(settings),
        env_file=settings.ray_env_file,
        limits=limits,
        threads=limits.concurrency,
        services=make,
        gpu=gpu,
    )


def index_on_ray(
    services: Services, given: Input, *, job: Job, address: str, report: Report = lambda _: None
) -> IndexReport:
    """Make the stages of the input on the cluster at an address, write them, and return what was done."""
    settings = services.settings
    with held(job.folder, settings), connected(address, seconds=settings.connect_timeout):
        try:
            made = _Run(services, job, report).make(given)
        finally:
            end_limiters()
        done = write(job.folder, services, report=report, writers=given.writers) if made.parts else IndexReport()
    done.unchanged += made.unchanged
    done.skipped += made.skipped
    done.errors += made.errors
    return done


class _Run:
    """One run, whose stages follow each other but for replies and the vectors of chunks, which are made at a time."""

    def __init__(self, services: Services, job: Job, report: Report) -> None:
        self._services = services
        self._cpus, self._gpus = capacity()
        self._size = services.settings.ray_workers or max(1, int(self._cpus))
        # Twice as many threads as the limits let through, so that no worker's end leaves a part of them unused.
        self._job = replace(job, threads=min(job.threads, -(-2 * job.threads // self._size)))
        self._report = report
        self._made = Made()

    def make(self, given: Input) -> Made:
        """Make all stages but the writing, and say in the folder what the input consists of."""
        made, folder = self._made, self._job.folder
        documents = iter(given.documents)
        first = first_of(documents, made.skipped)
        files = _files(given.paths, self._services)
        if first is None and given.paths:
            first_in_files: list[Skipped] = []
            first = first_of(_loaded(given.paths, self._services), first_in_files)
        elif first is not None:
            documents = chain([first], documents)
        if first is None:
            return made
        begin(folder, self._services, first)
        self._supply(chain(self._read_here(documents), self._read_there(files)))
        if made.parts:
            names = list(dict.fromkeys(made.parts))
            buckets = buckets_for(sum(rows_in(folder, name) for name in names))
            if self._extract(names, buckets) or (folder.current() or {}).get("documents") != names:
                self._fold(names, buckets)
        return made

    def _read_here(self, documents: Iterable[Document | Skipped]) -> Iterator[Row]:
        yield _read(self._job, self._services, documents)

    def _read_there(self, files: Sequence[Path | Skipped]) -> Iterator[Row]:
        self._made.skipped += [each for each in files if isinstance(each, Skipped)]
        readable = [str(each) for each in files if not isinstance(each, Skipped)]
        groups = [{"name": f"{n:09}", "files": some} for n, some in enumerate(batches(readable, size=DOCUMENTS))]
        (pool,) = self._pools(read)
        yield from sorted(rows_of(self._job, groups, [pool]), key=lambda row: str(row["name"]))

    def _supply(self, rows: Iterable[Row]) -> None:
        """Take the parts that were read, in order, unless the corpus has their documents already."""
        supply = Supply(self._job.folder, self._services, self._made)
        seen: set[str] = set()
        for row in rows:
            self._made.skipped += [Skipped(path=path, reason=reason) for path, reason in row["skipped"]]
            for part in row["parts"]:
                if again := seen.intersection(part["ids"]):
                    raise UsageError(f"document {min(again)!r} is a duplicate: make ids of records unique")
                seen.update(part["ids"])
                if part["fresh"] and supply.known and supply.has(documents_in(self._job.folder, part["name"])):
                    continue
                supply.take(part["name"], fresh=part["fresh"])

    def _extract(self, names: Sequence[str], buckets: int) -> bool:
        """Get replies, vectors and contributions of the parts that lack some, and return whether there were any."""
        made = self._made
        rows = [{"name": name, "buckets": buckets} for name in self._lacking(names, buckets)]
        for row in rows_of(self._job, rows, self._pools(reply, embed)):
            made.asked += row["asked"]
            self._report(Progress(done=made.asked, total=made.chunks))
        return bool(rows)

    def _lacking(self, names: Sequence[str], buckets: int) -> Iterator[str]:
        found = [self._job.folder.parts(stage) for stage in ("replies", "vectors", "contributions")]
        for name in names:
            replies, vectors, contributions = (parts.get(name) for parts in found)
            made = {"replies": replies.file, "buckets": buckets} if replies and not replies.noted["failed"] else {}
            if not (made and vectors and contributions and made.items() <= contributions.noted.items()):
                yield name

    def _fold(self, names: Sequence[str], buckets: int) -> None:
        made = self._made
        count = counting(self._report, "entities and relations")
        rows = [{"name": f"{bucket:09}", "bucket": bucket, "buckets": buckets} for bucket in range(buckets)]
        listed = self._job.folder.parts("contributions")
        folding = partial(fold, parts=[listed[name] for name in names])
        graph: dict[str, str] = {}
        for done, row in enumerate(rows_of(self._job, rows, self._pools(folding)), 1):
            graph[row["name"]] = row["graph"]
            made.errors += row["errors"]
            count(done, buckets)
        set_current(self._job.folder, list(names), [graph[name] for name in sorted(graph)])

    def _pools(self, *stages: Does) -> list[Pool]:
        """Return a pool for each stage. Together they leave some of the CPUs to Ray."""
        gpus = self._gpus if embed in stages and self._job.gpu else 0.0
        sizes = [int(gpus / GPU) if gpus and each is embed else self._size for each in stages]
        cpus = min(CPU, int(10_000 * USABLE * self._cpus / sum(sizes)) / 10_000) or CPU
        return [
            Pool(does=each, size=size, cpus=cpus, gpus=GPU if gpus and each is embed else 0.0)
            for each, size in zip(stages, sizes, strict=True)
        ]


def _files(paths: Sequence[str | os.PathLike[str]], services: Services) -> list[Path | Skipped]:
    return discover(paths, max_bytes=services.settings.max_file_bytes) if paths else []


def _loaded(paths: Sequence[str | os.PathLike[str]], services: Services) -> Iterator[Document | Skipped]:
    settings = services.settings
    return load(
        paths,
        max_bytes=settings.max_file_bytes,
        max_seconds=settings.max_file_seconds,
        text_field=settings.text_field,
    )


# What actors do ----------------------------------------------------------------------------------------------------


def read(job: Job, services: Services, rows: Sequence[Row]) -> Iterator[Row]:
    """Read the files of each row into parts."""
    settings = services.settings
    with ConverterProcess(seconds=settings.max_file_seconds) as converter:
        for row in rows:
            seen: dict[str, str] = {}
            found = (items_of(Path(file), converter=converter, text_field=settings.text_field) for file in row["files"])
            items = (once(item, seen) for item in chain.from_iterable(found))
            yield {"name": row["name"], **_read(job, services, items)}


def _read(job: Job, services: Services, items: Iterable[Document | Skipped]) -> Row:
    """Write documents and their chunks, and return the parts, with the ids that other files may have too."""
    header, skipped, parts = job.folder.begun(), list[Skipped](), []
    for batch in bounded(job.corpus, items, skipped=skipped):
        name = part_name(batch, services.settings)
        fresh = job.folder.part("chunks", name) is None
        read_part(job.folder, header, batch, settings=services.settings)
        ids = [each.id for each in batch.values() if each.id and each.id != each.source]
        parts.append({"name": name, "fresh": fresh, "ids": ids})
    return {"parts": parts, "skipped": [[each.path, each.reason] for each in skipped]}


def reply(job: Job, services: Services, rows: Sequence[Row]) -> Iterator[Row]:
    """Ask for the missing replies of each row's part."""
    asked = 0

    def count(_: Row) -> None:
        nonlocal asked
        asked += 1

    ask(job.folder, services, [row["name"] for row in rows], arrived=count)
    yield from ({**row, "asked": 0 if number else asked} for number, row in enumerate(rows))


def embed(job: Job, services: Services, rows: Sequence[Row]) -> Iterator[Row]:
    """Make the vectors of each row's part, and write what its replies contribute to the buckets."""
    for row in rows:
        embed_part(job.folder, services, row["name"])
        contribute_part(job.folder, row["name"], buckets=row["buckets"])
        yield row


def fold(job: Job, services: Services, rows: Sequence[Row], *, parts: Sequence[Part]) -> Iterator[Row]:
    """Fold the contributions of parts in each row's bucket."""
    for row in rows:
        graph, failed = fold_bucket(job.folder, services, parts, bucket=row["bucket"], buckets=row["buckets"])
        yield {"name": row["name"], "graph": graph, "errors": failed}

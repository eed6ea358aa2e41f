"""Run a build: stage after stage, and in each only the units whose inputs have changed. Delete and re-embed builds.

The digest of each unit's inputs is stored with it, so no work is repeated: a killed run resumes where it stopped, and a
second run calls no model and writes nothing but its lease. A build of the corpus alone is not even listed while neither
the corpus nor what its stages depend on has changed. Model calls run all the time, and finished units are written in
groups.
"""

import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from hgmem.builds.reading import Reading, stored_row
from hgmem.builds.stage_run import Building, Report, StageRun, stage_key
from hgmem.builds.stages import Reembedding
from hgmem.builds.writing import Writer
from hgmem.corpus.guarded_writes import check_embedder, renewing
from hgmem.corpus.paging import BUILT, pages
from hgmem.errors import ConflictError, HGMemError, UsageError
from hgmem.graph.builds import (
    INCOMPLETE,
    READY,
    UNFINISHED,
    BuildLease,
    being_indexed,
    find_build,
    find_builds,
    lease_build,
    release_build,
    renew_build,
    write_held,
)
from hgmem.graph.built import clear_plain_vectors, put_plain_vectors
from hgmem.graph.corpus import DELETE_BATCH, corpus_language
from hgmem.graph.database import Row, Transaction
from hgmem.graph.values import Runner, to_json, uids_of
from hgmem.models.embedding import Vectors
from hgmem.services import Services, build_files, known_corpus, ready_corpus
from hgmem.text.identity import text_hash
from hgmem.values.reports import BuildReport

_BATCH = 1_000  # rows read together


def run_build(
    services: Services, building: Building, *, retry_failed: bool = False, report: Report = lambda _: None
) -> BuildReport:
    """Make a system's build of the corpus, and return what was done.

    `retry_failed` makes units anew that failed before with the same inputs. Raises `ConflictError` while another run
    makes it, and `UsageError` while the corpus is being indexed. If the model budget is spent or the model is
    unreachable, finished units are written before the error is raised.
    """
    ready_corpus(services)
    if document := being_indexed(services.database, corpus=services.corpus):
        raise UsageError(
            f"corpus {services.corpus!r} is being indexed, or that was cut short (document {document!r}): wait until "
            "it ends, or run `hgmem index` again"
        )
    done = BuildReport(system=building.system)
    lease = BuildLease(corpus=services.corpus, system=building.system, run=secrets.token_hex(8))
    unchanged = services.database.write(_begin, services, building, lease)
    with _leased(services, lease, done):
        if unchanged and building.build.of_corpus_alone:
            done.unchanged = next(
                sum(units.values())
                for row, units, _ in find_builds(services.database, corpus=services.corpus)
                if row.uid == lease.build
            )
            return done
        language = corpus_language(services.database, corpus=services.corpus)
        writer = Writer(services=services, build=building.build, lease=lease, language=language)
        reading = Reading(services=services, system=building.system)
        for stage in building.build.stages:
            StageRun(writer, building, stage, done=done, report=report).run(reading, retry_failed=retry_failed)
        names = [stage.name for stage in building.build.stages]
        old = uids_of(services.database, "units_of_other_stages", corpus=lease.corpus, build=lease.build, stages=names)
        writer.delete(old)
        done.deleted += len(old)
        if building.build.finish:
            building.build.finish(services)
        if done.whole:
            writer.finish()
    return done


def remove_build(services: Services, system: str) -> None:
    """Delete what a system has built and learnt of the corpus. Its package need not be installed.

    If interrupted, the same call resumes. Raises `ConflictError` while a run makes the build.
    """
    database, corpus = services.database, known_corpus(services).corpus
    lease = BuildLease(corpus=corpus, system=system, run=secrets.token_hex(8))
    stored = find_build(database, corpus=corpus, system=system)
    if stored is None:
        raise UsageError(
            f"corpus {corpus!r} has no build {system!r}: `hgmem status --corpus {corpus}` lists its builds"
        )
    properties = {"settings": stored.settings, "model": stored.model, "stages": ""}
    database.write(_lease, services, lease, properties=properties)
    with renewing(database, lambda at: renew_build(at, lease), every=services.settings.heartbeat):
        write_held(database, "withdraw_build", lease)
        database.run("delete_build_contents", corpus=corpus, system=system, batch=DELETE_BATCH)
        shutil.rmtree(build_files(services, system), ignore_errors=True)
    write_held(database, "delete_build", lease)


def renew_derived(services: Services, writer: Runner, hooks: Mapping[str, Reembedding]) -> None:
    """Write what each system's hook makes of its rows, and remove vectors for which no hook makes others.

    The texts of all rows have their new vectors. `writer` writes each batch in its own transaction.
    """
    corpus = services.corpus
    for uids in pages(services.database, BUILT, corpus=corpus, size=_BATCH):
        found = [row["row"] for row in services.database.run("plain_vectors", corpus=corpus, uids=uids)]
        made: dict[str, Vectors] = {}
        for system in sorted({row["system"] for row in found} & hooks.keys()):
            made |= _remade(services, system, hooks[system], [row for row in found if row["system"] == system])
        if made:
            put_plain_vectors(writer, corpus=corpus, rows=[{"uid": uid} for uid in made], vectors=made.values())
        if none := [row["uid"] for row in found if row["uid"] not in made]:
            clear_plain_vectors(writer, corpus=corpus, uids=none)


def _begin(transaction: Transaction, services: Services, building: Building, lease: BuildLease) -> bool:
    check_embedder(transaction, services)
    keys = [[stage.name, stage_key(services, stage, building.settings)] for stage in building.build.stages]
    settings = to_json(building.settings)
    properties = {"settings": settings, "model": services.model.name, "stages": text_hash(settings + to_json(keys))}
    return _lease(transaction, services, lease, properties=properties)


def _lease(transaction: Transaction, services: Services, lease: BuildLease, *, properties: Mapping[str, str]) -> bool:
    timeout = services.settings.claim_timeout
    unchanged = lease_build(transaction, lease, timeout=timeout, properties=properties)
    if unchanged is None:
        raise ConflictError(
            f"the build {lease.system!r} in corpus {lease.corpus!r} is being made by another process: wait "
            f"until it ends; if it crashed, retry {timeout:g} s after its last heartbeat"
        )
    return unchanged


@contextmanager
def _leased(services: Services, lease: BuildLease, done: BuildReport) -> Iterator[None]:
    """Renew the lease while the block runs, and release it at the end, or where the block fails."""
    database = services.database
    try:
        with renewing(database, lambda at: renew_build(at, lease), every=services.settings.heartbeat):
            yield
    except BaseException:
        with suppress(HGMemError):
            release_build(database, lease, status=UNFINISHED)
        raise
    release_build(database, lease, status=READY if done.whole else INCOMPLETE)


def _remade(services: Services, system: str, hook: Reembedding, rows: Sequence[Row]) -> dict[str, Vectors]:
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

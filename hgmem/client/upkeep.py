"""Work on whole corpora: archives, graphs to adopt, re-embedding and deletion."""

from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, cast

from hgmem.builds.runner import remove_build
from hgmem.client.asking import with_corpus_of
from hgmem.client.connecting import adapted_embedder, find_embedder, reading
from hgmem.corpus import importing, reembedding
from hgmem.corpus.deletion import Named, delete_corpus, delete_documents
from hgmem.corpus.pruning import delete_memory
from hgmem.errors import UsageError
from hgmem.models.embedding import Embedder
from hgmem.services import Services
from hgmem.systems.building import own_names, renew_vectors
from hgmem.values.foreign_graph import Adopting, Names, Source, configured
from hgmem.values.reports import AdoptReport, ArchiveReport, Report, counting


class ExportOptions(TypedDict, total=False):
    """Options of `export`. By default, an archive includes memories and embeddings."""

    memories: bool
    embeddings: bool
    force: bool


def export(services: Services, file: Path, options: ExportOptions, *, report: Report) -> ArchiveReport:
    """Write the corpus to an archive file, and return what was written."""
    from hgmem.corpus import exporting  # what only an archive needs: a question need not wait for it

    wanted = exporting.Wanted(installed=own_names, **options)
    return exporting.export(services, file, wanted=wanted, report=counting(report, "records"))


def import_archive(services: Services, file: Path, *, report: Report, corpus: str | None = None) -> ArchiveReport:
    """Import an archive into the corpus that it names, `corpus` if that is given, and return what it holds."""
    from hgmem.corpus import restoring

    systems = restoring.Systems(installed=own_names, renew_vectors=renew_vectors)
    return restoring.import_archive(services, file, corpus=corpus, systems=systems, report=counting(report, "records"))


def adopt(services: Services, graph: Adopting, *, report: Report) -> AdoptReport:
    """Copy a graph that neo4j-graphrag wrote into an empty corpus, and return what was imported."""
    named: dict[str, Any] = dict(graph)
    where = cast("Source", {name: named.pop(name) for name in Source.__annotations__ if name in named})
    shape = configured(named.pop("config", None), **cast("Names", named))
    with reading(services.database, services.settings, where) as source:
        return importing.adopt(services, source, shape, report=counting(report, "entities and relations"))


def reembed(services: Services, embedder: Embedder | str | Any, *, report: Report) -> int:
    """Recompute all vectors of the corpus with an embedder, by default that of the services. Return their number."""
    if isinstance(embedder, str):
        embedder = find_embedder(services.settings.model_copy(update={"embedding_model": embedder}))
    elif embedder is not None:
        embedder = adapted_embedder(embedder)
    services = replace(services, embedder=embedder or services.embedder)
    return reembedding.reembed(services, finish=renew_vectors, report=counting(report, "vectors"))


def delete(
    services: Services, *, document: Named | None, memory: str | None, system: str | None, corpus: str | None
) -> int:
    """Delete documents, a memory, a system's build or the whole corpus. Return how many documents went.

    `corpus` is where the memory has to be, if it is given.
    """
    if sum(each is not None for each in (document, memory, system)) > 1:
        raise UsageError("document=, memory= and system= cannot be combined: make one call for each")
    if system is not None:
        remove_build(services, system)
        return 0
    if memory is not None:
        delete_memory(with_corpus_of(services, memory, corpus=corpus), uid=memory)
        return 0
    if document is not None:
        return delete_documents(services, document)
    return delete_corpus(services)

"""Client methods for whole corpora: export, import, re-embedding, checks and pruning."""

from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from hgmem.client.async_variants import async_variant
from hgmem.client.connecting import adapted_embedder, find_embedder, reading
from hgmem.corpus.checking import check as check_corpus
from hgmem.corpus.importing import adopt as adopt_graph
from hgmem.corpus.reembedding import reembed
from hgmem.memory.pruning import prune as prune_memories
from hgmem.models.embedding import CheckedEmbedder, Embedder
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.building import own_invariants, own_names, renew_vectors
from hgmem.values.foreign_graph import Adopting, Names, Source, configured
from hgmem.values.reports import AdoptReport, ArchiveReport, Checkup, Pruned, Report, counting


class Exported(TypedDict, total=False):
    """Options of `export`. By default, an archive includes memories and embeddings."""

    memories: bool
    embeddings: bool
    force: bool


class Upkeep(ABC):
    """Methods for backup, migration, re-embedding, integrity checks and retention."""

    settings: Settings

    @abstractmethod
    def _services(self, corpus: str | None, owner: str | None = None) -> Services:
        """Return the services for work on a corpus."""

    def export(
        self,
        file: str | Path,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
        **wanted: Unpack[Exported],
    ) -> ArchiveReport:
        """Write the corpus to an archive file that any other Neo4j can import. Return what was written.

        `memories=False` and `embeddings=False` leave these out, `force=True` overwrites a file. Concurrent writes may
        be missing, which `notes` report.
        """
        from hgmem.corpus.exporting import Wanted, export  # what only an archive needs: a question need not wait for it

        chosen = Wanted(installed=own_names, **wanted)
        return export(self._services(corpus), Path(file), wanted=chosen, report=counting(report, "records"))

    def import_archive(self, file: str | Path, *, report: Report = lambda _: None) -> ArchiveReport:
        """Import an archive into the corpus that it names. Return what it holds.

        `written` is False if the corpus already held it. The whole file is checked before the first write. The client's
        embedder computes missing vectors.
        """
        from hgmem.corpus.restoring import Systems, import_archive

        systems = Systems(installed=own_names, renew_vectors=renew_vectors)
        return import_archive(self._services(None), Path(file), systems=systems, report=counting(report, "records"))

    def adopt(
        self, *, corpus: str | None = None, report: Report = lambda _: None, **graph: Unpack[Adopting]
    ) -> AdoptReport:
        """Copy a graph that neo4j-graphrag wrote into an empty corpus. Return what was imported.

        Nothing is extracted again, and hgmem never writes to the source graph. Importing the same graph again writes
        nothing.
        """
        services = self._services(corpus)
        named: dict[str, Any] = dict(graph)
        where = cast("Source", {name: named.pop(name) for name in Source.__annotations__ if name in named})
        shape = configured(named.pop("config", None), **cast("Names", named))
        with reading(services.database, self.settings, where) as source:
            return adopt_graph(services, source, shape, report=counting(report, "entities and relations"))

    def reembed(
        self,
        embedder: Embedder | str | Any = None,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
    ) -> int:
        """Recompute all vectors of the corpus with an embedder, and return their number.

        `embedder` is a name or an object, by default the client's embedder. If interrupted, the same call resumes. The
        client keeps its embedder: open another client to ask with the new one.
        """
        services = self._services(corpus)
        if embedder is not None:
            services = replace(services, embedder=_embedder(self.settings, embedder))
        return reembed(services, finish=renew_vectors, report=counting(report, "vectors"))

    def check(self, *, corpus: str | None = None) -> Checkup:
        """Check the corpus's integrity and return violations and notes.

        It reads the whole corpus and writes nothing. Installed systems check what they have built.
        """
        return check_corpus(self._services(corpus), own=own_invariants())

    def prune(
        self,
        *,
        older_than: timedelta,
        keep_answers: bool = False,
        dry_run: bool = False,
        corpus: str | None = None,
        owner: str | None = None,
    ) -> Pruned:
        """Delete memories inactive for `older_than` and return their uids. A dry run writes nothing.

        `keep_answers` keeps each memory with its answers and citations only. Such a memory can't be continued. With an
        `owner`, only that owner's own memories are deleted, not everybody's.
        """
        services = self._services(corpus, owner)
        return prune_memories(services, older_than=older_than, keep=keep_answers, dry_run=dry_run)

    aexport = async_variant(export)
    aimport_archive = async_variant(import_archive)
    aadopt = async_variant(adopt)
    areembed = async_variant(reembed)
    acheck = async_variant(check)
    aprune = async_variant(prune)


def _embedder(settings: Settings, chosen: Any) -> CheckedEmbedder:
    if isinstance(chosen, str):
        return find_embedder(settings.model_copy(update={"embedding_model": chosen}))
    return adapted_embedder(chosen)

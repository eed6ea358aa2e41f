"""What is done to a corpus as a whole, as methods of the client: out of here, into here, other vectors, a check-up."""

from abc import ABC, abstractmethod
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

from hgmem.checking import check as check_corpus
from hgmem.checking.promises import Checkup
from hgmem.connecting import Source, adapted_embedder, find_embedder, reading
from hgmem.corpus.adopting import AdoptReport
from hgmem.corpus.adopting import adopt as adopt_graph
from hgmem.corpus.exporting import Wanted, export
from hgmem.corpus.fold import Report as Counted
from hgmem.corpus.index import Progress, Report, Unit
from hgmem.corpus.reembedding import reembed
from hgmem.corpus.restoring import import_archive
from hgmem.embed import CheckedEmbedder, Embedder
from hgmem.graphrag.shape import configured
from hgmem.model import ArchiveReport, Pruned
from hgmem.pruning import prune as prune_memories
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.twins import twin


class Exported(TypedDict, total=False):
    """What may be said of an archive; memories and embeddings are in it unless they are said not to be."""

    memories: bool
    embeddings: bool
    force: bool


class Adopting(Source, total=False):
    """What may be said of a graph to adopt: where it is (`Source`), and its labels, types and property names.

    The defaults are those of Neo4j's GraphRAG package; `config` is its `LexicalGraphConfig`, if others were used.
    """

    config: Any
    document_label: str
    chunk_label: str
    entity_label: str
    document_relationship: str
    next_relationship: str
    entity_relationship: str
    text_property: str
    index_property: str
    id_property: str
    name_property: str


class Upkeep(ABC):
    """Backup, moving, changing the embedder, checking, and retention."""

    settings: Settings

    @abstractmethod
    def _services(self, corpus: str | None) -> Services:
        """Return what work on a corpus needs."""

    def export(
        self,
        file: str | Path,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
        **wanted: Unpack[Exported],
    ) -> ArchiveReport:
        """Return what was written to an archive of the corpus, which any other Neo4j can take.

        `memories=False` and `embeddings=False` leave them out, `force=True` replaces a file. What others write
        meanwhile may be missing: `notes` say so.
        """
        return export(self._services(corpus), Path(file), wanted=Wanted(**wanted), report=_counted(report, "records"))

    def import_archive(self, file: str | Path, *, report: Report = lambda _: None) -> ArchiveReport:
        """Return what an archive holds, now in the corpus that it names; `written` is False if it was there before.

        The whole file is checked before the first write. Vectors that it lacks are made by the client's embedder.
        """
        return import_archive(self._services(None), Path(file), report=_counted(report, "records"))

    def adopt(
        self, *, corpus: str | None = None, report: Report = lambda _: None, **graph: Unpack[Adopting]
    ) -> AdoptReport:
        """Return what was taken over of a graph that Neo4j's GraphRAG package wrote, into a corpus that is empty.

        It is copied, nothing is extracted again and nothing of theirs is changed; the same graph again writes nothing.
        """
        services = self._services(corpus)
        named: dict[str, Any] = dict(graph)
        where = cast("Source", {name: named.pop(name) for name in Source.__annotations__ if name in named})
        shape = configured(named.pop("config", None), **named)
        with reading(services.database, self.settings, where) as source:
            return adopt_graph(services, source, shape, report=_counted(report, "entities and relations"))

    def reembed(
        self,
        embedder: Embedder | str | Any = None,
        *,
        corpus: str | None = None,
        report: Report = lambda _: None,
    ) -> int:
        """Return how many vectors were made anew, by another embedder (a name, or one's own; else the client's).

        Killed, the same call goes on. The client itself keeps its embedder: open another one to ask with the new.
        """
        services = self._services(corpus)
        if embedder is not None:
            services = replace(services, embedder=_embedder(self.settings, embedder))
        return reembed(services, report=_counted(report, "vectors"))

    def check(self, *, corpus: str | None = None) -> Checkup:
        """Return which promises the corpus breaks, if any; nothing is written, and every page of it is read."""
        return check_corpus(self._services(corpus))

    def prune(
        self, *, older_than: timedelta, keep_answers: bool = False, dry_run: bool = False, corpus: str | None = None
    ) -> Pruned:
        """Return which memories went that nobody worked on for so long; a dry run writes nothing.

        Kept answers stay with their memory and their citations; such a memory can't go on.
        """
        return prune_memories(self._services(corpus), older_than=older_than, keep=keep_answers, dry_run=dry_run)

    aexport = twin(export)
    aimport_archive = twin(import_archive)
    aadopt = twin(adopt)
    areembed = twin(reembed)
    acheck = twin(check)
    aprune = twin(prune)


def _embedder(settings: Settings, chosen: Any) -> CheckedEmbedder:
    if isinstance(chosen, str):
        return find_embedder(settings.model_copy(update={"embedding_model": chosen}))
    return adapted_embedder(chosen)


def _counted(report: Report, unit: Unit) -> Counted:
    return lambda done, total: report(Progress(done=done, total=total, unit=unit))

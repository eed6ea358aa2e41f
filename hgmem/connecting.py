"""Which Neo4j, which model, which embedder: found by argument, environment and files, in that order."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any, TypedDict

from hgmem.embed import CheckedEmbedder, Embedder
from hgmem.embedders import OPENAI, LangChainEmbedder, OpenAIEmbedder, SentenceTransformerEmbedder
from hgmem.errors import AccessError, HGMemError, UsageError
from hgmem.extractive import ExtractiveModel
from hgmem.graph.database import Address, Database, adopt, connect
from hgmem.llm import LanguageModel
from hgmem.llm.cache import CachedModel
from hgmem.llm.chat import Sampling
from hgmem.llm.chat_model import ChatModel
from hgmem.llm.langchain import LangChainChat
from hgmem.llm.limits import LimitedChat, Limits
from hgmem.llm.openai import OpenAIChat
from hgmem.llm.routing import RoutedModel
from hgmem.llm.store import Store
from hgmem.local import find
from hgmem.prompt import FOLDER
from hgmem.settings import Settings
from hgmem.testing import DeterministicEmbedder

# What errors of a connection name, and what they have to name where the connection is a source's.
_THEIRS = {
    "start one with `hgmem up`, or set NEO4J_URI to one that runs": "--from-uri names one that has to run",
    "NEO4J_USERNAME": "--from-username",
    "NEO4J_PASSWORD": "HGMEM_FROM_PASSWORD",
    "NEO4J_DATABASE": "--from-database",
}
INDEXING = ("extract", "glean", "condense")  # the tasks of HGMEM_EXTRACTION_MODEL


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


class Source(TypedDict, total=False):
    """Where a graph to adopt is, if not in the database of the client: on another server, or another of this one.

    A `from_driver` stays the caller's. Without `from_password`, that of HGMEM_FROM_PASSWORD is used.
    """

    from_driver: Any
    from_uri: str
    from_username: str
    from_password: str
    from_database: str


@contextmanager
def reading(database: Database, settings: Settings, source: Source) -> Iterator[Database]:
    """Yield the database to read from, which is `database` where the source names none."""
    if empty := [each for each in ("from_uri", "from_username", "from_database") if source.get(each) == ""]:
        raise UsageError(f"--{empty[0].replace('_', '-')} is empty: give a value, or leave it out")
    uri, driver, name = source.get("from_uri"), source.get("from_driver"), source.get("from_database") or None
    if not uri and (source.get("from_username") or source.get("from_password")):
        raise UsageError("--from-username and from_password= go with the server that --from-uri names")
    if uri and driver is not None:
        raise UsageError("from_driver= and from_uri= are two places: give one of them")
    if not (uri or driver or name):
        yield database
        return
    with _named_as_asked():
        if driver is not None:
            opened = adopt(driver, database=name, statement_timeout=settings.statement_timeout)
        elif uri:
            opened = _connected(uri, settings, source)
        else:
            opened = database.beside(name or "")
    try:
        yield opened
    finally:
        opened.close()


def _connected(uri: str, settings: Settings, source: Source) -> Database:
    if "@" in uri:
        raise UsageError("--from-uri holds no user and no password: give --from-username, set HGMEM_FROM_PASSWORD")
    kept = settings.from_password.get_secret_value() if settings.from_password else ""
    address = Address(
        uri=uri,
        username=source.get("from_username") or "neo4j",
        password=source.get("from_password") or kept,
        database=source.get("from_database") or None,
    )
    return connect(address, connect_timeout=settings.connect_timeout, statement_timeout=settings.statement_timeout)


@contextmanager
def _named_as_asked() -> Iterator[None]:
    """Let errors name what the source is set with, not what the client is."""
    try:
        yield
    except HGMemError as error:
        said = str(error)
        for ours, theirs in _THEIRS.items():
            said = said.replace(ours, theirs)
        raise type(error)(said, retryable=error.retryable) from error


def find_embedder(settings: Settings) -> CheckedEmbedder:
    """Return the embedder that is set; it is loaded, or asked, at the first text."""
    chosen: Embedder
    prefix, _, name = settings.embedding_model.partition(":")
    if settings.embedding_model == DeterministicEmbedder.name:
        chosen = DeterministicEmbedder()
    elif prefix == "openai":
        base_url = settings.embedding_base_url or settings.openai_base_url
        chosen = OpenAIEmbedder(name, base_url=base_url, api_key=_key(settings, base_url, f"embedder {name!r}"))
    else:
        chosen = SentenceTransformerEmbedder(settings.embedding_model, download=settings.download)
    return CheckedEmbedder(chosen)


def adapted_embedder(given: Any) -> CheckedEmbedder:
    """Return an embedder of the caller's own, one of LangChain's included."""
    if _is_langchain(given, "embeddings", "Embeddings"):
        return CheckedEmbedder(LangChainEmbedder(given))
    if not callable(getattr(given, "embed", None)):
        raise UsageError(
            f"{type(given).__name__!r} is no embedder: give a name, an object with `name`, `dimensions` and "
            "`embed(texts, kind=…)`, or embeddings of LangChain's"
        )
    return CheckedEmbedder(given)


def find_model(settings: Settings, *, embedder: Embedder) -> LanguageModel:
    """Return the model that is set; nothing is sent before its first task."""
    usual = _by_name(settings, settings.model, embedder)
    if settings.extraction_model in ("", settings.model):
        return usual
    return RoutedModel(usual, dict.fromkeys(INDEXING, _by_name(settings, settings.extraction_model, embedder)))


def find_chat(settings: Settings, name: str) -> LimitedChat:
    """Return the chat of the model of this name, which keeps to the limits that are set; nothing is sent yet."""
    return LimitedChat(_chat(settings, name), _limits(settings))


def check_model(settings: Settings) -> str:
    """Return what the model is that is set, having heard from its server; `HGMemError` where it can't be used."""
    named = dict.fromkeys((settings.model, settings.extraction_model))
    chats = [_chat(settings, name) for name in named if name not in ("", ExtractiveModel.name)]
    if not chats:
        return "extractive, no language model"
    listed = chats[0].check()
    missing = [chat.name for chat in chats if listed and chat.name not in listed]
    if missing:
        raise AccessError(f"{chats[0].endpoint} answers, but lists no model {missing[0]!r}: check HGMEM_MODEL")
    return f"{', '.join(chat.name for chat in chats)} at {chats[0].endpoint}, which answers"


def adapted_model(given: Any, settings: Settings) -> LanguageModel:
    """Return a model of the caller's own: whatever has `reply`, or a chat model of LangChain's."""
    if _is_langchain(given, "language_models", "BaseChatModel"):
        return ChatModel(LimitedChat(LangChainChat(given), _limits(settings)))
    if not callable(getattr(given, "reply", None)) or not hasattr(given, "name"):
        raise UsageError(
            f"{type(given).__name__!r} is no language model: give a name, an object with `name` and `reply(task)`, "
            "or a chat model of LangChain's"
        )
    model: LanguageModel = given
    return model


def _by_name(settings: Settings, name: str, embedder: Embedder) -> LanguageModel:
    return ExtractiveModel(embedder) if name == ExtractiveModel.name else _language_model(settings, name)


def _language_model(settings: Settings, name: str) -> LanguageModel:
    chat = find_chat(settings, name)
    store = Store(settings.cache / "replies.sqlite")
    usual = Sampling(
        temperature=settings.temperature, top_p=settings.top_p, max_tokens=settings.max_tokens, seed=settings.seed
    )
    for task in settings.cached_tasks:
        _check_task(task, "HGMEM_CACHED_TASKS")
    per_task = {task: _sampling(usual, task, values) for task, values in settings.sampling.items()}
    model = ChatModel(chat, sampling=usual, per_task=per_task, store=store)
    return CachedModel(model, store, tasks=settings.cached_tasks)


def _chat(settings: Settings, name: str) -> OpenAIChat:
    base_url = settings.openai_base_url
    key = _key(settings, base_url, f"model {name!r}")
    return OpenAIChat(name, base_url=base_url or OPENAI, api_key=key, timeout=settings.model_timeout)


def _sampling(usual: Sampling, task: str, values: Mapping[str, Any]) -> Sampling:
    _check_task(task, "HGMEM_SAMPLING")
    unknown = values.keys() - {field.name for field in fields(Sampling)}
    if unknown:
        raise UsageError(
            f"HGMEM_SAMPLING: task {task!r} has no {min(unknown)!r}, only temperature, top_p, max_tokens and seed"
        )
    limit = values.get("max_tokens", usual.max_tokens)
    if not isinstance(limit, int) or limit < 1:
        raise UsageError(f"HGMEM_SAMPLING: max_tokens of task {task!r} is a number of 1 or more, got {limit!r}")
    heat = values.get("temperature")
    if heat is not None and not 0 <= heat <= 2:
        raise UsageError(f"HGMEM_SAMPLING: temperature of task {task!r} is 0 to 2, got {heat!r}")
    return replace(usual, **values)


def _check_task(task: str, where: str) -> None:
    known = sorted(path.stem for path in FOLDER.glob("*.md"))
    if task not in known:
        raise UsageError(f"{where}: there is no task {task!r}, there are {', '.join(known)}")


def _limits(settings: Settings) -> Limits:
    return Limits(
        concurrency=settings.workers,
        requests_per_minute=settings.requests_per_minute,
        tokens_per_minute=settings.tokens_per_minute,
        attempts=settings.model_attempts,
    )


def _key(settings: Settings, base_url: str | None, what: str) -> str:
    """Return the key to send; a server of one's own often wants none."""
    key = settings.openai_api_key.get_secret_value().strip() if settings.openai_api_key else ""
    if not (key.isascii() and key.isprintable()):
        raise UsageError("OPENAI_API_KEY holds characters that no key has: copy it again")
    if key:
        return key
    if base_url:
        return "none"
    raise UsageError(
        f"{what} is asked over the network: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own "
        "(Ollama's is http://127.0.0.1:11434/v1)"
    )


def _is_langchain(given: object, module: str, name: str) -> bool:
    """Whether an object is one of LangChain's, which is not imported to find out: who has one has imported it."""
    loaded = sys.modules.get(f"langchain_core.{module}")
    return loaded is not None and isinstance(given, getattr(loaded, name))

"""Settings of a deployment, and the only code that reads the environment.

Precedence: argument, environment, `.env`, `hgmem.toml` (both in the working directory), default. Common variables keep
their usual names (`NEO4J_URI`, …); hgmem's own start with `HGMEM_`. Keys in `hgmem.toml` are field names.
"""

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from platformdirs import user_cache_path, user_data_path
from pydantic import AliasChoices, Field, SecretStr, ValidationError, ValidationInfo, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from hgmem.errors import UsageError

MEGABYTE = 1_000_000
_ADDRESSES = tuple(f"{role}_base_url" for role in ("openai", "extraction", "memory", "embedding", "reranker"))
_ADDRESS = "URL of its server; default: `OPENAI_BASE_URL`"
_KEY = "key of its server; default: `OPENAI_API_KEY`, or none if it has a URL of its own"
ENTITY_TYPES = ("person", "organization", "place", "event", "role", "concept")


class Settings(BaseSettings):
    """Deployment settings, as opposed to options of a single question, which are arguments."""

    model_config = SettingsConfigDict(
        env_prefix="HGMEM_",
        env_file=".env",
        toml_file="hgmem.toml",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
    )

    neo4j_uri: str | None = Field(
        None,
        validation_alias=AliasChoices("neo4j_uri", "NEO4J_URI"),
        description="address, such as bolt://host:7687; default: the server that `hgmem up` started",
    )
    neo4j_username: str = Field(
        "neo4j", validation_alias=AliasChoices("neo4j_username", "NEO4J_USERNAME", "NEO4J_USER")
    )
    neo4j_password: SecretStr | None = Field(None, validation_alias=AliasChoices("neo4j_password", "NEO4J_PASSWORD"))
    neo4j_database: str | None = Field(
        None,
        validation_alias=AliasChoices("neo4j_database", "NEO4J_DATABASE"),
        description="default: the user's home database",
    )
    from_password: SecretStr | None = Field(None, description="password for `hgmem import neo4j-graphrag --from-uri`")
    java_home: Path | None = Field(
        None, validation_alias=AliasChoices("java_home", "JAVA_HOME"), description="Java 21 or newer for `hgmem up`"
    )

    data: Path = Field(
        default_factory=lambda: user_data_path("hgmem") / "neo4j",
        description="data directory of `hgmem up`, and of the files of builds, such as memories of other packages",
    )
    cache: Path = Field(
        default_factory=lambda: user_cache_path("hgmem"), description="directory of the response cache and Neo4j's jars"
    )

    openai_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("openai_api_key", "OPENAI_API_KEY"))
    openai_base_url: str | None = Field(
        None,
        validation_alias=AliasChoices("openai_base_url", "OPENAI_BASE_URL"),
        description="URL of any OpenAI-compatible server; default: OpenAI's own",
    )
    model: str = Field("extractive", description="language model; `extractive` is the built-in rule-based model")
    extraction_model: str = Field("", description="language model for indexing; default: `model`")
    extraction_base_url: str | None = Field(None, description=_ADDRESS)
    extraction_api_key: SecretStr | None = Field(None, description=_KEY)
    memory_model: str = Field(
        "", description="language model that reads a whole corpus for a system's memory; default: `model`"
    )
    memory_base_url: str | None = Field(None, description=_ADDRESS)
    memory_api_key: SecretStr | None = Field(None, description=_KEY)
    temperature: float | None = Field(
        0.8, ge=0, le=2, description="sampling temperature, the paper's by default; `null`: the server's"
    )
    top_p: float | None = Field(None, gt=0, le=1, description="nucleus sampling; default: the server's")
    seed: int | None = Field(None, description="sampling seed; default: the server's")
    max_tokens: int = Field(2_048, gt=0, description="maximum tokens per reply")
    sampling: dict[str, dict[str, float | int | None]] = Field(
        default_factory=dict, description='sampling options per task, such as {"plan": {"temperature": 0}}'
    )
    model_timeout: float = Field(180.0, gt=0, le=3_600, description="timeout of a model request in seconds")
    model_attempts: int = Field(6, ge=1, le=100, description="attempts per request on timeouts, 429 and 5xx")
    requests_per_minute: int | None = Field(None, gt=0, description="rate limit of model requests; default: none")
    tokens_per_minute: int | None = Field(None, gt=0, description="rate limit of model tokens; default: none")
    cached_tasks: frozenset[str] = Field(
        frozenset({"extract", "glean", "condense", "propose_same"}),
        description="tasks whose replies are cached on disk",
    )

    embedding_model: str = Field(
        "all-MiniLM-L6-v2",
        description="sentence-transformers model, by name or path; `openai:NAME` for one on a server, "
        "`NAME:int8` for weights of 8 bits",
    )
    embedding_backend: Literal["auto", "onnx", "torch"] = Field(
        "auto", description="runtime of a sentence-transformers model: `onnx`, `torch`, or the first that can run it"
    )
    cached_vectors: int = Field(100_000, ge=0, description="vectors of texts that are kept on disk; 0: none")
    embedding_base_url: str | None = Field(None, description=_ADDRESS)
    embedding_api_key: SecretStr | None = Field(None, description=_KEY)
    reranker: str = Field(
        "",
        description="model that ranks again what a search found, where a recipe's option `rerank` asks for it: a "
        "CrossEncoder of sentence-transformers by name or path, or a model of `reranker_base_url`",
    )
    reranker_base_url: str | None = Field(
        None, description="URL before `/rerank` of a server in the form of Cohere and Jina, such as vLLM or llama.cpp"
    )
    reranker_api_key: SecretStr | None = Field(None, description="key of the reranker's server; default: none")
    reranker_timeout: float = Field(60.0, gt=0, le=3_600, description="timeout of a rerank request in seconds")
    download: bool = Field(False, description="whether a missing embedder or reranker may be downloaded")

    connect_timeout: float = Field(5.0, gt=0, le=600, description="timeout of connecting to Neo4j in seconds")
    statement_timeout: float = Field(120.0, gt=0, le=86_400, description="timeout of a statement in seconds")
    claim_timeout: float = Field(
        60.0, gt=0, le=86_400, description="seconds after the last heartbeat when a lease expires"
    )
    heartbeat: float = Field(15.0, gt=0, description="seconds between renewals of a lease")

    system: str = Field("hgmem", description="system that answers new questions; `hgmem systems` lists all")
    language: str = Field(
        "",
        description="language of a new corpus, such as `pl`, whose stems full-text search compares; empty: that of the "
        "first documents if it is told (de, en, es, fr, it, pt, ru, ar, zh, ja, ko), else one of these",
    )
    answer_language: str = Field("", description="language of answers and memory points; empty: the question's")
    max_question_characters: int = Field(8_000, gt=0, description="maximum length of a question")
    max_file_bytes: int = Field(200 * MEGABYTE, gt=0, description="maximum size of a file")
    max_file_seconds: float = Field(60.0, gt=0, le=86_400, description="timeout of reading one file in seconds")
    max_archive_bytes: int = Field(50_000 * MEGABYTE, gt=0, description="maximum size of an archive, uncompressed")
    max_archive_line_bytes: int = Field(16 * MEGABYTE, gt=0, description="maximum size of a line of an archive")
    text_field: str = Field(
        "text", min_length=1, description="field of JSON records, or column of tables, with the text"
    )
    chunk_tokens: int = Field(200, gt=0, description="maximum tokens per chunk (the paper's)")
    chunk_overlap: int = Field(50, ge=0, description="tokens shared with the previous chunk")
    chunk_restart: int = Field(
        2_000,
        ge=0,
        description="tokens after which chunking restarts, as at headings; 0: never, as in the paper",
    )
    description_characters: int = Field(2_000, gt=0, description="maximum length of an aggregated description")
    workers: int = Field(8, gt=0, description="parallel model calls")
    ray_workers: int = Field(0, ge=0, description="workers of each stage on a Ray cluster; 0: as many as it has CPUs")
    ray_env_file: str = Field(
        "", description="path, on Ray's workers, of a file like `.env` with their keys; default: their environment"
    )
    entity_types: Annotated[tuple[str, ...], NoDecode] = Field(
        ENTITY_TYPES, min_length=1, description="entity types to extract, as JSON or comma-separated"
    )
    gleaning: int = Field(0, ge=0, le=5, description="extra extraction rounds per chunk")
    condense: bool = Field(False, description="whether a model summarizes descriptions over the limit")
    resolve: bool = Field(True, description="whether indexing and appending join by rules entities that are the same")
    confirm_calls: int = Field(200, ge=0, description="model calls above which `hgmem index` asks for confirmation")

    @field_validator("temperature", "top_p", "seed", mode="before")
    @classmethod
    def _null_as_unset(cls, value: object) -> object:
        return None if value in ("", "null", "none", "None") else value

    @field_validator("model", mode="before")
    @classmethod
    def _extractive_by_default(cls, value: object) -> object:
        return "extractive" if value == "" else value

    @field_validator("neo4j_uri", *_ADDRESSES)
    @classmethod
    def _without_user(cls, uri: str | None, info: ValidationInfo) -> str | None:
        if uri and "@" in urlsplit(uri).netloc:
            instead = "NEO4J_USERNAME and NEO4J_PASSWORD" if info.field_name == "neo4j_uri" else "the server's API key"
            raise ValueError(f"an address must not contain a user or password: set {instead}")
        return uri

    @field_validator("language")
    @classmethod
    def _two_letters(cls, language: str) -> str:
        if not re.fullmatch("([a-z]{2})?", language):
            raise ValueError("a language is a code of two small letters, such as de, or empty")
        return language

    @field_validator("entity_types", mode="before")
    @classmethod
    def _split_by_commas(cls, types: Any) -> Any:
        if not isinstance(types, str):
            return types
        return json.loads(types) if types.lstrip().startswith(("[", "{")) else types.split(",")

    @field_validator("entity_types")
    @classmethod
    def _named_types(cls, types: tuple[str, ...]) -> tuple[str, ...]:
        stripped = tuple(dict.fromkeys(each.strip() for each in types))
        if not all(stripped):
            raise ValueError("entity types must not be empty")
        return stripped

    @model_validator(mode="after")
    def _renewed_in_time(self) -> "Settings":
        if self.heartbeat >= self.claim_timeout:
            raise ValueError(f"heartbeat ({self.heartbeat:g} s) must be shorter than claim_timeout")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Give the TOML file the lowest precedence."""
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)


def _example(field: str) -> str:
    """Return the default of a setting as JSON."""
    return json.dumps(Settings.model_fields[field].get_default(call_default_factory=True), default=list)


def quiet_ray() -> bool:
    """Keep a Ray that starts here from telemetry and chatter, and return whether its servers use TLS."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    return os.environ.get("RAY_USE_TLS") == "1"


def portable(settings: Settings) -> dict[str, Any]:
    """Return the settings for other machines, by name: no secrets, and nothing of this machine or its server."""
    here = {"data", "cache", "java_home"}
    return {
        name: value
        for name, value in settings
        if not (name in here or name.startswith("neo4j") or isinstance(value, SecretStr))
    }


def load(env_file: str = "", /, **arguments: Any) -> Settings:
    """Return the settings, ignoring arguments that are `None`. `env_file` is read after the usual `.env`.

    Raises `UsageError` for unknown names and invalid values.
    """
    unknown = sorted(arguments.keys() - Settings.model_fields.keys())
    if unknown:
        raise UsageError(f"unknown setting {unknown[0]!r}: choose from {', '.join(Settings.model_fields)}")
    try:
        given = {name: value for name, value in arguments.items() if value is not None}
        files: dict[str, Any] = {"_env_file": (".env", env_file)} if env_file else {}
        return Settings(**files, **given)
    except SettingsError as error:
        named = re.search(r'field "(\w+)"', str(error))
        name = f"HGMEM_{named[1].upper()}" if named else "a setting"
        raise UsageError(
            f"{name} is not valid JSON: use, for example, {_example(named[1]) if named else '[]'}, or unset it"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read 'hgmem.toml' or '.env' in this folder ({error}): correct or remove it") from None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        secret = not name or name.startswith("neo4j") or name.lower().endswith("base_url")
        got = "" if secret else f", got {first['input']!r}"
        raise UsageError(
            f"setting {name or 'heartbeat'!r}: {first['msg'].removeprefix('Value error, ')}{got}"
        ) from None

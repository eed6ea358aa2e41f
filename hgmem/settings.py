"""Settings, and the only reader of the environment.

Order: argument, environment, `.env`, `hgmem.toml` (both in the working directory), default. Names are those that
people have in their shells (`NEO4J_URI`, …); our own start with `HGMEM_`. In `hgmem.toml` the field's own name
is the key.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from platformdirs import user_cache_path, user_data_path
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from hgmem.errors import UsageError
from hgmem.extract import ENTITY_TYPES

MEGABYTE = 1_000_000


def _named(*names: str) -> AliasChoices:
    return AliasChoices(*names)


class Settings(BaseSettings):
    """What a deployment sets once; what differs from question to question is an argument instead."""

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
        validation_alias=_named("neo4j_uri", "NEO4J_URI"),
        description="address, such as bolt://host:7687; where none is set, the server that `hgmem up` started",
    )
    neo4j_username: str = Field("neo4j", validation_alias=_named("neo4j_username", "NEO4J_USERNAME", "NEO4J_USER"))
    neo4j_password: SecretStr | None = Field(None, validation_alias=_named("neo4j_password", "NEO4J_PASSWORD"))
    neo4j_database: str | None = Field(
        None, validation_alias=_named("neo4j_database", "NEO4J_DATABASE"), description="the user's own where not set"
    )
    from_password: SecretStr | None = Field(None, description="of the server that `hgmem adopt --from-uri` reads")
    java_home: Path | None = Field(
        None, validation_alias=_named("java_home", "JAVA_HOME"), description="Java 21 or newer, for `hgmem up`"
    )

    data: Path = Field(
        default_factory=lambda: user_data_path("hgmem") / "neo4j", description="where `hgmem up` keeps its data"
    )
    cache: Path = Field(default_factory=lambda: user_cache_path("hgmem"), description="of replies, and of Neo4j's jars")

    openai_api_key: SecretStr | None = Field(None, validation_alias=_named("openai_api_key", "OPENAI_API_KEY"))
    openai_base_url: str | None = Field(
        None,
        validation_alias=_named("openai_base_url", "OPENAI_BASE_URL"),
        description="of a server that speaks OpenAI's interface; OpenAI's own where not set",
    )
    model: str = Field("extractive", description="a language model by name; `extractive` is none")
    extraction_model: str = Field("", description="another one, cheaper say, for what is asked while indexing")
    temperature: float | None = Field(0.8, ge=0, le=2, description="the paper's; `null` leaves it to the server")
    top_p: float | None = Field(None, gt=0, le=1, description="left to the server where not set, as is `seed`")
    seed: int | None = None
    max_tokens: int = Field(2_048, gt=0, description="limit of one reply of a language model")
    sampling: dict[str, dict[str, float | int | None]] = Field(
        default_factory=dict, description='other values for single tasks, such as {"plan": {"temperature": 0}}'
    )
    model_timeout: float = Field(180.0, gt=0, le=3_600, description="seconds that one request to a model may take")
    model_attempts: int = Field(
        6, ge=1, le=100, description="of a request that nobody answers, or that comes too often"
    )
    requests_per_minute: int | None = Field(None, gt=0, description="no limit where not set")
    tokens_per_minute: int | None = Field(None, gt=0, description="no limit where not set")
    cached_tasks: frozenset[str] = Field(
        frozenset({"extract", "glean", "condense"}), description="tasks whose replies are kept on disk"
    )

    embedding_model: str = Field(
        "all-MiniLM-L6-v2",
        description="of sentence-transformers, by name or path; `openai:NAME` for one behind a server",
    )
    embedding_base_url: str | None = Field(None, description="of `openai:` embedders, where it is not the model's")
    download: bool = Field(False, description="whether an embedder that is not on this machine may be fetched")

    connect_timeout: float = Field(5.0, gt=0, le=600, description="seconds until an unreachable server is given up")
    statement_timeout: float = Field(120.0, gt=0, le=86_400, description="seconds that one statement may run")
    claim_timeout: float = Field(
        60.0, gt=0, le=86_400, description="seconds after which a silent claim may be taken over"
    )
    heartbeat: float = Field(15.0, gt=0, description="seconds between renewals of a claim")

    answer_language: str = Field("", description="of answers and memory points; empty for that of the question")
    max_question_characters: int = Field(8_000, gt=0)
    max_file_bytes: int = Field(200 * MEGABYTE, gt=0, description="of a file, before it is read")
    max_file_seconds: float = Field(60.0, gt=0, le=86_400, description="seconds that reading one file may take")
    max_archive_bytes: int = Field(50_000 * MEGABYTE, gt=0, description="of an archive, uncompressed")
    max_archive_line_bytes: int = Field(16 * MEGABYTE, gt=0, description="of one line of it")
    chunk_tokens: int = Field(200, gt=0, description="of one chunk at most (the paper's)")
    chunk_overlap: int = Field(50, ge=0, description="tokens that a chunk shares with the one before")
    chunk_restart: int = Field(
        2_000,
        ge=0,
        description="tokens after which chunking begins anew, as at headings; 0: never, as in the paper",
    )
    description_characters: int = Field(2_000, gt=0, description="limit of a joined description")
    workers: int = Field(8, gt=0, description="model calls side by side")
    entity_types: Annotated[tuple[str, ...], NoDecode] = Field(
        ENTITY_TYPES, min_length=1, description="types of entities to extract: JSON, or separated by commas"
    )
    gleaning: int = Field(0, ge=0, le=5, description="rounds that look for what an extraction missed")
    condense: bool = Field(False, description="whether a model condenses joined descriptions that are over the limit")
    confirm_calls: int = Field(200, ge=0, description="model calls above which `hgmem index` asks first")

    @field_validator("temperature", "top_p", "seed", mode="before")
    @classmethod
    def _left_to_the_server(cls, value: object) -> object:
        return None if value in ("", "null", "none", "None") else value

    @field_validator("model", mode="before")
    @classmethod
    def _none_by_default(cls, value: object) -> object:
        return "extractive" if value == "" else value

    @field_validator("neo4j_uri")
    @classmethod
    def _without_user(cls, uri: str | None) -> str | None:
        if uri and urlsplit(uri).username is not None:
            raise ValueError("an address holds no user and no password, set NEO4J_USERNAME and NEO4J_PASSWORD")
        return uri

    @field_validator("entity_types", mode="before")
    @classmethod
    def _separated(cls, types: Any) -> Any:
        if not isinstance(types, str):
            return types
        return json.loads(types) if types.lstrip().startswith(("[", "{")) else types.split(",")

    @field_validator("entity_types")
    @classmethod
    def _named_types(cls, types: tuple[str, ...]) -> tuple[str, ...]:
        stripped = tuple(dict.fromkeys(each.strip() for each in types))
        if not all(stripped):
            raise ValueError("a type of entities has a name")
        return stripped

    @model_validator(mode="after")
    def _beats_in_time(self) -> "Settings":
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
        """Put the TOML file last."""
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)


def load(**arguments: Any) -> Settings:
    """Return the settings; arguments that are `None` fall through to the environment and the files."""
    unknown = sorted(arguments.keys() - Settings.model_fields.keys())
    if unknown:
        raise UsageError(f"there is no setting {unknown[0]!r}: the settings are {', '.join(Settings.model_fields)}")
    try:
        return Settings(**{name: value for name, value in arguments.items() if value is not None})
    except SettingsError as error:
        named = re.search(r'field "(\w+)"', str(error))
        name = f"HGMEM_{named[1].upper()}" if named else "a setting"
        raise UsageError(f"{name} is no JSON: write it like its default in hgmem/settings.py, or unset it") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"'hgmem.toml' or '.env' in this folder can't be read ({error}): mend or remove it") from None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        got = "" if name.startswith("neo4j") or not name else f", got {first['input']!r}"
        raise UsageError(f"setting {name or 'heartbeat'!r}: {first['msg']}{got}") from None

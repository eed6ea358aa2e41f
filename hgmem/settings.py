"""Settings, and the only reader of the environment.

Order: argument, environment, `.env`, `hgmem.toml` (both in the working directory), default. Names are those that
people have in their shells (`NEO4J_URI`, …); our own start with `HGMEM_`. In `hgmem.toml` the field's own name
is the key.
"""

import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from platformdirs import user_cache_path, user_data_path
from pydantic import AliasChoices, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from hgmem.errors import UsageError

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

    neo4j_uri: str | None = Field(None, validation_alias=_named("neo4j_uri", "NEO4J_URI"))
    neo4j_username: str = Field("neo4j", validation_alias=_named("neo4j_username", "NEO4J_USERNAME", "NEO4J_USER"))
    neo4j_password: SecretStr | None = Field(None, validation_alias=_named("neo4j_password", "NEO4J_PASSWORD"))
    neo4j_database: str | None = Field(None, validation_alias=_named("neo4j_database", "NEO4J_DATABASE"))
    java_home: Path | None = Field(None, validation_alias=_named("java_home", "JAVA_HOME"))

    data: Path = Field(default_factory=lambda: user_data_path("hgmem") / "neo4j")
    cache: Path = Field(default_factory=lambda: user_cache_path("hgmem"))

    model: str = "extractive"
    embedding_model: str = "all-MiniLM-L6-v2"
    download: bool = Field(False, description="whether an embedder that is not on this machine may be fetched")

    connect_timeout: float = Field(5.0, gt=0, le=600, description="seconds until an unreachable server is given up")
    statement_timeout: float = Field(120.0, gt=0, le=86_400, description="seconds that one statement may run")
    claim_timeout: float = Field(
        60.0, gt=0, le=86_400, description="seconds after which a silent claim may be taken over"
    )
    heartbeat: float = Field(15.0, gt=0, description="seconds between renewals of a claim")

    answer_language: str = Field("", description="of answers and memory points; empty for that of the question")
    max_question_characters: int = Field(8_000, gt=0)
    max_file_bytes: int = Field(200 * MEGABYTE, gt=0)
    chunk_tokens: int = Field(200, gt=0)
    chunk_overlap: int = Field(50, ge=0)
    description_characters: int = Field(2_000, gt=0, description="limit of a joined description")
    workers: int = Field(8, gt=0, description="model calls side by side")

    @field_validator("neo4j_uri")
    @classmethod
    def _without_user(cls, uri: str | None) -> str | None:
        if uri and urlsplit(uri).username is not None:
            raise ValueError("an address holds no user and no password, set NEO4J_USERNAME and NEO4J_PASSWORD")
        return uri

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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, SettingsError) as error:
        raise UsageError(f"'hgmem.toml' or '.env' in this folder can't be read ({error}): mend or remove it") from None
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        got = "" if name.startswith("neo4j") or not name else f", got {first['input']!r}"
        raise UsageError(f"setting {name or 'heartbeat'!r}: {first['msg']}{got}") from None

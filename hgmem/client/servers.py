"""Which model and server each role has, and which key that server gets.

A role is what the names of its settings begin with, such as `extraction`. The role `openai` has the common variables,
`OPENAI_BASE_URL` and `OPENAI_API_KEY`. Its server serves all roles that have none of their own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from hgmem.errors import AccessError, UsageError
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.openai_server import CONNECTING, OPENAI, OpenAIServer, SettingNames
from hgmem.settings import Settings

USUAL = "openai"
ROLES: Mapping[str, str] = {"answers": USUAL, "extraction": "extraction", "memory": "memory"}  # of language models


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The model of a role, its server's address, and the key for that server. A model on this machine has neither."""

    model: str
    url: str = ""
    key: str = field(default="", repr=False)
    names: SettingNames = field(default_factory=SettingNames, compare=False)

    def __str__(self) -> str:
        return f"{self.model} at {self.url}" if self.url else self.model

    def listed(self, who: str) -> frozenset[str]:
        """Return the models that the server of `who` lists. Raises `ModelError` if it does not answer."""
        server = OpenAIServer(who=who, endpoint=self.url, key=self.key, timeout=CONNECTING, names=self.names)
        try:
            return server.listed()
        finally:
            server.close()


def place_of(settings: Settings, role: str, *, model: str, who: str, named: str) -> Place:
    """Return where the requests of a role go. An address of its own gets no key but its own.

    `named` is the setting of the model's name. Raises `UsageError` if there is neither an address nor a key.
    """
    own_url, own_key = getattr(settings, f"{role}_base_url"), _key(settings, role)
    served = role if own_url else USUAL
    keyed = role if own_url or own_key else USUAL
    url, key = getattr(settings, f"{served}_base_url"), _key(settings, keyed)
    if not (url or key):
        raise UsageError(
            f"{who} needs an API server: set OPENAI_API_KEY, or OPENAI_BASE_URL for your own server (Ollama: "
            "http://127.0.0.1:11434/v1)"
        )
    names = SettingNames(model=named, address=_variable(served, "BASE_URL"), key=_variable(keyed, "API_KEY"))
    return Place(model=model, url=(url or OPENAI).rstrip("/"), key=key, names=names)


def model_places(settings: Settings) -> dict[str, Place]:
    """Return the places of the language models by role, that of `answers` first."""
    return {title: _model_place(settings, role) for title, role in ROLES.items()}


def embedding_place(settings: Settings) -> Place:
    """Return the place of the embedder."""
    prefix, _, name = settings.embedding_model.partition(":")
    if prefix != "openai":
        return Place(model=settings.embedding_model)
    return place_of(settings, "embedding", model=name, who=f"embedder {name!r}", named="HGMEM_EMBEDDING_MODEL")


def reranker_place(settings: Settings) -> Place | None:
    """Return the place of the reranker, or None if there is none."""
    name = settings.reranker
    if settings.reranker_base_url and not name:
        raise UsageError("HGMEM_RERANKER_BASE_URL needs a reranker: set HGMEM_RERANKER to one of that server")
    if not (name and settings.reranker_base_url):
        return Place(model=name) if name else None
    return place_of(settings, "reranker", model=name, who=f"reranker {name!r}", named="HGMEM_RERANKER")


def roles(settings: Settings, given: Mapping[str, str]) -> dict[str, str]:
    """Return who serves each role: a name, and the address of its server. Never a key.

    `given` has the names of the caller's own objects. What the model of `answers` serves too is left out.
    """
    told = dict(given)
    if "answers" not in given:
        places = model_places(settings)
        told |= {role: str(place) for role, place in places.items() if role == "answers" or place != places["answers"]}
    if "embeddings" not in given:
        told["embeddings"] = str(embedding_place(settings))
    if "reranking" not in given and (place := reranker_place(settings)):
        told["reranking"] = str(place)
    return told


def check_models(settings: Settings) -> str:
    """Check that the servers of the language models answer, and say which role goes where.

    Raises `HGMemError` if a model can't be used.
    """
    places = model_places(settings)
    told: dict[Place, str] = {}
    for role, place in places.items():
        if place not in told:
            told[place] = f"{'' if role == 'answers' else f'{role}: '}{_checked(place)}"
    return "; ".join(told.values())


def _checked(place: Place) -> str:
    if not place.url:
        return "extractive (built-in, no language model)"
    listed = place.listed(f"model {place.model!r}")
    if listed and place.model not in listed:
        raise AccessError(f"{place.url} responds but does not list model {place.model!r}: check {place.names.model}")
    return f"{place}, which responds"


def _model_place(settings: Settings, role: str) -> Place:
    own = "" if role == USUAL else getattr(settings, f"{role}_model")
    name = own or settings.model
    if name == ExtractiveModel.name:
        if role != USUAL and not own and getattr(settings, f"{role}_base_url"):
            lacking = f"{_variable(role, 'BASE_URL')} needs a language model"
            raise UsageError(f"{lacking}: set {_variable(role, 'MODEL')} to one of that server")
        return Place(model=name)
    named = _variable(role, "MODEL") if own else "HGMEM_MODEL"
    return place_of(settings, role, model=name, who=f"model {name!r}", named=named)


def _key(settings: Settings, role: str) -> str:
    """Return the API key of a role, or an empty text."""
    secret = getattr(settings, f"{role}_api_key")
    key: str = secret.get_secret_value().strip() if secret else ""
    if not (key.isascii() and key.isprintable()):
        name = _variable(role, "API_KEY")
        raise UsageError(f"{name} contains characters that API keys do not have: copy it again")
    return key


def _variable(role: str, name: str) -> str:
    return f"{'' if role == USUAL else 'HGMEM_'}{role.upper()}_{name}"

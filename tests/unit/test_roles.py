"""Each role has a server of its own, and no server gets the key or the waiting time of another."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from wire import Answered, Asked, Failing, Said, WireServer, too_many

from hgmem.client.connecting import find_embedder, find_model
from hgmem.client.servers import check_models, model_places, roles
from hgmem.errors import AccessError, UsageError
from hgmem.extraction.tasks import Extract
from hgmem.models.llm.rate_limits import UnavailableError
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.rendering import PromptMemory
from hgmem.settings import Settings, load
from hgmem.testing import DeterministicEmbedder

KEY, OWN = "key-of-the-usual-server", "key-of-another-server"
EXTRACTION = '{"entities": [{"name": "Ida Berg", "type": "person", "description": "A ferrywoman."}], "relations": []}'
ANSWER = AnswerQuestion(question="Who rows?", memory=PromptMemory(), passages=())
TEXTS = {"extraction": Extract(text="Ida Berg rows."), "answers": ANSWER}


def answering(asked: Asked) -> Answered:
    if not asked.system:
        return Said('{"ready": true}')
    return Said("Ida Berg." if "who rows?" in asked.user.lower() else EXTRACTION)


@pytest.fixture
def two() -> Iterator[tuple[WireServer, WireServer]]:
    """The usual server, and that of a role."""
    with WireServer(answering) as usual, WireServer(answering) as own:
        yield usual, own


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """Loads settings with the test's own cache, a language model and a key."""
    return lambda **given: load(**{"cache": tmp_path, "model": "big", "openai_api_key": KEY, **given})


def model(found: Settings) -> Any:
    return find_model(found, embedder=DeterministicEmbedder())


def sent(server: WireServer) -> set[str]:
    """Return the keys that a server got, and check that it got the other one nowhere."""
    heard = [*server.requests, *server.embedded]
    keys = {asked.headers["authorization"].removeprefix("Bearer ") for asked in heard}
    everything = repr([(asked.headers, asked.body) for asked in heard])
    assert all(key in keys or key not in everything for key in (KEY, OWN))
    return keys


@pytest.mark.parametrize(("own_key", "expected"), [({}, "none"), ({"extraction_api_key": OWN}, OWN)])
def test_a_server_of_extraction_gets_its_own_key_or_none(
    own_key: dict[str, str], expected: str, two: tuple[WireServer, WireServer], settings: Any
) -> None:
    usual, own = two
    found = model(settings(openai_base_url=usual.base_url, extraction_base_url=own.base_url, **own_key))
    for task in TEXTS.values():
        found.reply(task)
    assert (sent(usual), sent(own)) == ({KEY}, {expected})
    assert ("Ida Berg rows." in own.requests[-1].user, found.name) == (True, "big")


def test_the_keys_of_the_environment_reach_no_server_of_a_role(
    two: tuple[WireServer, WireServer], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, own = two
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", usual.base_url)
    for role in ("EXTRACTION", "MEMORY", "EMBEDDING"):
        monkeypatch.setenv(f"HGMEM_{role}_BASE_URL", own.base_url)
    found = settings(openai_api_key=None, embedding_model="openai:small", memory_model="long")
    asked = model(found)
    asked.reply(TEXTS["extraction"])
    asked.reply(ANSWER)
    find_embedder(found).embed(["one"], kind="query")
    assert (sent(usual), sent(own), len(own.embedded)) == ({KEY}, {"none"}, 1)
    assert {place.key for role, place in model_places(found).items() if role != "answers"} == {""}


def test_a_key_of_a_role_alone_goes_to_the_usual_server(two: tuple[WireServer, WireServer], settings: Any) -> None:
    usual, _ = two
    found = model(settings(openai_base_url=usual.base_url, extraction_api_key=OWN))
    for task in TEXTS.values():
        found.reply(task)
    assert sent(usual) == {KEY, OWN}


def test_a_role_of_the_same_model_server_and_key_is_the_same_model(settings: Any) -> None:
    url = "http://127.0.0.1:1/v1"
    assert model(settings(openai_base_url=url, extraction_model="big", memory_model="big")).name == "big"
    assert len(set(model_places(settings(openai_base_url=url)).values())) == 1
    one = model(settings(openai_base_url=url, memory_base_url="http://127.0.0.1:2/v1", memory_model="big"))
    assert [one.serving(task).chat.endpoint[-4] for task in ("gist", "extract", "answer")] == ["2", "1", "1"]


def test_an_error_names_the_settings_of_the_role(two: tuple[WireServer, WireServer], settings: Any) -> None:
    usual, own = two
    own.answer = lambda _: Failing(401, f"Incorrect API key provided: {OWN}")
    common = {"openai_base_url": usual.base_url, "extraction_base_url": own.base_url, "extraction_model": "small"}
    with pytest.raises(AccessError) as refused:
        model(settings(**common, extraction_api_key=OWN)).reply(TEXTS["extraction"])
    where = f"model 'small' at {own.base_url}"
    assert str(refused.value) == f"{where} rejected the API key: check HGMEM_EXTRACTION_API_KEY"
    own.answer = lambda _: Failing(404, "no such model")
    with pytest.raises(AccessError) as unknown:
        model(settings(**common)).reply(TEXTS["extraction"])
    fix = "check HGMEM_EXTRACTION_MODEL and HGMEM_EXTRACTION_BASE_URL (no such model)"
    assert str(unknown.value) == f"{where} not found: {fix}"


def test_an_address_without_a_language_model_is_refused(settings: Any) -> None:
    alone = settings(model="extractive", extraction_base_url="http://127.0.0.1:1/v1")
    with pytest.raises(
        UsageError, match="HGMEM_EXTRACTION_BASE_URL needs a language model: set HGMEM_EXTRACTION_MODEL"
    ):
        model(alone)


@pytest.mark.parametrize("name", ["openai_base_url", "extraction_base_url", "memory_base_url", "embedding_base_url"])
def test_an_address_with_a_password_is_refused_without_being_shown(name: str, settings: Any) -> None:
    with pytest.raises(UsageError, match="must not contain a user or password: set the server's API key") as error:
        settings(**{name: "http://anna:precious@127.0.0.1:1/v1"})
    assert "precious" not in str(error.value)


def test_the_doctor_asks_every_server_with_its_own_key(two: tuple[WireServer, WireServer], settings: Any) -> None:
    usual, own = two
    urls = {"openai_base_url": usual.base_url, "extraction_base_url": own.base_url}
    found = settings(**urls, extraction_model="small", extraction_api_key=OWN)
    said = check_models(found)
    asked = f"big at {usual.base_url}, which responds; extraction: small at {own.base_url}, which responds"
    assert said == asked
    assert [server.listings[0]["authorization"] for server in two] == [f"Bearer {KEY}", f"Bearer {OWN}"]
    told = roles(found, {})
    assert told == {
        "answers": f"big at {usual.base_url}",
        "extraction": f"small at {own.base_url}",
        "embeddings": "all-MiniLM-L6-v2",
    }
    assert not [key for key in (KEY, OWN) if key in f"{said}{told}{model_places(found)!r}"]
    own.close()
    with pytest.raises(UnavailableError, match=r"cannot be reached: .* HGMEM_EXTRACTION_BASE_URL"):
        check_models(found)


# Limits are those of a server ---------------------------------------------------------------------------------


def test_roles_of_one_server_share_its_places_and_each_server_has_its_own(
    two: tuple[WireServer, WireServer], settings: Any
) -> None:
    usual, own = two
    slow: Callable[[Asked], Answered] = lambda asked: Said(answering(asked).text, delay=0.1)  # noqa: E731
    usual.answer, own.answer = slow, slow
    shared = settings(openai_base_url=usual.base_url, extraction_model="small", workers=2, cached_tasks=frozenset())
    apart = shared.model_copy(update={"extraction_base_url": own.base_url})
    most = []
    for found in (shared, apart):
        asked = model(found)
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(asked.reply, 4 * list(TEXTS.values())))
        most.append((usual.most_at_once, own.most_at_once))
    assert most == [(2, 0), (2, 2)]


def test_a_server_that_asks_for_time_stops_its_own_roles_alone(
    two: tuple[WireServer, WireServer], settings: Any
) -> None:
    usual, own = two
    refused = threading.Event()

    def once(asked: Asked) -> Answered:
        if "Ida Berg rows." in asked.user and not refused.is_set():
            refused.set()
            return too_many(2)
        return answering(asked)

    waited = {}
    for server, more in ((usual, {}), (own, {"extraction_base_url": own.base_url})):
        server.answer = once
        refused.clear()
        asked = model(settings(openai_base_url=usual.base_url, extraction_model="small", cached_tasks=(), **more))
        with ThreadPoolExecutor(1) as pool:
            extracting = pool.submit(asked.reply, TEXTS["extraction"])
            assert refused.wait(30)
            time.sleep(0.2)  # until the client has read the refusal
            began = time.monotonic()
            asked.reply(ANSWER)
            waited[server] = time.monotonic() - began > 1
            assert extracting.result().entities[0].name == "Ida Berg"
    assert waited == {usual: True, own: False}

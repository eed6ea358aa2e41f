"""The model and the embedder that settings and arguments select; these tests make no calls."""

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from wire import Asked, Failing, Said, WireServer

from hgmem.client.connecting import adapted_embedder, adapted_model, find_embedder, find_model
from hgmem.client.servers import check_models
from hgmem.corpus.indexing import is_language_model
from hgmem.errors import AccessError, HGMemError, ModelError, UsageError
from hgmem.extraction.tasks import Extract
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.chat_model import ChatModel
from hgmem.settings import Settings, load
from hgmem.testing import DeterministicEmbedder, ScriptedModel

READY = '{"ready": true}'
EXTRACTION = '{"entities": [{"name": "Ida Berg", "type": "person", "description": "A ferrywoman."}], "relations": []}'


@pytest.fixture
def settings(tmp_path: Path) -> Callable[..., Settings]:
    """Loads settings with the test's own cache."""
    return lambda **given: load(cache=tmp_path, **given)


def answering(asked: Asked) -> Said:
    return Said(EXTRACTION if asked.system else READY)


def model(settings: Settings) -> Any:
    return find_model(settings, embedder=DeterministicEmbedder())


def test_no_model_that_is_set_means_the_extractive_one(settings: Any) -> None:
    assert isinstance(model(settings()), ExtractiveModel)
    assert check_models(settings()) == "extractive (built-in, no language model)"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"model": "gpt-9"}, "model 'gpt-9' needs an API server: set OPENAI_API_KEY, or OPENAI_BASE_URL"),
        ({"embedding_model": "openai:small"}, "embedder 'small' needs an API server: set OPENAI_API_KEY"),
    ],
)
def test_a_model_behind_a_server_needs_a_key_or_a_server_of_ones_own(given: Any, what: str, settings: Any) -> None:
    found = settings(**given)
    with pytest.raises(UsageError) as error:
        model(found) if "model" in given else find_embedder(found)
    assert what in str(error.value)


def test_the_settings_reach_the_wire_and_tasks_have_their_own_sampling(settings: Any) -> None:
    with WireServer(answering) as server:
        found = settings(
            model="big",
            openai_base_url=server.base_url,
            openai_api_key="key-of-mine",
            temperature=0.3,
            top_p=0.9,
            seed=7,
            max_tokens=900,
            sampling={"extract": {"temperature": 0.0, "seed": None}},
        )
        model(found).reply(Extract(text="Ida Berg."))
        (probe, extract) = server.requests

    assert extract.headers["authorization"] == "Bearer key-of-mine"
    sent = {name: extract.body.get(name) for name in ("model", "temperature", "top_p", "seed", "max_tokens")}
    assert sent == {"model": "big", "temperature": 0.0, "top_p": 0.9, "seed": None, "max_tokens": 900}
    assert probe.body["model"] == "big"


def test_extraction_goes_to_the_model_that_is_set_for_it(settings: Any) -> None:
    with WireServer(answering) as server:
        common = {"openai_base_url": server.base_url}
        routed = model(settings(model="big", extraction_model="small", **common))
        routed.reply(Extract(text="Ida Berg."))
        assert {asked.model for asked in server.requests} == {"small"}
        assert (routed.name, is_language_model(routed)) == ("big", True)
        free = model(settings(model="big", extraction_model="extractive", **common))
        assert isinstance(free.serving("extract"), ExtractiveModel)
        assert not is_language_model(free)
        assert free.serving("evolve").name == "big"


def test_gists_and_clues_go_to_the_model_of_the_memory(settings: Any) -> None:
    common = {"openai_base_url": "http://127.0.0.1:1/v1"}
    routed = model(settings(model="big", extraction_model="small", memory_model="long", **common))
    names = [routed.serving(task).name for task in ("gist", "clues", "extract", "answer")]
    assert names == ["long", "long", "small", "big"]
    assert model(settings(model="big", memory_model="big", **common)).name == "big"


def test_an_extraction_is_kept_on_disk_for_the_next_client_and_another_prompt_is_another_matter(settings: Any) -> None:
    with WireServer(answering) as server:
        common = {"model": "big", "openai_base_url": server.base_url}
        first = model(settings(**common)).reply(Extract(text="Ida Berg."))
        asked = len(server.requests)
        assert model(settings(**common)).reply(Extract(text="Ida Berg.")) == first
        assert len(server.requests) == asked
        model(settings(**common, seed=1)).reply(Extract(text="Ida Berg."))
        model(settings(**common, cached_tasks=frozenset())).reply(Extract(text="Ida Berg."))
        assert len(server.requests) == asked + 2


def test_sampling_of_an_unknown_kind_is_refused_by_name(settings: Any) -> None:
    with pytest.raises(UsageError, match="task 'plan' has unknown key 'heat': use temperature"):
        model(settings(model="m", openai_base_url="http://127.0.0.1:1/v1", sampling={"plan": {"heat": 2}}))


def test_the_doctor_hears_from_the_server_without_asking_the_model(settings: Any) -> None:
    with WireServer(answering) as server:
        said = check_models(settings(model="big", extraction_model="small", openai_base_url=server.base_url))
        assert (
            said == f"big at {server.base_url}, which responds; extraction: small at {server.base_url}, which responds"
        )
        assert server.requests == []
    with pytest.raises(ModelError, match="cannot be reached: check that it is running"):
        check_models(settings(model="big", openai_base_url=server.base_url))


def test_a_refused_key_is_an_error_of_access_that_no_repetition_mends(settings: Any) -> None:
    with WireServer(lambda _: Failing(401, "Incorrect API key provided: key-of-mine")) as server:
        asked = model(settings(model="big", openai_base_url=server.base_url, openai_api_key="key-of-mine"))
        with pytest.raises(AccessError) as error:
            asked.reply(Extract(text="Ida."))
    assert "key-of-mine" not in str(error.value)
    assert not error.value.retryable


def test_a_temperature_of_null_leaves_it_to_the_server(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HGMEM_TEMPERATURE", "null")
    with WireServer(answering) as server:
        model(settings(model="big", openai_base_url=server.base_url)).reply(Extract(text="Ida Berg."))
        assert "temperature" not in server.requests[-1].body


@pytest.mark.parametrize(
    ("sampling", "what"),
    [
        (
            {"plann": {"temperature": 0}},
            "unknown task 'plann': choose from anchor_title, answer, boundary, clues, condense",
        ),
        ({"evolve": {"max_tokens": None}}, "invalid max_tokens None of task 'evolve'"),
    ],
)
def test_sampling_that_cannot_be_is_refused_at_once(sampling: Any, what: str, settings: Any) -> None:
    with pytest.raises(UsageError) as error:
        model(settings(model="m", openai_base_url="http://127.0.0.1:1/v1", sampling=sampling))
    assert what in str(error.value)


def test_a_model_that_the_server_does_not_list_is_told_by_the_doctor(settings: Any) -> None:
    with WireServer(answering) as server:
        listed = server.base_url
        assert "which responds" in check_models(settings(model="wire", openai_base_url=listed))
        with pytest.raises(AccessError, match="does not list model 'nope'"):
            check_models(settings(model="nope", openai_base_url=listed))


def test_an_empty_name_is_no_language_model(settings: Any) -> None:
    assert isinstance(model(settings(model="")), ExtractiveModel)


@pytest.mark.parametrize("key", ["a\nb", "schlüssel"])
def test_a_key_that_can_be_none_is_refused_without_being_shown(key: str, settings: Any) -> None:
    for given in ({"model": "big"}, {"embedding_model": "openai:small"}):
        found = settings(**given, openai_api_key=key, openai_base_url="http://127.0.0.1:1/v1")
        with pytest.raises(UsageError, match="OPENAI_API_KEY contains characters that API keys do not have") as error:
            model(found) if "model" in given else find_embedder(found)
        assert key not in str(error.value)


def test_unknown_tasks_of_the_cache_are_refused(settings: Any) -> None:
    with pytest.raises(UsageError, match="HGMEM_CACHED_TASKS: unknown task 'foo'"):
        model(settings(model="m", openai_base_url="http://127.0.0.1:1/v1", cached_tasks={"foo"}))


def test_replies_that_cannot_be_kept_are_warned_of_once(settings: Any, tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_text("no folder")
    with WireServer(answering) as server:
        found = model(load(cache=place / "x", model="big", openai_base_url=server.base_url))
        with pytest.warns(UserWarning, match="responses are not cached"):
            found.reply(Extract(text="Ida Berg."))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found.reply(Extract(text="Per Berg."))


def test_a_model_for_extraction_alone_leaves_the_rest_to_the_extractive_one(settings: Any) -> None:
    with WireServer(answering) as server:
        found = model(settings(extraction_model="small", openai_base_url=server.base_url))
        found.reply(Extract(text="Ida Berg."))
    assert isinstance(found.serving("evolve"), ExtractiveModel)
    assert {asked.model for asked in server.requests} == {"small"}
    assert is_language_model(found)


def test_closing_a_model_lets_go_of_its_files_and_connections(settings: Any) -> None:
    with WireServer(answering) as server:
        found = model(settings(model="big", openai_base_url=server.base_url))
        found.reply(Extract(text="Ida Berg."))
        before = len(os.listdir("/proc/self/fd"))
        found.close()
        assert len(os.listdir("/proc/self/fd")) < before
        assert found.reply(Extract(text="Per Berg.")).entities


@pytest.mark.parametrize("body", ["<html>", '{"error": "no"}', '{"data": null}', "[]"])
def test_an_embedder_that_gives_no_vectors_is_a_model_error(body: str, settings: Any) -> None:
    with WireServer(answering, embedding=lambda _: Failing(200, "", raw=body)) as server:
        found = find_embedder(settings(embedding_model="openai:small", embedding_base_url=server.base_url))
        with pytest.raises(ModelError, match="embedder 'openai:small'"):
            found.embed(["one"], kind="query")


# The caller's objects -----------------------------------------------------------------------------------------


def test_whatever_replies_is_a_model_as_it_stands(settings: Any) -> None:
    own = ScriptedModel({})
    assert adapted_model(own, settings()) is own
    with pytest.raises(UsageError, match="'int' is not a language model: pass a name"):
        adapted_model(3, settings())
    with pytest.raises(UsageError, match="'dict' is not an embedder: pass a name"):
        adapted_embedder({})

    class Nameless(DeterministicEmbedder):
        name = ""

    with pytest.raises(UsageError, match="'Nameless' is not an embedder: pass a name, an object with `name`"):
        adapted_embedder(Nameless())


def test_a_chat_model_of_langchain_answers_tasks(settings: Any) -> None:
    models = pytest.importorskip("langchain_core.language_models", reason="langchain-core is not installed")
    own = models.FakeListChatModel(responses=[EXTRACTION])
    found = adapted_model(own, settings())

    assert isinstance(found, ChatModel)
    assert found.reply(Extract(text="Ida Berg.")).entities[0].name == "Ida Berg"


def test_embeddings_of_langchain_are_an_embedder(settings: Any) -> None:
    embeddings = pytest.importorskip("langchain_core.embeddings", reason="langchain-core is not installed")
    found = adapted_embedder(embeddings.DeterministicFakeEmbedding(size=12))

    assert found.embed(["a", "b"], kind="document").shape == (2, 12)
    assert found.dimensions == 12


def test_an_embedder_behind_a_server_is_recorded_as_such(settings: Any) -> None:
    with WireServer(answering) as server:
        found = find_embedder(settings(embedding_model="openai:small", embedding_base_url=server.base_url))
        assert found.name == "openai:small"
        assert found.embed(["one"], kind="query").shape == (1, found.dimensions)
        assert {asked.model for asked in server.embedded} == {"small"}


def test_errors_of_settings_are_of_the_tree(settings: Any) -> None:
    with pytest.raises(HGMemError):
        settings(temperature=9)

"""Adapters for third-party embedders, OpenAI's over real HTTP."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from pydantic import Field
from wire import Answered, Asked, Dropped, Embedded, Failing, Said, WireServer, too_many

from hgmem.errors import ModelError
from hgmem.models.embedders import LangChainEmbedder, OpenAIEmbedder
from hgmem.models.embedding import CheckedEmbedder
from hgmem.models.llm.openai_server import OPENAI
from hgmem.models.metering import measuring
from hgmem.testing import DeterministicEmbedder

TEXTS = ["the Ravensund Orrery", "the Heron Seal", "a crypt", "the Corrie Vane", "five"]


def nothing_said(_: Asked) -> Answered:
    return Said("")


def serving(embedding: Callable[[Asked], object] = lambda asked: Embedded(), **more) -> WireServer:
    return WireServer(nothing_said, embedding=embedding, **more)


def embedder(server: WireServer, **more) -> OpenAIEmbedder:
    return OpenAIEmbedder("small", base_url=server.base_url, api_key="secret", **{"retries": 0, **more})


# Recent vectors -----------------------------------------------------------------------------------------------


class Noting(DeterministicEmbedder):
    """Notes the texts of each call."""

    def __init__(self) -> None:
        super().__init__(8)
        self.calls: list[list[str]] = []

    def embed(self, texts, *, kind):
        self.calls.append(list(texts))
        return super().embed(texts, kind=kind)


def test_a_text_is_embedded_once_by_kind_and_repeats_of_a_call_too():
    inner = Noting()
    checked = CheckedEmbedder(inner)
    first = checked.embed(["a", "b", "a"], kind="document")
    again = checked.embed(["c", "a"], kind="document")
    checked.embed(["a"], kind="query")
    assert inner.calls == [["a", "b"], ["c"], ["a"]]
    assert np.array_equal(first[0], first[2])
    assert np.array_equal(again[1], first[0])
    np.testing.assert_allclose(first, DeterministicEmbedder(8).embed(["a", "b", "a"], kind="document"), atol=1e-6)


def test_a_call_whose_vectors_are_all_recent_counts_as_none():
    checked = CheckedEmbedder(Noting())
    with measuring() as meter:
        for _ in range(3):
            checked.embed(["a"], kind="query")
    assert meter.usage().calls == {"embedding": {"query": 1}}


def test_an_exception_of_anothers_embedder_becomes_one_line_with_its_name():
    class Failing(DeterministicEmbedder):
        def embed(self, texts, *, kind):
            raise KeyError("weights")

    with pytest.raises(ModelError, match=r"^embedder '.*' failed on 2 texts: KeyError: 'weights'$"):
        CheckedEmbedder(Failing()).embed(TEXTS[:2], kind="query")


def test_vectors_of_long_texts_and_the_oldest_ones_are_not_kept_in_memory():
    inner = Noting()
    checked = CheckedEmbedder(inner, recent=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        checked.embed([text], kind="document")
    assert inner.calls == [["a"], ["b"], ["c"], ["b"]]
    checked.embed(["long " * 500], kind="document")
    checked.embed(["long " * 500], kind="document")
    assert len(inner.calls) == 6


def test_copies_share_recent_vectors_and_a_pickle_starts_without():
    checked = CheckedEmbedder(DeterministicEmbedder(8))
    checked.embed(["a"], kind="document")
    with measuring() as meter:
        copy.deepcopy(checked).embed(["a"], kind="document")
        assert meter.usage().calls == {}
        pickle.loads(pickle.dumps(checked)).embed(["a"], kind="document")
        assert meter.usage().calls == {"embedding": {"document": 1}}


def test_a_vector_that_was_returned_may_be_changed_by_its_caller():
    checked = CheckedEmbedder(Noting())
    first = checked.embed(["a"], kind="document")
    kept = first.copy()
    first[:] = 0
    assert np.array_equal(checked.embed(["a"], kind="document"), kept)


# OpenAI -------------------------------------------------------------------------------------------------------


def test_vectors_are_the_servers_in_order_and_the_wire_gets_the_bare_name():
    with serving() as server:
        found = embedder(server)
        vectors = found.embed(TEXTS, kind="document")

    assert vectors.dtype == np.float32
    np.testing.assert_allclose(vectors, DeterministicEmbedder().embed(TEXTS, kind="document"), atol=1e-7)
    assert found.name == "openai:small"
    assert [asked.model for asked in server.embedded] == ["small"]
    assert server.embedded[0].headers["authorization"] == "Bearer secret"


def test_many_texts_go_in_batches_and_come_back_in_order_even_from_a_server_that_turns_them_round():
    with serving(lambda asked: Embedded(backwards=True)) as server:
        vectors = embedder(server, batch=2).embed(TEXTS, kind="query")

    assert [len(asked.texts) for asked in server.embedded] == [2, 2, 1]
    np.testing.assert_allclose(vectors, DeterministicEmbedder().embed(TEXTS, kind="query"), atol=1e-7)


def test_dimensions_are_asked_once_and_with_a_tiny_text():
    with serving(dimensions=48) as server:
        found = embedder(server)
        assert [found.dimensions, found.dimensions] == [48, 48]

    assert [len(asked.texts[0]) for asked in server.embedded] == [1]


def test_dimensions_that_are_given_are_sent_and_not_asked_for():
    with serving() as server:
        found = embedder(server, dimensions=16)
        assert found.dimensions == 16
        assert server.embedded == []
        assert found.embed(["a"], kind="query").shape == (1, 16)

    assert server.embedded[0].body["dimensions"] == 16


def test_a_length_that_was_not_wished_for_is_not_sent():
    with serving() as server:
        embedder(server).embed(["a"], kind="query")

    assert "dimensions" not in server.embedded[0].body


def test_no_texts_are_no_vectors_of_the_right_length():
    with serving(dimensions=48) as server:
        assert embedder(server).embed([], kind="document").shape == (0, 48)
        assert embedder(server, dimensions=16).embed([], kind="document").shape == (0, 16)

    assert len(server.embedded) == 1


def test_empty_texts_are_sent_as_a_blank_that_servers_take():
    with serving() as server:
        vectors = embedder(server).embed(["", "a"], kind="document")

    assert vectors.shape == (2, 64)
    assert server.embedded[0].texts == [" ", "a"]


def test_what_passes_is_tried_again():
    turns = [Failing(500), too_many(0.01), Dropped(), Embedded()]
    with serving(lambda asked: turns[asked.number - 1]) as server:
        assert embedder(server, retries=3).embed(["a"], kind="query").shape == (1, 64)

    assert len(server.embedded) == 4


@pytest.mark.parametrize(
    ("does", "retryable", "remedy"),
    [
        (Failing(401, "Incorrect API key"), False, "rejected the API key: check OPENAI_API_KEY"),
        (Failing(403, "no access"), False, "rejected the API key: check OPENAI_API_KEY"),
        (Failing(404, "no such model"), False, "not found: check its name and its address .no such model"),
        (Failing(400, "too long"), False, "rejected the request: too long"),
        (Failing(429, "no more", code="insufficient_quota"), False, "the quota is used up: check plan and billing"),
        (too_many(0), True, "limits the rate of requests: Rate limit"),
        (
            Failing(503, "overloaded"),
            True,
            "status 503 .check that it is running, and its address.: overloaded",
        ),
        (Dropped(), True, "cannot be reached: check that it is running, and its address"),
        (Embedded(delay=5), True, "did not reply within 0.5 s: check that it is running"),
        (Embedded(missing=1), False, "returned 1 vectors for 2"),
    ],
)
def test_what_goes_wrong_is_told_once_with_its_remedy(does: object, retryable: bool, remedy: str):
    with serving(lambda asked: does) as server, pytest.raises(ModelError, match=remedy) as caught:
        embedder(server, timeout=0.5).embed(["a", "b"], kind="query")

    assert len(server.embedded) == 1
    assert caught.value.retryable is retryable
    assert f"'openai:small' at {server.base_url}" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_length_that_could_not_be_asked_is_asked_again():
    turns = [Failing(503), Embedded()]
    with serving(lambda asked: turns[asked.number - 1]) as server:
        found = embedder(server)
        with pytest.raises(ModelError, match="status 503"):
            found.dimensions  # noqa: B018
        assert found.dimensions == 64


def test_a_key_in_the_environment_is_not_sent_to_a_server_that_was_given_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "of-another-server")
    with serving() as server:
        OpenAIEmbedder("small", base_url=server.base_url).embed(["a"], kind="query")

    assert "of-another-server" not in server.embedded[0].headers["authorization"]


def test_without_an_address_it_is_openais():
    assert OpenAIEmbedder("small", api_key="secret").endpoint == OPENAI


def test_it_passes_the_checks_that_every_embedder_passes():
    with serving() as server:
        assert CheckedEmbedder(embedder(server)).embed(TEXTS, kind="document").shape == (5, 64)


# LangChain ----------------------------------------------------------------------------------------------------


class Named(DeterministicFakeEmbedding):
    """Embeddings that distinguish questions from documents, and count their calls."""

    model: str = "some-model"
    queries: list[str] = Field(default_factory=list)
    documents: list[list[str]] = Field(default_factory=list)

    def embed_query(self, text: str) -> list[float]:
        self.queries.append(text)
        return super().embed_query(f"query: {text}")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.documents.append(texts)
        return super().embed_documents(texts)


def test_documents_and_questions_go_to_the_methods_that_langchain_has_for_them():
    given = Named(size=12)
    found = LangChainEmbedder(given)
    documents, queries = found.embed(TEXTS, kind="document"), found.embed(TEXTS[:2], kind="query")

    assert (given.documents, given.queries) == ([TEXTS], TEXTS[:2])
    assert (documents.shape, documents.dtype, queries.shape) == ((5, 12), np.float32, (2, 12))
    np.testing.assert_allclose(documents[1], DeterministicFakeEmbedding(size=12).embed_query(TEXTS[1]), rtol=1e-6)
    assert not np.allclose(documents[:2], queries)


def test_the_name_is_the_models_or_that_of_the_class():
    class Other(Named):
        model: int = 7
        model_name: str = "other"

    assert LangChainEmbedder(Named(size=3)).name == "some-model"
    assert LangChainEmbedder(DeterministicFakeEmbedding(size=3)).name == "DeterministicFakeEmbedding"
    assert LangChainEmbedder(Other(size=3)).name == "other"


def test_the_length_is_asked_once():
    given = Named(size=12)
    found = LangChainEmbedder(given)

    assert [found.dimensions, found.dimensions] == [12, 12]
    assert found.embed([], kind="document").shape == (0, 12)
    assert len(given.queries) == 1
    assert given.documents == []


def test_whatever_the_package_behind_it_raises_is_a_model_error_that_names_it():
    class Broken(Named):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            raise ConnectionError("nobody\nthere")

    with pytest.raises(ModelError, match="'some-model' failed: ConnectionError: nobody there"):
        LangChainEmbedder(Broken(size=3)).embed(["a"], kind="document")


def test_vectors_of_different_lengths_are_refused():
    class Ragged(Named):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] * (at + 1) for at in range(len(texts))]

    with pytest.raises(ModelError, match="'some-model' returned vectors of different lengths"):
        LangChainEmbedder(Ragged(size=3)).embed(["a", "b"], kind="document")


def test_importing_the_adapters_imports_no_package_of_others():
    script = (
        "import sys, hgmem.models.embedders; "
        "print({'openai', 'langchain_core', 'sentence_transformers', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

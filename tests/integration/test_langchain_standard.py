"""The standard tests of LangChain's integrations, from its package `langchain-tests`."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_tests.integration_tests import (
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    ToolsIntegrationTests,
)
from langchain_tests.unit_tests import EmbeddingsUnitTests, ToolsUnitTests
from letters import LETTERS, QUESTION, wanting
from wire import Said, WireServer

from hgmem import HGMem
from hgmem.langchain import HGMemEmbeddings, HGMemRetriever, HGMemTool
from hgmem.testing import DeterministicEmbedder


@pytest.fixture
def letters(open_client: Any) -> HGMem:
    """A client on the letters whose model uses every step."""
    client: HGMem = open_client(model=wanting())
    client.add_graph(LETTERS)
    return client


class Asking:
    """Common parts of tests that use a client."""

    client: HGMem

    @pytest.fixture(autouse=True)
    def _asked(self, letters: HGMem) -> None:
        self.client = letters


class TestRetriever(Asking, RetrieversIntegrationTests):
    """The retriever with investigations."""

    @property
    def retriever_constructor(self) -> type[HGMemRetriever]:
        return HGMemRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client, "steps": 2}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class TestPlainRetriever(TestRetriever):
    """The retriever with a single search."""

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client, "system": "naive"}


class OfTool(Asking):
    """Common parts of the tool's tests."""

    @property
    def tool_constructor(self) -> type[HGMemTool]:
        return HGMemTool

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"client": self.client, "steps": 1}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"question": QUESTION}


class TestToolUnit(OfTool, ToolsUnitTests):
    """The tool without a server."""


class TestTool(OfTool, ToolsIntegrationTests):
    """The tool with a server."""


class OfEmbeddings:
    """Common parts of the embeddings' tests."""

    @property
    def embeddings_class(self) -> type[HGMemEmbeddings]:
        return HGMemEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"embedder": DeterministicEmbedder()}


class TestEmbeddingsUnit(OfEmbeddings, EmbeddingsUnitTests):
    """The embeddings without calls."""

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return {"HGMEM_EMBEDDING_MODEL": "some-model"}, {}, {"model": "some-model"}


class TestEmbeddings(OfEmbeddings, EmbeddingsIntegrationTests):
    """The embeddings with calls."""


class TestServedEmbeddings(EmbeddingsIntegrationTests):
    """Embeddings of a server."""

    @pytest.fixture(autouse=True)
    def _served(self) -> Iterator[None]:
        with WireServer(lambda _: Said("ok")) as self.served:
            yield

    @property
    def embeddings_class(self) -> type[HGMemEmbeddings]:
        return HGMemEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"embedder": "openai:small", "embedding_base_url": self.served.base_url, "openai_api_key": "key"}

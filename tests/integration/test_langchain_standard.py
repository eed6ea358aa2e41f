"""The standard tests of LangChain's integrations, from its package `langchain-tests`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_tests", reason="langchain-tests is not installed")

from langchain_tests.integration_tests import (
    ChatModelIntegrationTests,
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    ToolsIntegrationTests,
)
from langchain_tests.unit_tests import ChatModelUnitTests, EmbeddingsUnitTests, ToolsUnitTests
from letters import LETTERS, QUESTION, wanting
from wire import Asked, Said, WireServer

from hgmem import HGMem
from hgmem.langchain import HGMemChatModel, HGMemEmbeddings, HGMemRetriever, HGMemTool
from hgmem.testing import DeterministicEmbedder

MODEL = "wire"


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


def says(asked: Asked) -> Said:
    """Return the reply of a model that greets and repeats its last message."""
    return Said(f"Hello. You said: {asked.messages[-1]['content']}")


class OfChatModel:
    """Common parts of the chat model's tests: its server."""

    served: WireServer

    @pytest.fixture(autouse=True)
    def _served(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        monkeypatch.setenv("HGMEM_CACHE", str(tmp_path))
        with WireServer(says) as self.served:
            yield

    @property
    def chat_model_class(self) -> type[HGMemChatModel]:
        return HGMemChatModel

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": MODEL, "base_url": self.served.base_url, "api_key": "key"}


class TestChatModelUnit(OfChatModel, ChatModelUnitTests):
    """The chat model without calls."""

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        env = {"HGMEM_MODEL": "gpt-x", "OPENAI_API_KEY": "secret", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
        return env, {}, {"model": "gpt-x", "api_key": "secret", "base_url": "http://127.0.0.1:9/v1"}


class TestChatModel(OfChatModel, ChatModelIntegrationTests):
    """The chat model with a server."""

    @property
    def supports_model_override(self) -> bool:
        return False


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
        with WireServer(says) as self.served:
            yield

    @property
    def embeddings_class(self) -> type[HGMemEmbeddings]:
        return HGMemEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"embedder": "openai:small", "embedding_base_url": self.served.base_url, "openai_api_key": "key"}

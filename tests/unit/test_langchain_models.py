"""Our embedder as LangChain embeddings, and imports."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("langchain_core", reason="langchain-core is not installed")

from hgmem.client.connecting import adapted_embedder
from hgmem.errors import UsageError
from hgmem.langchain import HGMemEmbeddings
from hgmem.models.embedders import OpenAIEmbedder
from hgmem.testing import DeterministicEmbedder


class Noting(DeterministicEmbedder):
    """Records the kind of each embedding call."""

    def __init__(self) -> None:
        super().__init__(8)
        self.kinds: list[str] = []

    def embed(self, texts: Sequence[str], *, kind: Any) -> Any:
        self.kinds.append(kind)
        return super().embed(texts, kind=kind)


def test_questions_and_documents_are_told_apart_and_vectors_are_the_embedders() -> None:
    own = Noting()
    embeddings = HGMemEmbeddings(own)
    assert embeddings.embed_query("a b") == pytest.approx(own.embed(["a b"], kind="query")[0].tolist())
    assert len(embeddings.embed_documents(["a", "b"])) == 2
    assert embeddings.embed_documents([]) == []
    assert own.kinds == ["query", "query", "document", "document"]
    assert embeddings.model == "deterministic"


def test_there_and_back_again_it_is_the_same_embedder() -> None:
    back = adapted_embedder(HGMemEmbeddings("deterministic"))
    assert (back.name, back.dimensions) == ("deterministic", DeterministicEmbedder().dimensions)
    with pytest.raises(UsageError, match="'int' is not an embedder"):
        HGMemEmbeddings(3)


def test_copies_share_the_embedder_and_it_is_not_pickled() -> None:
    embeddings = HGMemEmbeddings(OpenAIEmbedder("small", api_key="k"))
    copied = copy.deepcopy(embeddings)
    assert copied is not embeddings
    assert copied.embedder._embedder is embeddings.embedder._embedder
    remedy = "create it there, or create there what holds it"
    with pytest.raises(UsageError, match=f"'OpenAIEmbedder' cannot be pickled .*{remedy}"):
        pickle.dumps(embeddings)


# Imports ------------------------------------------------------------------------------------------------------


def run(script: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)


def test_langchain_is_imported_by_nothing_but_the_package_for_it() -> None:
    done = run("import sys, hgmem.client, hgmem.cli; print('langchain_core' in sys.modules)")
    assert done.stdout.strip() == "False", done.stderr


def test_without_langchain_the_error_says_what_to_install() -> None:
    done = run("import sys; sys.modules['langchain_core'] = None; import hgmem, hgmem.client; import hgmem.langchain")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == (
        "ImportError: hgmem.langchain needs langchain-core, which is not installed: run pip install 'hgmem[langchain]'"
    )

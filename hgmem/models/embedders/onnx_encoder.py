"""BERT encoders by onnxruntime: it starts in a fraction of a second, where PyTorch takes many.

A sentence-transformers model (all-MiniLM, BGE, E5, GTE in their BERT sizes) is read as it is stored: its settings,
tokenizer and weights. Others are refused with the reason. Its graph is converted once and kept on disk.
"""

import json
import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hgmem.errors import CacheWarning
from hgmem.models.embedding import TextKind, Vectors

Pooling: TypeAlias = Literal["mean", "cls"]
Precision: TypeAlias = Literal["float32", "int8"]
Array = NDArray[Any]

OPSET = 20  # the first with Gelu
_IR = 10
_VERSION = 1  # of the graph that is written: another one is written anew
_AT_ONCE = 1_024  # tokens of a batch, padding included: more is slower on two cores, and takes more memory
_MOST_TEXTS = 128  # of a batch
_PADDING = 32  # tokens of a batch that only fill it up: one more batch costs about as much
_MODULES = (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"])
_LONGEST = 1 << 30  # stands in tokenizer settings for no limit at all


class NotSupportedError(ValueError):
    """The model is not one that can run without PyTorch, for the reason given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BertModel:
    """A BERT encoder in a folder.

    `tokens` is the most that a text may have, `prompts` stand before a text of that kind, and `pooling` is how the
    vectors of tokens become that of the text.
    """

    folder: Path
    hidden: int
    heads: int
    layers: int
    epsilon: float
    tokens: int
    pooling: Pooling
    prompts: dict[TextKind, str]

    @property
    def weights(self) -> Path:
        """The file of the weights."""
        return self.folder / "model.safetensors"

    @property
    def tokenizer(self) -> Path:
        """The file of the tokenizer."""
        return self.folder / "tokenizer.json"

    @classmethod
    def read(cls, folder: Path) -> "BertModel":
        """Return the model in a folder. Raises `NotSupportedError` if it is another kind of model."""
        config, pooled = _json(folder / "config.json"), _json(folder / "1_Pooling" / "config.json")
        modules = [str(one.get("type", "")).rpartition(".")[2] for one in _json(folder / "modules.json", [])]
        encoder = _json(folder / "sentence_bert_config.json")
        _need(modules in _MODULES, f"it has the modules {', '.join(modules) or 'of no modules.json'}")
        _need(config.get("model_type") == "bert", f"it is of type {config.get('model_type')!r}, not 'bert'")
        _need(config.get("hidden_act") == "gelu", f"its activation is {config.get('hidden_act')!r}")
        _need(config.get("position_embedding_type", "absolute") == "absolute", "its positions are relative")
        _need(encoder.keys() <= {"max_seq_length", "do_lower_case"}, "it has settings of a newer kind")
        _need(not encoder.get("do_lower_case"), "texts are put into lower case before its tokenizer")
        _need(pooled.get("include_prompt", True), "its prompts are left out of the vectors")
        for file in ("model.safetensors", "tokenizer.json"):
            _need((folder / file).is_file(), f"it has no {file}")
        _check_weights(folder / "model.safetensors")
        for size in ("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings"):
            _need(isinstance(config.get(size), int), f"its config.json has no {size}")
        limits = (encoder.get("max_seq_length"), _json(folder / "tokenizer_config.json").get("model_max_length"))
        prompts = _json(folder / "config_sentence_transformers.json").get("prompts") or {}
        return cls(
            folder=folder,
            hidden=int(config["hidden_size"]),
            heads=int(config["num_attention_heads"]),
            layers=int(config["num_hidden_layers"]),
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            tokens=min(int(min(limit, _LONGEST)) for limit in (*limits, config["max_position_embeddings"]) if limit),
            pooling=_pooling(pooled),
            prompts={"query": prompts.get("query") or "", "document": prompts.get("document") or ""},
        )


def _pooling(config: dict[str, Any]) -> Pooling:
    named = config.get("pooling_mode")
    modes = [named] if isinstance(named, str) else [name for name, on in config.items() if on is True]
    found = [name.removeprefix("pooling_mode_").removesuffix("_tokens").removesuffix("_token") for name in modes]
    chosen = [name for name in found if name != "include_prompt"]
    if chosen == ["mean"]:
        return "mean"
    _need(chosen == ["cls"], f"its pooling is {', '.join(chosen) or 'unknown'}")
    return "cls"


def _check_weights(file: Path) -> None:
    """Raise `NotSupportedError` unless the file is whole and its numbers have 32 bits: PyTorch computes in others."""
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        head = opened.read(length) if length < file.stat().st_size else b""
    try:
        named = {name: one for name, one in json.loads(head).items() if name != "__metadata__"}
        types = {str(one["dtype"]) for one in named.values()}
        end = 8 + length + max(int(one["data_offsets"][1]) for one in named.values())
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotSupportedError(f"{file} is not a file of weights") from error
    _need(end <= file.stat().st_size, f"{file} is cut off")
    odd = sorted(one for one in types if one.startswith(("BF", "F")) and one != "F32")
    _need(not odd, f"its weights are {', '.join(odd)}, not F32")


def _json(file: Path, missing: Any = None) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {} if missing is None else missing
    except (OSError, ValueError) as error:
        raise NotSupportedError(f"{file} cannot be read ({error})") from error


def _need(condition: object, reason: str) -> None:
    if not condition:
        raise NotSupportedError(reason)


def as_onnx(model: BertModel) -> bytes:
    """Return the model's graph as a file's content."""
    content: bytes = _Graph(model).built().SerializeToString()
    return content


class _Graph:
    """The graph while it is built: nodes, constants, and the weights that they come from."""

    def __init__(self, model: BertModel) -> None:
        from safetensors.numpy import load_file

        self.model = model
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.weights = {name.removeprefix("bert."): each for name, each in load_file(model.weights).items()}

    def built(self) -> Any:
        """Return the whole model."""
        from onnx import TensorProto, helper

        ids, mask = (
            helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("ids", "mask")
        )
        out = helper.make_tensor_value_info("vectors", TensorProto.FLOAT, ["texts", self.model.hidden])
        self._shapes()
        pooled = self._pooled(self._encoded())
        self.nodes.append(helper.make_node("LpNormalization", [pooled], ["vectors"], axis=-1, p=2))
        graph = helper.make_graph(self.nodes, "encoder", [ids, mask], [out], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=_IR)

    def _shapes(self) -> None:
        width = self.model.hidden // self.model.heads
        self._constant("split", np.array([0, 0, self.model.heads, width], np.int64))
        self._constant("joined", np.array([0, 0, self.model.hidden], np.int64))
        self._constant("scale", np.array(width**-0.5, np.float32))
        for axis in (0, 1, 2):
            self._constant(f"axis{axis}", np.array([axis], np.int64))

    def _encoded(self) -> str:
        """Return the vectors of the tokens after the last layer."""
        tokens = self._node("Shape", "ids", start=1, end=2)
        words = self._node("Gather", self._weight("embeddings.word_embeddings.weight"), "ids")
        positions = self._weight("embeddings.position_embeddings.weight")
        places = self._node("Slice", positions, "axis0", tokens, "axis0")
        kind = self._constant("kind", self._array("embeddings.token_type_embeddings.weight")[0])
        sums = self._node("Add", self._node("Add", words, places), kind)
        state = self._normalized(sums, "embeddings.LayerNorm")
        hidden = self._hidden()
        for number in range(self.model.layers):
            state = self._layer(state, hidden, f"encoder.layer.{number}.")
        return state

    def _hidden(self) -> str:
        """Return what is added to scores so that padding gets no attention."""
        padding = self._node("Sub", self._constant("one", np.array(1, np.float32)), self._mask("axis1", "axis2"))
        return self._node("Mul", padding, self._constant("least", np.array(np.finfo(np.float32).min, np.float32)))

    def _layer(self, state: str, hidden: str, name: str) -> str:
        own = f"{name}attention."
        query, key, value = (
            self._node("Reshape", self._linear(state, f"{own}self.{part}"), "split")
            for part in ("query", "key", "value")
        )
        scores = self._node(
            "MatMul",
            self._node("Transpose", query, perm=[0, 2, 1, 3]),
            self._node("Transpose", key, perm=[0, 2, 3, 1]),
        )
        weights = self._node("Softmax", self._node("Add", self._node("Mul", scores, "scale"), hidden), axis=-1)
        seen = self._node("MatMul", weights, self._node("Transpose", value, perm=[0, 2, 1, 3]))
        joined = self._node("Reshape", self._node("Transpose", seen, perm=[0, 2, 1, 3]), "joined")
        attended = self._node("Add", self._linear(joined, f"{own}output.dense"), state)
        state = self._normalized(attended, f"{own}output.LayerNorm")
        wide = self._node("Gelu", self._linear(state, f"{name}intermediate.dense"))
        return self._normalized(
            self._node("Add", self._linear(wide, f"{name}output.dense"), state), f"{name}output.LayerNorm"
        )

    def _pooled(self, state: str) -> str:
        """Return one vector for each text: that of the first token, or the mean of all."""
        if self.model.pooling == "cls":
            return self._node("Gather", state, self._constant("first", np.array(0, np.int64)), axis=1)
        mask = self._mask("axis2")
        summed = self._node("ReduceSum", self._node("Mul", state, mask), "axis1", keepdims=0)
        return self._node("Div", summed, self._node("ReduceSum", mask, "axis1", keepdims=0))

    def _mask(self, *axes: str) -> str:
        """Return the mask as numbers, with these axes added."""
        from onnx import TensorProto

        mask = self._node("Cast", "mask", to=TensorProto.FLOAT)
        for axis in axes:
            mask = self._node("Unsqueeze", mask, axis)
        return mask

    def _linear(self, state: str, name: str) -> str:
        transposed = self._constant(f"{name}.weight", self._array(f"{name}.weight").T)
        return self._node("Add", self._node("MatMul", state, transposed), self._weight(f"{name}.bias"))

    def _normalized(self, state: str, name: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._node("LayerNormalization", state, scale, shift, axis=-1, epsilon=self.model.epsilon)

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx import helper

        name = f"{kind}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def _weight(self, name: str) -> str:
        return self._constant(name, self._array(name))

    def _constant(self, name: str, value: Array) -> str:
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.array(value, order="C"), name))
        return name

    def _array(self, name: str) -> Array:
        if name not in self.weights:
            raise NotSupportedError(f"its weights have no {name!r}")
        return self.weights[name].astype(np.float32, copy=False)


class OnnxEncoder:
    """Encodes texts with a model that was converted once and is kept in the folder `cache`.

    If the folder can't be written, the model is converted in memory each time, and a warning says so.
    """

    def __init__(self, model: BertModel, *, cache: Path, precision: Precision = "float32") -> None:
        from tokenizers import Tokenizer

        self.dimensions = model.hidden
        self._model = model
        self._tokenizer = Tokenizer.from_file(str(model.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_length=model.tokens)
        self._session = _session(model, cache, precision)

    def encode(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        prompt = self._model.prompts[kind]
        found = self._tokenizer.encode_batch([prompt + text for text in texts])
        ids = [one.ids for one in found]
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for batch in _batches([len(one) for one in ids]):
            vectors[batch] = self._encoded([ids[at] for at in batch])
        return vectors

    def _encoded(self, ids: Sequence[Sequence[int]]) -> Vectors:
        padded = np.zeros((len(ids), max(map(len, ids))), dtype=np.int64)
        mask = np.zeros_like(padded)
        for row, one in enumerate(ids):
            padded[row, : len(one)] = one
            mask[row, : len(one)] = 1
        (vectors,) = self._session.run(["vectors"], {"ids": padded, "mask": mask})
        return np.asarray(vectors, dtype=np.float32)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts of similar length together, the longest first."""
    batch: list[int] = []
    longest = padding = 0
    for at in sorted(range(len(lengths)), key=lambda at: -lengths[at]):
        padding += longest - lengths[at]
        full = len(batch) == _MOST_TEXTS or (len(batch) + 1) * longest > _AT_ONCE
        if batch and (full or padding > _PADDING):
            yield batch
            batch = []
        if not batch:
            longest, padding = lengths[at], 0
        batch.append(at)
    if batch:
        yield batch


def _session(model: BertModel, cache: Path, precision: Precision) -> Any:
    """Return the session of the kept file. One that is missing or can't be read is made anew."""
    file = cache / "embedders" / f"{_label(model)}.{precision}.onnx"
    if file.is_file():
        with suppress(Exception):  # cut off, or of a newer version: onnxruntime has no common class for these
            return _opened(str(file))
    made = as_onnx(model) if precision == "float32" else _in_8_bits(as_onnx(model))
    try:
        _keep(made, file)
    except OSError as error:
        message = f"the embedder is converted at each start: cannot write {str(file)!r} ({error})"
        warnings.warn(message, CacheWarning, stacklevel=2)
    return _opened(made)


def _label(model: BertModel) -> str:
    """Return a name for the weights as they are now."""
    state = model.weights.stat()
    parts = (_VERSION, OPSET, str(model.weights.resolve()), state.st_size, state.st_mtime_ns)
    settings = (model.heads, model.layers, model.epsilon, model.pooling)
    return sha256(repr((parts, settings)).encode()).hexdigest()[:16]


def _in_8_bits(graph: bytes) -> bytes:
    """Return a graph whose weights are quantized to 8 bits, and activations as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory(prefix="hgmem-") as folder, _quietly():
        whole, small = Path(folder, "whole.onnx"), Path(folder, "small.onnx")
        whole.write_bytes(graph)
        quantize_dynamic(whole, small, weight_type=QuantType.QInt8)
        return small.read_bytes()


def _keep(made: bytes, file: Path) -> None:
    """Put a file in its place as a whole, so that no process finds a part of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}.part")
    try:
        part.write_bytes(made)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _opened(source: str | bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count() or 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the cores to Neo4j
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


@contextmanager
def _quietly() -> Iterator[None]:
    """Silence what quantization logs of models that were not prepared for it."""
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)

"""BERT encoders by onnxruntime: it starts in a fraction of a second, where PyTorch takes many.

A sentence-transformers model (all-MiniLM, BGE, E5, GTE in their BERT sizes) is read as it is stored: its settings,
tokenizer and weights. Others are refused with the reason. Its graph is converted once and kept on disk.
"""

import json
import logging
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from itertools import chain
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias, cast

import numpy as np

from hgmem.errors import CacheWarning, HGMemError
from hgmem.models.embedding import TextKind, Vectors
from hgmem.text.atomic_files import replacing

Pooling: TypeAlias = Literal["mean", "cls"]
Precision: TypeAlias = Literal["float32", "int8"]

WEIGHTS, _TOKENIZER = "model.safetensors", "tokenizer.json"
OPSET = 20  # the first with Gelu
_GRAPH = Path(__file__).with_name("bert_graph.txt")
_EMBEDDINGS = [
    *("embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"),
    *("embeddings.token_type_embeddings.weight", "embeddings.LayerNorm.weight", "embeddings.LayerNorm.bias"),
]
_PARTS = (  # of a layer, in the order of the graph's parameters
    *("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"),
    *("attention.output.LayerNorm", "intermediate.dense", "output.dense", "output.LayerNorm"),
)
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
        for file in (WEIGHTS, _TOKENIZER):
            _need((folder / file).is_file(), f"it has no {file}")
        for size in ("hidden_size", "num_attention_heads", "num_hidden_layers", "max_position_embeddings"):
            _need(isinstance(config.get(size), int), f"its config.json has no {size}")
        _check_weights(folder / WEIGHTS, config["num_hidden_layers"])
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
    found = [re.sub(r"^pooling_mode_|_tokens?$", "", name) for name in modes if name != "include_prompt"]
    _need(found in (["mean"], ["cls"]), f"its pooling is {', '.join(found) or 'unknown'}")
    return cast(Pooling, found[0])


def _check_weights(file: Path, layers: int) -> None:
    """Raise `NotSupportedError` unless all weights are there, of 32 bits: PyTorch computes in others."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy") as opened:
            types = {name.removeprefix("bert."): opened.get_slice(name).get_dtype() for name in sorted(opened.keys())}
    except SafetensorError as error:
        raise NotSupportedError(f"{file} is not a whole file of weights ({error})") from error
    odd = sorted({one for one in types.values() if one.startswith(("BF", "F")) and one != "F32"})
    _need(not odd, f"its weights are {', '.join(odd)}, not F32")
    for name in chain(_EMBEDDINGS, *map(_weights_of, range(layers))):
        _need(name in types, f"its weights have no {name!r}")


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


def _weights_of(layer: int) -> list[str]:
    return [f"encoder.layer.{layer}.{part}.{kind}" for part in _PARTS for kind in ("weight", "bias")]


def as_onnx(model: BertModel) -> bytes:
    """Return the model's graph as a file's content."""
    from onnx import inliner, numpy_helper, parser
    from safetensors.numpy import load_file

    wanted = {f"layer{layer}": _weights_of(layer) for layer in range(model.layers)} | {"embeddings": _EMBEDDINGS}
    named = {group: ", ".join(map(_identifier, names)) for group, names in wanted.items()}
    steps = [
        f"state{layer + 1} = bert.layer <epsilon: float = {model.epsilon}> "
        f"(state{layer}, padding, split, joined, {named[f'layer{layer}']})"
        for layer in range(model.layers)
    ]
    width = model.hidden // model.heads
    values = {"width": width, "factor": width**-0.5, "embeddings": named["embeddings"], "steps": "\n  ".join(steps)}
    text = Template(_GRAPH.read_text(encoding="utf-8")).substitute(asdict(model), opset=OPSET, **values)
    whole = parser.parse_model(text)
    held = {name.removeprefix("bert."): each for name, each in load_file(model.folder / WEIGHTS).items()}
    for name in chain(*wanted.values()):
        array = held[name].astype(np.float32, copy=False)
        # A layer multiplies by its matrices from the right.
        turned = np.ascontiguousarray(array.T if name.startswith("encoder.") else array)
        whole.graph.initializer.append(numpy_helper.from_array(turned, _identifier(name)))
    content: bytes = inliner.inline_local_functions(whole).SerializeToString()
    return content


def _identifier(weight: str) -> str:
    return weight.replace(".", "_")


class OnnxEncoder:
    """Encodes texts with a model that was converted once and is kept in the folder `cache`.

    If the folder can't be written, the model is converted in memory each time, and a warning says so.
    """

    def __init__(self, model: BertModel, *, cache: Path, precision: Precision = "float32") -> None:
        from tokenizers import Tokenizer

        self.dimensions = model.hidden
        self._model = model
        self._tokenizer = Tokenizer.from_file(str(model.folder / _TOKENIZER))
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
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file, force=True) as opened:
            opened.write(made)
    except (OSError, HGMemError) as error:
        message = f"the embedder is converted at each start: cannot write {str(file)!r} ({error.__cause__ or error})"
        warnings.warn(message, CacheWarning, stacklevel=2)
    return _opened(made)


def _label(model: BertModel) -> str:
    """Return a name for the weights as they are now."""
    weights = model.folder / WEIGHTS
    state = weights.stat()
    parts = (_VERSION, OPSET, str(weights.resolve()), state.st_size, state.st_mtime_ns)
    settings = (model.heads, model.layers, model.epsilon, model.pooling)
    return sha256(repr((parts, settings)).encode()).hexdigest()[:16]


def _in_8_bits(graph: bytes) -> bytes:
    """Return a graph whose weights are quantized to 8 bits, and activations as they come."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with TemporaryDirectory(prefix="hgmem-") as folder:
        whole, small = Path(folder, "whole.onnx"), Path(folder, "small.onnx")
        whole.write_bytes(graph)
        logging.disable(logging.WARNING)  # it warns of models that were not prepared for it
        try:
            quantize_dynamic(whole, small, weight_type=QuantType.QInt8)
        finally:
            logging.disable(logging.NOTSET)
        return small.read_bytes()


def _opened(source: str | bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count() or 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # waiting threads leave the cores to Neo4j
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

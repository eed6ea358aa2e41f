"""A BERT encoder by onnxruntime: it starts in a fraction of a second, where PyTorch takes many."""

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, TypeAlias

import numpy as np

from hgmem.errors import CacheWarning
from hgmem.models.embedders.bert_as_onnx import OPSET, as_onnx
from hgmem.models.embedders.bert_model import BertModel
from hgmem.models.embedding import Kind, Vectors

Precision: TypeAlias = Literal["float32", "int8"]

_VERSION = 1  # of the graph that is written: another one is written anew
_AT_ONCE = 1_024  # tokens of a batch, padding included: more is slower on two cores, and takes more memory
_MOST_TEXTS = 128  # of a batch
_PADDING = 32  # tokens of a batch that only fill it up: one more batch costs about as much


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

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Vectors:
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

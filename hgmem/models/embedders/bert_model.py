"""A sentence-transformers model as it is stored, if it is a BERT encoder: its settings, tokenizer and weights.

These models (all-MiniLM, BGE, E5, GTE in their BERT sizes) can run without PyTorch. Others are refused with the reason.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hgmem.models.embedding import Kind

Pooling: TypeAlias = Literal["mean", "cls"]

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
    prompts: dict[Kind, str]

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

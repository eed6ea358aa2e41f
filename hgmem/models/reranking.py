"""Rerankers: models that read a question and a text together and say how well they fit."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, TypeAlias

from hgmem.errors import UsageError

Reranker: TypeAlias = Callable[[str, Sequence[str]], Sequence[float]]
"""Returns for each text how well it fits a question, more for better."""


@lru_cache(maxsize=4)
def find_reranker(name: str) -> Reranker:
    """Return the reranker of a name: `module:function` of your own, or a CrossEncoder of sentence-transformers.

    Raises `UsageError` if it cannot be loaded.
    """
    module, colon, function = name.partition(":")
    if colon and function.isidentifier():
        return _own(module, function)
    return _cross_encoder(name)


def _own(module: str, function: str) -> Reranker:
    try:
        found = getattr(import_module(module), function)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"reranker '{module}:{function}' cannot be loaded: {error}") from None
    if not callable(found):
        raise UsageError(f"reranker '{module}:{function}' is not callable: name a function of a question and texts")
    made: Reranker = found
    return made


def _cross_encoder(name: str) -> Reranker:
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise UsageError(
            f"reranker {name!r} needs sentence-transformers: install hgmem[local], or name your own function as "
            "module:function"
        ) from None
    try:
        model: Any = CrossEncoder(name)
    except Exception as error:
        raise UsageError(f"reranker {name!r} cannot be loaded: {error}") from error

    def rank(question: str, texts: Sequence[str]) -> Sequence[float]:
        return [float(score) for score in model.predict([(question, text) for text in texts])]

    return rank

"""The model that is no language model."""

from hgmem.extractive.model import ExtractiveModel

__all__ = ["ExtractiveModel"]

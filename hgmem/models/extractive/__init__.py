"""The built-in rule-based model."""

from hgmem.models.extractive.model import ExtractiveModel

__all__ = ["ExtractiveModel"]

"""Readers of data sets by the name of their format: each takes a path and returns a `DataSet`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from hgmem.evaluation.data_set import DataSet
from hgmem.evaluation.formats import hippo, lightrag_questions, locomo, loogle, nocha, own, tables

FORMATS: Mapping[str, Callable[[Path], DataSet]] = {
    "hgmem": own.read,
    "locomo": locomo.read,
    "hotpotqa": hippo.read_hotpotqa,
    "musique": hippo.read_musique,
    "nocha": nocha.read,
    "loogle": loogle.read,
    "csv": tables.read,
    "lightrag": lightrag_questions.read,
}

"""Readers of data sets by the name of their format: each takes a path and returns a `DataSet`."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.formats.csv_table import read_csv
from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, Evidence
from hgmem.evaluation.formats.graphs import read_lightrag
from hgmem.evaluation.formats.hippo import read_hippo, supporting_facts, supporting_paragraphs
from hgmem.evaluation.formats.locomo import read_locomo
from hgmem.evaluation.formats.loogle import read_loogle
from hgmem.evaluation.formats.nocha import read_nocha
from hgmem.evaluation.formats.own import read_own

FORMATS: Mapping[str, Callable[[Path], DataSet]] = {
    "hgmem": read_own,
    "locomo": read_locomo,
    "hotpotqa": partial(read_hippo, evidence_of=supporting_facts),
    "musique": partial(read_hippo, evidence_of=supporting_paragraphs),
    "nocha": read_nocha,
    "loogle": read_loogle,
    "csv": read_csv,
    "lightrag": read_lightrag,
}


__all__ = ["DataSet", "EvalQuestion", "Evidence", "read_data"]


def read_data(path: Path, *, format: str = "hgmem") -> DataSet:  # noqa: A002
    """Return the data set of a file or folder. Nothing is fetched.

    Raises `UsageError` for an unknown format or a missing file, and `DocumentError` with file, line and field for what
    does not fit the format.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r} of a data set: choose one of {', '.join(FORMATS)}")
    place = Path(path).expanduser()
    if not place.exists():
        raise UsageError(f"data set {str(place)!r} does not exist: correct the path")
    return FORMATS[format](place)

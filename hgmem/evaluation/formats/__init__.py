"""Readers of data sets by the name of their format: each takes a path and returns a `DataSet`."""

from collections.abc import Callable, Mapping
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.data_set import DataSet, EvalQuestion, Evidence
from hgmem.evaluation.formats import hippo, locomo, loogle, nocha, own, tables
from hgmem.evaluation.formats.graphs import read as read_lightrag_questions

FORMATS: Mapping[str, Callable[[Path], DataSet]] = {
    "hgmem": own.read,
    "locomo": locomo.read,
    "hotpotqa": hippo.read_hotpotqa,
    "musique": hippo.read_musique,
    "nocha": nocha.read,
    "loogle": loogle.read,
    "csv": tables.read,
    "lightrag": read_lightrag_questions,
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

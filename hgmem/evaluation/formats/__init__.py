"""Readers of data sets by the name of their format: each takes a path and returns a `DataSet`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.evaluation.formats.data_set import DataSet, EvalQuestion, Evidence, Sources
from hgmem.evaluation.formats.graphs import read_lightrag
from hgmem.evaluation.formats.own import read_own
from hgmem.evaluation.formats.published import read_hippo, read_locomo, read_loogle, read_nocha

FORMATS: Mapping[str, Callable[..., DataSet]] = {
    "hgmem": read_own,
    "locomo": read_locomo,
    "hotpotqa": read_hippo,
    "musique": read_hippo,
    "nocha": read_nocha,
    "loogle": read_loogle,
    "csv": partial(read_own, questions="questions.csv"),
    "lightrag": read_lightrag,
}
OWN = ("hgmem", "csv")  # those that have questions alone, if documents are given

__all__ = ["DataSet", "EvalQuestion", "Evidence", "read_data"]


def read_data(
    path: Path,
    *,
    format: str = "hgmem",  # noqa: A002
    graph: Path | None = None,
    given: Sources | None = None,
) -> DataSet:
    """Return the data set of a file or folder. Nothing is fetched.

    Its questions are on its own documents, unless others are `given`, or a `graph` to import. Raises `UsageError` for
    an unknown format or a missing file, and `DocumentError` with file, line and field for what does not fit the format.
    """
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r} of a data set: choose one of {', '.join(FORMATS)}")
    place = Path(path).expanduser()
    if not place.exists():
        raise UsageError(f"data set {str(place)!r} does not exist: correct the path")
    if format in OWN:
        return FORMATS[format](place, graph=graph, given=given)
    if given:
        raise UsageError(f"format {format!r} has its own documents: drop documents and corpus, or use hgmem or csv")
    found = FORMATS[format](place)
    return replace(found, graph=graph or found.graph)

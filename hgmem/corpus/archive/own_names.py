"""Labels and relationship types of systems in an archive: only those that may become part of a database."""

from collections import Counter
from functools import cache

from hgmem.corpus.archive.lines import LineError, Record
from hgmem.graph.schema import OURS
from hgmem.values.built import Installed

MOST_NAMES = 50  # labels and relationship types of systems that are not installed
MOST_PROPERTIES = 1_000  # names of systems' properties


def nothing_installed(_: str) -> None:
    """Return None: no system is installed."""


class OwnNamesCheck:
    """Checks the names that records give to rows, relationships and properties of systems.

    Those of an installed system are in its spec. There is a limit for the number of others.
    """

    def __init__(self, installed: Installed = nothing_installed, *, most: int = MOST_NAMES) -> None:
        self.kept: Counter[str] = Counter()
        """Rows of systems that are not installed, by system."""
        self._installed = cache(installed)
        self._most = most
        self._names: set[tuple[str, str]] = set()
        self._properties: set[str] = set()

    def check(self, record: Record) -> None:
        """Raise `LineError` for a name that a system may not use."""
        if record["kind"] == "Built":
            self._check_name(record["system"], "label", record["label"])
            self.kept[record["system"]] += self._installed(record["system"]) is None
        elif record["kind"] == "RELATIONSHIP":
            self._check_name(record["system"], "relationship type", record["type"])
        else:
            return
        self._properties |= record["own_properties"].keys()
        if len(self._properties) > MOST_PROPERTIES:
            raise LineError(f"systems have more than {MOST_PROPERTIES:,} different properties")

    def _check_name(self, system: str, what: str, name: str) -> None:
        if name in OURS:
            raise LineError(f"hgmem uses the {what} {name!r} itself")
        known = self._installed(system)
        if known is None:
            self._names.add((what, name))
            if len(self._names) > self._most:
                raise LineError(f"systems that are not installed have more than {self._most} labels and types")
        elif name not in (known.kinds if what == "label" else known.relationships):
            raise LineError(
                f"system {system!r} has no {what} {name!r}: install the version of its package that wrote the archive, "
                "or uninstall it"
            )

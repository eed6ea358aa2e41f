"""The labels and relationship types that systems may use beside ours."""

import re
from typing import Any

from hgmem.builds.stages import Build
from hgmem.errors import UsageError
from hgmem.graph.schema import LABELS, MARKS, TYPES

LABEL = re.compile(r"[A-Z][A-Za-z]{0,39}")
TYPE = re.compile(r"[A-Z][A-Z_]{0,39}")


def check_names(build: Build[Any]) -> None:
    """Raise `UsageError` for a kind, a relationship type or a stage whose name cannot be used, or is used twice."""
    kinds, stages = [kind.name for kind in build.kinds], [stage.name for stage in build.stages]
    ours = MARKS | set(LABELS.values())
    for kind in kinds:
        if not LABEL.fullmatch(kind):
            raise UsageError(f"its kind {kind!r} is no label: use at most 40 letters, a capital first")
        if kind in ours:
            raise UsageError(f"hgmem uses the label {kind!r} itself: rename that kind")
    for name in build.relationships:
        if not TYPE.fullmatch(name):
            raise UsageError(f"its relationship type {name!r} needs at most 40 capital letters and underscores")
        if name in TYPES:
            raise UsageError(f"hgmem uses the relationship type {name!r} itself: rename it")
    for names, what in ((kinds, "kinds"), (stages, "stages"), (build.relationships, "relationship types")):
        if twice := [name for name in names if list(names).count(name) > 1]:
            raise UsageError(f"it has two {what} {twice[0]!r}: rename one")

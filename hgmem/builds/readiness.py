"""Whether a system can answer from its build."""

import json
from collections.abc import Iterator, Mapping
from functools import reduce

from hgmem.errors import UsageError
from hgmem.graph.builds import READY, BuildRow, find_build
from hgmem.services import Services


def check_built(services: Services, system: str, *, asked: Mapping[str, object] | None = None) -> tuple[str, ...]:
    """Return notes for an answer from a system's build. Raises `UsageError` if it was never made.

    `asked` are the build's own options that a question gives, by name: a note names each that the build differs in.
    """
    corpus = services.corpus
    command = f"`hgmem build {system} --corpus {corpus}`"
    row = find_build(services.database, corpus=corpus, system=system)
    if row is None or row.finished_at is None:
        what = "no" if row is None else "an unfinished"
        raise UsageError(f"corpus {corpus!r} has {what} build of system {system!r}: make it with {command}")
    state: tuple[str, ...] = ()
    if row.change:
        state = (f"the build of system {system!r} is stale ({row.change}): {command} makes anew what has changed",)
    elif row.status != READY:
        state = (f"the build of system {system!r} is not whole (status {row.status}): {command} makes what is missing",)
    return (*state, *_unlike(row, asked or {}, corpus=corpus))


def _unlike(row: BuildRow, asked: Mapping[str, object], *, corpus: str) -> Iterator[str]:
    """Yield a note for each option that the build was not made with."""
    stored = json.loads(row.settings)
    for name, value in asked.items():
        made = reduce(lambda place, part: place.get(part, {}), name.split("."), stored)
        if made != json.loads(json.dumps(value)):
            yield (
                f"{name}={_typed(value)} is read when building, and the build has {name}={_typed(made)}: `hgmem build "
                f"{row.system} --corpus {corpus} --set {name}={_typed(value)}` makes it anew"
            )


def _typed(value: object) -> str:
    """Return an option's value as it is typed."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)

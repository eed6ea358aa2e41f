"""Whether a system can answer from its build."""

from hgmem.errors import UsageError
from hgmem.graph.builds import READY, find_build
from hgmem.services import Services


def check_built(services: Services, system: str) -> tuple[str, ...]:
    """Return notes for an answer from a system's build. Raises `UsageError` if it was never made."""
    corpus = services.corpus
    command = f"`hgmem build {system} --corpus {corpus}`"
    row = find_build(services.database, corpus=corpus, system=system)
    if row is None or row.finished_at is None:
        what = "no" if row is None else "an unfinished"
        raise UsageError(f"corpus {corpus!r} has {what} build of system {system!r}: make it with {command}")
    if row.change:
        return (f"the build of system {system!r} is stale ({row.change}): {command} makes anew what has changed",)
    if row.status != READY:
        return (f"the build of system {system!r} is not whole (status {row.status}): {command} makes what is missing",)
    return ()

"""What a system promises of its build."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hgmem.graph.values import Runner


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnInvariant:
    """An invariant of a system's build.

    - `meaning`: what a violation is, such as "a topic has no gists".
    - `violated(database, corpus)`: returns the uids of what violates it. It reads the database and writes nothing.
    """

    name: str
    meaning: str
    violated: Callable[[Runner, str], Iterable[str]]

"""Filters as people type them: `KEY=VALUE`."""

from collections.abc import Iterable

from hgmem.errors import UsageError


def typed_filters(given: Iterable[str]) -> dict[str, list[str]]:
    """Return the values of filters such as `title=Letters` by name. A repeated name collects alternatives.

    Raises `UsageError` for a text without a name and an equals sign.
    """
    found: dict[str, list[str]] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"invalid --where {one!r} (where=): use KEY=VALUE, such as source=report.pdf")
        found.setdefault(name.strip(), []).append(value.strip())
    return found

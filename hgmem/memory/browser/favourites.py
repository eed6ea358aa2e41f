"""The queries of `cypher/browser/`: pictures of a memory for users, with parameters."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from hgmem.text.resources import resource

_PARAMETER = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Favourite:
    """A favourite query. `name` is that of its file, without number and suffix."""

    name: str
    title: str
    query: str
    text: str
    path: Path

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters to set with `:param` first, in order of use."""
        return tuple(dict.fromkeys(_PARAMETER.findall(self.query)))

    def filled(self, **values: str | int) -> str:
        """Return the query with its parameters replaced by values."""
        return _PARAMETER.sub(lambda found: _literal(values[found[1]]), self.query)


def favourites() -> dict[str, Favourite]:
    """Return the favourites by name, in the order of their files."""
    found = (_read(path) for path in sorted(resource("cypher", "browser").glob("*.cypher")))
    return {one.name: one for one in found}


def _read(path: Path) -> Favourite:
    text = path.read_text(encoding="utf-8")
    lines = text.strip().splitlines()
    query = "\n".join(line for line in lines if not line.startswith("//"))
    name = path.stem.partition("-")[2]
    return Favourite(name=name, title=lines[0].lstrip("/ "), query=query, text=text, path=path)


def _literal(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    inner = json.dumps(value)[1:-1].replace("'", "\\'").replace('\\"', '"')
    return f"'{inner}'"

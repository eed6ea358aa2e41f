"""What systems add to Neo4j Browser beside the queries of `cypher/browser/`: favourites, captions and colours."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hgmem.errors import UsageError
from hgmem.text.resources import resource
from hgmem.values.built import BuiltKind

_PARAMETER = re.compile(r"\$(\w+)")
_NUMBER = re.compile(r"^\d+-")
_NOISE = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|//[^\n]*|/\*.*?\*/", re.DOTALL)
# Clauses that write, and procedures, which may; those of indexes and of the schema only read.
_WRITES = re.compile(
    r"(?<![.:$\w])(?:CREATE|MERGE|INSERT|SET|DELETE|DETACH|REMOVE|FOREACH|LOAD|DROP|ALTER|GRANT|DENY|REVOKE|USE)\b"
    r"|\bCALL\s+(?!db\.(?:index|schema)\.)[A-Za-z_]\w*\b",
    re.IGNORECASE,
)
_STARTS = frozenset(("corpus", "memory"))
_PROPERTY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}")
_PALETTE = ("#7FB069", "#C98BB9", "#5FA8A0", "#D9A05B", "#8E9AD0", "#B5A642")  # of kinds without a colour, in turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Favourite:
    """A favourite query. `name` is that of its file, without number and suffix.

    The file begins with its title as a comment, and names its parameters in a second one. It draws what it returns.
    """

    name: str
    title: str
    query: str
    text: str
    path: Path

    @classmethod
    def read(cls, path: Path) -> "Favourite":
        """Return the favourite in a file."""
        text = path.read_text(encoding="utf-8")
        lines = text.strip().splitlines()
        query = "\n".join(line for line in lines if not line.startswith("//"))
        title = lines[0].lstrip("/ ") if lines and lines[0].startswith("//") else ""
        return cls(name=_NUMBER.sub("", path.stem), title=title, query=query, text=text, path=path)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters to set with `:param` first, in order of use."""
        return tuple(dict.fromkeys(_PARAMETER.findall(self.query)))

    def filled(self, **values: str | int) -> str:
        """Return the query with its parameters replaced by values. Others stay, to be set with `:param`."""
        return _PARAMETER.sub(lambda found: _literal(values[found[1]]) if found[1] in values else found[0], self.query)


def favourites() -> dict[str, Favourite]:
    """Return the favourites by name, in the order of their files."""
    return {one.name: one for one in favourites_in(resource("cypher", "browser"))}


def favourites_in(folder: Path) -> tuple[Favourite, ...]:
    """Return the favourites of a folder in the order of its files."""
    return tuple(Favourite.read(path) for path in sorted(folder.glob("*.cypher"), key=_place))


def _place(path: Path) -> tuple[int, str]:
    number = _NUMBER.match(path.stem)
    return int(number[0][:-1]) if number else 0, path.name


def favourite_fault(one: Favourite) -> str:
    """Return what is wrong with a favourite, or an empty text.

    It may only read, as one statement, and starts from a corpus or a memory.
    """
    text = _NOISE.sub("''", one.query)
    if not one.title:
        return "has no title: begin it with one as a comment"
    if writes := _WRITES.search(text):
        return f"has {writes[0]!r}: only read in it"
    if ";" in text.rstrip().rstrip(";"):
        return "has more than one statement: make a file of each"
    if not _STARTS & set(one.parameters):
        return "uses neither $corpus nor $memory: start from one of them"
    if others := set(one.parameters) - _STARTS:
        return f"uses ${min(others)}: use $corpus and $memory alone"
    return ""


def _literal(value: str | int) -> str:
    if isinstance(value, int):
        return str(value)
    inner = json.dumps(value)[1:-1].replace("'", "\\'").replace('\\"', '"')
    return f"'{inner}'"


def check_captions(kinds: Sequence[BuiltKind]) -> None:
    """Raise `UsageError` for a kind whose caption or colour cannot stand in a style."""
    for kind in kinds:
        if not _PROPERTY.fullmatch(kind.caption):
            raise UsageError(
                f"the caption {kind.caption!r} of kind {kind.name!r} is not the name of a property: use one of its rows"
            )
        if kind.colour and not _COLOUR.fullmatch(kind.colour):
            raise UsageError(f"invalid colour {kind.colour!r} of kind {kind.name!r}: use, for example, '#7FB069'")


def styled(style: str, kinds: Sequence[BuiltKind]) -> str:
    """Return the style with a rule for each kind."""
    rules = (_rule(kind, _PALETTE[number % len(_PALETTE)]) for number, kind in enumerate(kinds))
    return "".join([style, *rules])


def _rule(kind: BuiltKind, usual: str) -> str:
    colour = kind.colour or usual
    border = "#" + "".join(f"{int(colour[at : at + 2], 16) * 3 // 4:02X}" for at in (1, 3, 5))  # darker
    own = "" if kind.caption == "name" else f"{{{kind.caption}}}"
    return (
        f"node.{kind.name} {{\n  diameter: 60px;\n  color: {colour};\n  border-color: {border};\n"
        f'  text-color-internal: #1F2329;\n  caption: "{{name}}{own}";\n}}\n'
    )

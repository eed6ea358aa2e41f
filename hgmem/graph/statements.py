"""Parse `cypher/*.cypher` into named, documented and parameter-checked statements.

Other packages' systems bring files of their own, which `add` takes in.

A statement begins with a header such as `// name: nearest(corpus, vector) read`. The comment lines after it document
the statement, which ends at the next header. The modes are: `read` (routed to readers), `write` (a managed
transaction), `schema` and `auto` (transactions of their own). A line `// part: bm25` stands for the text of
`cypher/parts/bm25.cypher`, which several statements contain.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias, cast

from hgmem.errors import GraphError
from hgmem.text.resources import resource

Mode: TypeAlias = Literal["read", "write", "schema", "auto"]

_HEADER = re.compile(r"^// name: (?P<name>\w+)\((?P<parameters>[\w, ]*)\) (?P<mode>\w+)\s*$", re.MULTILINE)
_PART = re.compile(r"^ *// part: (\w+)$", re.MULTILINE)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`|//[^\n]*|/\*.*?\*/", re.DOTALL)
_PARAMETER = re.compile(r"\$(\w+)")
_QUOTED_OR_PARAMETER = re.compile(f"{_QUOTED.pattern}|{_PARAMETER.pattern}", re.DOTALL)
KEPT = "replan=skip"  # in statements that have one plan for any size of the database, so that it is never made again
_MODES = ("read", "write", "schema", "auto")


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement: its header's declarations, its text, and the `query` that the server runs.

    A query has one parameter, the map `$in` of all parameters. Neo4j plans a query once for each combination of its
    parameters' types, and of the sizes of its lists and strings. A map has one type and no size.
    """

    name: str
    parameters: tuple[str, ...]
    mode: Mode
    doc: str
    text: str
    query: str
    path: Path

    @property
    def file(self) -> str:
        """The name of the statement's file."""
        return self.path.name


_added: dict[str, Statement] = {}  # of other packages' files, by name


@cache
def statements() -> dict[str, Statement]:
    """Return every statement by name.

    Raises `GraphError` for a duplicate name or undeclared parameters.
    """
    found: dict[str, Statement] = {}
    for path in sorted(resource("cypher").glob("*.cypher")):
        for statement in parse(path):
            if statement.name in found:
                raise GraphError(
                    f"{path.name}: statement {statement.name!r} already exists in {found[statement.name].file}"
                )
            found[statement.name] = statement
    return found


def find_statement(name: str) -> Statement:
    """Return the statement of this name, of ours or of a file that was added."""
    found = _added.get(name) or statements().get(name)
    if found is None:
        raise KeyError(f"no statement {name!r}")
    return found


def added() -> tuple[Statement, ...]:
    """Return the statements of other packages' files."""
    return tuple(_added.values())


def add(found: Sequence[Statement]) -> None:
    """Take in the statements of another package's file. Adding the same ones again changes nothing.

    Raises `GraphError` for a name that another file has.
    """
    for statement in found:
        known = statements().get(statement.name) or _added.get(statement.name, statement)
        if known.path != statement.path:
            raise GraphError(
                f"{statement.path}: statement {statement.name!r} already exists in {known.path}: rename it"
            )
    _added.update({statement.name: statement for statement in found})


def parse(path: Path) -> list[Statement]:
    """Return the statements of one file, in order."""
    text = path.read_text(encoding="utf-8")
    headers = list(_HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    return [_statement(header, text[header.end() : end], path) for header, end in zip(headers, ends, strict=True)]


def _statement(header: re.Match[str], block: str, path: Path) -> Statement:
    name, mode, file = header["name"], header["mode"], path.name
    if mode not in _MODES:
        raise GraphError(f"{file}: statement {name!r} has invalid mode {mode!r}: use one of {', '.join(_MODES)}")
    lines = _PART.sub(lambda found: _part(found[1]), block.strip()).splitlines()
    comments = [line for line in lines if line.startswith("//")]
    body = _without_comments(lines).rstrip(";").strip()
    declared = tuple(part.strip() for part in header["parameters"].split(",") if part.strip())
    used = set(_PARAMETER.findall(_QUOTED.sub(" ", body)))
    if used != set(declared):
        odd = ", ".join(f"${parameter}" for parameter in sorted(used ^ set(declared)))
        raise GraphError(
            f"{file}: statement {name!r} declares and uses different parameters ({odd}): name in its header those that "
            "its text uses"
        )
    doc = " ".join(line.lstrip("/ ").strip() for line in comments)
    return Statement(
        name=name, parameters=declared, mode=cast("Mode", mode), doc=doc, text=body, query=_one_map(body), path=path
    )


@cache
def _part(name: str) -> str:
    text = (resource("cypher") / "parts" / f"{name}.cypher").read_text(encoding="utf-8")
    return _without_comments(text.splitlines())


def _without_comments(lines: Sequence[str]) -> str:
    return "\n".join(line for line in lines if not line.startswith("//")).strip()


def _one_map(body: str) -> str:
    """Return the text with each parameter `$x` as `$in.x`. Quoted texts and comments stay as they are."""
    return _QUOTED_OR_PARAMETER.sub(lambda found: f"$in.{found[1]}" if found[1] else found[0], body)

"""Writes the generated tables into the pages of the repository: `make reference`."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import commands
import fields

DOCS = Path(__file__).parents[1]
GENERATED: Mapping[str, Callable[[], str]] = {
    "commands": commands.reference,
    "settings": fields.settings,
    "recipes": fields.recipes,
    "properties": fields.properties,
}
PAGES = ("reference/cli.md", "reference/settings.md", "reference/graph.md", "algorithm.md")
_PART = re.compile(r"^<!-- generated: (\w+) -->$.*?^<!-- end of what is generated -->$", re.MULTILINE | re.DOTALL)


def current(page: str) -> str:
    """Return the Markdown of a page with its generated parts made anew."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return _PART.sub(lambda found: _part(found[1]), text)


def _part(name: str) -> str:
    return f"<!-- generated: {name} -->\n\n{GENERATED[name]()}\n\n<!-- end of what is generated -->"


if __name__ == "__main__":
    for page in PAGES:
        (DOCS / page).write_text(current(page), encoding="utf-8")

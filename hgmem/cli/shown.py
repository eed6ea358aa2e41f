"""Terminal output: wrapped, indented and styled, with control characters escaped."""

import re
import shutil
import sys

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from hgmem.cli.output import clean

UNLIMITED = 1_000  # columns where the output is not a terminal
WIDEST = 100  # columns of running text, for readability

_TRAILING = re.compile(r" +$", re.MULTILINE)


def show(*parts: RenderableType) -> None:
    """Print parts of a result, wrapped to the terminal's width. Plain strings are printed unwrapped, for copying."""
    width = shutil.get_terminal_size((UNLIMITED, 50)).columns
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        for part in parts:
            console.print(clean(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    print(_TRAILING.sub("", captured.get()), end="")


def words(*parts: str | tuple[str, str]) -> Text:
    """Return escaped text of the parts in order, each with an optional style."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((clean(text), style) for text, style in pairs))


def indented(text: Text | str, by: int = 0) -> RenderableType:
    """Return indented running text, limited to a readable width."""
    shown = words(text) if isinstance(text, str) else text
    return Constrain(Padding(shown, (0, 0, 0, by)), WIDEST)

"""What a result looks like on a terminal: wrapped, indented, with styles; its texts are others' and steer nothing."""

import re
import shutil
import sys

from rich.console import Console, RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.text import Text

from hgmem.cli.output import clean

UNLIMITED = 1_000  # columns of what is no terminal
WIDEST = 100  # columns of running text, which nobody reads wider

_TRAILING = re.compile(r" +$", re.MULTILINE)


def show(*parts: RenderableType) -> None:
    """Print parts of a result, wrapped to the terminal's width; a plain string is a line to copy, never wrapped."""
    width = shutil.get_terminal_size((UNLIMITED, 50)).columns
    console = Console(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)
    with console.capture() as captured:
        for part in parts:
            console.print(clean(part) if isinstance(part, str) else part, soft_wrap=isinstance(part, str))
    print(_TRAILING.sub("", captured.get()), end="")


def words(*parts: str | tuple[str, str]) -> Text:
    """Return text of others as it may be shown, its parts one after the other, each with a style or without."""
    pairs = ((part, "") if isinstance(part, str) else part for part in parts)
    return Text.assemble(*((clean(text), style) for text, style in pairs))


def indented(text: Text | str, by: int = 0) -> RenderableType:
    """Return running text, indented, and no wider than reads well."""
    shown = words(text) if isinstance(text, str) else text
    return Constrain(Padding(shown, (0, 0, 0, by)), WIDEST)

"""Progress on stderr: a bar on a terminal, occasional lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from hgmem.cli.output import cut, note

if TYPE_CHECKING:
    from hgmem.values.reports import Progress

EVERY = 3.0  # seconds between two lines
TITLE = 40  # characters of the title beside the bar


class Lines:
    """Progress as lines: the first at once, then one every few seconds, none for short work."""

    def __init__(self, say: Callable[[str], None] = note, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._began = self._last = self._heard = clock()
        self._unit = ""

    def __call__(self, done: "Progress") -> None:
        """Print the progress if a line is due."""
        now = self._clock()
        first = not self._unit
        if done.unit != self._unit:
            self._began, self._unit = self._heard, done.unit
        self._heard = now
        if now - self._last < EVERY and (done.done >= done.total or not first):
            return
        self._last = now
        rate = done.done / max(now - self._began, 1e-9)
        under_way = 0 < done.done < done.total
        left = f", about {(done.total - done.done) / rate:.0f} s left" if under_way else ""
        self._say(f"{done.done:,} of {done.total:,} {done.unit}, {rate:.1f} per second{left}")


@contextmanager
def progress() -> Iterator[Callable[["Progress"], None]]:
    """Yield the progress callback that updates the display."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    console = Console(file=sys.stderr, markup=False, highlight=False)
    with Bar(*columns, _Rate(), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def report(done: "Progress") -> None:
            what = cut(done.document, TITLE) or done.unit
            bar.update(task, description=what, completed=done.done, total=done.total)

        yield report


class _Rate(TextColumn):
    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        """Return the rate in chunks per second."""
        return Text(f"{task.speed:.1f}/s" if task.speed else "")

"""Progress of a question on stderr: a line per event, and the answer while the model writes it."""

import sys
from collections.abc import Iterable

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from hgmem.cli.output import cut
from hgmem.cli.render import DONE, found, way, words
from hgmem.values.events import (
    Answered,
    AnswerToken,
    Event,
    EvidenceFound,
    OperationApplied,
    Planned,
    QuestionAccepted,
    StepStarted,
)
from hgmem.values.records import Answer

WAITING = {StepStarted: "searching", EvidenceFound: "reading", OperationApplied: "thinking", Planned: "going on"}
NAMES = 6  # found entities that are named
SHOWN = 12  # lines of an unfinished answer that are shown


def show_progress(events: Iterable[Event], *, quietly: bool) -> Answer:
    """Show the events and return the answer that ends them. With `quietly`, show the newest event only."""
    console = Console(file=sys.stderr, markup=False, highlight=False)
    answer: Answer | None = None
    with Live(console=console, transient=True, refresh_per_second=8) as live:
        view = _View(live, quietly=quietly)
        try:
            for event in events:
                view.show(event)
                if isinstance(event, Answered):
                    answer = event.answer
        except KeyboardInterrupt as interrupt:
            interrupt.memory = view.memory  # type: ignore[attr-defined]
            raise
    if answer is None:
        raise AssertionError("a question ends with an answer or with an error")
    return answer


class _View:
    def __init__(self, live: Live, *, quietly: bool) -> None:
        self._live = live
        self._quietly = quietly
        self._writing = ""
        self._begun = ""
        self.memory: str | None = None  # set once a complete step is stored
        self._wait("investigating")

    def show(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, QuestionAccepted):
            self._begun = event.memory
            self.memory = event.memory if event.steps else None
        elif isinstance(event, Planned):
            self.memory = self._begun
        if isinstance(event, AnswerToken):
            self._writing += event.text
            self._live.update(Text("\n".join(self._writing.splitlines()[-SHOWN:]), style="dim"))
            return
        self._writing = ""
        for line in described(event):
            if not self._quietly:
                self._live.console.print(line, soft_wrap=True)
            self._wait(line.plain if self._quietly else WAITING.get(type(event), "investigating"))

    def _wait(self, what: str) -> None:
        width = max(20, self._live.console.width - 4)
        shown: RenderableType = Spinner("dots", text=words((cut(what.strip(), width), "dim")))
        self._live.update(Group(shown))


def described(event: Event) -> list[Text]:
    """Return the lines that describe an event, or none for an event that the result shows."""
    match event:
        case QuestionAccepted():
            before = f", which has {event.steps} steps" if event.steps else ""
            return [words((f"memory {event.memory}{before}", "dim"))]
        case StepStarted():
            asked = [words(("  asks ", "dim"), cut(one.text, 120)) for one in event.subqueries]
            return [words((f"step {event.step}", "bold")), *asked]
        case EvidenceFound():
            counts = found((event.entities, event.relations, event.chunks), event.built)
            names = ", ".join(event.names[:NAMES])
            return [words((f"  found {way(event.strategy)}: {counts}", "dim"), f"  {cut(names, 100)}")]
        case OperationApplied():
            operation = event.operation
            said = event.description or operation.reason
            return [words((f"  {DONE[operation.kind]} ", "bold" if operation.point else "dim"), cut(said, 120))]
        case Planned():
            notes = [words((f"  note: {cut(note, 120)}", "dim")) for note in event.notes]
            judged = f"  judged {event.judgement}" if event.judgement else "  last step"
            return [*notes, words((judged, "dim"))]
    return []

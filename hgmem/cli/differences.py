"""Terminal output of how two memories differ."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from hgmem.cli.output import one_line
from hgmem.cli.render import entities_of, heading, indented, support, words
from hgmem.values.differences import ComparedMemory, ComparedPoint, EvidenceChunk, MemoryDiff, PointPair

MOST = 20  # chunks of a list that are shown
GAINED, LOST, CHANGED = ("+ ", "green"), ("- ", "red"), ("~ ", "yellow")


def compared(diff: MemoryDiff) -> Iterator[RenderableType]:
    """Yield two memories, the points and chunks in which they differ, and both answers."""
    for mark, one in ((LOST, diff.before), (GAINED, diff.after)):
        yield _marked(mark, f"memory {one.memory} at the end of step {one.step}: {one.question}", bold=True)
    yield ""
    if diff.is_empty:
        yield indented("They do not differ: points, evidence and answers are the same.")
        return
    yield from _points(diff)
    yield from _evidence(diff)
    yield from _answers(diff)


def _points(diff: MemoryDiff) -> Iterator[RenderableType]:
    became: dict[str, list[PointPair]] = {}
    for pair in diff.revised:
        became.setdefault(pair.after.key, []).append(pair)
    numbers = {"kept": len(diff.kept), "revised": len(became), "gained": len(diff.gained), "lost": len(diff.lost)}
    told = ", ".join(f"{number} {what}" for what, number in numbers.items())
    yield heading(f"points: {told if any(numbers.values()) else 'neither memory has any'}")
    for pairs in became.values():
        yield from _point(CHANGED, pairs[0].after)
        for pair in pairs:
            yield indented(words(LOST, f"{pair.before.point.uid}  {one_line(pair.before.point.description)}"), 6)
    for mark, points in ((GAINED, diff.gained), (LOST, diff.lost)):
        for one in points:
            yield from _point(mark, one)
    for pair in diff.supported_otherwise:
        yield from _point(("= ", "dim"), pair.after)
        yield indented(words((f"rested on other chunks before: {support(pair.before.point)}", "dim")), 6)
    yield ""


def _point(mark: tuple[str, str], one: ComparedPoint) -> Iterator[RenderableType]:
    yield indented(words(mark, (f"{one.point.uid}  ", "bold"), one_line(one.point.description)), 2)
    yield indented(words((f"{entities_of(one.point)}; {support(one.point)}", "dim")), 6)


def _evidence(diff: MemoryDiff) -> Iterator[RenderableType]:
    numbers = {"both": diff.evidence_kept, "gained": diff.evidence_gained, "lost": diff.evidence_lost}
    texts = (f"{len(chunks)} {'in both' if what == 'both' else what}" for what, chunks in numbers.items())
    yield heading(f"chunks of evidence: {', '.join(texts)}")
    for mark, chunks in ((GAINED, diff.evidence_gained), (LOST, diff.evidence_lost)):
        for chunk in chunks[:MOST]:
            yield indented(words(mark, _place(chunk), (f"  {one_line(chunk.beginning)}", "dim")), 2)
        if len(chunks) > MOST:
            yield indented(words(mark, f"and {len(chunks) - MOST} more: use --json to list all"), 2)
    yield ""


def _place(chunk: EvidenceChunk) -> str:
    return f"{one_line(chunk.title)}, chunk {chunk.position}"


def _answers(diff: MemoryDiff) -> Iterator[RenderableType]:
    if diff.before.answer == diff.after.answer:
        yield heading("answers: the same" if diff.after.answer else "answers: none")
        return
    yield heading("answers")
    for mark, one in ((LOST, diff.before), (GAINED, diff.after)):
        yield _marked(mark, _answer(one))


def _answer(one: ComparedMemory) -> str:
    return one.answer or "no answer at this step"


def _marked(mark: tuple[str, str], text: str, *, bold: bool = False) -> RenderableType:
    return indented(Text.assemble(words(mark), words((text, "bold" if bold else ""))), 2)

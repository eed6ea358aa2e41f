"""Terminal output of how two memories differ."""

from collections.abc import Iterator, Mapping

from rich.console import RenderableType
from rich.text import Text

from hgmem.cli.output import one_line
from hgmem.cli.render import entities_of, heading, indented, support, words
from hgmem.text.language import counted
from hgmem.values.differences import ComparedMemory, ComparedPoint, EvidenceChunk, MemoryDiff

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
    became = len({pair.after.key for pair in diff.revised})
    numbers = {"kept": len(diff.kept), "revised": became, "gained": len(diff.gained), "lost": len(diff.lost)}
    if not any(numbers.values()):
        yield heading("points: neither memory has any")
    else:
        yield heading("points: " + ", ".join(f"{number} {what}" for what, number in numbers.items()))
    made: dict[str, list[ComparedPoint]] = {}
    after: Mapping[str, ComparedPoint] = {pair.after.key: pair.after for pair in diff.revised}
    for pair in diff.revised:
        made.setdefault(pair.after.key, []).append(pair.before)
    for key, parts in made.items():
        yield from _point(CHANGED, after[key])
        for part in parts:
            yield indented(words(("- ", "red"), f"{part.point.uid}  {one_line(part.point.description)}"), 6)
    for one in diff.gained:
        yield from _point(GAINED, one)
    for one in diff.lost:
        yield from _point(LOST, one)
    for pair in diff.supported_otherwise:
        numbers_of = f"{counted(len(pair.before.point.chunks), 'chunk')} before, {support(pair.after.point)} after"
        yield indented(words("= ", (f"{pair.after.point.uid}  ", "bold"), one_line(pair.after.point.description)), 2)
        yield indented(words((f"rests on other chunks: {numbers_of}", "dim")), 6)
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

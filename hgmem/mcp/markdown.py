"""Resources as Markdown: a corpus's overview, and a memory with its answers, points and steps."""

from collections.abc import Iterator, Mapping, Sequence

from hgmem.mcp.results import line, state
from hgmem.text.language import counted
from hgmem.values.records import Memory, MemorySummary
from hgmem.values.reports import CorpusStatus

LISTED = 100  # documents, and memories, of an overview


def overview(
    counts: CorpusStatus, documents: Sequence[Mapping[str, str | int]], memories: Sequence[MemorySummary]
) -> Iterator[str]:
    """Yield the lines that tell what a corpus holds: builds, documents, the newest memories."""
    yield f"# Corpus {counts.corpus}\n"
    yield f"{counted(counts.documents, 'document')}, {counted(counts.chunks, 'chunk')}, {counts.status}"
    yield from (f"- build {one.system}: {one.status}" for one in counts.builds)
    yield "\n## Documents\n"
    yield from (f"- {one['title'] or one['id']}" for one in documents[:LISTED])
    yield f"\n## {counted(len(memories), 'memory', 'memories')}\n"
    yield from (f"- {line(one)}" for one in memories[:LISTED])


def remembered(memory: Memory) -> Iterator[str]:
    """Yield the lines of a memory: its answers, its active points, its steps."""
    yield f"# Memory {memory.uid}\n"
    yield f"corpus {memory.corpus}, system {memory.system}, {state(memory.status)}, since {memory.created_at[:16]}"
    for answer in memory.answers:
        yield f"\n## {answer.question}\n\n{answer.text}"
        for one in answer.citations:
            said = f", {one.attribution}" if one.attribution else ""
            yield f"\n> [{one.marker}] {' '.join(one.quote.split())} ({one.title}{said})"
    yield f"\n## {counted(len(memory.points), 'point')}\n"
    for point in memory.points:
        yield f"- `{point.uid}` {point.description} ({', '.join(entity.name for entity in point.entities)})"
    for step in memory.steps:
        yield f"\n## Step {step.number}\n"
        yield from (f"- asked: {one.subquery.text} ({len(one.chunks)} chunks)" for one in step.retrieved)
        yield from (f"- {one.kind} {one.point} {' '.join(one.parts)} {one.reason}".rstrip() for one in step.operations)
        yield from (f"- open: {lacking}" for lacking in step.open)

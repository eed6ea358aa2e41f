"""Tables of corpora, their contents and memories, of systems, and of any records."""

from collections.abc import Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table

from hgmem.cli.front import COMMANDS
from hgmem.cli.output import cut, one_line, when
from hgmem.cli.render import indented, words
from hgmem.text.language import counted
from hgmem.values.records import MemorySummary
from hgmem.values.reports import BuildStatus, CorpusStatus
from hgmem.values.systems import SystemInfo

MOST = 50  # documents and failures that are listed
OWNER = 30  # characters of an owner in a list
QUESTION = 70  # characters of a question or a title in a list


def memories(found: Sequence[MemorySummary]) -> Table:
    """Return a table of memories. It has a column of owners where one is set."""
    owned = any(one.owner for one in found)
    columns = ("memory", "since", "status", *(["owner"] if owned else []), "system", "steps", "points", "question")
    table = _table(*columns)
    for one in found:
        owner = [cut(one.owner, OWNER)] if owned else []
        question = cut(one.question, QUESTION)
        _row(table, one.uid, when(one.created_at), one.status, *owner, one.system, one.steps, one.points, question)
    return table


def tenants(found: Sequence[Mapping[str, object]]) -> Table:
    """Return a table of corpora."""
    table = _table("corpus", "status", "embedded with", "since")
    for one in found:
        _row(table, one["corpus"], one["status"], one["embedding_model"], when(str(one["created_at"])))
    return table


def ways(found: Sequence[SystemInfo]) -> Table:
    """Return a table of systems. It has a column of verbs if any system has some."""
    verbs = any(one.verbs for one in found)
    table = _table("system", "recipes", *(["verbs"] if verbs else []), "summary")
    for one in found:
        named = [", ".join(verb.name for verb in one.verbs) or "none"] if verbs else []
        _row(table, one.name, ", ".join(one.recipes) or "none", *named, one_line(one.summary))
    return table


def hidden_verbs(found: Sequence[SystemInfo]) -> Iterator[str]:
    """Yield a line for each system whose verbs the command line cannot reach, because a command has its name."""
    for one in found:
        if one.verbs and one.name in COMMANDS:
            yield (
                f"system {one.name!r} has the name of a command: use its verbs in Python, as "
                f"hg.verbs({one.name!r}).{one.verbs[0].name.replace('-', '_')}()"
            )


def records(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table of any records."""
    table = _table(*names)
    for row in rows:
        _row(table, *row)
    return table


def contents(counts: CorpusStatus, documents: Sequence[Mapping[str, str | int]]) -> Iterator[RenderableType]:
    """Yield what a corpus holds: counts, failures, documents."""
    made = f"embedded with {counts.embedding_model} ({counts.dimensions} dimensions)"
    yield words(f"corpus {counts.corpus}: {counts.status}, {made}")
    table = _table("documents", "chunks", "failed", "pending", "entities", "relations", "memories")
    numbers = (counts.documents, counts.chunks, counts.failed, counts.pending)
    _row(table, *(f"{number:,}" for number in (*numbers, counts.entities, counts.relations, counts.memories)))
    yield table
    if counts.without_graph:
        chunks = counted(counts.without_graph, "chunk is", "chunks are")
        yield words(f"{chunks} indexed without a graph: `hgmem index` of the same documents extracts it")
    if counts.builds:
        yield _builds(counts.builds)
    for failure in counts.failures[:MOST]:
        times = failure.get("attempts", "1")
        tried = "" if times == "1" else f" {times} times"
        yield indented(one_line(f"chunk {failure['chunk']} failed{tried}: {failure['error']}"))
    if documents:
        yield ""
        yield _documents(documents[:MOST])
    if len(documents) > MOST:
        yield indented(f"and {len(documents) - MOST:,} more: use --json to list all")


def _builds(builds: Sequence[BuildStatus]) -> Table:
    table = _table("build", "status", "units", "rows", "since")
    for one in builds:
        done, total = one.units.get("done", 0), sum(one.units.values())
        rows = ", ".join(f"{number:,} {kind}" for kind, number in one.rows.items())
        status = f"{one.status} ({one.change})" if one.change else one.status
        _row(table, one.system, status, f"{done:,} of {total:,}", rows or "none", when(one.created_at))
    return table


def _documents(documents: Sequence[Mapping[str, str | int]]) -> Table:
    said = any(one["conversation"] for one in documents)
    table = _table("document", "status", "chunks", *(["conversation"] if said else []), "title")
    for one in documents:
        conversation = [one["conversation"]] if said else []
        _row(table, one["uid"], one["status"], one["chunks"], *conversation, cut(str(one["title"]), QUESTION))
    return table


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for number, column in enumerate(columns):
        # Identifiers are never wrapped, so that they can be copied.
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    return table


def _row(table: Table, *cells: object) -> None:
    table.add_row(*(words(one_line(str(cell))) for cell in cells))

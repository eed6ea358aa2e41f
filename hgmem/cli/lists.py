"""Tables of corpora, their contents and memories, of systems, and of any records."""

import os
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

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
SUMMARY = 88  # characters of a line about a system
QUESTION = 70  # characters of a question or a title in a list


def memories(found: Sequence[MemorySummary]) -> Table:
    """Return a table of memories. It has a column of owners where one is set."""
    columns = ("memory", "since", "status", "owner", "system", "steps", "points", "question")
    rows = []
    for one in found:
        since, owner, question = when(one.created_at), cut(one.owner, OWNER), cut(one.question, QUESTION)
        status = one.status + (f", {counted(one.withdrawn, 'citation')} withdrawn" if one.withdrawn else "")
        rows.append((one.uid, since, status, owner, one.system, one.steps, one.points, question))
    return table(columns, rows, unless_empty="owner")


def tenants(found: Sequence[Mapping[str, object]]) -> Table:
    """Return a table of corpora."""
    rows = [(one["corpus"], one["status"], one["embedding_model"], when(str(one["created_at"]))) for one in found]
    return table(("corpus", "status", "embedded with", "since"), rows)


def ways(found: Sequence[SystemInfo]) -> Table:
    """Return a table of systems: what each does, with its recipes and verbs beneath."""
    rows = []
    for one in found:
        lines = wrap(one.summary, SUMMARY)
        for what, names in (("recipes", one.recipes), ("verbs", [verb.name for verb in one.verbs])):
            lines += wrap(f"{what}: {', '.join(names)}", SUMMARY, break_on_hyphens=False) if names else []
        rows += [(one.name if line is lines[0] else "", line) for line in lines]
    return table(("system", "what it does"), rows)


def hidden_verbs(found: Sequence[SystemInfo]) -> Iterator[str]:
    """Yield a line for each system whose verbs the command line cannot reach, because a command has its name."""
    for one in found:
        if one.verbs and one.name in COMMANDS:
            yield (
                f"system {one.name!r} has the name of a command: use its verbs in Python, as "
                f"hg.verbs({one.name!r}).{one.verbs[0].name.replace('-', '_')}()"
            )


def contents(
    counts: CorpusStatus, documents: Sequence[Mapping[str, str | int]], roles: Mapping[str, str]
) -> Iterator[RenderableType]:
    """Yield what a corpus holds, and who serves each role: counts, failures, documents."""
    made = f"embedded with {counts.embedding_model} ({counts.dimensions} dimensions)"
    yield words(f"corpus {counts.corpus}: {counts.status}, {made}")
    yield words("; ".join(f"{role}: {who}" for role, who in roles.items()))
    kinds = ("documents", "chunks", "failed", "pending", "entities", "relations", "memories")
    yield table(kinds, [[f"{getattr(counts, kind):,}" for kind in kinds]])
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
    lines = []
    for one in builds:
        done, total = one.units.get("done", 0), sum(one.units.values())
        rows = ", ".join(f"{number:,} {kind}" for kind, number in one.rows.items())
        status = f"{one.status} ({one.change})" if one.change else one.status
        lines.append((one.system, status, f"{done:,} of {total:,}", rows or "none", when(one.created_at)))
    return table(("build", "status", "units", "rows", "since"), lines)


def _documents(documents: Sequence[Mapping[str, str | int]]) -> Table:
    rows, here = [], os.path.join(os.getcwd(), "")  # paths are shown without it
    for one in documents:
        kind = "conversation" if one["conversation"] else ""
        name = str(one["id"]).removeprefix(here)
        rows.append((name, one["status"], one["chunks"], kind, cut(str(one["title"]), QUESTION)))
    return table(("document", "status", "chunks", "kind", "title"), rows, unless_empty="kind")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, unless_empty: str = "") -> Table:
    """Return a table. It lacks the column `unless_empty` if no row has something there."""
    shown = [at for at, name in enumerate(columns) if name != unless_empty or any(row[at] for row in rows)]
    made = Table(box=None, pad_edge=False, header_style="bold")
    for at in shown:
        made.add_column(columns[at], no_wrap=at == 0, overflow="fold")  # identifiers are whole, so they can be copied
    for row in rows:
        made.add_row(*(words(one_line(str(row[at]))) for at in shown))
    return made

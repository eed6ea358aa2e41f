"""What the system builds: a section for each heading, tied to the section above it."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from pydantic import PositiveInt

from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, Row, Tie, Unit
from hgmem.retrieval.rendering import overlap
from hgmem.services import Services
from hgmem.text.identity import text_hash
from hgmem.text.segmentation import collapse, headings, sentences
from hgmem.values.graph_elements import Chunk

# A short line between blank lines that does not end as a sentence does. It may have a number such as 2.1.
TITLE = re.compile(r"(?:\A|\n\n)(?P<line>(?:(?P<number>\d+(?:\.\d+)*)\.? )?(?=[^\W\d_a-z])[^\n.!?:;,]{2,60})(?=\n\n)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How many sections, chunks and tokens an answer reads, and how many sentences a section shows."""

    sections: PositiveInt = 4
    chunks: PositiveInt = 12
    tokens: PositiveInt = 2_000
    sentences: PositiveInt = 2


def marks(text: str) -> list[tuple[int, int, str]]:
    """Return the place, level and text of each heading: those of Markdown, or else short lines of their own."""
    if lines := [(start, text[start:end]) for start, end in headings(text)]:
        return [(at, len(line) - len(line.lstrip("#")), line.strip("# \t")) for at, line in lines]
    return [(one.start("line"), (one["number"] or "").count(".") + 1, one["line"]) for one in TITLE.finditer(text)]


def parts(chunks: Sequence[Chunk]) -> Iterator[tuple[int, dict[str, object], Sequence[Chunk]]]:
    """Yield a document's sections: level, heading with its text and its place in the first chunk, and the chunks."""
    text, starts = "", []
    for before, chunk in zip((None, *chunks), chunks, strict=False):
        shared = overlap(before, chunk)
        text += "" if shared or before is None else "\n\n"
        starts.append(len(text))
        text += chunk.text[shared:]
    found = marks(text)
    if not found or text[: found[0][0]].strip():
        found.insert(0, (0, 0, chunks[0].title or "untitled"))
    for (at, level, heading), (end, _, _) in pairwise((*found, (len(text), 0, ""))):
        first = bisect_right(starts, at) - 1
        values = {"heading": collapse(heading), "text": text[at:end].lstrip("#"), "place": at - starts[first]}
        yield level, values, chunks[first : bisect_left(starts, end)]


def list_sections(reading: Reading, config: Config) -> Iterator[Unit]:
    """List a unit for each section, after that of the section above it."""
    for document, chunks in groupby(reading.chunks(), key=lambda chunk: chunk.document):
        above: list[tuple[int, str]] = []  # levels and keys of the sections that are open
        seen: Counter[str] = Counter()
        for level, values, held in parts(list(chunks)):
            while above and above[-1][0] >= level:
                above.pop()
            after = [key for _, key in above[-1:]]
            name = text_hash(f"{document} {after} {values['heading']}")  # a hash: keys must not hold words of documents
            seen[name] += 1
            above.append((level, f"{name}-{seen[name]}"))
            yield Unit(key=above[-1][1], chunks=held, values=values, after=after)


def make_section(services: Services, config: Config, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make a section of the headings above it, its own, and its first sentences."""
    names, text = [*(before[0].value if before else ()), unit.values["heading"]], unit.values["text"]
    body = [collapse(text[start:end]) for start, end in sentences(text)]
    path, said = " › ".join(names), [one for one in body if one != names[-1]][: config.sentences]
    properties = {"path": path, "heading": names[-1], "level": len(names), "place": unit.values["place"]}
    row = Row(kind="Section", key=unit.key, text=f"{path}\n{' '.join(said)}", properties=properties)
    ties = [Tie(source=row, type="IN_SECTION", target=Row(kind="Section", key=key)) for key in unit.after]
    return Made(rows=[row], output=names, ties=ties)


BUILD: Build[Config] = Build(
    kinds=[BuiltKind(name="Section", caption="path", colour="#7FB069")],
    relationships=["IN_SECTION"],
    stages=[Stage(name="sections", units=list_sections, make=make_section, settings=["sentences"])],
)

"""The build of MemoRAG: a pyramid of gists, from runs of chunks upwards until one level fits the memory's budget."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from textwrap import shorten

from hgmem.builds.chunk_runs import Piece, chunk_runs, joined_text, runs
from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, Property, Row, StoredRow, Tie, Unit
from hgmem.errors import UsageError
from hgmem.services import Services
from hgmem.systems.memorag.recipes import MemoRAGConfig
from hgmem.systems.memorag.tasks import WriteGist
from hgmem.text.segmentation import sentences
from hgmem.text.tokens import count
from hgmem.values.graph_elements import Chunk

GIST = "Gist"
LEVELS = 8  # the most levels: at the least ratio, the highest holds a 256th of the text
_LONGEST = 1.5  # of a run, in passages; runs of whole documents and groups of gists too
_SHORT = 4  # documents of less than this part of a passage share a gist
_OVER = 1.25  # by how much a gist may exceed its tokens before its last sentences are cut off
_NAMED, _LONGEST_TITLE = 4, 90  # titles in the title of a gist, and characters of each
_WHOLE = 48  # tokens up to which a text is its own gist

Texts = tuple[tuple[str, str], ...]


def passages(reading: Reading, config: MemoRAGConfig) -> Iterator[Unit]:
    """List level 1: runs of chunks of one document, which begin where chunking does, or of whole short documents."""
    if config.memory_tokens < config.gist_tokens:
        raise UsageError(
            f"memory_tokens={config.memory_tokens} is less than one gist of {config.gist_tokens} tokens "
            f"(passage_tokens={config.passage_tokens} at ratio={config.ratio:g}): raise memory_tokens or ratio"
        )
    most, short = round(_LONGEST * config.passage_tokens), config.passage_tokens // _SHORT
    together: list[list[Chunk]] = []
    for _, found in groupby(reading.chunks(), key=lambda chunk: chunk.document):
        chunks = list(found)
        if _tokens(chunks) < short:
            together.append(chunks)
            continue
        for run in chunk_runs(chunks, most=most):
            yield _unit(run)
    whole = [Piece(tokens=_tokens(chunks), name=chunks[0].text) for chunks in together]
    for place in runs(whole, most=most):
        yield _unit([chunk for chunks in together[place.start : place.stop] for chunk in chunks])


def groups(reading: Reading, config: MemoRAGConfig, *, level: int) -> Iterator[Unit]:
    """List a level above the first: groups of the gists below, none if those fit the memory's budget."""
    below = [row for row in reading.rows(GIST) if row.properties["level"] == level - 1]
    if len(below) < 2 or sum(_kept(row) for row in below) <= config.memory_tokens:
        return
    order = {chunk.uid: place for place, chunk in enumerate(reading.chunks())}
    below.sort(key=lambda row: (order.get(str(row.properties["first"]), 0), row.key))
    pieces = [Piece(tokens=_kept(row), name=row.key) for row in below]
    for run in runs(pieces, most=max(round(_LONGEST * config.passage_tokens), 2 * config.gist_tokens)):
        yield Unit(key=str(below[run.start].properties["first"]), rows=below[run.start : run.stop])


def make_first(services: Services, config: MemoRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the gist of a run of chunks."""
    documents = [list(found) for _, found in groupby(unit.chunks, key=lambda chunk: chunk.document)]
    parts = tuple((chunks[0].title, joined_text(chunks)) for chunks in documents)
    titles = list(dict.fromkeys(chunk.title for chunk in unit.chunks))
    return Made(rows=[_gist(services, config, unit, _Source(texts=parts, level=1, title=_title(titles)))])


def make_above(services: Services, config: MemoRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the gist of a group of gists, tied to each of them."""
    titles = list(dict.fromkeys(str(row.properties["title"]) for row in unit.rows))
    parts = tuple((str(row.properties["title"]), row.text) for row in unit.rows)
    level = int(str(unit.rows[0].properties["level"])) + 1
    gist = _gist(services, config, unit, _Source(texts=parts, level=level, title=_title(titles)))
    ties = [Tie(source=gist, type="CONDENSES", target=row.uid) for row in unit.rows]
    return Made(rows=[gist], ties=ties)


def _gist(services: Services, config: MemoRAGConfig, unit: Unit, source: "_Source") -> Row:
    """Return the gist of a unit's texts. A text that is as short as a gist may be is its own."""
    tokens = sum(count(text) for _, text in source.texts)
    limit = max(_WHOLE, round(tokens / config.ratio))
    if tokens <= limit:
        text = "\n".join(text for _, text in source.texts)
    else:
        text = _cut(services.reply(WriteGist(texts=source.texts, tokens=limit)).text, round(_OVER * limit))
    first = unit.chunks[0].uid if unit.chunks else str(unit.rows[0].properties["first"])
    properties: dict[str, Property] = {
        "level": source.level,
        "tokens": count(text),
        "first": first,
        "title": source.title,
    }
    return Row(kind=GIST, key=f"{source.level}-{first}", text=text, properties=properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What a gist is made of: texts with their titles, beside its own level and title."""

    texts: Texts
    level: int
    title: str


def _unit(chunks: Sequence[Chunk]) -> Unit:
    return Unit(key=chunks[0].uid, chunks=chunks)


def _tokens(chunks: Sequence[Chunk]) -> int:
    return sum(chunk.tokens for chunk in chunks)


def _kept(row: StoredRow) -> int:
    return int(str(row.properties["tokens"]))


def _title(titles: Sequence[str]) -> str:
    """Return the titles of the documents that a gist tells of, those that there is room for."""
    shown = "; ".join(shorten(title, _LONGEST_TITLE, placeholder=" …") for title in titles[:_NAMED])
    more = len(titles) - _NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _cut(text: str, tokens: int) -> str:
    """Return the first whole sentences of a text that fit into so many tokens, at least one."""
    if count(text) <= tokens:
        return text
    end = 0
    for sentence in sentences(text):
        if end and count(text[: sentence.end]) > tokens:
            break
        end = sentence.end
    return text[: end or len(text)]


def _most(numbers: Mapping[str, int], config: MemoRAGConfig, *, level: int) -> int:
    """Return how many gists a level can have: none if those below certainly fit, else half as many as those."""
    below = numbers[_name(level - 1)]
    return 0 if below < 2 or below * round(_LONGEST * config.gist_tokens) <= config.memory_tokens else (below + 1) // 2


def _prompt(config: MemoRAGConfig) -> int:
    return round(_LONGEST * config.passage_tokens)


def _name(level: int) -> str:
    return f"level {level}"


_FIRST: Stage[MemoRAGConfig] = Stage(
    name=_name(1),
    units=passages,
    make=make_first,
    settings=["passage_tokens", "ratio"],
    prompts=[WriteGist.prompt_file],
    calls=1,
    prompt_tokens=_prompt,
)
BUILD: Build[MemoRAGConfig] = Build(
    kinds=[BuiltKind(name=GIST, caption="title", colour="#8E6C8A")],
    relationships=["CONDENSES"],
    stages=[
        _FIRST,
        *(
            replace(
                _FIRST,
                name=_name(level),
                units=partial(groups, level=level),
                make=make_above,
                most_units=partial(_most, level=level),
            )
            for level in range(2, LEVELS + 1)
        ),
    ],
)

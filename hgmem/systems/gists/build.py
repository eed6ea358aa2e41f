"""The build: a pyramid of gists, from runs of chunks upwards until one level fits the memory's budget."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from textwrap import shorten

from hgmem.builds.chunk_runs import Piece, chunk_runs, joined_text, runs
from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, Property, Row, Tie, Unit
from hgmem.errors import UsageError
from hgmem.retrieval.rendering import heading
from hgmem.services import Services
from hgmem.systems.gists.recipes import GistsConfig
from hgmem.systems.gists.tasks import WriteGist
from hgmem.text.segmentation import sentences
from hgmem.text.tokens import count
from hgmem.values.graph_elements import Chunk

NAME, GIST = "gists", "Gist"
LEVELS = 8  # the most levels: at the least ratio, the highest holds a 256th of the text
_LONGEST = 1.5  # of a run, in passages; runs of whole documents and groups of gists too
_SHORT = 4  # documents of less than this part of a passage share a gist
_OVER = 1.25  # by how much a gist may exceed its tokens before its last sentences are cut off
_NAMED = 4  # headings in the title of a gist
_LONGEST_TITLE, _LONGEST_HEADING = 90, 130  # characters of a document's title in one, and of each
_WHOLE = 48  # tokens up to which a text is its own gist


def passages(reading: Reading, config: GistsConfig) -> Iterator[Unit]:
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
            yield Unit(key=run[0].uid, chunks=run)
    whole = [Piece(tokens=_tokens(chunks), name=chunks[0].text) for chunks in together]
    for place in runs(whole, most=most):
        gathered = [chunk for chunks in together[place.start : place.stop] for chunk in chunks]
        yield Unit(key=gathered[0].uid, chunks=gathered)


def groups(reading: Reading, config: GistsConfig, *, level: int) -> Iterator[Unit]:
    """List a level above the first: groups of the gists below, none if those fit the memory's budget."""
    below = [row for row in reading.rows(GIST) if row.properties["level"] == level - 1]
    order = {chunk.uid: place for place, chunk in enumerate(reading.chunks())}
    below.sort(key=lambda row: (order.get(str(row.properties["first"]), 0), row.key))
    pieces = [Piece(tokens=int(str(row.properties["tokens"])), name=row.key) for row in below]
    if len(pieces) < 2 or sum(piece.tokens for piece in pieces) <= config.memory_tokens:
        return
    for run in runs(pieces, most=max(round(_LONGEST * config.passage_tokens), 2 * config.gist_tokens)):
        yield Unit(key=str(below[run.start].properties["first"]), rows=below[run.start : run.stop])


def make_gist(services: Services, config: GistsConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the gist of a run of chunks, or of a group of gists, to each of which it is tied.

    A text that is as short as a gist may be is its own.
    """
    texts = _texts(unit)
    tokens = sum(count(text) for _, text in texts)
    limit = max(_WHOLE, round(tokens / config.ratio))
    if tokens <= limit:
        text = "\n".join(text for _, text in texts)
    else:
        text = _cut(services.reply(WriteGist(texts=texts, tokens=limit)).text, round(_OVER * limit))
    level = 1 + int(str(unit.rows[0].properties["level"])) if unit.rows else 1
    first = str(unit.rows[0].properties["first"]) if unit.rows else unit.chunks[0].uid
    titles = [str(row.properties["title"]) for row in unit.rows] or [_heading(chunk) for chunk in unit.chunks]
    title = _title(list(dict.fromkeys(titles)))
    properties: dict[str, Property] = {"level": level, "tokens": count(text), "first": first, "title": title}
    gist = Row(kind=GIST, key=f"{level}-{first}", text=text, properties=properties)
    ties = [Tie(source=gist, type="CONDENSES", target=row.uid) for row in unit.rows]
    return Made(rows=[gist], ties=ties)


def _texts(unit: Unit) -> tuple[tuple[str, str], ...]:
    """Return what a gist is made of: the text of each document or gist, with its heading."""
    if unit.rows:
        return tuple((str(row.properties["title"]), row.text) for row in unit.rows)
    documents = [list(chunks) for _, chunks in groupby(unit.chunks, key=lambda chunk: chunk.document)]
    texts = ((chunks[0], joined_text(chunks)) for chunks in documents)
    return tuple((heading(first, text=text, place=False), text) for first, text in texts)


def _heading(chunk: Chunk) -> str:
    """Return the heading of a chunk's document, with a shortened title."""
    return heading(replace(chunk, title=shorten(chunk.title, _LONGEST_TITLE, placeholder=" …")), place=False)


def _tokens(chunks: Sequence[Chunk]) -> int:
    return sum(chunk.tokens for chunk in chunks)


def _title(titles: Sequence[str]) -> str:
    """Return the headings of the documents that a gist tells of, those that there is room for."""
    shown = "; ".join(shorten(title, _LONGEST_HEADING, placeholder=" …") for title in titles[:_NAMED])
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


def _most(numbers: Mapping[str, int], config: GistsConfig, *, level: int) -> int:
    """Return how many gists a level can have: none if those below certainly fit, else half as many as those."""
    below = numbers[_name(level - 1)]
    return 0 if below < 2 or below * round(_LONGEST * config.gist_tokens) <= config.memory_tokens else (below + 1) // 2


def _name(level: int) -> str:
    return f"level {level}"


_FIRST: Stage[GistsConfig] = Stage(
    name=_name(1),
    units=passages,
    make=make_gist,
    settings=["passage_tokens", "ratio", "temperature"],
    prompts=[WriteGist.prompt_file],
    calls=1,
    prompt_tokens=lambda config: round(_LONGEST * config.passage_tokens),
)
BUILD: Build[GistsConfig] = Build(
    kinds=[BuiltKind(name=GIST, caption="title", colour="#8E6C8A")],
    relationships=["CONDENSES"],
    stages=[
        _FIRST,
        *(
            replace(
                _FIRST,
                name=_name(level),
                units=partial(groups, level=level),
                most_units=partial(_most, level=level),
            )
            for level in range(2, LEVELS + 1)
        ),
    ],
)

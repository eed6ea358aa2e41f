"""The build of ReMindRAG, stage by stage: anchors, their vectors and chain, names of entities, and synonyms."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from textwrap import shorten

import numpy as np

from hgmem.builds.chunk_runs import chunk_runs, joined_text
from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, Property, Row, StoredRow, Tie, Unit
from hgmem.retrieval.rendering import heading
from hgmem.services import Services
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.tasks import TitlePassage
from hgmem.systems.remindrag.trails import renewed_vectors

STAGE = "anchors"
ANCHOR, NAME, SYNONYM = "Anchor", "EntityName", "Synonym"
_TITLE = 48  # characters of the document's title before that of a passage
_LONGEST = 160  # characters of a passage's title by a model
_AROUND = 200  # tokens of a prompt beside its passage
_AT_ONCE = 1_000  # names compared with all others in one multiplication


def passages(reading: Reading, config: ReMindRAGConfig) -> Iterator[Unit]:
    """List the passages: runs of chunks of one document, of at most so many tokens (paper, appendix D.1: 750)."""
    for _, found in groupby(reading.chunks(), key=lambda chunk: chunk.document):
        for run in chunk_runs(list(found), most=config.passage_tokens):
            yield Unit(key=run[0].uid, chunks=run)


def make_anchor(services: Services, config: ReMindRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the anchor of a passage, with a title by the model after that of its document. Its text is its title."""
    first = unit.chunks[0]
    task = TitlePassage(heading=heading(first, place=False), text=joined_text(unit.chunks))
    made = shorten(services.reply(task).text, _LONGEST, placeholder=" …")
    document = shorten(first.title, _TITLE, placeholder=" …")
    title = f"{document}: {made}" if document and not made.startswith(document) else made
    tokens = sum(chunk.tokens for chunk in unit.chunks)
    properties: dict[str, Property] = {"title": title, "place": first.position, "tokens": tokens}
    return Made(rows=[Row(kind=ANCHOR, key=unit.key, text=title, properties=properties)])


def titled(reading: Reading, config: ReMindRAGConfig) -> Iterator[Unit]:
    """List each anchor with the chunks of its passage."""
    chunks = {unit.key: unit.chunks for unit in passages(reading, config)}
    for row in reading.rows(ANCHOR):
        if row.key in chunks:
            yield Unit(key=row.key, rows=[row], chunks=chunks[row.key])


def give_vector(services: Services, config: ReMindRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Give an anchor the vector of its passage, as it may be a seed: the mean of its chunks' vectors, of unit length.

    The official code embeds the passage as one text. Embedders cut long texts off, and chunks have their vectors
    already.
    """
    uids = [chunk.uid for chunk in unit.chunks]
    rows = services.database.run("chunk_vectors", corpus=services.corpus, uids=uids)
    found = {row["uid"]: row["vector"] for row in rows}
    mean = np.mean(np.asarray(list(found.values()), dtype=np.float64), axis=0) if found else np.zeros(0)
    length = float(np.linalg.norm(mean))
    return Made(vectors={unit.rows[0].uid: np.asarray(mean / length, dtype=np.float32)} if length else {})


def pairs(reading: Reading, config: ReMindRAGConfig) -> Iterator[Unit]:
    """List each anchor with the next of its document, never of another (paper, appendix A.1: context skeleton)."""
    rows = {row.key: row for row in reading.rows(ANCHOR)}
    units = [unit for unit in passages(reading, config) if unit.key in rows]
    for _, found in groupby(units, key=lambda unit: unit.chunks[0].document):
        for one, following in pairwise(found):
            yield Unit(key=one.key, rows=[rows[one.key], rows[following.key]])


def tie_next(services: Services, config: ReMindRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Tie an anchor to the next one."""
    one, following = unit.rows
    return Made(ties=[Tie(source=one.uid, type="NEXT_ANCHOR", target=following.uid)])


def mentioned(reading: Reading, config: ReMindRAGConfig) -> Iterator[Unit]:
    """List each anchor with the entities that its passage mentions. The first to mention one also holds its name."""
    services = reading.services
    mentions = services.database.run("entities_of_anchors", corpus=services.corpus)
    found = {row["uid"]: dict(row["entities"]) for row in mentions}
    named: set[str] = set()
    rows = sorted(reading.rows(ANCHOR), key=lambda row: (row.document, int(str(row.properties["place"])), row.key))
    for row in rows:
        entities = found.get(row.uid, {})
        if entities:
            fresh = sorted(entities.keys() - named)
            named |= entities.keys()
            yield Unit(key=row.key, rows=[row], values={"entities": entities, "first": fresh})


def tie_entities(services: Services, config: ReMindRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Tie an anchor to its entities, and make a row of each new name, by whose vectors synonyms are found."""
    entities, first = unit.values["entities"], unit.values["first"]
    rows = {uid: Row(kind=NAME, key=uid, text=entities[uid], properties={"anchor": unit.key}) for uid in first}
    return Made(
        rows=list(rows.values()),
        ties=[
            *(Tie(source=unit.rows[0].uid, type="MENTIONS", target=uid) for uid in sorted(entities)),
            *(Tie(source=row, type="NAMES", target=uid) for uid, row in rows.items()),
        ],
    )


def alike(reading: Reading, config: ReMindRAGConfig) -> Iterator[Unit]:
    """List each anchor whose names have like ones: pairs of at least this cosine (paper, appendix A.2: 0.7)."""
    rows = [row for row in reading.rows(NAME, vectors=True) if row.embedding is not None]
    pairs: dict[str, list[tuple[int, int, float]]] = {}
    for one, other, cosine in _near(rows, least=config.synonym):
        pairs.setdefault(str(rows[one].properties["anchor"]), []).append((one, other, cosine))
    for anchor, found in pairs.items():
        places = {at: place for place, at in enumerate(sorted({at for one, other, _ in found for at in (one, other)}))}
        yield Unit(
            key=anchor,
            rows=[rows[at] for at in places],
            values={"pairs": [[places[one], places[other], cosine] for one, other, cosine in found]},
        )


def tie_synonyms(services: Services, config: ReMindRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make a row for each pair of names, tied to both entities."""
    made, ties = [], []
    for one, other, cosine in unit.values["pairs"]:
        ends = unit.rows[one], unit.rows[other]
        row = Row(
            kind=SYNONYM,
            key="-".join(end.key for end in ends),
            properties={"similarity": cosine},
            rests_on=[end.uid for end in ends],
        )
        made.append(row)
        ties += [Tie(source=row, type="SYNONYM_OF", target=end.key) for end in ends]
    return Made(rows=made, ties=ties)


def _near(rows: Sequence[StoredRow], *, least: float) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs of rows (indices, the first less) that are near enough, with their cosines."""
    every = np.asarray([row.embedding for row in rows], dtype=np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        for at, cosines in enumerate(every[start : start + _AT_ONCE] @ every.T, start=start):
            for other in np.flatnonzero(cosines >= least):
                if other > at:
                    yield at, int(other), round(float(cosines[other]), 4)


def _as_anchors(numbers: Mapping[str, int], config: ReMindRAGConfig) -> int:
    return numbers[STAGE]


BUILD: Build[ReMindRAGConfig] = Build(
    kinds=[
        BuiltKind(name=ANCHOR, caption="title", colour="#3E7CB1", replaced_vectors=True),
        BuiltKind(name=NAME, caption="text", colour="#A9A9A9"),
        BuiltKind(name=SYNONYM, caption="similarity", colour="#81A4CD"),
        # Questions write the rows of these kinds, and no unit makes them.
        BuiltKind(name="Trail", caption="strength", colour="#DB8A2B"),
        BuiltKind(name="Learning", caption="question", colour="#B5446E"),
        BuiltKind(name="TrailScope", caption="owner", colour="#6C757D"),
    ],
    relationships=["MENTIONS", "NEXT_ANCHOR", "NAMES", "SYNONYM_OF", "BETWEEN", "TOUCHED"],
    reembed=renewed_vectors,
    stages=[
        Stage(
            name=STAGE,
            units=passages,
            make=make_anchor,
            settings=["passage_tokens"],
            prompts=[TitlePassage.prompt_file],
            calls=1,
            prompt_tokens=lambda config: config.passage_tokens + _AROUND,
        ),
        Stage(name="vectors", units=titled, make=give_vector, vectors=True, most_units=_as_anchors),
        Stage(name="chain", units=pairs, make=tie_next, most_units=_as_anchors),
        Stage(name="entities", units=mentioned, make=tie_entities, most_units=_as_anchors),
        Stage(
            name="synonyms",
            units=alike,
            make=tie_synonyms,
            settings=["synonym"],
            vectors=True,
            most_units=_as_anchors,
        ),
    ],
)

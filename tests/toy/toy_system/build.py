"""What the system builds: a gist of each document, a fold that groups them, topics of groups, and blended vectors."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, Row, StoredRow, Tie, Unit
from hgmem.graph.builds import built_rows
from hgmem.graph.invariants import OwnInvariant
from hgmem.services import Services
from toy_system.tasks import SumUp


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """How long gists are, how many a topic has at most, how many topics an answer reads, and whether it cites them."""

    words: int = 12
    most: int = 3
    best: int = 2
    reword: bool = False
    cite_topics: bool = False


def documents(reading: Reading, config: Config) -> Iterable[Unit]:
    """List a unit for each document, in the order of their uids."""
    chunks: dict[str, list[Any]] = {}
    for chunk in reading.chunks():
        chunks.setdefault(chunk.document, []).append(chunk)
    return [Unit(key=uid, chunks=tuple(chunks[uid])) for uid in sorted(chunks)]


def sum_up(services: Services, config: Config, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make a document's gist, with a vector that is not of unit length: how long its chunks are."""
    text = " ".join(chunk.text for chunk in unit.chunks)
    gist = services.reply(SumUp(text=text, words=config.words)).text
    lengths = np.array([len(text), len(unit.chunks)], dtype=np.float32)
    row = Row(kind="ToyGist", key=unit.key, text=gist, properties={"length": len(text)}, vector=lengths)
    return Made(rows=[row], output={"first": gist.split()[0]})


def chain(reading: Reading, config: Config) -> Iterable[Unit]:
    """List the gists as a fold: each is grouped after the one before."""
    units: list[Unit] = []
    for key, output in sorted(reading.outputs("gists").items()):
        units.append(Unit(key=key, outputs=(output,), after=tuple(unit.key for unit in units[-1:])))
    return units


def group(services: Services, config: Config, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Join the group of the gist before, unless that is full or this gist's key begins a group."""
    words = [unit.outputs[0].value["first"]]
    begins = hashlib.blake2b(unit.key.encode(), digest_size=1).digest()[0] % 4 == 0
    if not before or begins or before[0].value["size"] >= config.most:
        return Made(output={"group": unit.key, "size": 1, "words": words})
    joined = before[0].value
    return Made(output={"group": joined["group"], "size": joined["size"] + 1, "words": [*joined["words"], *words]})


def groups(reading: Reading, config: Config) -> Iterable[Unit]:
    """List a unit for each group, with its gists."""
    gists = {row.key: row for row in reading.rows("ToyGist")}
    members: dict[str, list[Output]] = {}
    for key, output in sorted(reading.outputs("chain").items()):
        if key in gists:
            members.setdefault(output.value["group"], []).append(output)
    return [
        Unit(key=key, rows=tuple(gists[output.key] for output in outputs), outputs=tuple(outputs))
        for key, outputs in members.items()
    ]


def gather(services: Services, config: Config, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the topic of a group."""
    uid = unit.rows[0].uid
    text = " / ".join(row.text for row in unit.rows)
    words = unit.outputs[-1].value["words"]
    topic = Row(kind="ToyTopic", key=unit.key, text=text, properties={"words": words, "first": uid})
    ties = [
        Tie(source=row.uid, type="TOY_IN", target=topic, properties={"place": at}) for at, row in enumerate(unit.rows)
    ]
    return Made(rows=[topic], ties=ties)


def gists(reading: Reading, config: Config) -> Iterable[Unit]:
    """List a unit for each gist, with its topic."""
    topics = {row.key: row for row in reading.rows("ToyTopic", vectors=True)}
    rows = {row.key: row for row in reading.rows("ToyGist", vectors=True)}
    grouped = {key: output.value["group"] for key, output in reading.outputs("chain").items()}
    return [
        Unit(key=key, rows=(row, topics[grouped[key]]))
        for key, row in rows.items()
        if key in grouped and grouped[key] in topics
    ]


def blend(services: Services, config: Config, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Give a gist a vector between its own and its topic's."""
    gist, topic = unit.rows
    mean = np.asarray(gist.own_embedding, dtype=np.float32) + np.asarray(topic.embedding, dtype=np.float32) / 2
    return Made(vectors={gist.uid: mean / np.linalg.norm(mean)})


def lengths(services: Services, rows: Sequence[StoredRow]) -> Mapping[str, Any]:
    """Return the vectors that no index holds, which do not depend on the embedder."""
    return {row.uid: np.asarray(row.vector, dtype=np.float32) for row in rows if row.vector is not None}


def lost_gists(database: Any, corpus: str) -> list[str]:
    """Return the topics whose text does not begin with that of their first gist."""
    gists, topics = (
        built_rows(database, corpus=corpus, system="toy", kind=kind, vectors=False) for kind in ("ToyGist", "ToyTopic")
    )
    texts = {row["uid"]: row["text"] for row in gists}
    return [
        row["uid"]
        for row in topics
        if not row.get("learnt") and not row["text"].startswith(texts.get(row["first"], f"{row['text']}?"))
    ]


INVARIANTS = (
    OwnInvariant(
        name="topic-text", meaning="a topic does not begin with the text of its first gist", violated=lost_gists
    ),
)

BUILD: Build[Config] = Build(
    kinds=[
        BuiltKind(name="ToyGist", replaced_vectors=True),
        BuiltKind(name="ToyTopic", caption="key", colour="#AA3377"),
    ],
    relationships=["TOY_IN"],
    stages=[
        Stage(name="gists", units=documents, make=sum_up, settings=["words"], prompts=[SumUp.prompt_file], calls=1),
        Stage(name="chain", units=chain, make=group, settings=["most"]),
        Stage(name="topics", units=groups, make=gather),
        Stage(
            name="blends", units=gists, make=blend, vectors=True, most_units=lambda numbers, config: numbers["gists"]
        ),
    ],
    reembed=lengths,
)

"""Last stages of the build: propagated vectors of facts and episodes, and ties to the corpus's entities."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, StoredRow, Tie, Unit
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.systems.hypermem.episodes import EPISODE, FACT
from hgmem.systems.hypermem.propagation import hyperedge, propagated
from hgmem.systems.hypermem.recipes import HyperMemConfig
from hgmem.systems.hypermem.statements import entities_of_episodes, memberships

_SHORTEST_NAME = 3  # characters of an entity's name that is looked for in texts


def fact_vectors(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List each episode with its facts and their weights, none without propagation."""
    if not config.propagation:
        return
    rows = {row.uid: row for row in reading.rows(FACT, vectors=True)}
    for episode, members in memberships(reading.services.database, corpus=reading.services.corpus, kind=FACT).items():
        held = [(rows[uid], weight) for uid, weight in members if uid in rows]
        if held:
            yield Unit(
                key=episode,
                rows=[row for row, _ in held],
                values={"weights": {row.uid: weight for row, weight in held}},
            )


def give_fact_vectors(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Give each fact of an episode its own vector and, by λ, that of its hyperedge (paper, section 3.3)."""
    every, weights = _own(unit.rows), [unit.values["weights"][row.uid] for row in unit.rows]
    edge = hyperedge(every, np.asarray(weights))
    return Made(vectors={row.uid: _given(config, own, [edge]) for row, own in zip(unit.rows, every, strict=True)})


def episode_vectors(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List each episode with the members of its topics and their weights, none without propagation."""
    if not config.propagation:
        return
    rows = {row.uid: row for row in reading.rows(EPISODE, vectors=True)}
    topics = memberships(reading.services.database, corpus=reading.services.corpus, kind=EPISODE)
    of_episode: dict[str, list[str]] = {}
    for topic, members in topics.items():
        for uid, _ in members:
            of_episode.setdefault(uid, []).append(topic)
    for uid, row in rows.items():
        edges = {topic: dict(topics[topic]) for topic in of_episode.get(uid, ())}
        if not edges:
            continue
        around = sorted({one for members in edges.values() for one in members} - {uid})
        yield Unit(
            key=row.key,
            rows=[row, *(rows[one] for one in around if one in rows)],
            values={"topics": edges},
        )


def give_episode_vector(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Give an episode its own vector and, by λ, those of its topics' hyperedges (paper, section 3.3)."""
    own = dict(zip((row.uid for row in unit.rows), _own(unit.rows), strict=True))
    edges = []
    for members in unit.values["topics"].values():
        held = [uid for uid in members if uid in own]
        edges.append(hyperedge(np.stack([own[uid] for uid in held]), np.asarray([members[uid] for uid in held])))
    row = unit.rows[0]
    return Made(vectors={row.uid: _given(config, own[row.uid], edges)})


def mentions(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List each episode with its facts and the entities that its chunks mention, none where there is no graph."""
    services = reading.services
    named = entities_of_episodes(services.database, corpus=services.corpus)
    facts: dict[str, list[StoredRow]] = {}
    for row in reading.rows(FACT) if named else ():
        facts.setdefault(row.key.rpartition("/")[0], []).append(row)
    for row in reading.rows(EPISODE) if named else ():
        if entities := named.get(row.uid):
            yield Unit(key=row.key, rows=[row, *facts.get(row.key, ())], values={"entities": entities})


def tie_entities(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Tie an episode and its facts to the entities whose names stand in their texts."""
    found: Mapping[str, str] = unit.values["entities"]
    named = {uid: _pattern(name) for uid, name in found.items() if len(name) >= _SHORTEST_NAME}
    return Made(
        ties=[
            Tie(source=row.uid, type="MENTIONS", target=uid)
            for row in unit.rows
            for uid, pattern in named.items()
            if pattern.search(row.text)
        ]
    )


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)


def _own(rows: Sequence[StoredRow]) -> Vectors:
    return np.asarray([row.own_embedding for row in rows], dtype=np.float32)


def _given(config: HyperMemConfig, own: Vectors, edges: Sequence[Any]) -> Vectors:
    return propagated(own, edges, strength=config.propagation, aggregation=config.aggregation)

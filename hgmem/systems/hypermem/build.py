"""The build of HyperMem, stage by stage: segments, narratives, facts, episodes, topics, propagated vectors."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, StoredRow, Tie, Unit
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.systems.hypermem import build as vectors
from hgmem.systems.hypermem import episodes, segments, topics
from hgmem.systems.hypermem.episodes import EPISODE, FACT
from hgmem.systems.hypermem.propagation import hyperedge, propagated
from hgmem.systems.hypermem.recipes import HyperMemConfig
from hgmem.systems.hypermem.statements import entities_of_episodes, memberships
from hgmem.systems.hypermem.tasks import (
    DetectBoundary,
    DivideMessages,
    MatchTopics,
    RateEpisodes,
    RateFacts,
    WriteEpisode,
    WriteFacts,
    WriteTopic,
)

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


_MESSAGE, _MEMBER, _AROUND = 60, 120, 600  # tokens in prompts: of a message, a summary, and all else
_SHORTEST = 4  # messages of an episode, for estimates
_JOINED = 2  # topics of an episode, for estimates


def _episodes_at_most(numbers: Mapping[str, int], config: HyperMemConfig) -> int:
    return max(1, numbers[segments.STAGE] * config.window // _SHORTEST)


def _as_episodes(numbers: Mapping[str, int], config: HyperMemConfig) -> int:
    return numbers[episodes.NARRATIVES]


def _facts_apart(numbers: Mapping[str, int], config: HyperMemConfig) -> int:
    return 0 if config.calls == "together" else numbers[episodes.NARRATIVES]


def _segment_calls(config: HyperMemConfig, units: int) -> int:
    return 1 if config.calls == "together" else config.window


def _join_calls(config: HyperMemConfig, units: int) -> int:
    candidates = min(units, _JOINED * config.shortlist) if config.shortlist else units
    matches = ceil(candidates / topics.AT_ONCE)
    return matches if config.calls == "together" else matches + _JOINED


def _segment_prompt(config: HyperMemConfig) -> int:
    together = config.calls == "together"
    return _AROUND + _MESSAGE * (config.window + config.longest_episode if together else 20)


def _episode_prompt(config: HyperMemConfig) -> int:
    return 2 * _AROUND + _MESSAGE * config.longest_episode


def _match_prompt(config: HyperMemConfig) -> int:
    return _AROUND + 2 * _MEMBER * (1 + topics.AT_ONCE)


def _topic_prompt(config: HyperMemConfig) -> int:
    return _AROUND + _MEMBER * config.longest_topic


BUILD: Build[HyperMemConfig] = Build(
    kinds=[
        BuiltKind(name=topics.TOPIC, caption="title", colour="#C26D3F"),
        BuiltKind(name=episodes.EPISODE, caption="subject", colour="#4C8DAE", replaced_vectors=True),
        BuiltKind(name=episodes.FACT, caption="content", colour="#7A9A4E", replaced_vectors=True),
    ],
    relationships=["IN_TOPIC", "IN_EPISODE", "MENTIONS"],
    stages=[
        Stage(
            name=segments.STAGE,
            units=segments.windows,
            make=segments.make,
            settings=["calls", "longest_episode"],
            prompts=[DivideMessages.prompt_file, DetectBoundary.prompt_file],
            vectors=True,
            calls=_segment_calls,
            prompt_tokens=_segment_prompt,
        ),
        Stage(
            name=episodes.NARRATIVES,
            units=episodes.narratives,
            make=episodes.write_narrative,
            settings=["calls"],
            prompts=[WriteEpisode.prompt_file],
            calls=1,
            prompt_tokens=_episode_prompt,
            most_units=_episodes_at_most,
        ),
        Stage(
            name=episodes.FACTS,
            units=episodes.facts,
            make=episodes.write_facts,
            prompts=[WriteFacts.prompt_file, RateFacts.prompt_file],
            calls=2,
            prompt_tokens=_episode_prompt,
            most_units=_facts_apart,
        ),
        Stage(
            name="episodes",
            units=episodes.episodes,
            make=episodes.make_episode,
            vectors=True,
            most_units=_as_episodes,
        ),
        Stage(
            name=topics.JOINS,
            units=topics.joins,
            make=topics.join,
            settings=["calls", "longest_topic"],
            prompts=[MatchTopics.prompt_file, WriteTopic.prompt_file],
            vectors=True,
            calls=_join_calls,
            prompt_tokens=_match_prompt,
            most_units=_as_episodes,
        ),
        Stage(
            name="topics",
            units=topics.topics,
            make=topics.make_topic,
            settings=["calls"],
            prompts=[RateEpisodes.prompt_file],
            vectors=True,
            calls=1,
            prompt_tokens=_topic_prompt,
            most_units=_as_episodes,
        ),
        Stage(
            name="fact vectors",
            units=fact_vectors,
            make=give_fact_vectors,
            settings=["propagation", "aggregation"],
            vectors=True,
            most_units=_as_episodes,
        ),
        Stage(
            name="episode vectors",
            units=episode_vectors,
            make=give_episode_vector,
            settings=["propagation", "aggregation"],
            vectors=True,
            most_units=_as_episodes,
        ),
        Stage(name="entities", units=mentions, make=vectors.tie_entities, most_units=_as_episodes),
    ],
)

"""The build of HyperMem, stage by stage: segments, narratives, facts, episodes, topics, propagated vectors."""

from collections.abc import Mapping
from math import ceil

from hgmem.builds.stages import Build, Kind, Stage
from hgmem.systems.hypermem import episodes, segments, topics, vectors
from hgmem.systems.hypermem.recipes import HyperMemConfig
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
        Kind(name=topics.TOPIC, caption="title", colour="#C26D3F"),
        Kind(name=episodes.EPISODE, caption="subject", colour="#4C8DAE", replaced_vectors=True),
        Kind(name=episodes.FACT, caption="content", colour="#7A9A4E", replaced_vectors=True),
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
            units=vectors.fact_vectors,
            make=vectors.give_fact_vectors,
            settings=["propagation", "aggregation"],
            vectors=True,
            most_units=_as_episodes,
        ),
        Stage(
            name="episode vectors",
            units=vectors.episode_vectors,
            make=vectors.give_episode_vector,
            settings=["propagation", "aggregation"],
            vectors=True,
            most_units=_as_episodes,
        ),
        Stage(name="entities", units=vectors.mentions, make=vectors.tie_entities, most_units=_as_episodes),
    ],
)

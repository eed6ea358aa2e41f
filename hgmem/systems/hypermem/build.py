"""The build of HyperMem: its stages, and those that give propagated vectors and ties to entities.

Vectors are those of the paper's Hypergraph Embedding Propagation.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import ceil

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.stages import Build, BuiltKind, Stage
from hgmem.builds.units import Made, Output, StoredRow, Tie, Unit
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.systems.hypermem import episodes, ledger, tasks, topics
from hgmem.systems.hypermem.episodes import EPISODE, FACT
from hgmem.systems.hypermem.recipes import LONGEST_TOPIC, WINDOW, HyperMemConfig

_SHORTEST_NAME = 3  # characters of an entity's name that is looked for in texts
_MESSAGE, _MEMBER, _AROUND = 60, 120, 600  # tokens in prompts: of a message, a summary, and all else
_SHORTEST = 4  # messages of an episode, for estimates
_FACTS = 20  # of an episode, for estimates
_JOINED = 2  # topics of an episode, for estimates


def hyperedge(members: Vectors, weights: Vectors) -> Vectors:
    """Return a hyperedge's vector: h_e = Σ_v softmax(w_{e,v}) · h_v, over all members.

    `members` are unit vectors, (n, dimensions), `weights` are in [0, 1], so that the softmax is nearly flat.
    """
    exponents = np.exp(np.asarray(weights, dtype=np.float64) - float(np.max(weights)))
    shares = exponents / exponents.sum()
    vector: Vectors = (shares @ members).astype(np.float32)
    return vector


def propagated(own: Vectors, edges: Sequence[Vectors], *, strength: float) -> Vectors:
    """Return a node's vector, of unit length: h'_v = h_v + λ · Agg_{e∋v} h_e, Agg the sum (official code)."""
    if not edges:
        return own
    vector = own + strength * np.sum(edges, axis=0)
    length = float(np.linalg.norm(vector))
    unit: Vectors = (vector / length).astype(np.float32) if length else own
    return unit


def _memberships(reading: Reading, *, type_: str) -> dict[str, dict[str, float]]:
    """Return for each hyperedge the weights of its members by uid, by the uid of the row at its centre."""
    services = reading.services
    rows = services.database.run("memberships", corpus=services.corpus, type=type_)
    return {row["uid"]: dict(row["members"]) for row in rows}


def fact_vectors(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List each episode with its facts and their weights, none without propagation."""
    if not config.propagation:
        return
    rows = {row.uid: row for row in reading.rows(FACT, vectors=True)}
    for episode, weights in _memberships(reading, type_="IN_EPISODE").items():
        known = {uid: weight for uid, weight in weights.items() if uid in rows}
        if known:
            yield Unit(key=episode, rows=[rows[uid] for uid in known], values={"weights": known})


def give_fact_vectors(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Give each fact of an episode its own vector and, by λ, that of its hyperedge."""
    own, weights = _own(unit.rows), unit.values["weights"]
    edge = hyperedge(np.stack(list(own.values())), np.asarray([weights[uid] for uid in own]))
    return Made(vectors={uid: propagated(vector, [edge], strength=config.propagation) for uid, vector in own.items()})


def episode_vectors(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List each episode with the members of its topics and their weights, none without propagation."""
    if not config.propagation:
        return
    rows = {row.uid: row for row in reading.rows(EPISODE, vectors=True)}
    edges: dict[str, dict[str, dict[str, float]]] = {}
    for topic, weights in _memberships(reading, type_="IN_TOPIC").items():
        for uid in weights:
            edges.setdefault(uid, {})[topic] = weights
    for uid, row in rows.items():
        if uid not in edges:
            continue
        around = sorted({member for weights in edges[uid].values() for member in weights} - {uid})
        yield Unit(
            key=row.key,
            rows=[row, *(rows[member] for member in around if member in rows)],
            values={"topics": edges[uid]},
        )


def give_episode_vector(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Give an episode its own vector and, by λ, those of its topics' hyperedges."""
    own = _own(unit.rows)
    edges = []
    for weights in unit.values["topics"].values():
        known = [uid for uid in weights if uid in own]
        edges.append(hyperedge(np.stack([own[uid] for uid in known]), np.asarray([weights[uid] for uid in known])))
    episode = unit.rows[0].uid
    return Made(vectors={episode: propagated(own[episode], edges, strength=config.propagation)})


def _own(rows: Sequence[StoredRow]) -> dict[str, Vectors]:
    return {row.uid: np.asarray(row.own_embedding, dtype=np.float32) for row in rows}


def mentions(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List each episode with its facts and the entities that its chunks mention, none where there is no graph."""
    services = reading.services
    mentioning = services.database.run("entities_of_episodes", corpus=services.corpus)
    named = {row["uid"]: dict(row["entities"]) for row in mentioning}
    facts: dict[str, list[StoredRow]] = {}
    for row in reading.rows(FACT) if named else ():
        facts.setdefault(row.key.rpartition("/")[0], []).append(row)
    for row in reading.rows(EPISODE) if named else ():
        if entities := named.get(row.uid):
            yield Unit(key=row.key, rows=[row, *facts.get(row.key, ())], values={"entities": entities})


def tie_entities(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Tie an episode and its facts to the entities whose names stand in their texts."""
    entities: Mapping[str, str] = unit.values["entities"]
    patterns = {
        uid: re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        for uid, name in entities.items()
        if len(name) >= _SHORTEST_NAME
    }
    return Made(
        ties=[
            Tie(source=row.uid, type="MENTIONS", target=uid)
            for row in unit.rows
            for uid, pattern in patterns.items()
            if pattern.search(row.text)
        ]
    )


def _as_episodes(numbers: Mapping[str, int], config: HyperMemConfig) -> int:
    return numbers[episodes.NARRATIVES]


def _entries(numbers: Mapping[str, int], config: HyperMemConfig) -> int:
    return numbers[ledger.JUDGEMENTS] * _FACTS


def _as_batches(numbers: Mapping[str, int], config: HyperMemConfig) -> int:
    """Return at most how many batches there are: each conversation, which has a window, may end one early."""
    if config.calls == "paper":
        return 0
    return min(
        numbers[episodes.NARRATIVES], numbers[episodes.SEGMENTS] + numbers[episodes.NARRATIVES] // topics.TOGETHER
    )


def _match_calls(config: HyperMemConfig, batches: int) -> int:
    known = batches * topics.TOGETHER  # topics: each episode begins one at most
    one = min(known, _JOINED * config.shortlist) if config.shortlist else known  # that one episode may join
    alone = topics.TOGETHER * ceil(one / topics.TOPICS_TOGETHER)
    if one > topics.TOPICS_TOGETHER:
        return alone
    return min(alone, 2 * ceil(min(known, topics.TOGETHER * one) / topics.TOPICS_TOGETHER))


def _join_calls(config: HyperMemConfig, units: int) -> int:
    candidates = min(units, _JOINED * config.shortlist) if config.shortlist else units
    return ceil(candidates / topics.AT_ONCE) + _JOINED


def _segment_prompt(config: HyperMemConfig) -> int:
    messages = WINDOW + config.longest_episode if config.calls == "few" else 20
    return _AROUND + _MESSAGE * messages


def _episode_prompt(config: HyperMemConfig) -> int:
    return 2 * _AROUND + _MESSAGE * config.longest_episode


BUILD: Build[HyperMemConfig] = Build(
    kinds=[
        BuiltKind(name=topics.TOPIC, caption="title", colour="#C26D3F"),
        BuiltKind(name=episodes.EPISODE, caption="subject", colour="#4C8DAE", replaced_vectors=True),
        BuiltKind(name=episodes.FACT, caption="content", colour="#7A9A4E", replaced_vectors=True),
    ],
    relationships=["IN_TOPIC", "IN_EPISODE", "MENTIONS", ledger.SUPERSEDES, ledger.REPEATS, ledger.CONTRADICTS],
    of_corpus_alone=True,
    stages=[
        Stage(
            name=episodes.SEGMENTS,
            units=episodes.windows,
            make=episodes.divide,
            settings=["calls", "longest_episode"],
            prompts=[tasks.DivideMessages.prompt_file, tasks.DetectBoundary.prompt_file],
            vectors=True,
            calls=lambda config, _: 1 if config.calls == "few" else WINDOW,
            prompt_tokens=_segment_prompt,
        ),
        Stage(
            name=episodes.NARRATIVES,
            units=episodes.narratives,
            make=episodes.write_narrative,
            settings=["calls"],
            prompts=[tasks.WriteEpisode.prompt_file],
            calls=1,
            prompt_tokens=_episode_prompt,
            most_units=lambda numbers, _: max(1, numbers[episodes.SEGMENTS] * WINDOW // _SHORTEST),
        ),
        Stage(
            name=episodes.FACTS,
            units=episodes.facts,
            make=episodes.write_facts,
            prompts=[tasks.WriteFacts.prompt_file, tasks.RateFacts.prompt_file],
            calls=2,
            prompt_tokens=_episode_prompt,
            most_units=lambda numbers, config: 0 if config.calls == "few" else numbers[episodes.NARRATIVES],
        ),
        Stage(name="episodes", units=episodes.episodes, make=episodes.make_episode, version=2, most_units=_as_episodes),
        Stage(
            name=ledger.JUDGEMENTS,
            units=ledger.comparisons,
            make=ledger.judge,
            prompts=[tasks.CompareFacts.prompt_file],
            vectors=True,
            calls=1,
            prompt_tokens=2 * _AROUND + _MESSAGE * (ledger.MOST + _FACTS),
            most_units=lambda numbers, config: numbers[episodes.NARRATIVES] if config.ledger else 0,
        ),
        Stage(name="ledger", units=ledger.entries, make=ledger.enter, most_units=_entries),
        Stage(
            name=topics.MATCHES,
            units=topics.batches,
            make=topics.match,
            prompts=[tasks.MatchEpisodes.prompt_file],
            vectors=True,
            calls=_match_calls,
            prompt_tokens=_AROUND + 2 * _MEMBER * (topics.TOGETHER + topics.TOPICS_TOGETHER),
            most_units=_as_batches,
        ),
        Stage(
            name=topics.JOINS,
            units=topics.joins,
            make=topics.join,
            prompts=[tasks.MatchTopics.prompt_file, tasks.WriteTopic.prompt_file],
            vectors=True,
            calls=_join_calls,
            prompt_tokens=_AROUND + 2 * _MEMBER * (1 + topics.AT_ONCE),
            most_units=lambda numbers, config: 0 if config.calls == "few" else numbers[episodes.NARRATIVES],
        ),
        Stage(
            name="topics",
            units=topics.topics,
            make=topics.make_topic,
            settings=["calls"],
            prompts=[tasks.RateEpisodes.prompt_file],
            calls=1,
            prompt_tokens=_AROUND + _MEMBER * LONGEST_TOPIC,
            most_units=_as_episodes,
        ),
        *(
            Stage(name=name, units=units, make=make, settings=["propagation"], vectors=True, most_units=_as_episodes)
            for name, units, make in (
                ("fact vectors", fact_vectors, give_fact_vectors),
                ("episode vectors", episode_vectors, give_episode_vector),
            )
        ),
        Stage(name="entities", units=mentions, make=tie_entities, most_units=_as_episodes),
    ],
)

"""Topics: which ones each episode joins, one episode after the other, and their rows (paper, section 3.1)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Property, Row, StoredRow, Tie, Unit
from hgmem.models.extractive.selection import highest
from hgmem.services import Services
from hgmem.systems.hypermem.dialogues import dialogues, unit_key
from hgmem.systems.hypermem.episodes import EPISODE
from hgmem.systems.hypermem.recipes import LONGEST_TOPIC, HyperMemConfig
from hgmem.systems.hypermem.replies import EPISODE_ROLES, USUAL_EPISODE_ROLE, RoleReply, membership
from hgmem.systems.hypermem.tasks import Candidate, MatchTopics, RateEpisodes, WriteTopic

TOPIC = "Topic"
JOINS = "joins"
AT_ONCE = 10  # topics that one call matches (official code)
_TOLD = 3  # episodes of a topic that tell what it is about, where no call writes its text


def joins(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes in order of time, each after the earlier ones whose topics it may join.

    These are the nearest by their texts' vectors (paper: a shortlist), or all (official code).
    """
    spans: dict[str, list[StoredRow]] = {}  # the episodes that may share topics: all, or those of each conversation
    for row in _in_order(reading, reading.rows(EPISODE, vectors=True)):
        spans.setdefault("" if config.span == "corpus" else row.document, []).append(row)
    for episodes in spans.values():
        vectors = np.asarray([row.own_embedding for row in episodes], dtype=np.float32)
        for at, row in enumerate(episodes):
            near = vectors[:at] @ vectors[at] if at else np.empty(0, dtype=np.float32)
            chosen = sorted(highest(near, config.shortlist)) if config.shortlist else range(at)
            yield Unit(
                key=row.key,
                rows=[row],
                values={"near": [[episodes[other].key, round(float(near[other]), 4)] for other in chosen]},
                after=[episodes[other].key for other in chosen],
            )


def _in_order(reading: Reading, rows: Sequence[StoredRow]) -> list[StoredRow]:
    """Return episodes by the time of their last message, those of one time in the order of their conversation."""
    places: dict[str, int] = {}
    for dialogue in dialogues(reading.chunks()):
        for message in dialogue.messages:
            places[unit_key(dialogue.document, message)] = len(places)
    return sorted(rows, key=lambda row: (str(row.properties["ends"]), places.get(row.key, 0)))


def join(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Choose the topics of an episode among those of earlier ones, or begin one.

    The output tells of each topic (by key) its text and how many episodes it has then. `brief` is a text of the episode
    alone, where no call writes the topic's.
    """
    row = unit.rows[0]
    subject, summary = str(row.properties["subject"]), str(row.properties["summary"])
    known: dict[str, Any] = {key: topic for output in before for key, topic in output.value.items()}
    candidates = [_candidate(key, topic, unit, before) for key, topic in known.items() if topic["size"] < LONGEST_TOPIC]
    chosen: list[Candidate] = []
    for begin in range(0, len(candidates), AT_ONCE):
        some = tuple(candidates[begin : begin + AT_ONCE])
        reply = services.reply(MatchTopics(subject=subject, summary=summary, topics=some))
        chosen += [some[at] for at in dict.fromkeys(reply.matches) if 0 <= at < len(some)]
    joined = {
        topic.key: _text(services, config, row, topic) | {"size": known[topic.key]["size"] + 1} for topic in chosen
    }
    joined = joined or {row.key: _text(services, config, row, None) | {"size": 1}}
    sources = [output.uid for output in before if joined.keys() & output.value.keys()]
    return Made(output=joined, output_rests_on=[row.uid, *sources])


def _candidate(key: str, topic: Mapping[str, Any], unit: Unit, before: Sequence[Output]) -> Candidate:
    """Return a topic as the prompt tells it: where no call writes its text, its latest episodes tell what it is."""
    leading = [output for output in before if key in output.value]
    keys = {output.key for output in leading}
    near = [nearness for episode, nearness in unit.values["near"] if episode in keys]
    latest = dict.fromkeys(str(output.value[key]["summary"]) for output in leading[-_TOLD:])
    return Candidate(
        key=key,
        title="" if topic["brief"] else topic["title"],
        summary=" ".join(latest) if topic["brief"] else topic["summary"],
        nearness=sum(near) / len(near) if near else 0.0,
    )


def _text(services: Services, config: HyperMemConfig, row: StoredRow, topic: Candidate | None) -> dict[str, Any]:
    """Return a topic's text after an episode has joined it. Where calls are few, it is written with the roles."""
    subject, summary = str(row.properties["subject"]), str(row.properties["summary"])
    if config.calls == "few":
        return {"title": subject, "summary": f"{subject}: {summary}", "keywords": [], "brief": True}
    reply = services.reply(WriteTopic(subject=subject, summary=summary, topic=topic))
    known = topic or Candidate(key="", title=subject, summary=summary)
    return {
        "title": reply.title or known.title,
        "summary": reply.summary or known.summary,
        "keywords": list(reply.keywords),
        "brief": False,
    }


def topics(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the topics, each with its episodes in order of time and what these said of it.

    A topic that has grown too long, because episodes joined it without knowing of each other, goes on in another.
    """
    joined = reading.outputs(JOINS)
    members: dict[str, list[StoredRow]] = {}
    for row in _in_order(reading, reading.rows(EPISODE)):
        for topic in joined[row.key].value if row.key in joined else ():
            members.setdefault(topic, []).append(row)
    for topic, rows in sorted(members.items()):
        for begin in range(0, len(rows), LONGEST_TOPIC):
            part = rows[begin : begin + LONGEST_TOPIC]
            yield Unit(
                key=part[0].key if begin else topic,
                rows=part,
                outputs=[joined[row.key] for row in part],
                values={"topic": topic},
            )


def make_topic(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the row of a topic, tied to its episodes by role and weight."""
    newest = unit.outputs[-1].value[unit.values["topic"]]
    together = config.calls == "few"
    values: list[Mapping[str, Any]] = [row.properties for row in unit.rows]
    people = list(dict.fromkeys(speaker for one in values for speaker in one["speakers"]))
    reply = services.reply(
        RateEpisodes(
            title="" if together else newest["title"],
            summary="" if together else newest["summary"],
            episodes=unit.rows,
            people=people,
            with_text=together,
        )
    )
    title = (reply.title if together else "") or newest["title"]
    summary = (reply.summary if together else "") or newest["summary"]
    keywords = list(reply.keywords if together else newest["keywords"])
    properties: dict[str, Property] = {
        "title": title,
        "summary": summary,
        "keywords": keywords,
        "speakers": people,
        "begins": min(one["ends"] for one in values),
        "ends": max(one["ends"] for one in values),  # time of the last episode (official code)
        "episodes": len(unit.rows),
    }
    text = "\n".join(part for part in (title, summary, ", ".join(keywords)) if part)
    topic = Row(kind=TOPIC, key=unit.key, text=text, properties=properties)
    ratings = {rating.number: rating for rating in reply.roles if rating.role.strip()}
    ties = [
        Tie(
            source=row.uid,
            type="IN_TOPIC",
            target=topic,
            properties=membership(ratings.get(at, RoleReply(number=at)), EPISODE_ROLES, usual=USUAL_EPISODE_ROLE),
        )
        for at, row in enumerate(unit.rows)
    ]
    return Made(rows=[topic], ties=ties)

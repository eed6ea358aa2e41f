"""Topics: which ones each episode joins, one episode after the other, and their rows (paper, section 3.1)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Property, Row, StoredRow, Tie, Unit
from hgmem.services import Services
from hgmem.systems.hypermem.dialogues import dialogues
from hgmem.systems.hypermem.episodes import EPISODE
from hgmem.systems.hypermem.propagation import hyperedge
from hgmem.systems.hypermem.recipes import HyperMemConfig
from hgmem.systems.hypermem.replies import (
    EPISODE_ROLES,
    USUAL_EPISODE_ROLE,
    USUAL_WEIGHT,
    RoleReply,
    membership,
    weight_of,
)
from hgmem.systems.hypermem.segments import unit_key
from hgmem.systems.hypermem.tasks import Candidate, MatchTopics, Member, RateEpisodes, WriteTopic

TOPIC = "Topic"
JOINS = "joins"
AT_ONCE = 10  # topics that one call matches (official code)
_TOLD = 3  # episodes of a topic that tell what it is about, where no call writes its text


def joins(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes in order of time, each after the earlier ones whose topics it may join.

    These are the nearest by their texts' vectors (paper: a shortlist), or all (official code).
    """
    rows = _in_order(reading, reading.rows(EPISODE, vectors=True))
    for same in _spans(rows, config.span):
        every = np.asarray([row.own_embedding for row in same], dtype=np.float32)
        for at, row in enumerate(same):
            near = every[:at] @ every[at] if at else np.empty(0, dtype=np.float32)
            chosen = list(range(at))
            if config.shortlist:
                chosen = sorted(int(one) for one in np.argsort(-near, kind="stable")[: config.shortlist])
            yield Unit(
                key=row.key,
                rows=[row],
                values={"near": [[same[one].key, round(float(near[one]), 4)] for one in chosen]},
                after=[same[one].key for one in chosen],
            )


def _in_order(reading: Reading, rows: Sequence[StoredRow]) -> list[StoredRow]:
    """Return episodes by the time of their last message, those of one time in the order of their conversation."""
    places: dict[str, int] = {}
    for dialogue in dialogues(reading.chunks()):
        for said in dialogue.messages:
            places[unit_key(dialogue.document, said)] = len(places)
    return sorted(rows, key=lambda row: (str(row.properties["time"]), places.get(row.key, 0)))


def _spans(rows: Sequence[StoredRow], span: str) -> list[list[StoredRow]]:
    """Return the episodes that may share topics: all, or those of each conversation."""
    if span == "corpus":
        return [list(rows)]
    found: dict[str, list[StoredRow]] = {}
    for row in rows:
        found.setdefault(row.document, []).append(row)
    return list(found.values())


def join(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Choose the topics of an episode among those of earlier ones, or begin one. The output tells their texts."""
    row = unit.rows[0]
    subject, summary = str(row.properties["subject"]), str(row.properties["summary"])
    known = _known(before)
    sizes = {key: topic["size"] for key, topic in known.items()}
    open_ = [key for key in known if sizes[key] < config.longest_topic]
    candidates = [_candidate(key, known[key], unit, before) for key in open_]
    chosen: list[Candidate] = []
    for begin in range(0, len(candidates), AT_ONCE):
        some = tuple(candidates[begin : begin + AT_ONCE])
        reply = services.reply(MatchTopics(subject=subject, summary=summary, topics=some))
        chosen += [some[at] for at in dict.fromkeys(reply.matches) if 0 <= at < len(some)]
    joined = {one.key: _text(services, config, row, one) | {"size": sizes[one.key] + 1} for one in chosen}
    joined = joined or {row.key: _text(services, config, row, None) | {"size": 1}}
    sources = [output.uid for output in before if joined.keys() & output.value.keys()]
    return Made(output=joined, output_rests_on=[row.uid, *sources])


def _known(before: Sequence[Output]) -> dict[str, Any]:
    """Return the topics of earlier episodes by key, each with its newest text."""
    return {key: topic for output in before for key, topic in output.value.items()}


def _candidate(key: str, topic: Mapping[str, Any], unit: Unit, before: Sequence[Output]) -> Candidate:
    """Return a topic as the prompt tells it: where no call writes its text, its latest episodes tell what it is."""
    leading = [output for output in before if key in output.value]
    keys = {output.key for output in leading}
    near = [nearness for one, nearness in unit.values["near"] if one in keys]
    told = dict.fromkeys(str(output.value[key]["summary"]) for output in leading[-_TOLD:])
    return Candidate(
        key=key,
        title="" if topic["brief"] else topic["title"],
        summary=" ".join(told) if topic["brief"] else topic["summary"],
        nearness=sum(near) / len(near) if near else 0.0,
    )


def _text(services: Services, config: HyperMemConfig, row: StoredRow, topic: Candidate | None) -> dict[str, Any]:
    """Return a topic's text after an episode has joined it. Where calls are few, it is written with the roles."""
    subject, summary = str(row.properties["subject"]), str(row.properties["summary"])
    if config.calls == "together":
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
    for row in _in_order(reading, reading.rows(EPISODE, vectors=True)):
        for topic in joined[row.key].value if row.key in joined else ():
            members.setdefault(topic, []).append(row)
    for topic, rows in sorted(members.items()):
        for begin in range(0, len(rows), config.longest_topic):
            part = rows[begin : begin + config.longest_topic]
            yield Unit(
                key=part[0].key if begin else topic,
                rows=part,
                outputs=[joined[row.key] for row in part],
                values={"topic": topic},
            )


def make_topic(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the row of a topic, tied to its episodes by role and weight, with the vector of its hyperedge."""
    newest = unit.outputs[-1].value[unit.values["topic"]]
    together = config.calls == "together"
    reply = services.reply(
        RateEpisodes(
            title="" if together else newest["title"],
            summary="" if together else newest["summary"],
            episodes=tuple(_member(row) for row in unit.rows),
            people=tuple(dict.fromkeys(one for row in unit.rows for one in _texts(row, "speakers"))),
            with_text=together,
        )
    )
    title = (reply.title if together else "") or newest["title"]
    summary = (reply.summary if together else "") or newest["summary"]
    keywords = list(reply.keywords if together else newest["keywords"])
    roles = {one.number: one for one in reply.roles}
    rated = [roles.get(at, RoleReply(number=at)) for at in range(len(unit.rows))]
    weights = [weight_of(one.weight) for one in rated]
    every = np.asarray([row.own_embedding for row in unit.rows], dtype=np.float32)
    times = [str(row.properties["time"]) for row in unit.rows]
    properties: dict[str, Property] = {
        "title": title,
        "summary": summary,
        "keywords": keywords,
        "coherence": weight_of(reply.coherence),
        "speakers": list(dict.fromkeys(one for row in unit.rows for one in _texts(row, "speakers"))),
        "begins": min(times),
        "time": max(times),  # of the last episode (official code)
        "episodes": len(unit.rows),
    }
    topic = Row(
        kind=TOPIC,
        key=unit.key,
        text="\n".join(part for part in (title, summary, ", ".join(keywords)) if part),
        properties=properties,
        vector=hyperedge(every, np.asarray(weights)),
    )
    ties = [
        Tie(source=row.uid, type="IN_TOPIC", target=topic, properties=_membership(one))
        for row, one in zip(unit.rows, rated, strict=True)
    ]
    return Made(rows=[topic], ties=ties)


def _member(row: StoredRow) -> Member:
    values = row.properties
    return Member(subject=str(values["subject"]), summary=str(values["summary"]), time=str(values["time"]))


def _membership(one: RoleReply) -> dict[str, str | float]:
    return membership(one.role, one.weight if one.role else USUAL_WEIGHT, EPISODE_ROLES, usual=USUAL_EPISODE_ROLE)


def _texts(row: StoredRow, name: str) -> Sequence[str]:
    value = row.properties[name]
    return [str(one) for one in value] if isinstance(value, Sequence) and not isinstance(value, str) else []

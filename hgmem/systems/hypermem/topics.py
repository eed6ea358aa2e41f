"""Topics: which of them episodes join, in order of time, and what they tell (the paper's Topic Aggregation).

Where calls are few, one call matches several neighbouring episodes. Such batches are kept as earlier builds made them,
so that new episodes are a batch of their own. Else each episode has a call, and one more for the text of each topic.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Property, Row, StoredRow, Tie, Unit
from hgmem.models.extractive.selection import highest
from hgmem.services import Services
from hgmem.systems.hypermem import tasks
from hgmem.systems.hypermem.dialogues import dialogues, unit_key
from hgmem.systems.hypermem.episodes import EPISODE, runs
from hgmem.systems.hypermem.recipes import LONGEST_TOPIC, HyperMemConfig
from hgmem.systems.hypermem.replies import RoleReply, membership

TOPIC = "Topic"
MATCHES, JOINS = "matches", "joins"  # stages whose outputs others read: one for few calls, one for a call each
AT_ONCE = 10  # topics that one call matches with one episode (official code)
TOGETHER, TOPICS_TOGETHER = 8, 40  # episodes that one call matches, and the topics that it shows
_TOLD = 3  # episodes of a topic that tell what it is about, where no call writes its text

Near: TypeAlias = list[tuple[int, float]]  # earlier episodes by their place in the order of time, with their cosine
Joined: TypeAlias = dict[str, dict[str, int]]  # the topics of each episode (keys), and how many episodes each has then


def _shortlists(reading: Reading, config: HyperMemConfig) -> Iterator[tuple[list[StoredRow], list[Near]]]:
    """Yield the episodes that may share topics in order of time, and the earlier ones whose topics each may join.

    These are the nearest by their texts' vectors (paper: a shortlist), or all (official code).
    """
    spans: dict[str, list[StoredRow]] = {}
    for row in _in_order(reading, reading.rows(EPISODE, vectors=True)):
        spans.setdefault("" if config.span == "corpus" else row.document, []).append(row)
    for found in spans.values():
        vectors = np.asarray([row.own_embedding for row in found], dtype=np.float32)
        near: list[Near] = []
        for at in range(len(found)):
            cosines = vectors[:at] @ vectors[at] if at else np.empty(0, dtype=np.float32)
            chosen = sorted(highest(cosines, config.shortlist)) if config.shortlist else range(at)
            near.append([(other, round(float(cosines[other]), 4)) for other in chosen])
        yield found, near


def _in_order(reading: Reading, rows: Sequence[StoredRow]) -> list[StoredRow]:
    """Return episodes by the time of their last message, those of one time in the order of their conversation."""
    places: dict[str, int] = {}
    for dialogue in dialogues(reading.chunks()):
        for message in dialogue.messages:
            places[unit_key(dialogue.document, message)] = len(places)
    return sorted(rows, key=lambda row: (str(row.properties["ends"]), places.get(row.key, 0)))


def batches(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List batches of episodes in order of time, each after those of the earlier episodes whose topics it may join.

    There are none where each episode has calls of its own.
    """
    if config.calls == "paper":
        return
    known = {key: output.value["last"] for key, output in reading.outputs(MATCHES).items()}
    for found, near in _shortlists(reading, config):
        keys = [row.key for row in found]
        batch_of: list[str] = []
        for begin, end in runs(keys, known, size=TOGETHER):
            batch_of += [keys[begin]] * (end - begin)
            read = sorted({other for one in near[begin:end] for other, _ in one} | set(range(begin, end)))
            told = [[keys[at], [[keys[other], cosine] for other, cosine in near[at]]] for at in range(begin, end)]
            yield Unit(
                key=keys[begin],
                rows=[found[at] for at in read],
                values={"near": told},
                after=list(dict.fromkeys(batch_of[at] for at in read if at < begin)),
            )


def match(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Choose the topics of a batch of episodes among those of earlier ones, or of one another, or begin some.

    One call matches as many neighbours as have at most `TOPICS_TOGETHER` topics to choose from. The output has keys and
    numbers alone: the `topics` of each episode, and the `last` episode.
    """
    rows = {row.key: row for row in unit.rows}
    joined: Joined = {key: topics for output in before for key, topics in output.value["topics"].items()}
    near = {key: dict(others) for key, others in unit.values["near"]}
    waiting = list(near)
    while waiting:
        some = waiting[:1]
        for key in waiting[1:]:
            if len(_open_topics([near[one] for one in (*some, key)], joined)) > TOPICS_TOGETHER:
                break
            some.append(key)
        waiting = waiting[len(some) :]
        joined |= _matched(services, rows, {key: near[key] for key in some}, joined)
    made = {key: joined[key] for key in near}
    return Made(output={"topics": made, "last": list(near)[-1]}, output_rests_on=[rows[key].uid for key in near])


def _sizes(joined: Joined) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for topics in joined.values():
        for topic, size in topics.items():
            sizes[topic] = max(size, sizes.get(topic, 0))
    return sizes


def _open_topics(near: Sequence[Mapping[str, float]], joined: Joined) -> list[str]:
    """Return the topics of near episodes that have room for another."""
    sizes = _sizes(joined)
    found = dict.fromkeys(topic for others in near for key in others for topic in joined.get(key, ()))
    return [topic for topic in found if sizes[topic] < LONGEST_TOPIC]


def _matched(
    services: Services, rows: Mapping[str, StoredRow], near: Mapping[str, Mapping[str, float]], joined: Joined
) -> Joined:
    """Return the topics of neighbouring episodes, by one call unless there is nothing to choose from.

    `near` has for each of them the earlier episodes with their cosine.
    """
    keys, topics = list(near), _open_topics(list(near.values()), joined)
    chosen: list[dict[str, None]] = [{} for _ in keys]  # topics of each episode, and neighbours that it continues
    for begin in range(0, len(topics) or int(len(keys) > 1), TOPICS_TOGETHER):
        known = [*topics[begin : begin + TOPICS_TOGETHER], *keys]  # what numbers in the prompt stand for
        first = len(known) - len(keys)
        reply = services.reply(_task(rows, near, joined, known))
        for one in reply.episodes:
            if first <= one.number < len(known):
                chosen[one.number - first] |= {known[at]: None for at in one.matches if 0 <= at < one.number}
    sizes, found = _sizes(joined), Joined()
    for key, wanted in zip(keys, chosen, strict=True):
        every = dict.fromkeys(topic for one in wanted for topic in found.get(one, [one]))
        found[key] = {topic: sizes[topic] + 1 for topic in every if sizes[topic] < LONGEST_TOPIC} or {key: 1}
        sizes |= found[key]
    return found


def _task(
    rows: Mapping[str, StoredRow],
    near: Mapping[str, Mapping[str, float]],
    joined: Joined,
    known: Sequence[str],
) -> tasks.MatchEpisodes:
    """Return the task that matches the last of these topics and episodes (keys), which are episodes, with all of them.

    What a topic is, its latest near episodes tell.
    """
    number = {key: at for at, key in enumerate(known)}
    others = {key for each in near.values() for key in each}
    told = []
    for topic in known[: len(known) - len(near)]:
        leading = [row for key, row in rows.items() if key in others and topic in joined.get(key, ())]
        told.append(tasks.Candidate(key=topic, title="", summary=" ".join(map(_told, leading[-_TOLD:]))))
    return tasks.MatchEpisodes(
        topics=tuple(told),
        episodes=tuple(_told(rows[key]) for key in near),
        near=tuple(
            tuple(
                (number[one], cosine) for key, cosine in each.items() for one in joined.get(key, [key]) if one in number
            )
            for each in near.values()
        ),
    )


def _told(row: StoredRow) -> str:
    return f"{row.properties['subject']}: {row.properties['summary']}"


def joins(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes in order of time, each after the earlier ones whose topics it may join.

    There are none where one call matches several.
    """
    for found, near in _shortlists(reading, config) if config.calls == "paper" else ():
        for row, others in zip(found, near, strict=True):
            yield Unit(
                key=row.key,
                rows=[row],
                values={"near": [[found[other].key, cosine] for other, cosine in others]},
                after=[found[other].key for other, _ in others],
            )


def join(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Choose the topics of an episode among those of earlier ones, or begin one.

    The output tells of each topic (by key) its text and how many episodes it has then.
    """
    row = unit.rows[0]
    subject, summary = str(row.properties["subject"]), str(row.properties["summary"])
    known: dict[str, Any] = {key: topic for output in before for key, topic in output.value.items()}
    candidates = [_candidate(key, topic, unit, before) for key, topic in known.items() if topic["size"] < LONGEST_TOPIC]
    chosen: list[tasks.Candidate] = []
    for begin in range(0, len(candidates), AT_ONCE):
        some = tuple(candidates[begin : begin + AT_ONCE])
        reply = services.reply(tasks.MatchTopics(subject=subject, summary=summary, topics=some))
        chosen += [some[at] for at in dict.fromkeys(reply.matches) if 0 <= at < len(some)]
    joined = {topic.key: _text(services, row, topic) | {"size": known[topic.key]["size"] + 1} for topic in chosen}
    joined = joined or {row.key: _text(services, row, None) | {"size": 1}}
    sources = [output.uid for output in before if joined.keys() & output.value.keys()]
    return Made(output=joined, output_rests_on=[row.uid, *sources])


def _candidate(key: str, topic: Mapping[str, Any], unit: Unit, before: Sequence[Output]) -> tasks.Candidate:
    """Return a topic as the prompt tells it, with the mean nearness of the episodes that lead to it."""
    keys = {output.key for output in before if key in output.value}
    near = [nearness for episode, nearness in unit.values["near"] if episode in keys]
    nearness = sum(near) / len(near) if near else 0.0
    return tasks.Candidate(key=key, title=topic["title"], summary=topic["summary"], nearness=nearness)


def _text(services: Services, row: StoredRow, topic: tasks.Candidate | None) -> dict[str, Any]:
    """Return a topic's text after an episode has joined it."""
    subject, summary = str(row.properties["subject"]), str(row.properties["summary"])
    reply = services.reply(tasks.WriteTopic(subject=subject, summary=summary, topic=topic))
    known = topic or tasks.Candidate(key="", title=subject, summary=summary)
    return {
        "title": reply.title or known.title,
        "summary": reply.summary or known.summary,
        "keywords": list(reply.keywords),
    }


def topics(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the topics, each with its episodes in order of time and what these said of it.

    A topic that has grown too long, because episodes joined it without knowing of each other, goes on in another. Its
    key begins with a number where that of a topic begins with a document's uid, so none is taken twice.
    """
    written = reading.outputs(JOINS)
    joined = {key: output.value for key, output in written.items()}
    for output in reading.outputs(MATCHES).values():
        joined |= output.value["topics"]
    members: dict[str, list[StoredRow]] = {}
    for row in _in_order(reading, reading.rows(EPISODE)):
        for topic in joined.get(row.key, ()):
            members.setdefault(topic, []).append(row)
    for topic, rows in sorted(members.items()):
        for begin in range(0, len(rows), LONGEST_TOPIC):
            part = rows[begin : begin + LONGEST_TOPIC]
            yield Unit(
                key=f"{begin}/{topic}" if begin else topic,
                rows=part,
                outputs=[written[row.key] for row in part if row.key in written],
                values={"topic": topic},
            )


def make_topic(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the row of a topic, tied to its episodes by role and weight."""
    together = config.calls == "few"
    values: list[Mapping[str, Any]] = [row.properties for row in unit.rows]
    newest = {"title": values[-1]["subject"], "summary": _told(unit.rows[-1])}
    if not together:
        newest = unit.outputs[-1].value[unit.values["topic"]]
    people = list(dict.fromkeys(speaker for one in values for speaker in one["speakers"]))
    reply = services.reply(
        tasks.RateEpisodes(
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
            properties=membership(ratings.get(at, RoleReply(number=at))),
        )
        for at, row in enumerate(unit.rows)
    ]
    return Made(rows=[topic], ties=ties)

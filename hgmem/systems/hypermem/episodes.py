"""Episodes, their facts and topics: where episodes begin, what happens in each, which topics they join.

This is the paper's Construction Phase. Messages are divided window by window. Windows are kept as earlier builds made
them, so that new messages are a window of their own and earlier borders stay. Episodes then join topics one after the
other, in order of time.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Property, Row, StoredRow, Tie, Unit
from hgmem.errors import UsageError
from hgmem.models.extractive.selection import highest
from hgmem.services import Services
from hgmem.systems.hypermem import tasks
from hgmem.systems.hypermem.dialogues import Dialogue, DialogueMessage, dialogues, of_plain, sortable, unit_key
from hgmem.systems.hypermem.recipes import LONGEST_TOPIC, WINDOW, HyperMemConfig
from hgmem.systems.hypermem.replies import FactReply, RoleReply, membership
from hgmem.text.identity import text_hash
from hgmem.values.graph_elements import Chunk

TOPIC, EPISODE, FACT = "Topic", "Episode", "Fact"
SEGMENTS, NARRATIVES, FACTS, JOINS = "segments", "narratives", "facts", "joins"  # stages whose outputs others read
_MASKED_FROM = 5  # with more messages in the buffer, its last one is hidden from the call (official code's smart mask)
_FEWEST = 2  # messages of a conversation before the first that is asked about (official code)
_EARLIER = 3  # messages of the episode before that a prompt shows, so that "it" can be understood
AT_ONCE = 10  # topics that one call matches (official code)
_TOLD = 3  # episodes of a topic that tell what it is about, where no call writes its text

Messages: TypeAlias = Sequence[DialogueMessage]
Open: TypeAlias = tuple[Messages, int]  # the latest messages of the episode that goes on, and how many it has
Divided: TypeAlias = tuple[list[str], list[DialogueMessage], int]  # where episodes begin (ids), then as in `Open`


def windows(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the windows of each conversation, each after the one before it."""
    found = dialogues(reading.chunks())
    if not found:
        raise UsageError(
            f"corpus {reading.services.corpus!r} has no conversations: add one (`hgmem index --conversations FILE`, "
            "Conversation in Python), or choose a system for documents"
        )
    known = {key: output.value["last"] for key, output in reading.outputs(SEGMENTS).items()}
    for dialogue in found:
        before: list[str] = []
        for window in _windows(dialogue, known):
            key = unit_key(dialogue.document, window[0])
            yield Unit(
                key=key,
                values={
                    "messages": [message.plain for message in window],
                    "conversation": dialogue.document,
                    "heading": dialogue.heading,
                },
                sources=[chunk for message in window for chunk in message.chunks],
                after=before,
            )
            before = [key]


def _windows(dialogue: Dialogue, known: dict[str, str]) -> Iterator[Messages]:
    """Yield windows: those that an earlier build made, as far as their messages exist, and new ones between them."""
    document, messages = dialogue.document, dialogue.messages
    place = {message.id: at for at, message in enumerate(messages)}
    begin = 0
    while begin < len(messages):
        last = place.get(known.get(unit_key(document, messages[begin]), ""), -1)
        end = last + 1
        if not begin <= last < begin + WINDOW:  # new: it ends at its size, or where the next known one begins
            limit = min(begin + WINDOW, len(messages))
            end = next((at for at in range(begin + 1, limit) if unit_key(document, messages[at]) in known), limit)
        yield messages[begin:end]
        begin = end


def divide(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Find the messages of a window at which an episode begins.

    The output tells their ids (`starts`), the latest messages of the episode that is still `open`, how many messages
    that has (`length`), and the `last` message of the window.
    """
    window = of_plain(unit.values["messages"])
    earlier: dict[str, Any] = before[0].value if before else {"open": [], "length": 0}
    divided = _divide_by_message if config.calls == "paper" else _divide_at_once
    starts, history, length = divided(services, config, unit, (of_plain(earlier["open"]), earlier["length"]))
    if not before:
        starts = [window[0].id, *(id_ for id_ in starts if id_ != window[0].id)]
    latest = [message.plain for message in history[-config.longest_episode :]]
    return Made(output={"starts": starts, "open": latest, "length": length, "last": window[-1].id})


def _divide_at_once(services: Services, config: HyperMemConfig, unit: Unit, earlier: Open) -> Divided:
    """Divide a window by one call. An episode that grows too long ends there."""
    window, history, length = of_plain(unit.values["messages"]), list(earlier[0]), earlier[1]
    task = tasks.DivideMessages(
        heading=unit.values["heading"], earlier=tuple(history), messages=window, longest=config.longest_episode
    )
    wanted = {at for at in services.reply(task).starts if 0 <= at < len(window) and (at or history)}
    starts: list[str] = []
    for at, message in enumerate(window):
        if (at in wanted and length) or length >= config.longest_episode:
            starts.append(message.id)
            history, length = [], 0
        history, length = [*history, message], length + 1
    return starts, history, length


def _divide_by_message(services: Services, config: HyperMemConfig, unit: Unit, earlier: Open) -> Divided:
    """Ask about each message whether an episode ends before it (paper, Episode Detection)."""
    history, before = list(earlier[0]), earlier[1]
    starts: list[str] = []
    for at, message in enumerate(of_plain(unit.values["messages"])):
        if before or at >= _FEWEST:
            masked = len(history) > _MASKED_FROM
            read = tuple(history[:-1] if masked else history)
            task = tasks.DetectBoundary(heading=unit.values["heading"], history=read, message=message)
            if services.reply(task).should_end:
                kept = [history[-1]] if masked else []
                starts.append((kept or [message])[0].id)
                history = kept
        history = [*history, message]
    return starts, history, len(history)


def _episodes(reading: Reading) -> Iterator[tuple[Dialogue, list[DialogueMessage]]]:
    """Yield each episode of each conversation, as far as its messages were divided."""
    divided = reading.outputs(SEGMENTS)
    for dialogue in dialogues(reading.chunks()):
        starts: set[str] = set()  # a window may tell that an episode begins at the last message of the one before
        known: list[DialogueMessage] = []
        last = ""  # message of the window that is read
        for message in dialogue.messages:
            if not last:
                output = divided.get(unit_key(dialogue.document, message))
                if output is None:
                    break  # this window was not divided
                starts.update(output.value["starts"])
                last = output.value["last"]
            known.append(message)
            if message.id == last:
                last = ""
        begins = [at for at, message in enumerate(known) if not at or message.id in starts]
        for begin, end in pairwise([*begins, len(known)]):
            yield dialogue, known[begin:end]


def narratives(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes of each conversation, as far as its messages were divided."""
    before: tuple[str, Messages] = ("", ())
    for dialogue, messages in _episodes(reading):
        earlier = before[1][-_EARLIER:] if before[0] == dialogue.document else ()
        before = (dialogue.document, messages)
        yield Unit(
            key=unit_key(dialogue.document, messages[0]),
            values={
                "title": dialogue.title,
                "heading": dialogue.heading,
                "earlier": [message.plain for message in earlier],
                "messages": [message.plain for message in messages],
            },
            sources=_chunks([*earlier, *messages]),
        )


def write_narrative(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Write what happens in an episode, and by the same call its facts if calls are few."""
    title, messages = unit.values["title"], of_plain(unit.values["messages"])
    reply = services.reply(
        tasks.WriteEpisode(
            heading=unit.values["heading"],
            earlier=of_plain(unit.values["earlier"]),
            messages=messages,
            with_facts=config.calls == "few",
        )
    )
    narrative = reply.narrative or reply.summary
    narrative = narrative or "\n".join(f"{message.speaker}: {message.text}" for message in messages)
    return Made(
        output={
            "subject": reply.subject or title,
            "summary": reply.summary or narrative[:200],
            "narrative": narrative,
            "keywords": list(reply.keywords),
            "facts": [fact.model_dump() for fact in reply.facts],
        }
    )


def facts(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes whose facts a call of its own writes, none where one call writes all."""
    if config.calls == "few":
        return
    written = reading.outputs(NARRATIVES)
    for dialogue, messages in _episodes(reading):
        key = unit_key(dialogue.document, messages[0])
        if key in written:
            values = {"messages": [message.plain for message in messages], "heading": dialogue.heading}
            yield Unit(key=key, outputs=[written[key]], values=values, sources=_chunks(messages))


def write_facts(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Write the facts of an episode, then rate them, by a call each (paper, Fact Extraction)."""
    narrative = unit.outputs[0].value["narrative"]
    messages = of_plain(unit.values["messages"])
    task = tasks.WriteFacts(heading=unit.values["heading"], narrative=narrative, messages=messages)
    found = services.reply(task).facts
    rated = services.reply(tasks.RateFacts(narrative=narrative, facts=found)).roles if found else ()
    ratings = {rating.number: {"role": rating.role, "weight": rating.weight} for rating in rated}
    return Made(output=[fact.model_dump() | ratings.get(at, {}) for at, fact in enumerate(found)])


def episodes(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes that are written, with the places of their messages."""
    written, facts_apart = reading.outputs(NARRATIVES), reading.outputs(FACTS)
    for dialogue, messages in _episodes(reading):
        key = unit_key(dialogue.document, messages[0])
        if key not in written or (config.calls == "paper" and key not in facts_apart):
            continue
        places = [
            [message.id, message.speaker, message.time, [chunk.uid for chunk in message.chunks]] for message in messages
        ]
        yield Unit(
            key=key,
            outputs=[written[key], *([facts_apart[key]] if key in facts_apart else [])],
            values={"messages": places},
            sources=_chunks(messages),
        )


def make_episode(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the rows of an episode and of its facts."""
    written = unit.outputs[0].value
    given = unit.outputs[1].value if len(unit.outputs) > 1 else written["facts"]
    found = {text_hash(fact["content"])[:16]: FactReply(**fact) for fact in given if fact["content"].strip()}
    rows = {key: _fact(unit, fact, f"{unit.key}/{key}") for key, fact in found.items()}
    episode = _episode(unit, written)
    ties = [
        Tie(source=rows[key], type="IN_EPISODE", target=episode, properties=membership(fact))
        for key, fact in found.items()
    ]
    return Made(rows=[episode, *rows.values()], ties=ties)


def _episode(unit: Unit, written: Mapping[str, Any]) -> Row:
    places = unit.values["messages"]
    texts = (written["subject"], written["summary"], written["narrative"])  # official code: the text that is embedded
    properties: dict[str, Property] = {
        "subject": written["subject"],
        "summary": written["summary"],
        "narrative": written["narrative"],
        "keywords": written["keywords"],
        "speakers": list(dict.fromkeys(speaker for _, speaker, _, _ in places)),
        "begins": min((time for _, _, said, _ in places if (time := sortable(said))), default=""),
        "ends": sortable(places[-1][2]),  # time of the last message (official code)
        "first": places[0][0],
        "last": places[-1][0],
        "messages": len(places),
    }
    return Row(kind=EPISODE, key=unit.key, text="\n".join(texts), properties=properties)


def _fact(unit: Unit, fact: FactReply, key: str) -> Row:
    """Return the row of a fact. It rests on the messages that say it, on all of its episode if none are told."""
    places = unit.values["messages"]
    named = [places[at] for at in dict.fromkeys(fact.messages) if 0 <= at < len(places)]
    behind = named or places
    searched = (fact.content, *fact.questions, ", ".join(fact.keywords), fact.time, fact.place)  # official code
    properties: dict[str, Property] = {
        "content": fact.content,
        "confidence": min(max(fact.confidence, 0.0), 1.0),
        "event_time": fact.time,
        "place": fact.place,
        "keywords": list(fact.keywords),
        "questions": list(fact.questions),
        "speakers": list(dict.fromkeys(speaker for _, speaker, _, _ in behind)),
        "said_at": sortable(behind[-1][2]),
        "message_ids": [id_ for id_, _, _, _ in named],
    }
    chunks = dict.fromkeys(chunk for _, _, _, uids in behind for chunk in uids)
    return Row(
        kind=FACT,
        key=key,
        text="\n".join(part for part in searched if part),
        properties=properties,
        rests_on=[*chunks, *(output.uid for output in unit.outputs)],
    )


def _chunks(messages: Messages) -> list[Chunk]:
    return list({chunk.uid: chunk for message in messages for chunk in message.chunks}.values())


def joins(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes in order of time, each after the earlier ones whose topics it may join.

    These are the nearest by their texts' vectors (paper: a shortlist), or all (official code).
    """
    spans: dict[str, list[StoredRow]] = {}  # the episodes that may share topics: all, or those of each conversation
    for row in _in_order(reading, reading.rows(EPISODE, vectors=True)):
        spans.setdefault("" if config.span == "corpus" else row.document, []).append(row)
    for found in spans.values():
        vectors = np.asarray([row.own_embedding for row in found], dtype=np.float32)
        for at, row in enumerate(found):
            near = vectors[:at] @ vectors[at] if at else np.empty(0, dtype=np.float32)
            chosen = sorted(highest(near, config.shortlist)) if config.shortlist else range(at)
            yield Unit(
                key=row.key,
                rows=[row],
                values={"near": [[found[other].key, round(float(near[other]), 4)] for other in chosen]},
                after=[found[other].key for other in chosen],
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
    chosen: list[tasks.Candidate] = []
    for begin in range(0, len(candidates), AT_ONCE):
        some = tuple(candidates[begin : begin + AT_ONCE])
        reply = services.reply(tasks.MatchTopics(subject=subject, summary=summary, topics=some))
        chosen += [some[at] for at in dict.fromkeys(reply.matches) if 0 <= at < len(some)]
    joined = {
        topic.key: _text(services, config, row, topic) | {"size": known[topic.key]["size"] + 1} for topic in chosen
    }
    joined = joined or {row.key: _text(services, config, row, None) | {"size": 1}}
    sources = [output.uid for output in before if joined.keys() & output.value.keys()]
    return Made(output=joined, output_rests_on=[row.uid, *sources])


def _candidate(key: str, topic: Mapping[str, Any], unit: Unit, before: Sequence[Output]) -> tasks.Candidate:
    """Return a topic as the prompt tells it: where no call writes its text, its latest episodes tell what it is."""
    leading = [output for output in before if key in output.value]
    keys = {output.key for output in leading}
    near = [nearness for episode, nearness in unit.values["near"] if episode in keys]
    latest = dict.fromkeys(str(output.value[key]["summary"]) for output in leading[-_TOLD:])
    return tasks.Candidate(
        key=key,
        title="" if topic["brief"] else topic["title"],
        summary=" ".join(latest) if topic["brief"] else topic["summary"],
        nearness=sum(near) / len(near) if near else 0.0,
    )


def _text(services: Services, config: HyperMemConfig, row: StoredRow, topic: tasks.Candidate | None) -> dict[str, Any]:
    """Return a topic's text after an episode has joined it. Where calls are few, it is written with the roles."""
    subject, summary = str(row.properties["subject"]), str(row.properties["summary"])
    if config.calls == "few":
        return {"title": subject, "summary": f"{subject}: {summary}", "keywords": [], "brief": True}
    reply = services.reply(tasks.WriteTopic(subject=subject, summary=summary, topic=topic))
    known = topic or tasks.Candidate(key="", title=subject, summary=summary)
    return {
        "title": reply.title or known.title,
        "summary": reply.summary or known.summary,
        "keywords": list(reply.keywords),
        "brief": False,
    }


def topics(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the topics, each with its episodes in order of time and what these said of it.

    A topic that has grown too long, because episodes joined it without knowing of each other, goes on in another. Its
    key begins with a number where that of a topic begins with a document's uid, so none is taken twice.
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
                key=f"{begin}/{topic}" if begin else topic,
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

"""Episodes and their facts: where episodes begin, and what happens in each (the paper's Construction Phase).

Messages are divided window by window. Windows are kept as earlier builds made them, so that new messages are a window
of their own and earlier borders stay.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Property, Row, Tie, Unit
from hgmem.errors import UsageError
from hgmem.services import Services
from hgmem.systems.hypermem import tasks
from hgmem.systems.hypermem.dialogues import Dialogue, DialogueMessage, dialogues, of_plain, sortable, unit_key
from hgmem.systems.hypermem.names import called, spelled_out
from hgmem.systems.hypermem.recipes import WINDOW, HyperMemConfig
from hgmem.systems.hypermem.replies import FactReply, membership
from hgmem.systems.hypermem.times import days_of
from hgmem.text.identity import text_hash
from hgmem.values.graph_elements import Chunk

EPISODE, FACT = "Episode", "Fact"
SEGMENTS, NARRATIVES, FACTS = "segments", "narratives", "facts"  # stages whose outputs others read
_MASKED_FROM = 5  # with more messages in the buffer, its last one is hidden from the call (official code's smart mask)
_FEWEST = 2  # messages of a conversation before the first that is asked about (official code)
_EARLIER = 6  # messages of the episode before that a prompt shows, so that "it" can be understood

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
    known = {
        key: f"{key.partition('/')[0]}/{output.value['last']}" for key, output in reading.outputs(SEGMENTS).items()
    }
    for dialogue in found:
        keys = [unit_key(dialogue.document, message) for message in dialogue.messages]
        before: list[str] = []
        for begin, end in runs(keys, known, size=WINDOW):
            window = dialogue.messages[begin:end]
            yield Unit(
                key=keys[begin],
                values={
                    "messages": [message.plain for message in window],
                    "conversation": dialogue.document,
                    "heading": dialogue.heading,
                },
                sources=[chunk for message in window for chunk in message.chunks],
                after=before,
            )
            before = [keys[begin]]


def runs(keys: Sequence[str], known: Mapping[str, str], *, size: int) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of runs of neighbours, `size` at most.

    They are those that an earlier build made (`known`: the first key and the last of each), as far as these exist, and
    new ones between them.
    """
    place = {key: at for at, key in enumerate(keys)}
    begin = 0
    while begin < len(keys):
        last = place.get(known.get(keys[begin], ""), -1)
        end = last + 1
        if not begin <= last < begin + size:  # new: it ends at its size, or where the next known one begins
            limit = min(begin + size, len(keys))
            end = next((at for at in range(begin + 1, limit) if keys[at] in known), limit)
        yield begin, end
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
    nicknames = {dialogue.document: called(dialogue) for dialogue in dialogues(reading.chunks())}
    for dialogue, messages in _episodes(reading):
        key = unit_key(dialogue.document, messages[0])
        if key not in written or (config.calls == "paper" and key not in facts_apart):
            continue
        places = [
            [message.id, message.speaker, message.time, [chunk.uid for chunk in message.chunks], message.text]
            for message in messages
        ]
        yield Unit(
            key=key,
            outputs=[written[key], *([facts_apart[key]] if key in facts_apart else [])],
            values={"messages": places, "called": nicknames[dialogue.document]},
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
        "speakers": list(dict.fromkeys(speaker for _, speaker, _, _, _ in places)),
        "begins": min((time for _, _, said, _, _ in places if (time := sortable(said))), default=""),
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
    words = " ".join(text for _, _, _, _, text in behind)
    starts, ends = days_of(fact.time, said_at=sortable(behind[-1][2]), words=words)
    meant = ", ".join(spelled_out(fact.content, unit.values["called"]))
    searched = (fact.content, meant, *fact.questions, ", ".join(fact.keywords), fact.time, fact.place)  # official code
    properties: dict[str, Property] = {
        "content": fact.content,
        "confidence": min(max(fact.confidence, 0.0), 1.0),
        "event_time": fact.time,
        "starts": starts,
        "ends": ends,
        "place": fact.place,
        "keywords": list(fact.keywords),
        "questions": list(fact.questions),
        "speakers": list(dict.fromkeys(speaker for _, speaker, _, _, _ in behind)),
        "said_at": sortable(behind[-1][2]),
        "message_ids": [id_ for id_, _, _, _, _ in named],
    }
    chunks = dict.fromkeys(chunk for _, _, _, uids, _ in behind for chunk in uids)
    return Row(
        kind=FACT,
        key=key,
        text="\n".join(part for part in searched if part),
        properties=properties,
        rests_on=[*chunks, *(output.uid for output in unit.outputs)],
    )


def _chunks(messages: Messages) -> list[Chunk]:
    return list({chunk.uid: chunk for message in messages for chunk in message.chunks}.values())

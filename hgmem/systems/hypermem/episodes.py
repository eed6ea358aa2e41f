"""What happens in each episode, and its facts: written in one stage or two, then made rows of in another."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Property, Row, Tie, Unit
from hgmem.services import Services
from hgmem.systems.hypermem.dialogues import Dialogue, Said, dialogues, of_plain
from hgmem.systems.hypermem.propagation import hyperedge
from hgmem.systems.hypermem.recipes import HyperMemConfig
from hgmem.systems.hypermem.replies import FACT_ROLES, USUAL_FACT_ROLE, FactReply, membership, weight_of
from hgmem.systems.hypermem.segments import STAGE as SEGMENTS
from hgmem.systems.hypermem.segments import episodes_of, unit_key
from hgmem.systems.hypermem.tasks import RateFacts, WriteEpisode, WriteFacts
from hgmem.systems.hypermem.times import sortable
from hgmem.text.identity import text_hash
from hgmem.values.graph_elements import Chunk

EPISODE, FACT = "Episode", "Fact"
NARRATIVES, FACTS = "narratives", "facts"
_EARLIER = 3  # messages of the episode before that a prompt shows, so that "it" can be understood


def narratives(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes of each conversation, as far as its messages were divided."""
    before: tuple[str, Sequence[Said]] = ("", ())
    for dialogue, messages in _episodes(reading):
        earlier = before[1][-_EARLIER:] if before[0] == dialogue.document else ()
        before = (dialogue.document, messages)
        yield Unit(
            key=unit_key(dialogue.document, messages[0]),
            values={
                "title": dialogue.title,
                "earlier": [said.plain for said in earlier],
                "messages": [said.plain for said in messages],
            },
            sources=_chunks([*earlier, *messages]),
        )


def write_narrative(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Write what happens in an episode, and by the same call its facts if calls are few."""
    earlier = tuple(of_plain(value) for value in unit.values["earlier"])
    messages = tuple(of_plain(value) for value in unit.values["messages"])
    together = config.calls == "together"
    reply = services.reply(
        WriteEpisode(title=unit.values["title"], earlier=earlier, messages=messages, with_facts=together)
    )
    whole = "\n".join(f"{said.speaker}: {said.text}" for said in messages)
    narrative = reply.narrative or reply.summary or whole
    return Made(
        output={
            "subject": reply.subject or unit.values["title"],
            "summary": reply.summary or narrative[:200],
            "narrative": narrative,
            "keywords": list(reply.keywords),
            "facts": [fact.model_dump() for fact in reply.facts],
        }
    )


def facts(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes whose facts a call of its own writes, none where one call writes all."""
    if config.calls == "together":
        return
    written = reading.outputs(NARRATIVES)
    for dialogue, messages in _episodes(reading):
        key = unit_key(dialogue.document, messages[0])
        if key in written:
            values = {"messages": [said.plain for said in messages]}
            yield Unit(key=key, outputs=[written[key]], values=values, sources=_chunks(messages))


def write_facts(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Write the facts of an episode, then rate them, by a call each (paper, section 3.1)."""
    narrative = unit.outputs[0].value["narrative"]
    messages = tuple(of_plain(value) for value in unit.values["messages"])
    found = services.reply(WriteFacts(narrative=narrative, messages=messages)).facts
    rated = services.reply(RateFacts(narrative=narrative, facts=found)).roles if found else ()
    roles = {one.number: one for one in rated}
    told = [
        fact.model_copy(update={"role": roles[at].role, "weight": roles[at].weight}) if at in roles else fact
        for at, fact in enumerate(found)
    ]
    return Made(output=[fact.model_dump() for fact in told])


def episodes(reading: Reading, config: HyperMemConfig) -> Iterator[Unit]:
    """List the episodes that are written, with the places of their messages."""
    written, told = reading.outputs(NARRATIVES), reading.outputs(FACTS)
    for dialogue, messages in _episodes(reading):
        key = unit_key(dialogue.document, messages[0])
        if key not in written or (config.calls == "each" and key not in told):
            continue
        places = [[said.id, said.speaker, said.time, [chunk.uid for chunk in said.chunks]] for said in messages]
        yield Unit(
            key=key,
            outputs=[written[key], *([told[key]] if key in told else [])],
            values={"messages": places},
            sources=_chunks(messages),
        )


def make_episode(services: Services, config: HyperMemConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make the rows of an episode and its facts. The episode holds the vector of its hyperedge of facts."""
    written, places = unit.outputs[0].value, unit.values["messages"]
    given = unit.outputs[1].value if len(unit.outputs) > 1 else written["facts"]
    found = {text_hash(fact["content"])[:16]: FactReply(**fact) for fact in given if fact["content"].strip()}
    rows = {key: _fact(unit, fact, f"{unit.key}/{key}") for key, fact in found.items()}
    weights = [weight_of(fact.weight) for fact in found.values()]
    vector = None
    if rows:
        vector = hyperedge(services.embed([row.text for row in rows.values()], kind="document"), np.asarray(weights))
    episode = _episode(unit, written, places, vector)
    roles = {key: membership(fact.role, fact.weight, FACT_ROLES, usual=USUAL_FACT_ROLE) for key, fact in found.items()}
    ties = [Tie(source=rows[key], type="IN_EPISODE", target=episode, properties=roles[key]) for key in rows]
    return Made(rows=[episode, *rows.values()], ties=ties)


def _episode(unit: Unit, written: Mapping[str, Any], places: Sequence[Any], vector: Any) -> Row:
    texts = (written["subject"], written["summary"], written["narrative"])  # official code: the text that is embedded
    properties: dict[str, Property] = {
        "subject": written["subject"],
        "summary": written["summary"],
        "narrative": written["narrative"],
        "keywords": written["keywords"],
        "speakers": list(dict.fromkeys(speaker for _, speaker, _, _ in places)),
        "begins": sortable(places[0][2]),
        "time": sortable(places[-1][2]),  # of the last message (official code)
        "first": places[0][0],
        "last": places[-1][0],
        "messages": len(places),
    }
    return Row(kind=EPISODE, key=unit.key, text="\n".join(texts), properties=properties, vector=vector)


def _fact(unit: Unit, fact: FactReply, key: str) -> Row:
    """Return the row of a fact. It rests on the messages that say it, on all of its episode if none are told."""
    places = unit.values["messages"]
    said = [places[at] for at in dict.fromkeys(fact.messages) if 0 <= at < len(places)]
    held = said or places
    searched = (fact.content, *fact.questions, ", ".join(fact.keywords), fact.time, fact.place)  # official code
    properties: dict[str, Property] = {
        "content": fact.content,
        "confidence": min(max(fact.confidence, 0.0), 1.0),
        "when": fact.time,
        "place": fact.place,
        "keywords": list(fact.keywords),
        "questions": list(fact.questions),
        "speakers": list(dict.fromkeys(speaker for _, speaker, _, _ in held)),
        "time": sortable(held[-1][2]),
        "said": [id_ for id_, _, _, _ in said],
    }
    chunks = dict.fromkeys(chunk for _, _, _, uids in held for chunk in uids)
    return Row(
        kind=FACT,
        key=key,
        text="\n".join(part for part in searched if part),
        properties=properties,
        rests_on=[*chunks, *(output.uid for output in unit.outputs)],
    )


def _episodes(reading: Reading) -> Iterator[tuple[Dialogue, list[Said]]]:
    """Yield each episode of each conversation, as far as its messages were divided."""
    divided = reading.outputs(SEGMENTS)
    for dialogue in dialogues(reading.chunks()):
        outputs = []
        waiting = ""
        for said in dialogue.messages:
            if not waiting:
                output = divided.get(unit_key(dialogue.document, said))
                if output is None:
                    break  # this window was not divided
                outputs.append(output.value)
                waiting = output.value["last"]
            if said.id == waiting:
                waiting = ""
        for messages in episodes_of(dialogue.messages, outputs):
            yield dialogue, messages


def _chunks(messages: Sequence[Said]) -> list[Chunk]:
    return list({chunk.uid: chunk for said in messages for chunk in said.chunks}.values())

"""Every prompt that shows a passage says what it is: title, date and type of its document, and its place in that."""

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from letters import wanting
from playing import extraction

from hgmem import Conversation, Document, HGMem, Message
from hgmem.extraction.replies import Extraction
from hgmem.models.prompts import prompt_of
from hgmem.models.reply import TextReply
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.retrieval.rendering import heading
from hgmem.systems.hypermem.replies import (
    BoundaryReply,
    ComparisonsReply,
    EpisodeReply,
    EpisodesMatchedReply,
    FactReply,
    FactsReply,
    MatchesReply,
    RolesReply,
    StartsReply,
    TopicReply,
    TopicTextReply,
)
from hgmem.systems.registry import room, systems
from hgmem.systems.remindrag.tasks import EnoughReply, MoveReply, NextReply, UsefulReply
from hgmem.testing import ScriptedModel
from hgmem.values.graph_elements import Chunk

QUESTION = "Who sold the lamps of Arbor and Briar to Ann?"
KEPT = {"extract", "glean", "gist", "divide", "boundary", "episode", "facts", "anchor_title"}  # replies have no places
RUNS = {"move", "enough", "next_node", "passage_summary"}  # these show runs of chunks, with the place of the first
SHOWING = {*KEPT, *RUNS, "useful", "describe", "evolve", "step", "clues", "answer"}  # tasks whose prompts show passages
FACT = FactReply(content="Ann owns lamps.", messages=(0,))
_MARKED = re.compile(r"lamp(?:s|ion)? (\w+-\d+)")  # each chunk has marks of its own, and no reply has any


def document(name: str, **metadata: str) -> Document:
    """Return a document of twelve chunks, a line each."""
    lines = [
        f"In {name} the lamp {name.casefold()}-{at} was sold to Ann for {at} pounds, and it burned until the winter "
        "came to the town and its people went away over the sea in a boat."
        for at in range(12)
    ]
    told = {"date": "1874-03-12", "type": "letter"} | metadata
    return Document(id=name, title=f"To the board of {name}", text="\n\n".join(lines), metadata=told)


def talk(**metadata: str) -> Conversation:
    """Return a conversation of four days."""
    begin = datetime(2024, 3, 1, 9, 0)
    said = [
        Message("Ann", f"I sold the lamp talk-{at} of Briar.", begin + timedelta(days=at // 4), id=f"{at}")
        for at in range(16)
    ]
    told = {"date": "2024-03", "type": "chat"} | metadata
    return Conversation(id="talk", title="Ann and Bo", messages=said, metadata=told)


def recording() -> ScriptedModel:
    """Return a model that records its tasks, and whose replies hold no words of passages."""
    found = EpisodeReply(subject="A sale", summary="Things were sold.", narrative="Ann sold things.", facts=(FACT,))
    return wanting(
        extract=lambda task: extraction(task.text),
        glean=lambda _: Extraction(),
        gist=lambda _: TextReply(text="Things were sold to Ann."),
        clues=lambda task: CluesReply(queries=("Who sold lamps to Ann?",), look=(0,)),
        divide=lambda task: StartsReply(starts=tuple(range(0, len(task.messages), 4))),
        boundary=lambda task: BoundaryReply(should_end=len(task.history) > 3),
        episode=lambda _: found,
        facts=lambda _: FactsReply(facts=(FACT,)),
        fact_changes=lambda _: ComparisonsReply(),
        fact_roles=lambda _: RolesReply(),
        topic=lambda _: TopicReply(title="Sales", summary="Ann sells."),
        topic_match=lambda _: MatchesReply(),
        topic_matches=lambda _: EpisodesMatchedReply(),
        topic_text=lambda _: TopicTextReply(title="Sales", summary="Ann sells."),
        anchor_title=lambda _: TextReply(text="A sale"),
        passage_summary=lambda _: TextReply(text="It tells of a sale."),
        move=lambda task: MoveReply(next=0, enough=not task.options),
        enough=lambda _: EnoughReply(),
        next_node=lambda _: NextReply(next=0),
        useful=lambda _: UsefulReply(),
        answer=lambda _: AnswerReply(text="Nobody knows [1]."),
    )


def prompts(client: HGMem) -> list[tuple[str, str]]:
    """Return the tasks that the model was asked since the last call of this, each with its prompt's text."""
    model: Any = client.model
    found = [(task.name, prompt_of(task).filled(task.fields())[1].content) for task in model.tasks]
    model.tasks.clear()
    return found


def marked(client: HGMem) -> dict[str, Chunk]:
    """Return the chunks by the marks in them."""
    return {mark: chunk for chunk in client.chunks() for mark in _MARKED.findall(chunk.text)}


def headings(client: HGMem) -> set[str]:
    """Return the headings of all documents."""
    return {heading(chunk, place=False) for chunk in client.chunks()}


def unheaded(task: str, prompt: str, chunks: dict[str, Chunk]) -> Iterator[str]:
    """Yield the lines of passages in a prompt that no heading of their document and place stands before."""
    before = ""
    for line in prompt.splitlines():
        if not (found := _MARKED.search(line)):
            before = line if re.search("To the board of|Ann and Bo|same document as", line) else before
            continue
        chunk = chunks[found[1]]
        named = re.search(r"same document as (\[\d+\])", before)
        first = re.escape(f"{named[1]} " if named else "") + ".*" * (not named)  # the passage that it refers to
        whole = re.search(f"^{first}{re.escape(heading(chunk, place=False))}", prompt, re.MULTILINE)
        told = re.search(r", chunk (\d+)$", before)
        place, number = chunk.position + 1, int(told[1]) if told else 1
        placed = told is None if task in KEPT else number <= place if task in RUNS else number == place
        if not (whole and placed and (named or chunk.title in before)):
            yield f"{task}: {before!r} stands before {line!r}"


@pytest.fixture
def known(open_client: Callable[..., HGMem]) -> HGMem:
    """A client on two letters and a conversation, with a graph and every build."""
    client = open_client(model=recording(), chunk_tokens=60, chunk_overlap=0, gleaning=1)
    client.add([document("Arbor"), document("Briar", date="1881-07-01"), talk()])
    client.build("gists", settings={"passage_tokens": 128, "ratio": 2, "memory_tokens": 64})
    client.build("remindrag", settings={"passage_tokens": 128})
    client.build("hypermem", recipe="paper")
    client.build("hypermem", recipe="default")
    return client


def asked(client: HGMem) -> None:
    """Ask by each recipe of each system, where a prompt of ReMindRAG also summarises passages."""
    for name in (system.name for system in systems()):
        for recipe in room(name).recipes:
            client.ask(QUESTION, system=name, recipe=recipe)
    client.ask(QUESTION, system="remindrag", settings={"summary_tokens": 1, "quotes": 0})
    client.ask(QUESTION, system="memorag", settings={"memory_tokens": 10_000})


def test_every_prompt_that_shows_a_passage_tells_what_it_is(known: HGMem) -> None:
    chunks = marked(known)
    assert {chunk.position for chunk in chunks.values()} > {0, 1, 2}
    asked(known)
    told = prompts(known)
    assert {task for task, prompt in told if _MARKED.search(prompt)} == SHOWING
    assert [line for task, prompt in told for line in unheaded(task, prompt, chunks)] == []


def test_what_is_built_of_passages_says_which_document_it_is_of(known: HGMem) -> None:
    prompts(known)
    known.ask(QUESTION, system="hypermem", recipe="paper")
    known.ask(QUESTION, system="memorag", settings={"memory_tokens": 10_000})
    told = dict(reversed(prompts(known)))
    assert "[1] Episode, from Ann and Bo, 2024-03, chat\nA sale (2024-03-0" in told["answer"]
    assert re.search(r"^\[\d+\] Fact, from \(same document as \[1\]\)$", told["answer"], re.MULTILINE)
    gists = re.findall(r"^\[\d+\] (.*)", told["clues"], re.MULTILINE)
    assert {gist for gist in gists if "same document as" not in gist} == headings(known)


@pytest.mark.parametrize("metadata", [{"type": "note"}, {"date": "1890-05-06"}])
def test_another_date_or_type_makes_anew_what_was_made_from_it(known: HGMem, metadata: dict[str, str]) -> None:
    prompts(known)
    known.add([document("Briar", **{"date": "1881-07-01"} | metadata), talk(**metadata)])
    assert [task for task, _ in prompts(known)] == []  # extractions stay, as with another title
    told = headings(known)
    for system, tasks in (("gists", {"gist"}), ("remindrag", {"anchor_title"}), ("hypermem", {"divide", "episode"})):
        known.build(system)
        made = [(task, prompt) for task, prompt in prompts(known) if _MARKED.search(prompt)]
        assert {task for task, _ in made} >= tasks
        assert all(any(one in prompt for one in told) for _, prompt in made)
        assert not any("arbor-" in prompt for _, prompt in made)
        assert known.build(system).made == 0

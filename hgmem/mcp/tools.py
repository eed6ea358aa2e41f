"""The tools: each turns a call of an assistant into calls of the client, and what comes back into a small result."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Annotated, Any, TypeAlias

import anyio
from mcp.server.mcpserver import Context
from pydantic import Field

from hgmem.client import HGMem
from hgmem.client.serving import ServiceStore
from hgmem.errors import ConflictError, NotFoundError, UsageError
from hgmem.mcp.callers import KEY
from hgmem.mcp.results import (
    MOST_SKIPPED,
    UNFINISHED,
    CorpusState,
    Evidence,
    Remembered,
    evidence,
    line,
    point_of,
    quotes,
    state,
    title,
)
from hgmem.models.extractive import ExtractiveModel
from hgmem.text.language import counted
from hgmem.values.access import Scope
from hgmem.values.as_json import row
from hgmem.values.conversations import Message
from hgmem.values.events import Answered, AnswerToken, Event, EvidenceFound, Planned, QuestionAccepted, StepStarted
from hgmem.values.inputs import typed_filters
from hgmem.values.records import RUNNING, Answer, Lineage, Memory, MemorySummary

AGAIN = 1.0  # seconds until a memory that another run still holds is tried again
MOST = 50  # passages of a result
LISTED = 500  # entries of a list
POINTS = 5  # points of a memory that are shown unless all are wanted
NAMED = 3  # entities that a line of progress names
BY_RULES = "no language model: answers quote sentences, chosen by rules"
FINISHED = ("answered", "no_evidence")
COUNTS = ("documents", "chunks", "entities", "relations", "memories", "failed")

Corpus: TypeAlias = Annotated[str, Field(description="The corpus. Default: the server's.")]
Where: TypeAlias = Annotated[
    tuple[str, ...],
    Field(
        description="Only documents whose KEY (title, source, document: its id, or metadata) is VALUE: KEY=VALUE, as "
        "in title=Minutes*"
    ),
]
Steps: TypeAlias = Annotated[int, Field(ge=0, description="Maximum new steps, usually 3.")]
Uid: TypeAlias = Annotated[str, Field(description="Uid of the memory, from ask or status.")]
PointUid: TypeAlias = Annotated[str, Field(description="Uid of the point, from memory.")]
Further: TypeAlias = Annotated[str, Field(description="Without one, the memory's unfinished question goes on.")]
Passages: TypeAlias = Annotated[int, Field(ge=1, le=MOST, description="Maximum passages.")]
Skip: TypeAlias = Annotated[int, Field(ge=0, le=MOST_SKIPPED, description="Passages to leave out.")]


@dataclass(frozen=True, kw_only=True)
class Tools:
    """The tools of one client. A question that takes longer than `seconds` returns the memory to continue.

    Without `write`, they write nothing but memories of the client's own owner. Where callers have keys, the owner is
    the key's, which says what the caller may do and see.
    """

    client: HGMem
    seconds: float
    write: bool

    @property
    def _owner(self) -> str:
        key = KEY.get()
        return key.owner if key else self.client.owner or ""

    def _reached(self, corpus: str, scope: Scope = "read") -> str:
        """Return the name of the corpus that is meant. Raises `ScopeError` if the caller may not do this there."""
        name = corpus or self.client.corpus
        if key := KEY.get():
            key.check(scope)
            key.check_corpus(name)
        return name

    async def _for(self, uid: str, scope: Scope = "read") -> str | None:
        """Return for which owner a memory or point (uid) is read. Raises `NotFoundError` if the caller sees it not."""
        key = KEY.get()
        if key is None:
            return None
        key.check(scope)
        await asyncio.to_thread(ServiceStore(self.client).memory_of, uid, key)
        return key.sees

    async def seen(self, memory: str, *, step: int | None = None, scope: Scope = "read") -> Memory:
        """Return a memory that the caller sees."""
        return await self.client.amemory(memory, step=step, owner=await self._for(memory, scope))

    async def memories(self, corpus: str) -> list[MemorySummary]:
        """Return the memories of a corpus that the caller sees."""
        key, name = KEY.get(), self._reached(corpus)
        found = await self.client.amemories(corpus=name, owner=key.sees if key else None)
        return [one for one in found if not key or key.sees in (None, one.owner)]

    async def ask(
        self, question: str, context: Context, *, corpus: Corpus = "", where: Where = (), steps: Steps = 0
    ) -> Remembered:
        """Answer a question from the documents, with literal quotes.

        It investigates in steps and connects facts that stand far apart. Ask one whole question in plain words. [n] in
        the answer marks a quote. What was found stays as a memory.
        """
        given = {"corpus": self._reached(corpus, "ask"), "steps": steps or None}
        return await self._investigated(context, question, given | ({"filters": typed_filters(where)} if where else {}))

    async def search(
        self, query: str, *, limit: Passages = 3, skip: Skip = 0, where: Where = (), corpus: Corpus = ""
    ) -> Evidence:
        """Find passages by words and meaning: to look something up, or to read what stands around a quote.

        It calls no model, and returns the nearest passages even if none fits. For what has to be connected across
        documents, use ask.
        """
        if not query.strip():
            raise UsageError("the query is empty: enter what to look for")
        filters = typed_filters(where) if where else None
        most = skip + limit + 1
        found = await self.client.asearch(query, limit=most, filters=filters, corpus=self._reached(corpus))
        return evidence(found, limit=limit, skip=skip)

    async def go_on(self, memory: Uid, context: Context, *, question: Further = "", steps: Steps = 0) -> Remembered:
        """Ask a further question of a memory, which knows what it found before, or finish its unfinished question."""
        owner = (await self.seen(memory, scope="ask")).owner
        if not self.write and owner != self._owner:
            whose = f"that of owner {owner!r}" if owner else "everybody's"
            raise UsageError(f"memory {memory!r} is {whose}: ask a new question, or start the server with --write")
        return await self._investigated(context, question, {"memory": memory, "steps": steps or None})

    async def memory(
        self,
        memory: Uid,
        *,
        step: Annotated[int, Field(ge=0, description="As of the end of this step. Default: the last.")] = 0,
        all_points: Annotated[bool, Field(description="Show all points, not only the first.")] = False,
    ) -> Remembered:
        """Show what a question's memory holds: the latest answer, and statements (points), first those behind it."""
        found = await self.seen(memory, step=step or None)
        ended = [one for one in found.answers if one.step == found.step]
        answer = ended[-1] if ended else None
        *earlier, latest = _asked(found) or [(await self._begun_with(found), "")]
        cited = {one.chunk for one in answer.citations} if answer else set()
        points = sorted(found.points, key=lambda one: (cited.isdisjoint(one.chunks), -one.born))
        shown = points if all_points else points[:POINTS]
        more = ["lineage(point) shows where a point comes from"] if shown else []
        more += [f"all_points=true shows {len(points) - len(shown)} more"] if len(points) > len(shown) else []
        return Remembered(
            memory=found.uid,
            status=(answer.status if answer else UNFINISHED) if step else state(found.status),
            steps=found.step,
            question=answer.question if answer else latest[0],
            earlier=tuple(f"{steps}: {question}" for question, steps in earlier),
            answer=answer.text if answer else "",
            quotes=quotes(answer.citations) if answer else (),
            notes=_noted(answer) if answer else (),
            points=tuple(map(point_of, shown)),
            more="; ".join(more),
        )

    async def _begun_with(self, memory: Memory) -> str:
        """Return the question of a memory that may have no step yet."""
        return next((one.question for one in await self.memories(memory.corpus) if one.uid == memory.uid), "")

    async def lineage(self, point: PointUid, *, limit: Passages = 3, skip: Skip = 0) -> Evidence:
        """Show where a point of a memory comes from: the points it was made of, and the passages behind it."""
        owner = await self._for(point)
        found = await self.client.alineage(point, owner=owner)
        every = list(_all(found))
        chunks = {chunk for one in every for chunk in one.point.chunks}
        passages = await self.client.apassages(point, step=found.point.born, owner=owner)
        behind = [one for one in passages if one.chunk.uid in chunks]
        titles = {one.chunk.uid: title(one) for one in behind}
        points = [
            point_of(
                one.point,
                made=one.kind,
                made_of=tuple(part.point.uid for part in one.parts),
                documents=tuple(dict.fromkeys(titles[chunk] for chunk in one.point.chunks if chunk in titles)),
            )
            for one in every
        ]
        points = [replace(points[0], became=found.into), *(replace(one, entities=()) for one in points[1:])]
        return evidence(behind, points, limit=limit, skip=skip)

    async def status(
        self,
        *,
        corpus: Corpus = "",
        most: Annotated[int, Field(ge=1, le=LISTED, description="Maximum entries of each list.")] = 10,
    ) -> CorpusState:
        """Show what there is: how much a corpus holds, titles of its documents, its newest memories, other corpora."""
        named = self._reached(corpus)
        known = await self.corpora()
        if known and named not in known:
            raise NotFoundError(f"corpus {named!r} not found: pass corpus, one of {', '.join(known[:MOST])}")
        counts = await self.client.astatus(corpus=named)
        documents = await self.client.adocuments(corpus=named)
        memories = await self.memories(named)
        others = [name for name in known if name != named]
        longest = min(max(len(documents), len(memories), len(others)), LISTED)
        return CorpusState(
            corpus=named,
            status=counts.status,
            model=BY_RULES if self.client.model.name == ExtractiveModel.name else self.client.model.name,
            counts={**{name: getattr(counts, name) for name in COUNTS}, "memories": len(memories)},
            titles=tuple(str(one["title"] or one["id"]) for one in documents[:most]),
            memories=tuple(map(line, memories[:most])),
            builds=tuple(f"{one.system}: {one.status}" for one in counts.builds),
            other_corpora=tuple(others[:most]),
            more=f"most={longest} lists more" if longest > most else "",
        )

    async def corpora(self) -> list[str]:
        """List the corpora that can be asked."""
        key = KEY.get()
        return [one["corpus"] for one in await self.client.acorpora() if not key or key.reaches(one["corpus"])]

    async def evidence(self, memory: Uid, *, limit: Passages = 3, skip: Skip = 0) -> Evidence:
        """Show the passages that a memory's answer is drawn from, the best first, with the points that rest on them."""
        found = await self.client.apassages(memory, owner=await self._for(memory))
        return evidence(found, limit=limit, skip=skip)

    async def facts(
        self,
        *,
        about: str = "",
        speaker: str = "",
        since: str = "",
        limit: Annotated[int, Field(ge=1, le=MOST, description="Maximum facts.")] = 10,
        corpus: Corpus = "",
    ) -> list[dict[str, Any]]:
        """List facts of conversations, who said them and when: about something, or the newest.

        since is a time such as 2023-05-01. It needs a build that keeps facts.
        """
        systems = [one.name for one in self.client.systems() if any(verb.name == "facts" for verb in one.verbs)]
        if not systems:
            raise UsageError("no installed system keeps facts: use search")
        given = {"about": about, "speaker": speaker, "since": since, "limit": limit}
        found = await self.client.verbs(systems[0], note=lambda _: None).afacts(**given, corpus=self._reached(corpus))
        return [row(one) for one in found]

    async def remember(
        self,
        conversation: Annotated[str, Field(description="Id of the conversation. A new id begins one.")],
        speaker: str,
        text: str,
        *,
        time: Annotated[str, Field(description="When it was said, in ISO 8601.")] = "",
        message: Annotated[str, Field(description="Id of the message: a repeated call then adds nothing.")] = "",
    ) -> str:
        """Append what somebody said to a conversation of the server's corpus, where questions find it at once.

        Everybody who may read the corpus can find it.
        """
        self._reached("", "write")
        said = Message(speaker=speaker, text=text, time=time or None, id=message or None)
        done = await self.client.aappend(conversation, said)
        what = "appended to" if done.messages else "known already in"
        return f"{what} {'the new ' if done.created else ''}conversation {conversation!r}"

    async def _investigated(self, context: Context, question: str, options: dict[str, Any]) -> Remembered:
        """Answer a question, or return the memory to continue once the time is up."""
        heard = _Heard(memory=options.get("memory", ""))
        busy: ConflictError | None = None
        with anyio.move_on_after(self.seconds):
            while heard.answer is None:
                if not question.strip() and "memory" in options:
                    running = await self._unfinished(options["memory"]) == RUNNING
                    if busy and running:
                        await anyio.sleep(AGAIN)
                        continue
                try:
                    async with aclosing(self._events(question, dict(options), again=bool(busy))) as events:
                        async for event in events:
                            if heard.told(event):
                                await context.report_progress(heard.lines, message=heard.line)
                except ConflictError as error:
                    if heard.lines:
                        raise
                    busy = error
                    await anyio.sleep(AGAIN)  # a call before, whose time was up, ends with its model's reply
        if heard.answer is not None:
            return _answered(heard.answer)
        if not heard.lines and not (busy and heard.memory):
            slow = f"nothing began within {self.seconds:g} s: try again, or start the server with more --seconds"
            raise busy or UsageError(slow)
        same = "the same" if question.strip() and "memory" in options and not heard.stored else "no"
        more = f"{self.seconds:g} s are up: call continue with this memory and {same} question to go on"
        return Remembered(status=UNFINISHED, memory=heard.memory, steps=heard.steps, more=more)

    async def _unfinished(self, memory: str) -> str:
        """Return the status of a memory. Raises `UsageError` if its latest question is answered."""
        status = (await self.seen(memory, scope="ask")).status
        if status in FINISHED:
            raise UsageError(f"memory {memory!r} has no unfinished question: pass one, or show its answer with memory")
        return status

    def _events(self, question: str, options: Any, *, again: bool) -> AsyncGenerator[Event, None]:
        if key := KEY.get():
            return ServiceStore(self.client).astream_within(key, question, options, questions=0 if again else 1)
        return self.client.astream(question, **options)


@dataclass(kw_only=True)
class _Heard:
    """What the events of a question have told so far. Each line of progress has a number of its own."""

    memory: str
    steps: int = 0
    line: str = ""
    lines: int = 0
    stored: bool = False  # whether a step of this question is
    answer: Answer | None = None

    def told(self, event: Event) -> bool:
        """Receive an event. Return whether there is a new line for a person who waits."""
        match event:
            case QuestionAccepted():
                self.memory, self.steps = event.memory, event.steps
            case Planned():
                self.steps, self.stored = event.step, True
            case Answered():
                self.answer = event.answer
        said = _progress(event)
        new = said not in ("", self.line)
        if new:
            self.line, self.lines = said, self.lines + 1
        return new


def _progress(event: Event) -> str:
    """Return what an event tells a person who waits, if anything."""
    match event:
        case QuestionAccepted():
            return f"memory {event.memory}"
        case StepStarted():
            return f"step {event.step}: {'; '.join(one.text for one in event.subqueries)}"
        case EvidenceFound():
            return f"step {event.step}: {counted(event.chunks, 'chunk')}, {', '.join(event.names[:NAMED])}"
        case Planned():
            return f"step {event.step} is stored"
        case AnswerToken():
            return "writing the answer"
    return ""


def _noted(answer: Answer) -> tuple[str, ...]:
    """Return what is to be known of an answer."""
    return (*answer.notes, BY_RULES) if answer.model == ExtractiveModel.name else answer.notes


def _answered(answer: Answer) -> Remembered:
    last = answer.steps[-1] if answer.steps else None
    points = [one for one in answer.points if one.alive(answer.step)]
    first = f"memory(memory) shows what it rests on, {counted(len(points), 'point')}; " if points else ""
    return Remembered(
        status=answer.status,
        memory=answer.memory,
        steps=answer.step,
        answer=answer.text,
        quotes=quotes(answer.citations),
        contradicted=last.premise if last else "",
        open=last.open if last else (),
        notes=_noted(answer),
        more=f"{first}continue(memory, question) asks on",
    )


def _asked(memory: Memory) -> list[tuple[str, str]]:
    """Return the questions of a memory in order, each with its steps."""
    found = []
    for question, steps in groupby(memory.steps, key=lambda one: one.question):
        first, *later = (one.number for one in steps)
        found.append((question, f"steps {first}-{later[-1]}" if later else f"step {first}"))
    return found


def _all(lineage: Lineage) -> Iterator[Lineage]:
    yield lineage
    for part in lineage.parts:
        yield from _all(part)

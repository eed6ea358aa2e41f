"""How ReMindRAG answers: a walk from the nearest nodes, its evidence, and an answer drawn from that."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from hgmem.errors import HGMemError
from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import Scope, find_chunks
from hgmem.memory.recording import Recording, recording
from hgmem.memory.stored_memories import Stored
from hgmem.retrieval import rendering
from hgmem.retrieval.answer import AnswerQuestion, cited_answer
from hgmem.retrieval.citations import Cited
from hgmem.retrieval.context_packing import tokens_of, within
from hgmem.retrieval.rendering import statements
from hgmem.retrieval.step_evidence import FUSION, hybrid_chunks
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.options import Options
from hgmem.systems.remindrag.learning import Answered, learn_walks, unmarked
from hgmem.systems.remindrag.recipes import DEFAULT, ReMindRAGConfig
from hgmem.systems.remindrag.tasks import AnswerPlainly, NeedSearch, SplitQuestion
from hgmem.systems.remindrag.walk_record import Walk
from hgmem.systems.remindrag.walker import Walker, recorded
from hgmem.text.language import counted, no_evidence
from hgmem.values.events import EvidenceFound, StepStarted
from hgmem.values.evidence import Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer, Step

_STATING = 2  # chunks that are shown for a relation
_WORDS = Ranking(k=60, over=10_000, k1=1.5, b=0.75)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What the answer is shown: statements with the numbers of chunks, and the chunks.

    `filled` are chunks of the question itself, with their weights, which take the room that walks leave.
    """

    statements: tuple[str, ...]
    chunks: tuple[Chunk, ...]
    filled: dict[str, float]


def shown(services: Services, walks: Sequence[Walk], *, scope: Scope, config: ReMindRAGConfig) -> Shown:
    """Return the evidence of walks: passages in the order of reading, then chunks that state relations.

    Passages of which the walk noted a finding come first.
    """
    told = [statement for walk in walks for statement in _told(walk)]
    read = {uid: chunk for walk in walks for uid, chunk in walk.read_chunks.items()}
    noted = dict.fromkeys(uid for walk in walks for finding in walk.findings for uid in finding.chunks)
    stating = list(dict.fromkeys(uid for _, uids in told for uid in uids if uid not in read))
    known = read | find_chunks(services.database, corpus=scope.corpus, uids=stating)
    order = list(dict.fromkeys([*(uid for uid in noted if uid in read), *read, *stating]))
    allowed = [known[uid] for uid in order if uid in known and _within(known[uid], scope)]
    kept = within(allowed, tokens=config.evidence_tokens)
    filled: dict[str, float] = {}
    if config.fill:
        room = config.evidence_tokens - tokens_of(*kept)
        if all(walk.enough and walk.findings for walk in walks):  # rules find enough without saying what
            room = min(room, config.beside)
        more = _nearest(services, walks[0], scope=scope)
        filled = _fitting(more, kept, room)
        kept += [chunk for chunk, _ in more if chunk.uid in filled]
    kept.sort(key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    return Shown(statements=tuple(statements(told, kept)), chunks=tuple(kept), filled=filled)


def _told(walk: Walk) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what a walk knows, each with the chunks (uids) that state it: summaries, and findings or else relations."""
    for finding in walk.findings:
        yield finding.text, finding.chunks
    for uid, text in walk.summaries.items():
        yield text, [chunk.uid for chunk in walk.passages[uid]]
    for way in walk.came.values():
        if way.told and not walk.findings:
            yield way.told, way.chunks[:_STATING]


def _nearest(services: Services, walk: Walk, *, scope: Scope) -> list[tuple[Chunk, float]]:
    query = services.embed([walk.question], kind="query")[0]
    asked = (walk.question, query)
    return hybrid_chunks(services.database, asked, scope=scope, ranking=_WORDS, fusion=FUSION)


def _fitting(more: Sequence[tuple[Chunk, float]], kept: Sequence[Chunk], room: int) -> dict[str, float]:
    """Return the first chunks that are not kept and fit into the room, with their weights."""
    held, found = {chunk.uid for chunk in kept}, {}
    for chunk, weight in more:
        if chunk.uid in held:
            continue
        room -= tokens_of(chunk)
        if room < 0:
            break
        found[chunk.uid] = weight
    return found


def _within(chunk: Chunk, scope: Scope) -> bool:
    return scope.documents is None or chunk.document in scope.documents


_BEGINNING = "learnt: the places from which this walk began; it went nowhere else"
_PROMPT, _PLACE = 700, 900  # tokens of a prompt beside what it shows, and of a place that is new to it


def answer(
    services: Services, question: Question, options: Options[ReMindRAGConfig], *, stored: Stored | None
) -> Answer:
    """Return the answer, its memory written to Neo4j. With `learn`, the walk is learnt once it is answered."""
    config = options.applied(DEFAULT)
    with recording(services, system="remindrag", question=question, settings=asdict(config)) as record:
        history = rendering.text("\n".join(config.history))
        services.listener.emit(StepStarted(step=1, subqueries=(Subquery(text=question.text),)))
        if config.search_check and not services.reply(NeedSearch(question=question.text, history=history)).search:
            return _plain(services, record, question, config)
        walks, notes = _walks(services, record, config, history)
        found = shown(services, walks, scope=record.scope, config=config)
        _tell(services, record, walks, found)
        last = record.number - 1
        if not found.chunks and not found.statements:
            return record.nothing(no_evidence(question.text), step=last, notes=notes)
        if not question.answer:
            return record.unanswered(step=last)
        told = (*(f"Earlier in the conversation: {turn}" for turn in config.history), *found.statements)
        if len(walks) > 1:
            told = (*told, *_parts(services, walks, config, record))
        task = AnswerQuestion(
            question=question.text,
            memory=rendering.PromptMemory(statements=told),
            passages=found.chunks,
            form=config.form,
            language=services.language,
        )
        done = record.answer(cited_answer(services, task), step=last, notes=notes)
        return _learnt(services, record, done, config) if config.learn else done


def cost(config: ReMindRAGConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the most model calls of a question, and about how many tokens their prompts have at most."""
    parts = config.split if config.split > 1 else 0
    walks = config.max_calls * max(1, parts)
    before = config.search_check + (config.split > 1)
    shown_each = config.ways * 60 + _PROMPT
    grown = (config.max_jumps * _PLACE // 2) if config.calls == "each" else _PLACE
    evidence = config.evidence_tokens if config.fill else min(config.evidence_tokens, config.max_jumps * _PLACE)
    calls = walks + before + parts + 1 + config.learn * max(1, parts)
    return calls, walks * (shown_each + grown) + (1 + parts) * (evidence + _PROMPT)


def _walks(
    services: Services, record: Recording, config: ReMindRAGConfig, history: str
) -> tuple[list[Walk], tuple[str, ...]]:
    """Walk for the question, or with `split` for each of its sub-questions, one after the other."""
    questions: Sequence[str] = (record.question,)
    if config.split > 1:
        task = SplitQuestion(question=record.question, most=config.split, history=history)
        parts = [part for part in services.reply(task).questions if part.strip()]
        questions = parts[: config.split] or questions
    walks, notes = [], []
    for text, query in zip(questions, services.embed(questions, kind="query"), strict=True):
        walker = Walker(
            services=services, record=record, config=config, walk=Walk(question=text), query=query, history=history
        )
        walks.append(walker.run())
        notes += walker.notes
    return walks, tuple(dict.fromkeys(notes))


def _tell(services: Services, record: Recording, walks: Sequence[Walk], found: Shown) -> None:
    """Record the chunks that the question itself found beside the walk, and emit what there is."""
    if found.filled:
        hits = tuple(
            Hit(uid=uid, rank=rank, score=round(weight, 6))
            for rank, (uid, weight) in enumerate(found.filled.items(), start=1)
        )
        subquery = Subquery(text=record.question, concern="room that the walk left", strategy="words and vector")
        retrieved = Retrieved(subquery=subquery, chunks=hits)
        record.step(
            Step(
                number=record.number,
                question=record.question,
                strategy=subquery.strategy,
                filters=record.filters,
                retrieved=(retrieved,),
            )
        )
    nodes = [node for walk in walks for node in walk.nodes.values()]
    names = tuple(node.text for node in nodes if node.kind == "Entity")
    services.listener.emit(
        EvidenceFound(
            step=record.number - 1,
            strategy="walk",
            entities=len(names),
            relations=sum(bool(way.relation) for walk in walks for way in walk.came.values()),
            chunks=len(found.chunks),
            names=names,
            built=tuple(hit for step in record.steps for one in step.retrieved for hit in one.built),
        )
    )


def _parts(services: Services, walks: Sequence[Walk], config: ReMindRAGConfig, record: Recording) -> list[str]:
    """Return an answer to each sub-question, for the answer that joins them (paper, section 3.2)."""
    told: list[tuple[str, Sequence[str]]] = []
    for walk in walks:
        part = shown(services, [walk], scope=record.scope, config=config)
        task = AnswerQuestion(
            question=walk.question,
            memory=rendering.PromptMemory(statements=part.statements),
            passages=part.chunks,
            language=services.language,
        )
        told.append((f"{walk.question} {cited_answer(services, task).text}", ()))
    return rendering.statements(told, ())  # without the markers, which count other passages


def _plain(services: Services, record: Recording, question: Question, config: ReMindRAGConfig) -> Answer:
    """Return an answer to a question that needs no search, without citations."""
    subquery = Subquery(text=question.text, strategy="no search")
    retrieved = (Retrieved(subquery=subquery),)
    step = Step(number=record.number, question=question.text, strategy=subquery.strategy, retrieved=retrieved)
    record.step(step)
    if not question.answer:
        return record.unanswered(step=step.number)
    history = rendering.text("\n".join(config.history))
    reply = services.write(AnswerPlainly(question=question.text, history=history, language=services.language))
    cited = Cited(text=reply.text, citations=(), notes=("answered without a search: nothing is cited",))
    return record.answer(cited, step=step.number)


def _learnt(services: Services, record: Recording, done: Answer, config: ReMindRAGConfig) -> Answer:
    """Learn the walks of an answered question, those in which the model chose a way (paper, section 3.3).

    Where learnings give seeds, it also learns a beginning that was enough by itself and followed no trail.
    """
    walks = [walk for walk in recorded(done.steps) if walk.walked or (config.starts and not walk.followed)]
    if not config.trails or not walks:
        why = "trails are off (trails=false)" if not config.trails else "there was no move to learn from"
        return replace(done, notes=(*done.notes, f"not learnt: {why}"))
    answered = Answered(
        memory=done.memory,
        owner=services.owner or "",
        text=unmarked(done.text),
        cited=frozenset(one.chunk for one in done.citations if one.chunk),
    )
    try:
        learnt = learn_walks(services, answered, walks, penalty=config.penalty)
        trails, useful = sum(one.trails for one in learnt), sum(one.effective for one in learnt)
        note = f"learnt: {counted(trails, 'trail')} of this walk, {useful} of use" if trails else _BEGINNING
    except HGMemError as error:  # the answer is there
        note = f"not learnt: {error}; `hgmem remindrag learn {done.memory} --corpus {services.corpus}` tries again"
    return replace(done, notes=(*done.notes, note), usage=record.meter.usage())

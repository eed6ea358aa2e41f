"""How ReMindRAG answers: a walk from the nearest nodes, its evidence, and an answer drawn from that."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace

from hgmem.errors import HGMemError
from hgmem.graph.full_text import Ranking
from hgmem.graph.retrieval import find_chunks
from hgmem.memory.recording import Recording, recording
from hgmem.memory.stored_memories import Stored
from hgmem.models.metering import Meter
from hgmem.retrieval import rendering
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.clues import WriteClues
from hgmem.retrieval.rendering import tokens_of, within
from hgmem.retrieval.step_evidence import hybrid_chunks, rerank_chunks
from hgmem.services import Services
from hgmem.settings import Settings
from hgmem.systems.costs import HEADING, around, packed, total
from hgmem.systems.remindrag.findings import KEPT
from hgmem.systems.remindrag.recipes import ReMindRAGConfig
from hgmem.systems.remindrag.tasks import ChooseMove, ChooseNext, JudgeEnough, JudgeUseful
from hgmem.systems.remindrag.trails import learn_walk
from hgmem.systems.remindrag.walk_record import LOOK, WAYS_TOKENS, Walk, recorded_walk
from hgmem.systems.remindrag.walker import ASKED, FOUND, OVERVIEW, Walker
from hgmem.text.language import counted
from hgmem.values.events import EvidenceFound, StepStarted
from hgmem.values.evidence import Evidence, Hit, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk
from hgmem.values.inputs import Question
from hgmem.values.records import Answer

_STATING = 2  # chunks that are shown for a relation
_BESIDE = 2_000  # tokens of the question's own chunks at most, where the walk found enough
_DEPTH = 60  # chunks that words and vector each bring to fill room, without a reranker
_NODE, _WAY, _TITLE = 250, 80, 80  # tokens of what is said of a place, of a way, and of a place's name or title
_FINDING = KEPT // 3  # tokens of what a reply says that it found, at most
_PARTS = 300  # of what is still to be found
_FILLING = Subquery(text="", concern="room that the walk left", strategy="words and vector")
_BEGINNING = "learnt: the places from which this walk began; it went nowhere else"


def answer(services: Services, question: Question, config: ReMindRAGConfig, *, stored: Stored | None) -> Answer:
    """Return the answer, its memory written to Neo4j. With `learn`, the walk is learnt once it is answered."""
    with recording(services, system="remindrag", question=question, settings=asdict(config)) as record:
        services.listener.emit(StepStarted(step=1, subqueries=(Subquery(text=question.text),)))
        query = services.embed([question.text], kind="query")[0]
        walker = Walker(services=services, record=record, config=config, walk=Walk(question=question.text), query=query)
        walker.begin()
        learnt = question.answer and (walker.replayed or (config.at_once and walker.recall()))
        done = _from_learnt(walker) if learnt else None
        if done is None and (config.at_once or not walker.replayed) and walker.look():
            done = _from_learnt(walker) if question.answer and not learnt else None
        if done is not None:
            return _learnt(walker, done) if config.learn else done
        evidence = _evidence(walker, walker.run())
        _tell(services, record, walker.walk, evidence)
        if not evidence.chunks and not evidence.statements:
            return record.no_evidence(notes=walker.notes)
        if not question.answer:
            return record.unanswered()
        memory = rendering.PromptMemory(statements=evidence.statements)
        done = record.answer(memory, evidence.chunks, form=config.form, notes=walker.notes)
        return _learnt(walker, done) if config.learn else done


def _from_learnt(walker: Walker) -> Answer | None:
    """Answer from what learnt questions brought, or return None and keep what is missing there."""
    evidence = _evidence(walker, walker.walk) if walker.config.at_once else None
    if evidence is None or not evidence.chunks:
        return None
    memory = rendering.PromptMemory(statements=evidence.statements)

    def enough() -> None:
        walker.end(enough=True)
        _tell(walker.services, walker.record, walker.walk, evidence)

    done = walker.record.answer_if_enough(memory, evidence.chunks, form=walker.config.form, enough=enough)
    if isinstance(done, Answer):
        return done
    walker.walk.missing = (done,) if done else ()
    return None


def cost(config: ReMindRAGConfig, *, settings: Settings) -> tuple[int, int]:
    """Return the most model calls of a question, and how many tokens their prompts have at most.

    What strong trails bring (`replay_tokens`) comes to that, if something was learnt.
    """
    places = config.seeds + config.max_jumps * (FOUND if config.search else 1)
    place = _NODE + config.quotes * (settings.chunk_tokens + HEADING) + HEADING
    place += max(config.passage_tokens, settings.max_tokens if config.summary_tokens else 0)
    ways = min(config.ways * _WAY, WAYS_TOKENS) + places * _TITLE
    looked = [around(WriteClues) + packed(OVERVIEW)] if config.clues and config.look_tokens else []
    if config.calls == "few":
        calls = config.max_calls if config.summary_tokens else min(config.max_calls, (config.max_jumps + 1) * ASKED)
        calls = max(0, calls - len(looked))
        ways += _PARTS
        most = max(
            config.seeds * place + packed(config.look_tokens), config.moves * (FOUND if config.search else 1) * place
        )
        walk = [around(ChooseMove) + number * _FINDING + ways + most for number in range(calls)]
    else:  # a move takes two calls
        known = [min(places, config.seeds + number // 2) * place for number in range(config.max_calls)]
        judged, chosen = around(JudgeEnough), around(ChooseNext) + places * _TITLE + ways
        walk = [shown + (chosen if number % 2 else judged) for number, shown in enumerate(known)]
    read = packed(config.evidence_tokens) if config.fill else min(packed(config.evidence_tokens), places * place)
    said = places * settings.max_tokens if config.summary_tokens else len(walk) * _FINDING
    asked = config.learn and config.judge == "model"
    learnt = [around(JudgeUseful) + settings.max_tokens + places * (_TITLE + _FINDING + place)] if asked else []
    tried = [around(AnswerQuestion) + read] if config.at_once and config.trails and config.replay else []
    return total([*looked, *walk, *tried, around(AnswerQuestion) + read + said, *learnt])


def _evidence(walker: Walker, walk: Walk) -> Evidence:
    """Return what the answer is shown: statements with the numbers of chunks, and the chunks.

    Those of passages are taken in the order of reading, first those of which the walk noted a finding, then those that
    state relations. What was retrieved are chunks of the question itself, which take the room that the walk leaves.
    """
    database, scope, config = walker.services.database, walker.record.scope, walker.config
    statements = list(_statements(walk))
    read = walk.read_chunks
    noted = dict.fromkeys(uid for finding in walk.findings for uid in finding.chunks)
    stating = list(dict.fromkeys(uid for _, uids in statements for uid in uids if uid not in read))
    known = {**read, **find_chunks(database, corpus=scope.corpus, uids=stating)}
    order = dict.fromkeys([*(uid for uid in noted if uid in read), *read, *stating])
    found = [known[uid] for uid in order if uid in known]
    allowed = [chunk for chunk in found if scope.documents is None or chunk.document in scope.documents]
    kept = within(allowed, tokens=config.evidence_tokens)
    filled: list[tuple[Chunk, float]] = []
    if config.fill:
        room = config.evidence_tokens - tokens_of(*kept)
        if walk.enough and walk.findings:  # rules find enough without saying what
            room = min(room, _BESIDE)
        asked = (walk.question, walker.query)
        ranking = Ranking(k=max(_DEPTH, config.rerank), titles=config.titles)
        nearest = hybrid_chunks(database, asked, scope=scope, ranking=ranking)
        fresh = [(chunk, weight) for chunk, weight in nearest if chunk not in kept]
        fresh = rerank_chunks(walker.services, walk.question, fresh, most=config.rerank if room > 0 else 0)
        filled = fresh[: len(within([chunk for chunk, _ in fresh], tokens=room, least=0))]
    hits = tuple(
        Hit(uid=chunk.uid, rank=rank, score=round(weight, 6)) for rank, (chunk, weight) in enumerate(filled, start=1)
    )
    shown = [*kept, *(chunk for chunk, _ in filled)]
    shown.sort(key=lambda chunk: (chunk.title, chunk.document, chunk.position))
    return Evidence(
        statements=tuple(rendering.statements(statements, shown)),
        chunks=tuple(shown),
        retrieved=(Retrieved(subquery=replace(_FILLING, text=walk.question), chunks=hits),) if hits else (),
    )


def _statements(walk: Walk) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield what a walk knows, each with the chunks (uids) that state it: summaries, and findings or else relations."""
    for finding in walk.findings:
        yield finding.text, finding.chunks
    for uid, text in walk.summaries.items():
        yield text, [chunk.uid for chunk in walk.passages[uid]]
    for way in walk.came.values():
        if way.sentence and not walk.findings:
            yield way.sentence, way.chunks[:_STATING]


def _tell(services: Services, record: Recording, walk: Walk, evidence: Evidence) -> None:
    """Record the chunks that the question itself found beside the walk, and emit what there is."""
    if evidence.retrieved:
        record.write_step(record.new_step(evidence.strategy, evidence.retrieved, Meter()))
    names = tuple(node.text for node in walk.nodes.values() if node.kind == "Entity")
    services.listener.emit(
        EvidenceFound(
            step=record.next_number - 1,
            strategy="walk",
            entities=len(names),
            relations=sum(bool(way.relation) for way in walk.came.values()),
            chunks=len(evidence.chunks),
            names=names,
            built=tuple(hit for step in record.steps for retrieved in step.retrieved for hit in retrieved.built),
        )
    )


def _learnt(walker: Walker, done: Answer) -> Answer:
    """Learn the walk of an answered question, where the model chose a way (paper, appendix B).

    Where learnings give seeds, it also learns a beginning that was enough by itself, if what near questions taught was
    not enough and the answer cites what no learnt answer to the question does: asked again, it teaches no more.
    """
    services, record, config = walker.services, walker.record, walker.config
    walk = recorded_walk(done.steps)
    if not config.trails:
        return replace(done, notes=(*done.notes, "not learnt: trails are off (trails=false)"))
    places = walk.places if walk else []
    chosen = any(not place.replayed for place in places)
    settled = walker.replayed and not any(step.strategy == LOOK for step in done.steps)
    new = {citation.chunk for citation in done.citations if citation.chunk} - walker.answered
    if walk is None or not (chosen or (config.starts and new and not settled)):
        return replace(done, notes=(*done.notes, "not learnt: there was no move to learn from"))
    try:
        learnt = learn_walk(services, done, walk, owner=services.owner or "", config=config)
        trails = counted(learnt.trails, "trail")
        note = f"learnt: {trails} of this walk, {learnt.effective} of use" if learnt.trails else _BEGINNING
    except HGMemError as error:  # the answer is there
        note = f"not learnt: {error}; `hgmem remindrag learn {done.memory} --corpus {services.corpus}` tries again"
    return replace(done, notes=(*done.notes, note), usage=record.meter.usage())

"""One question at work: what its memory holds, what it asked, found and read, and what its answer is drawn from."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hgmem.errors import UsageError
from hgmem.graph.corpus import corpus_language, count_entities
from hgmem.graph.database import Row
from hgmem.graph.full_text import Ranking
from hgmem.graph.memory import point_scores
from hgmem.graph.retrieval import Scope, chunks_of_entities, find_chunks, neighbours
from hgmem.graph.values import vector
from hgmem.memory.recording import MemoryPoints, Recording
from hgmem.models.embedding import Vectors
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.retrieval.answer import AnswerQuestion
from hgmem.retrieval.rendering import (
    PromptMemory,
    fit_points,
    fits,
    same_names,
    tokens_of,
    trimmed,
    unknown,
    unmarked,
    unsaid,
    within,
)
from hgmem.retrieval.step_evidence import (
    BY_BOTH,
    PROPOSED_NEAREST,
    SMALL,
    Scene,
    bearing,
    fuse,
    gather,
    hybrid_chunks,
    place,
    rerank_evidence,
    with_chunks_beside,
    with_mentions,
)
from hgmem.services import Services
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.step import StepDraft
from hgmem.systems.hgmem.tasks import Evolve, Round, WholeStep
from hgmem.values.evidence import Evidence, Retrieved, Subquery
from hgmem.values.graph_elements import Chunk, Entity
from hgmem.values.records import Answer, MemoryPoint, Step

HINT_HUB = 20  # relations that one entity of memory gives for hints, heaviest first
MOST_POINTS = 200  # of a memory whose findings bring passages: several times as many as an answer has chunks
RULES_TOLD, RULES_MORE = 400, 900  # tokens: points that repeat passages make room for more of these
RULES_RANKS = 8  # of each sub-query by rules that count for the answer
RULES_DEPTH = 100  # chunks that words and vectors each bring to the question's own ranking, as in the baseline `hybrid`
RULES_DEEPER = 2  # times as many chunks of a first search by rules: they write half as many clues as a model
POINT_CHUNKS = 5  # that a point brings from those read around it, as many beside it (the official code's value)


def in_turn(lists: Sequence[Sequence[str]]) -> list[str]:
    """Return the first of every list, then the second of every list, and so on, each once."""
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(uids[at] for at in range(longest) for uids in lists if at < len(uids)))


@dataclass(slots=True, kw_only=True)
class RetrievedChunks:
    """The chunks that a question's steps retrieved. Only the methods that add steps or evidence change it.

    `rankings` are the uids of each sub-query, the best first, and `texts` the chunks at hand. `shown` are the chunks
    that prompts showed, by uid in the order of their numbers. `of_question` is whether the steps asked the question
    that is answered, and `by_rules` whether they all did and the rule-based model wrote what they asked and found: that
    leads away from the question sooner.
    """

    services: Services
    scope: Scope
    config: HGMemConfig
    question: str
    query: Vectors  # of the question
    of_question: bool = True
    by_rules: bool = False
    rankings: list[list[str]] = field(default_factory=list)
    texts: dict[str, Chunk] = field(default_factory=dict)
    shown: dict[str, Chunk] = field(default_factory=dict)

    def add_steps(self, steps: Sequence[Step], points: MemoryPoints) -> None:
        """Take in what stored steps retrieved, and what their prompts showed beside the points of then."""
        for step in steps:
            self._rank(step.retrieved)
        self.texts |= self._missing(self._uids)
        for step in steps:
            found = dict.fromkeys(hit.uid for retrieved in step.retrieved for hit in retrieved.chunks)
            chunks = sorted((self.texts[uid] for uid in found if uid in self.texts), key=place)
            self.add_visible(Evidence(retrieved=step.retrieved, chunks=tuple(chunks)), points.at(step.number - 1))

    def add(self, evidence: Evidence) -> None:
        """Take in what a step retrieved."""
        self._rank(evidence.retrieved)
        self.texts |= {chunk.uid: chunk for chunk in evidence.chunks}

    def add_visible(self, evidence: Evidence, points: Sequence[MemoryPoint]) -> Evidence:
        """Return the part of the evidence that a prompt shows beside these points, and count its chunks as shown.

        With `only_new` it leaves out what the points hold, what was shown before, and what the chunks of both say.
        """
        before = tuple(self.shown.values())
        order = fuse(self._weighed([[hit.uid for hit in found.chunks] for found in evidence.retrieved]))
        if self.config.only_new:
            fresh = tuple(chunk for chunk in evidence.chunks if chunk.uid not in self.shown)
            evidence = unknown(replace(evidence, chunks=fresh), points)
            evidence = unsaid(trimmed(evidence, order, tokens=self.config.evidence_tokens), before)
        else:
            evidence = trimmed(evidence, order, tokens=self.config.evidence_tokens)
            again = {chunk.uid for chunk in evidence.chunks}
            before = tuple(chunk for chunk in before if chunk.uid not in again)
        self.shown = {chunk.uid: chunk for chunk in (*before, *evidence.chunks)}
        return replace(evidence, shown=before)

    def drawn(self, points: Sequence[MemoryPoint], memory: MemoryPoints) -> list[Chunk]:
        """Return the chunks that the answer from these points of a memory is drawn from, the best first."""
        config = self.config
        found = self.ranked(points, memory)
        if not points or config.answer_from != "read" or self.by_rules:
            more = RULES_MORE if points and self.repeated else 0
            return within(found, tokens=config.answer_tokens + more)
        supports = {uid for point in points for uid in point.chunks}.union(self._best() if config.read_tokens else ())
        kept = within([chunk for chunk in found if chunk.uid in supports], tokens=config.answer_tokens)
        others = [chunk for chunk in found if chunk.uid not in supports]
        most = min(config.answer_tokens, config.read_tokens)
        return within([*kept, *others], tokens=max(most, tokens_of(*kept)))

    def ranked(self, points: Sequence[MemoryPoint], memory: MemoryPoints) -> list[Chunk]:
        """Return the chunks that an answer may be drawn from, the best first. A reranker leaves those of findings."""
        most, rerank = self.config.answer_chunks, self.config.rerank
        first: list[str] = []
        match self.config.answer_from if points else "read":
            case "memory":
                found = chunks_of_entities(
                    self.services.database,
                    scope=self.scope,
                    uids=sorted({entity.uid for point in points for entity in point.entities}),
                    query=self.query,
                    k=max(most, rerank),
                )
            case "around":
                rows = self.services.database.run(
                    "chunks_around_points",
                    corpus=self.scope.corpus,
                    memory=self.scope.memory,
                    points=[point.uid for point in points],
                    read=self._uids,
                    k=POINT_CHUNKS,
                )
                order = [str(row["chunk"]) for row in rows if row["chunk"] is not None]
                found = self._fetched(order[: max(most, rerank)])
            case _:
                findings = [] if self.by_rules else self._of_findings(points, memory)
                first = [*findings[:1], *self._best(), *findings[1:]] if findings else []
                order = list(dict.fromkeys([*first, *self._of_all(points)]))
                found = self._fetched(order[: max(most, rerank and len(first) + rerank)])
        others = [chunk for chunk in found if chunk.uid not in first]
        ranked = self.services.reranked(self.question, others, most=rerank, text=lambda chunk: chunk.text)
        return [*(chunk for chunk in found if chunk.uid in first), *(chunk for chunk, _ in ranked)][:most]

    @property
    def repeated(self) -> bool:
        """Whether the points are sentences of the passages that the answer reads beside them."""
        return self.by_rules and self.config.answer_from == "read"

    def _weighed(self, rankings: Sequence[list[str]]) -> list[list[str]]:
        """Return the question's own ranking twice, and then the others: what is asked later was made of it.

        It counts more than all others together where these were asked by rules. Recipes that show all that a later step
        finds rank this by its own sub-queries.
        """
        question = self.rankings[:1]
        if rankings[:1] != question and not self.config.bearing:
            return list(rankings)
        others = list(rankings[1:] if rankings[:1] == question else rankings)
        return [*question * (len(others) + 2 if self.by_rules else 2), *others]

    def _best(self) -> list[str]:
        """Return the chunk that was found first for the question. Memory may be full of an earlier question's."""
        return self.rankings[0][:1] if self.rankings and self.of_question else []

    def _of_findings(self, points: Sequence[MemoryPoint], memory: MemoryPoints) -> list[str]:
        """Return the chunks of findings: the first of every finding, then the second, the nearest point's first.

        A memory of more than `MOST_POINTS` is reduced to its points nearest to the question.
        """
        # A finding's chunks are ordered by nearness to its text, which they bear out: the question is near to the same
        # few chunks whatever the finding says.
        if not points:
            return []
        chosen = self._nearest(points, memory)
        findings = dict(zip((point.uid for point in chosen), memory.findings(chosen), strict=True))
        supports = {uid: chunks for found in findings.values() for uid, chunks in found.items()}
        uids = dict.fromkeys([*supports, *findings])
        rows = self.services.database.run(
            "nearest_supports",
            corpus=self.scope.corpus,
            memory=self.scope.memory,
            documents=self.scope.uids,
            points=[{"uid": uid, "chunks": list(supports.get(uid, ()))} for uid in uids],
            vector=vector(self.query),
        )
        found = {row["point"]: row for row in rows}
        near = {uid: -1.0 if row["score"] is None else row["score"] for uid, row in found.items()}
        order = sorted(findings, key=lambda uid: -near.get(uid, -1.0))
        stated = dict.fromkeys(finding for uid in order for finding in findings[uid])
        return in_turn([[chunk for chunk in found[uid]["chunks"] if chunk] for uid in stated if uid in found])

    def _nearest(self, points: Sequence[MemoryPoint], memory: MemoryPoints) -> Sequence[MemoryPoint]:
        """Return the points, of a large memory those nearest to the question, and those not in the index."""
        if len(points) <= MOST_POINTS:
            return points
        scores = point_scores(
            self.services.database,
            corpus=self.scope.corpus,
            memory=self.scope.memory,
            query=self.query,
            most=max(len(points), len(memory.by_uid)),
        )
        superseded = [point for point in points if point.uid not in scores]  # since the step that is answered from
        known = sorted((point for point in points if point.uid in scores), key=lambda point: -scores[point.uid])
        return [*known[:MOST_POINTS], *superseded]

    def _of_all(self, points: Sequence[MemoryPoint]) -> list[str]:
        """Return what was read by its ranks among the sub-queries' and, where it supports points, among those.

        Ranks are fused, not scores: those of different sub-queries, and of words, can't be compared. Where rules wrote
        them, what the question itself finds counts as much as the first ranks of all others.
        """
        if self.repeated:
            first = (ranking[:RULES_RANKS] for ranking in self.rankings[1:])
            return list(dict.fromkeys([*fuse([*[self._deep()] * len(self.rankings), *first]), *fuse(self.rankings)]))
        read = fuse(self.rankings)
        place = {uid: at for at, uid in enumerate(read)}
        supports = {uid for point in points for uid in point.chunks}
        ordered = sorted(supports, key=lambda uid: (place.get(uid, len(read)), uid))
        return fuse([ordered, *self._weighed(self.rankings)])

    def _deep(self) -> list[str]:
        """Return the chunks (uids) that words and vectors find for the question, as deep as a plain search looks."""
        ranking = Ranking(k=RULES_DEPTH, titles=self.config.retrieval.titles)
        asked = (self.question, self.query)
        found = hybrid_chunks(self.services.database, asked, scope=self.scope, ranking=ranking)
        return [chunk.uid for chunk, _ in found]

    def _fetched(self, uids: Sequence[str]) -> list[Chunk]:
        """Return the chunks of uids, those that are not at hand from the database."""
        texts = {**self.texts, **self._missing(uids)}
        found = [texts[uid] for uid in uids if uid in texts]  # one may be gone by now
        documents = self.scope.documents  # an older point may rest on others
        return found if documents is None else [chunk for chunk in found if chunk.document in documents]

    def _missing(self, uids: Sequence[str]) -> Mapping[str, Chunk]:
        missing = [uid for uid in uids if uid not in self.texts]
        return find_chunks(self.services.database, corpus=self.services.corpus, uids=missing) if missing else {}

    @property
    def _uids(self) -> list[str]:
        return list(dict.fromkeys(uid for ranking in self.rankings for uid in ranking))

    def _rank(self, retrieved: Iterable[Retrieved]) -> None:
        self.rankings += [[hit.uid for hit in found.chunks] for found in retrieved]


@dataclass(slots=True, kw_only=True)
class Investigation:
    """The state of one question between its steps. Its memory is the record's."""

    services: Services
    record: Recording
    config: HGMemConfig
    retrieved: RetrievedChunks
    entities: int  # |V_G|, counted up to where it matters
    rounds: int  # of this question at most, those that memory has of it already included
    asked: list[Subquery]
    scores: dict[str, float] = field(default_factory=dict)  # of memory points (uids), the cosine to the question
    numbers: dict[str, int] = field(default_factory=dict)  # of points (uids) in prompts
    premise: str = ""  # what the documents contradict of the question
    open: tuple[str, ...] = ()  # what the answer lacks
    named: dict[str, tuple[str, ...]] = field(default_factory=dict)  # names of the classes found, by `thing`
    hinted: set[str] = field(default_factory=set)  # entities (`thing`) that plans were told of once
    language: str | None = None  # of the corpus, once words are searched

    @classmethod
    def of(cls, services: Services, record: Recording, config: HGMemConfig) -> "Investigation":
        """Return the question at the point at which its memory is, or was at the end of a step."""
        at_step = record.at_step
        steps = [step for step in record.steps if at_step is None or step.number <= at_step]
        if at_step is not None and (not steps or steps[-1].number != at_step):
            raise UsageError(
                f"memory {record.lease.memory!r} has no step {at_step}: its last one is {record.next_number - 1}"
            )
        same = [step for step in steps if step.question == record.question]
        writer = WholeStep.name if config.calls == "whole" else Evolve.name
        retrieved = RetrievedChunks(
            services=services,
            scope=record.scope,
            config=config,
            question=record.question,
            query=services.embed([record.question], kind="query")[0],
            of_question=bool(same) or at_step is None,
            by_rules=same == steps and serving(services.model, writer).name == ExtractiveModel.name,
        )
        retrieved.add_steps(same if at_step is None else same or steps, record.points)
        if at_step is None and not record.points.active:  # nothing is left of what was shown: it begins again
            retrieved.shown.clear()
        made = cls(
            services=services,
            record=record,
            config=config,
            retrieved=retrieved,
            entities=count_entities(services.database, corpus=services.corpus, most=SMALL),
            rounds=len(same) + config.steps,
            asked=[found.subquery for step in same for found in step.retrieved],
            premise=same[-1].premise if same else "",
            open=same[-1].open if same else (),
        )
        if not fits(record.points.active, tokens=config.memory_tokens):  # every prompt will choose by nearness
            made.score_points(record.points.active)
        return made

    def find(self, subqueries: Sequence[Subquery], number: int) -> tuple[Evidence, tuple[str, ...]]:
        """Retrieve the evidence of a step's sub-queries, count them as asked, and return it with notes."""
        texts = [subquery.text for subquery in subqueries]
        active, rerank = self.record.points.active, self.config.rerank
        retrieval, first = self.config.retrieval, texts[:1] == [self.record.question]
        involved = (entity for point in active for entity in point.entities)
        if first:  # a question may be about what an older memory covers already
            deeper = RULES_DEEPER if self.config.clues and self.retrieved.by_rules else 1
            searched = deeper * retrieval.searched_chunks
            retrieval = replace(retrieval, exclude=False, searched_chunks=searched)
        elif self.config.later_chunks:
            retrieval = replace(retrieval, searched_chunks=min(retrieval.searched_chunks, self.config.later_chunks))
        vectors = self.retrieved.query[np.newaxis]
        if not first or len(texts) > 1:
            vectors = self.services.embed(texts, kind="query")
        if self.language is None and retrieval.chunk_search == BY_BOTH:
            self.language = corpus_language(self.services.database, corpus=self.services.corpus)
        scene = Scene(
            scope=replace(self.record.scope, language=self.language),
            covered=sum(max(1, len(entity.names)) for entity in {one.thing: one for one in involved}.values()),
            entities=self.entities,
            narrow=self.record.choice.narrow,
        )
        evidence, notes = gather(
            self.services.database, subqueries, vectors, scene=scene, config=retrieval.for_reranker(rerank)
        )
        if self.config.bearing and not first:
            evidence = bearing(evidence, language=self.language or "")
        evidence = rerank_evidence(self.services, evidence, most=rerank, config=retrieval)
        about = [(vector, asked.targets) for vector, asked in zip(vectors, subqueries, strict=True)]
        evidence = with_chunks_beside(
            self.services.database, evidence, scope=scene.scope, about=about, k=retrieval.beside
        )
        # The rule-based model needs the entities that each chunk mentions.
        readers = (Evolve.name, WholeStep.name, AnswerQuestion.name)
        if any(serving(self.services.model, name).name == ExtractiveModel.name for name in readers):
            evidence = with_mentions(self.services.database, evidence, corpus=self.services.corpus)
        self.named |= {entity.thing: entity.names for entity in evidence.entities if entity.names}
        self.asked.extend(subqueries)
        self.retrieved.add(evidence)
        self.record.tell_evidence(evidence, step=number)
        return evidence, notes

    def draft(self, number: int, subqueries: tuple[Subquery, ...], evidence: Evidence, *, last: bool) -> StepDraft:
        """Return a step's draft, with the part of its evidence that prompts show. Its chunks count as read."""
        active = self.record.points.active
        return StepDraft(
            memory=self.record.lease.memory,
            number=number,
            before=active,
            config=self.config,
            subqueries=subqueries,
            evidence=self.retrieved.add_visible(evidence, active),
            asked=(self.record.question, *(subquery.text for subquery in self.asked)),
            last=last,
            numbers=self.numbers,
        )

    def fitting(
        self,
        points: Sequence[MemoryPoint],
        *,
        targets: Collection[str] = (),
        read: Sequence[Chunk] = (),
        tokens: int | None = None,
    ) -> PromptMemory:
        """Return the points that a prompt has room for, how the question stands, and who else the chunks read name."""
        memory = fit_points(points, tokens=tokens or self.config.memory_tokens, near=self.score_points, targets=targets)
        contradicted = (f"Contradicted by the documents: {unmarked(self.premise)}",) if self.premise else ()
        lacking = (f"Not found yet: {unmarked(text)}" for text in self.open)
        memory = replace(memory, statements=(*contradicted, *lacking))
        known = (self.record.question, *memory.texts)
        classes = {one.thing: one.names for point in points for one in point.entities if one.names} | self.named
        return replace(memory, same=same_names(classes.values(), known=known, read=(chunk.text for chunk in read)))

    def score_points(self, points: Sequence[MemoryPoint]) -> list[float]:
        """Return the score of each point, in order, computed once. Stored points have their vectors in the database."""
        stored = len(self.record.points.by_uid)
        if not self.scores and stored:
            scope = self.record.scope
            self.scores = point_scores(
                self.services.database,
                corpus=scope.corpus,
                memory=scope.memory,
                query=self.retrieved.query,
                most=stored,
            )
        missing = [point for point in points if point.uid not in self.scores]
        if missing:
            vectors = self.services.embed([point.description for point in missing], kind="document")
            self.scores |= {
                point.uid: float(row @ self.retrieved.query) for point, row in zip(missing, vectors, strict=True)
            }
        return [self.scores[point.uid] for point in points]

    def hints(self, draft: StepDraft) -> tuple[Entity, ...]:
        """Return neighbours of memory that it does not hold, those nearest to the question first.

        Those that a plan was told of once are left out.
        """
        if not self.config.hints:
            return ()
        involved = {entity.uid for point in draft.points for entity in point.entities}
        found = neighbours(
            self.services.database,
            scope=self.record.scope,
            uids=sorted(involved - draft.provisionals.keys()),
            query=self.retrieved.query,
            limits=(self.config.hints + len(self.hinted), HINT_HUB),
        )
        return tuple([entity for entity in found if entity.thing not in self.hinted][: self.config.hints])

    def round(self, number: int) -> Round:
        """Return which round a step is, and which documents were read and which are near the question.

        Those of one title are named with their dates, and once where these are the same too.
        """
        earlier = [step for step in self.record.steps if step.question == self.record.question and step.number < number]
        found: Row = {"known": (), "near": ()}
        if self.config.titles:
            [found] = self.services.database.run(
                "documents_beside",
                corpus=self.record.scope.corpus,
                documents=self.record.scope.uids,
                read=sorted(self.retrieved.shown),
                vector=vector(self.retrieved.query),
                k=self.config.titles,
                over=PROPOSED_NEAREST,
            )
        titles = Counter(one["title"] for one in (*found["known"], *found["near"]))

        def named(one: Row) -> str:
            dated = one["date"] if titles[one["title"]] > 1 else ""
            return ", ".join(filter(None, (one["title"], dated))) if one["title"] else ""

        read: Counter[str] = Counter()
        for one in found["known"]:
            read[named(one)] += one["passages"]
        return Round(
            done=len(earlier) + 1,
            rounds=self.rounds,
            read=tuple(read.items()),
            unread=tuple(filter(None, dict.fromkeys(map(named, found["near"])))),
            describe_hints=self.config.describe_hints,
        )

    def answer(self, *, last: bool = True) -> Answer:
        """Write and return the answer from memory as it is now, or as it stood at the end of a step."""
        record, config = self.record, self.config
        points = record.points.active if record.at_step is None else record.points.at(record.at_step)
        memory = self.fitting(points, tokens=RULES_TOLD if self.retrieved.repeated else None)
        passages = sorted(self.retrieved.drawn(points, record.points), key=place)
        if not points and not passages:
            return record.no_evidence()
        notes = () if points else ("memory has no points: the answer uses the evidence of the steps",)
        if not self.entities:
            corpus = self.services.corpus
            lacking = (
                f"corpus {corpus!r} has no entities: for more than its chunks, run `hgmem index` without --no-graph"
            )
            notes = (*notes, lacking)
        return record.answer(memory, passages, form=config.form, notes=notes, last=last)

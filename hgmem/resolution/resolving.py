"""Resolve the entities of a corpus: rules first, then a model on the candidates that are left, pair by pair.

Before that, the model proposes candidates from lists of the most mentioned entities. Each decision is saved as soon as
it is made, and a pair with a decision is not looked at again, so that a run that was interrupted, or that comes after
new documents, takes calls for what is new alone, and for the lists, whose replies are cached while they are the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice

from hgmem.corpus.paging import batches
from hgmem.corpus.parallel_calls import Calls, Ended
from hgmem.errors import AccessError, BudgetError, ModelError
from hgmem.graph import resolution as stored
from hgmem.graph.database import Transaction
from hgmem.graph.values import by_uid
from hgmem.models.extractive import ExtractiveModel
from hgmem.models.llm.task_routing import serving
from hgmem.resolution import rules
from hgmem.resolution.candidates import Candidate, Candidates, Pair, add_by_neighbours, add_by_vectors, by_names
from hgmem.resolution.deciding import Judgement, decide, decision_of, decisions
from hgmem.resolution.names import Named, every_name, most_mentioned
from hgmem.resolution.proposing import Entities, groups_of, listing, lists_of
from hgmem.resolution.tasks import SURE, Identify, Identity, Proposed, seen
from hgmem.resolution.told import add_told
from hgmem.services import Services, ready_corpus, settled_corpus
from hgmem.text.language import counted
from hgmem.values.decisions import DecisionStatus, OpenPair, ResolutionReport, classes
from hgmem.values.reports import CountReport

MENTIONED = 2_000  # most mentioned entities, whose vectors of names, descriptions and neighbours are compared
SURROUNDED = 20_000  # likeliest candidates that are ordered by shared documents and neighbours
AROUND = 500  # documents, and neighbours, of an entity that are looked at
CHUNKS = 60  # of an entity, of which a few are shown
READ = 50  # pairs whose passages are read together
PROPOSED = 0.8  # score of a pair that the model proposes from a list
PASSED_OVER = 0.5  # what is left of the score of a pair that a list shows and the model does not propose
AUTOMATIC = 50_000  # entities up to which indexing applies the rules


def resolve(
    services: Services,
    *,
    rules_only: bool = False,
    dry_run: bool = False,
    report: CountReport = lambda _, __: None,
) -> ResolutionReport:
    """Decide on entities of the corpus by rules and by the model, and return what was done.

    Without a language model, or with `rules_only`, candidates are left for a person. `report` receives the number of
    pairs that the model has judged, and of all. Raises `BudgetError` when the limit of calls is reached: what was
    decided is saved.
    """
    ready_corpus(services)
    judges = serving(services.model, Identify.name).name != ExtractiveModel.name
    mended = 0 if dry_run else services.database.write(_mend, services.corpus)
    entities = list(every_name(services))
    every = decisions(services)
    found = list(rules.joined(entities, decided={(one.decision.a, one.decision.b) for one in every}))
    done = ResolutionReport(corpus=services.corpus, entities=len(entities), joined=len(found), mended=mended)
    if dry_run:
        names = {one.uid: one.name for one in entities}
        written = (decision_of(services.corpus, one, names) for one in found)
        every += [DecisionStatus(decision=one, state="stands") for one in written]
        left = _likeliest(services, _found(services, entities), every)
        lists = len(lists_of(entities)) if judges else 0
        return replace(done, left=len(left), lists=lists, calls=len(left) + lists if judges else 0)
    decide(services, found)
    pairs = _found(services, entities)
    asks = judges and not rules_only
    if asks:
        done = _propose(services, entities, pairs, done)
    left = _likeliest(services, pairs, decisions(services))
    return _judged(services, left, done, report) if asks else replace(done, left=len(left))


def _mend(transaction: Transaction, corpus: str) -> int:
    stored.lock_ready(transaction, corpus=corpus)
    return stored.settle_all(transaction, corpus=corpus)


def apply_rules(services: Services) -> int:
    """Join by rules what is left to join of what was extracted, and return how many pairs were.

    Entities that were brought with a graph, and corpora with more than `AUTOMATIC` entities, are left as they are.
    """
    if settled_corpus(services).imported is not None:
        return 0
    entities = list(islice(every_name(services), AUTOMATIC + 1))
    if len(entities) > AUTOMATIC:
        return 0
    decided = {(one.decision.a, one.decision.b) for one in decisions(services)}
    extracted = [one for one in entities if one.extracted]
    return len(decide(services, rules.joined(extracted, decided=decided)))


def _found(services: Services, entities: Sequence[Named]) -> Candidates:
    """Return the candidates that names, descriptions and neighbours give."""
    found = by_names(entities)
    first = most_mentioned(entities, most=MENTIONED)
    if first:
        add_by_vectors(found, first, services.embed([one.name for one in first], kind="document"))
        around = _surroundings(services, [one.uid for one in first])
        add_told(found, first, _descriptions(services, [one.uid for one in first]))
        add_by_neighbours(found, first, {uid: neighbours for uid, (_, neighbours) in around.items()})
    return found


def _likeliest(
    services: Services, found: Candidates, every: Sequence[DecisionStatus], *, asked: bool = False
) -> list[Candidate]:
    """Return the pairs that nobody has decided on, the likeliest first, one for each two classes.

    With `asked`, open pairs are among them, which the model could not tell.
    """
    likeliest = list(_undecided(found.best(), every, asked=asked))
    surrounded = likeliest[:SURROUNDED]
    around = _surroundings(services, {uid for one in surrounded for uid in one.ends})
    ordered = sorted(surrounded, key=lambda one: (-one.score - _shared(one, around), one.ends))
    return [*ordered, *likeliest[SURROUNDED:]]


def _undecided(found: Sequence[Candidate], every: Sequence[DecisionStatus], *, asked: bool) -> Iterator[Candidate]:
    of = _classes(every)
    settled: set[Pair] = set()
    for one in (status.decision for status in every):
        if one.kind != "open" or not asked:
            settled |= {(one.a, one.b), _ordered(of.get(one.a, one.a), of.get(one.b, one.b))}
    for candidate in found:
        a, b = candidate.ends
        ends = _ordered(of.get(a, a), of.get(b, b))
        if ends[0] != ends[1] and candidate.ends not in settled and ends not in settled:
            settled.add(ends)
            yield candidate


def _classes(every: Sequence[DecisionStatus]) -> dict[str, str]:
    """Return the class (uid) of each entity that is in one."""
    awake = [status.decision for status in every if status.state != "asleep"]
    return classes(awake, {uid for one in awake for uid in (one.a, one.b)}).of


def _ordered(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


Around = tuple[frozenset[str], frozenset[str]]


def _surroundings(services: Services, uids: Sequence[str] | set[str]) -> dict[str, Around]:
    """Return the documents and the neighbours of each entity."""
    return {
        row["uid"]: (frozenset(row["documents"]), frozenset(row["neighbours"]))
        for batch in batches(sorted(uids))
        for row in services.database.run("entity_surroundings", corpus=services.corpus, uids=batch, most=AROUND)
    }


def _descriptions(services: Services, uids: Sequence[str]) -> dict[str, str]:
    return {
        row["uid"]: row["description"]
        for batch in batches(uids)
        for row in services.database.run("entity_descriptions", corpus=services.corpus, uids=batch)
    }


def _shared(one: Candidate, around: dict[str, Around]) -> float:
    """Return what shared documents and neighbours add to a score."""
    if not around.keys() >= set(one.ends):
        return 0.0
    (documents, neighbours), (others, other_neighbours) = (around[uid] for uid in one.ends)
    either = neighbours | other_neighbours
    part = len(neighbours & other_neighbours) / len(either) if either else 0.0
    return 0.05 * bool(documents & others) + 0.2 * part


def open_pairs(services: Services, *, most: int) -> list[OpenPair]:
    """Return the pairs that a person may decide, the likeliest first, with passages."""
    ready_corpus(services)
    found = _found(services, list(every_name(services)))
    likeliest = _likeliest(services, found, decisions(services), asked=True)[:most]
    return [pair for batch in batches(likeliest, size=READ) for pair in _shown(services, batch)]


def _shown(services: Services, found: Sequence[Candidate]) -> list[OpenPair]:
    """Return candidates with what is shown of both, without those that were deleted meanwhile."""
    uids = sorted({uid for one in found for uid in one.ends})
    rows = by_uid(services.database, "entity_passages", corpus=services.corpus, uids=uids, most=CHUNKS)
    return [
        OpenPair(
            a=seen(rows[one.a.uid], beside=one.b.name),
            b=seen(rows[one.b.uid], beside=one.a.name),
            why=one.why,
            score=one.score,
        )
        for one in found
        if rows.keys() >= set(one.ends)
    ]


def _propose(
    services: Services, entities: Sequence[Named], found: Candidates, done: ResolutionReport
) -> ResolutionReport:
    """Add the pairs that the model proposes from lists, and return the report with the lists that failed.

    Pairs that lists show and the model does not propose are seldom the same: they become less likely.
    """
    lists, errors = lists_of(entities), list[str]()
    shown, together = list[frozenset[str]](), list[frozenset[str]]()
    descriptions = _descriptions(services, sorted({one.uid for each in lists for one in each}))

    def keep(ended: Sequence[Ended[Entities, Proposed]]) -> None:
        for call in ended:
            for group in groups_of(call.item, call.result) if call.result else ():
                found.add_group(group, score=PROPOSED, why="the model's list")
                together.append(frozenset(one.uid for one in group))
            shown.extend([frozenset(one.uid for one in call.item)] if call.result else [])
            errors.extend([f"a list of {len(call.item)} entities: {call.error}"] if call.error else [])

    def call(each: Entities) -> Proposed:
        return services.reply(listing(each, descriptions))

    with Calls(call, workers=services.settings.workers) as calls:
        calls.run(iter(lists), keep)
    _end(calls.stop, "lists of entities left")
    found.doubt(shown, together=together, factor=PASSED_OVER)
    return replace(done, lists=len(lists), errors=tuple(errors))


def _judged(
    services: Services, left: Sequence[Candidate], done: ResolutionReport, report: CountReport
) -> ResolutionReport:
    """Ask the model about each pair, and save its decisions in groups."""
    waiting = (pair for batch in batches(left, size=READ) for pair in _shown(services, batch))
    counts = {"same": 0, "different": 0, "open": 0}
    errors: list[str] = []

    def keep(ended: Sequence[Ended[OpenPair, Identity]]) -> None:
        errors.extend(_keep(services, ended, counts))
        report(sum(counts.values()) + len(errors), len(left))

    with Calls(partial(_identity, services), workers=services.settings.workers) as calls:
        calls.run(waiting, keep)
    rest = len(left) - sum(counts.values())
    _end(calls.stop, f"{counted(rest, 'pair')} left")
    return replace(
        done,
        same=counts["same"],
        different=counts["different"],
        unclear=counts["open"],
        left=rest,
        errors=(*done.errors, *errors),
    )


def _end(stop: BaseException | None, left: str) -> None:
    """Raise what stopped calls before all were made, unless the model failed: then each call that failed is told."""
    if isinstance(stop, BudgetError):
        raise BudgetError(f"{stop}: finished work is saved, {left}; rerun to continue") from stop
    if stop and (isinstance(stop, AccessError) or not isinstance(stop, ModelError)):
        raise stop


def _identity(services: Services, pair: OpenPair) -> Identity:
    return services.reply(Identify(entities=(pair.a, pair.b)))


def _keep(services: Services, ended: Sequence[Ended[OpenPair, Identity]], counts: dict[str, int]) -> list[str]:
    """Save the decisions of finished calls, and return the errors of failed ones."""
    found = [_judgement(call.item, call.result) for call in ended if call.result]
    decide(services, found)
    for one in found:
        counts[one.kind] += 1
    return [f"{call.item.a.name!r} and {call.item.b.name!r}: {call.error}" for call in ended if call.error]


def _judgement(pair: OpenPair, reply: Identity) -> Judgement:
    sure = reply.confidence >= SURE
    return Judgement(
        ends=(pair.a.uid, pair.b.uid),
        kind=reply.verdict if sure and reply.verdict != "unclear" else "open",
        by="model",
        reason=reply.reason if sure else f"not sure, {reply.verdict}: {reply.reason}",
        evidence=tuple(dict.fromkeys((*pair.a.passages, *pair.b.passages))),
        confidence=reply.confidence,
    )

"""HGMem: a working memory that is a hypergraph, evolved step by step (HGMem, 2025, sections 3.1 to 3.4).

One step: retrieve evidence for the sub-queries → evolve memory (update, insert) → merge points → plan: sufficient,
dig into named points (local investigation) or look where memory has nothing (global exploration, V_G − V_M) →
sub-queries of the next step. Then the answer, from the living points and their chunks.
"""

from dataclasses import asdict

from hgmem.errors import UsageError
from hgmem.memory.recording import Recording, recording
from hgmem.memory.stored_memories import Stored
from hgmem.services import Services
from hgmem.systems.hgmem.investigation import Investigation
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.options import loaded
from hgmem.text.language import no_evidence
from hgmem.values.evidence import Subquery
from hgmem.values.inputs import Question
from hgmem.values.records import Answer

NAME = "hgmem"


def answer(services: Services, question: Question, config: HGMemConfig, *, stored: Stored | None) -> Answer:
    """Return the answer, its memory written to Neo4j. A memory keeps its rule for merges."""
    if stored:
        _check_merge_rule(config, stored)
    with recording(services, system=NAME, question=question, settings=asdict(config)) as record:
        work = Investigation.of(services, record, config)
        if question.at_step is not None:
            return work.answer_at(question.at_step)
        return _investigated(work, record, config, wanted=question.answer)


def _check_merge_rule(config: HGMemConfig, stored: Stored) -> None:
    before = loaded(HGMemConfig, stored.settings).merge
    if "add" in (config.merge, before) and config.merge != before:
        raise UsageError(
            f"memory {stored.uid!r} was made with merge={before} and cannot be continued with "
            f"merge={config.merge}: choose a recipe that has {before}, or ask a new question"
        )


def _investigated(work: Investigation, record: Recording, config: HGMemConfig, *, wanted: bool) -> Answer:
    """Return the answer at the end of the loop: a step at a time, until there is nothing more to ask."""
    subqueries: tuple[Subquery, ...] = work.first()
    last = record.number + config.steps - 1
    while subqueries:
        subqueries = work.step(subqueries, last=record.number == last)
        if work.empty:
            return record.nothing(no_evidence(record.question), step=record.number - 1)
        if config.answer_each_step and subqueries and wanted:
            work.answer(last=False)
    return work.answer() if wanted else record.unanswered(step=record.number - 1)

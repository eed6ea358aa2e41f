"""Summarize descriptions that exceed the length limit with a model.

The summary is stored with the hash of the descriptions that it replaces, under the same locks as aggregation. It is
used only while those descriptions are unchanged; otherwise they are truncated until the next run.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from hgmem.corpus.aggregation import (
    ENTITY,
    RELATION,
    Additions,
    Kind,
    embed_unembedded,
    read_contributions,
    recompute,
    uids_by_kind,
    until_found,
)
from hgmem.corpus.guarded_writes import embedding
from hgmem.corpus.paging import batches
from hgmem.corpus.parallel_calls import Calls, Ended
from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.extraction.contributions import condensed_from, described, join
from hgmem.extraction.tasks import Condense
from hgmem.services import Services
from hgmem.values.graph_elements import EntityUid, RelationUid
from hgmem.values.reports import CountReport

CHARACTERS = 24_000  # of descriptions in one prompt
READ = 50  # entities or relations whose contributions are read together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Long:
    """An entity or a relation whose descriptions exceed the limit."""

    kind: Kind
    uid: str
    subject: str
    lines: Sequence[str]


def condense(services: Services, *, report: CountReport) -> list[str]:
    """Summarize truncated descriptions, and return the errors of those that failed.

    Failed ones stay truncated until the next run. `report` receives the number done, and the total.
    """
    embed_unembedded(services)  # a killed run may have written a summary without its vector
    entities, relations = uids_by_kind(services.database, "cut_descriptions", corpus=services.corpus)
    if not entities and not relations:
        return []
    waiting = _waiting(services, entities, relations)
    errors: list[str] = []
    done, total = 0, len(entities) + len(relations)

    def keep(ended: Sequence[Ended[_Long, str]]) -> None:
        nonlocal done
        errors.extend(_keep(services, ended))
        report(done := done + len(ended), total)

    with Calls(partial(_text, services), workers=services.settings.workers) as calls:
        calls.run(waiting, keep)
    if calls.stop and (isinstance(calls.stop, AccessError | BudgetError) or not isinstance(calls.stop, ModelError)):
        raise calls.stop
    return errors


def _waiting(services: Services, entities: Sequence[EntityUid], relations: Sequence[RelationUid]) -> Iterator[_Long]:
    """Yield what needs a summary, read in small batches."""
    for kind, uids in ((ENTITY, entities), (RELATION, relations)):
        for batch in batches(uids, size=READ):
            for each in read_contributions(services.database, services, batch, kind=kind):
                if lines := described(each.contributions):
                    subject = subject_of(kind, each.key, each.contributions)
                    yield _Long(kind=kind, uid=each.uid, subject=subject, lines=lines)


def _text(services: Services, long: _Long) -> str:
    return summary(services, long.subject, long.lines)


def subject_of(kind: Kind, key: Any, contributions: Sequence[Any]) -> str:
    """Return what the descriptions are about: the name of an entity, or the keys that a relation joins."""
    return str(contributions[0].name) if kind is ENTITY else " – ".join(key)


def summary(services: Services, subject: str, lines: Sequence[str]) -> str:
    """Return the model's summary of description lines. Raises `BadReplyError` if it is empty."""
    limit = services.settings.description_characters
    included = join(lines, limit=CHARACTERS).splitlines()
    reply = services.reply(Condense(subject=subject, descriptions=tuple(included), limit=limit))
    text = join([reply.text.strip()], limit=limit)
    if not text:
        raise BadReplyError("the reply is empty", task=Condense.name)
    return text


def _keep(services: Services, ended: Sequence[Ended[_Long, str]]) -> list[str]:
    """Store the summaries of finished calls, and return the errors of failed ones."""
    texts = {call.item.uid: condensed_from(call.item.lines, call.result) for call in ended if call.result}
    for kind in (ENTITY, RELATION):
        if uids := [call.item.uid for call in ended if call.result and call.item.kind is kind]:
            until_found(services, "condense", recompute, items=uids, kind=kind, new=Additions(condensed=texts))
            kind.filling.fill(services, embedding(services), uids)
    return [
        f"the description of {call.item.subject!r} was truncated instead of summarized: {call.error}"
        for call in ended
        if call.error
    ]

"""Condensing: descriptions that are over the limit, together, as one text that a model writes.

The text is kept beside with the hash of what it stands for, under the locks that folding takes: it is used for as long
as the descriptions are the same, and when they change they are cut again until the next run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from hgmem.contributions import condensed_from, described, join
from hgmem.corpus.calls import Calls, Ended
from hgmem.corpus.fold import (
    Report,
    batches,
    embed_missing,
    embed_rest,
    rebuild_entities,
    rebuild_relations,
)
from hgmem.corpus.said import said_of_entities, said_of_relations
from hgmem.errors import AccessError, BadReplyError, BudgetError, ModelError
from hgmem.extract import Condense
from hgmem.graph.database import Transaction
from hgmem.graph.entities import cut_descriptions, entity_contributions, lock_entities, relation_contributions
from hgmem.identity import uid
from hgmem.services import Services

CHARACTERS = 24_000  # of descriptions in one prompt
READ = 50  # things whose contributions are read together


@dataclass(frozen=True, slots=True, kw_only=True)
class _Long:
    """An entity or a relation with more descriptions than fit; `ends` are the uids of a relation's entities."""

    uid: str
    subject: str
    lines: Sequence[str]
    ends: tuple[str, ...] = ()


def condense(services: Services, *, report: Report) -> list[str]:
    """Condense what is cut, and return why some of it could not be: that stays cut until the next run.

    `report` hears how many are done, of how many.
    """
    embed_rest(services)  # a run that was killed may have written a text without its vector
    entities, relations = cut_descriptions(services.database, corpus=services.corpus)
    if not entities and not relations:
        return []
    waiting = _waiting(services, entities, relations)
    errors: list[str] = []
    done, total = 0, len(entities) + len(relations)
    with Calls(partial(_text, services), workers=services.settings.workers) as calls:
        more = True
        try:
            while more or calls.busy:
                more = more and _fill(calls, waiting)
                ended = calls.rest() if calls.stop else calls.ended()
                errors += _keep(services, ended)
                report(done := done + len(ended), total)
                if calls.stop:
                    break
        except KeyboardInterrupt:
            _keep(services, calls.rest())
            raise
    if calls.stop and (isinstance(calls.stop, AccessError | BudgetError) or not isinstance(calls.stop, ModelError)):
        raise calls.stop
    return errors


def _waiting(services: Services, entities: Sequence[str], relations: Sequence[str]) -> Iterator[_Long]:
    """Yield what is to be condensed, read a little at a time."""
    for uids in batches(entities, size=READ):
        for entity in said_of_entities(services.database, services, uids):
            if lines := described(entity.contributions):
                yield _Long(uid=entity.inputs.uid, subject=entity.contributions[0].name, lines=lines)
    for uids in batches(relations, size=READ):
        for relation in said_of_relations(services.database, services, uids):
            keys = (relation.inputs.source, relation.inputs.target)
            ends = tuple(uid(services.corpus, "entity", key) for key in keys)
            if lines := described(relation.contributions):
                yield _Long(uid=relation.inputs.uid, subject=" – ".join(keys), lines=lines, ends=ends)


def _fill(calls: Calls[_Long, str], waiting: Iterator[_Long]) -> bool:
    """Return whether there is more after the calls that there was room for."""
    while calls.room:
        long = next(waiting, None)
        if long is None:
            return False
        calls.submit(long)
    return True


def _text(services: Services, long: _Long) -> str:
    limit = services.settings.description_characters
    shown = join(long.lines, limit=CHARACTERS).splitlines()
    reply = services.reply(Condense(subject=long.subject, descriptions=tuple(shown), limit=limit))
    text = join([reply.text.strip()], limit=limit)
    if not text:
        raise BadReplyError("the reply is empty", task=Condense.name)
    return text


def _keep(services: Services, ended: Sequence[Ended[_Long, str]]) -> list[str]:
    """Write the texts of the calls that gave one; return what became of the others."""
    texts = {one.item.uid: condensed_from(one.item.lines, one.result) for one in ended if one.result}
    entities = [one.item for one in ended if one.result and not one.item.ends]
    relations = [one.item for one in ended if one.result and one.item.ends]
    if texts:
        services.database.write(_write, services, (entities, relations), texts)
        embed_missing(services, entities=[each.uid for each in entities], relations=[each.uid for each in relations])
    return [
        f"the description of {one.item.subject!r} was cut, not condensed: {one.error}" for one in ended if one.error
    ]


def _write(
    transaction: Transaction,
    services: Services,
    longs: tuple[Sequence[_Long], Sequence[_Long]],
    texts: Mapping[str, str],
) -> None:
    entities, relations = longs
    held = {each.uid for each in entities} | {end for each in relations for end in each.ends}
    lock_entities(transaction, corpus=services.corpus, uids=sorted(held))
    named = entity_contributions(transaction, corpus=services.corpus, uids=[each.uid for each in entities])
    rebuild_entities(transaction, services, named, condensed=texts)
    joined = relation_contributions(transaction, corpus=services.corpus, uids=[each.uid for each in relations])
    rebuild_relations(transaction, services, joined, condensed=texts)

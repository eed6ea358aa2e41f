"""Aggregate contributions into entities and relations, and embed the results.

Contributions are ordered: pre-built ones first, then extractions. Each transaction locks what it changes before reading
it, so concurrent writers of one entity never lose updates. Vectors are computed outside the transaction and written
only if the text has not changed.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from hgmem.corpus.guarded_writes import check_embedder, embedding
from hgmem.corpus.paging import batches
from hgmem.extraction import contributions as rules
from hgmem.extraction.contributions import Contribution
from hgmem.extraction.replies import Extraction
from hgmem.graph.built import drop_learnt
from hgmem.graph.database import Row, Transaction
from hgmem.graph.resolution import settle_known
from hgmem.graph.values import NOTHING, Runner, VectorWriter, by_uid, in_order, vector_writer, with_some_vectors
from hgmem.services import Services
from hgmem.text import identity
from hgmem.values.graph_elements import Description, EntityFields, EntityUid, RelationFields, RelationUid
from hgmem.values.reports import CountReport

# Chunks or imported entities per transaction: each transaction adds an index segment, and searches read them all.
SEGMENT = 1_000
_ATTEMPTS = 3  # at rows that a statement left out


def entity_uid(corpus: str, key: str) -> EntityUid:
    """Return the uid of the entity with this key."""
    return EntityUid(identity.uid(corpus, "entity", key))


def relation_uid(corpus: str, ends: tuple[str, str]) -> RelationUid:
    """Return the uid of the relation between these two keys."""
    return RelationUid(identity.uid(corpus, "relation", *ends))


def entity_row(
    corpus: str, key: str, chunks: Iterable[str], *, given: str | None = None, fields: EntityFields | None = None
) -> Row:
    """Return an entity to write, with the chunks that mention it and its pre-built contributions (JSON)."""
    row = {"uid": entity_uid(corpus, key), "key": key, "chunks": list(chunks)}
    if fields is None:
        return row
    return {**row, "given": given, "name": fields.name, "type": fields.type, **_description(fields.description)}


def relation_row(
    corpus: str,
    ends: tuple[str, str],
    chunks: Iterable[str],
    *,
    given: str | None = None,
    fields: RelationFields | None = None,
) -> Row:
    """Return a relation to write, with the uids of its ends in order of their keys."""
    source, target = (entity_uid(corpus, end) for end in ends)
    row = {"uid": relation_uid(corpus, ends), "source": source, "target": target, "chunks": list(chunks)}
    if fields is None:
        return row
    computed = {"keywords": list(fields.keywords), "weight": fields.weight, **_description(fields.description)}
    return {**row, "given": given, **computed}


def _description(description: Description) -> Row:
    return {"description": description.text, "condensed": description.condensed, "cut": description.cut or None}


def lock_entities(database: Runner, *, corpus: str, uids: Iterable[EntityUid]) -> None:
    """Lock the entities until the transaction ends."""
    database.run("lock_entities", corpus=corpus, uids=sorted(uids))


def joined_entities(database: Runner, *, corpus: str, uids: Sequence[EntityUid]) -> list[Row]:
    """Return those of the entities that a relation still joins, to be written without their descriptions."""
    return [
        entity_row(
            corpus, row["key"], (), fields=EntityFields(name=row["name"], type=row["type"], description=Description())
        )
        for row in database.run("joined_entities", corpus=corpus, uids=list(uids))
    ]


def uids_by_kind(database: Runner, name: str, /, *, corpus: str) -> tuple[list[EntityUid], list[RelationUid]]:
    """Return the uids of the corpus's entities and relations that a statement finds."""
    [row] = database.run(name, corpus=corpus)
    return row["entities"], row["relations"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """How missing vectors of a kind are made.

    `missing` is the statement that returns rows without one, `text` gives the text of such a row, `put` writes vectors.
    """

    missing: str
    text: Callable[[Row], str]
    put: VectorWriter

    def fill(self, services: Services, writer: Runner, uids: Sequence[str]) -> int:
        """Embed those of the uids that lack a vector, and return how many.

        It looks up to three times, until none does: as `until_found` says, a statement may leave out rows.
        """
        made = set[str]()
        for _ in range(_ATTEMPTS):
            rows = services.database.run(self.missing, corpus=services.corpus, uids=uids)
            if not rows:
                break
            vectors = services.embed([self.text(row) for row in rows], kind="document")
            self.put(writer, corpus=services.corpus, rows=rows, vectors=vectors)
            made.update(row["uid"] for row in rows)
        return len(made)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What entities and relations have each for themselves. All else is done for both by the same functions.

    - `name`: its plural, in the names of transactions.
    - `extracted(extraction)`: a chunk's contributions by key: a name, or the ordered names of both ends.
    - `load(given)`: pre-built contributions from their JSON.
    - `key(stored)` and `chunks(stored)`: the key of a stored one, and its chunks that still exist.
    - `fields(contributions, limit=…, condensed=…)`: the fields to store, and `text(key, fields)` the text to embed.
    - `row(corpus, key, chunks, given=…, fields=…)`: the row to write.
    - `filling`: how missing vectors are made.
    - `lock` locks the entities that a change needs, `remove` returns rows that stay.
    - `settle` writes the classes of entities that have come or gone.
    - The others are names of statements.
    """

    name: str
    extracted: Callable[[Extraction], dict[Any, list[Any]]]
    load: Callable[[str | None], list[Any]]
    key: Callable[[Row], Any]
    chunks: Callable[[Row], Sequence[str]]
    fields: Callable[..., Any]
    text: Callable[[Any, Any], str]
    row: Callable[..., Row]
    filling: Filling
    lock: Callable[..., None]
    remove: Callable[..., list[Row]]
    settle: Callable[..., None]
    known: str
    touch: str
    create: str
    read: str
    write: str


def _lock_ends(transaction: Runner, *, corpus: str, uids: Sequence[RelationUid]) -> None:
    stored = transaction.run(RELATION.read, corpus=corpus, uids=list(uids))
    keys = {key for relation in stored for key in RELATION.key(relation)}
    lock_entities(transaction, corpus=corpus, uids=[entity_uid(corpus, key) for key in keys])


def _remove_entities(transaction: Runner, *, corpus: str, uids: Sequence[EntityUid]) -> list[Row]:
    """Remove entities but those that a supported relation still joins, which stay without a description."""
    joined = joined_entities(transaction, corpus=corpus, uids=uids)
    removed = sorted(set(uids) - {row["uid"] for row in joined})
    drop_learnt(transaction, corpus=corpus, entities=removed)
    transaction.run("remove_entities", corpus=corpus, uids=removed)
    return joined


def _remove_relations(transaction: Runner, *, corpus: str, uids: Sequence[RelationUid]) -> list[Row]:
    transaction.run("remove_relations", corpus=corpus, uids=sorted(uids))
    return []


ENTITY = Kind(
    name="entities",
    extracted=rules.entities_of,
    load=rules.load_entities,
    key=itemgetter("key"),
    chunks=itemgetter("chunks"),
    fields=rules.entity_fields,
    text=lambda _, fields: rules.entity_text(fields.name, fields.description.text),
    row=entity_row,
    filling=Filling(
        missing="missing_entity_vectors",
        text=lambda row: rules.entity_text(row["name"], row["description"]),
        put=vector_writer("put_entity_vectors"),
    ),
    lock=lock_entities,
    remove=_remove_entities,
    settle=settle_known,
    known="known_entities",
    touch="touch_entities",
    create="create_entities",
    read="entity_contributions",
    write="write_entities",
)
RELATION = Kind(
    name="relations",
    extracted=rules.relations_of,
    load=rules.load_relations,
    key=itemgetter("source", "target"),
    chunks=itemgetter("living"),
    fields=rules.relation_fields,
    text=lambda ends, fields: rules.relation_text(ends, fields.description.text, fields.keywords),
    row=relation_row,
    filling=Filling(
        missing="missing_relation_vectors",
        text=lambda row: rules.relation_text((row["source"], row["target"]), row["description"], row["keywords"]),
        put=vector_writer("put_relation_vectors"),
    ),
    lock=_lock_ends,
    remove=_remove_relations,
    settle=lambda *_, **__: None,
    known="known_relations",
    touch="touch_relations",
    create="create_relations",
    read="relation_contributions",
    write="write_relations",
)


def aggregate(
    services: Services,
    *,
    extractions: Mapping[str, Extraction],
    report: CountReport = lambda _, __: None,
    meanwhile: Callable[[], None] = lambda: None,
) -> None:
    """Aggregate the extractions of chunks (by uid) into the corpus's graph.

    `report` receives the number of embedded entities and relations, and the total. `meanwhile` is called between
    transactions.
    """
    rows = {kind: rows_of(services.corpus, kind, extractions) for kind in (ENTITY, RELATION)}
    for kind, some in rows.items():
        for batch in batches(some):
            until_found(services, f"aggregate_{kind.name}", _aggregate, items=batch, kind=kind)
            meanwhile()

    def embedded(done: int, total: int) -> None:
        report(done, total)
        meanwhile()

    entities, relations = ([row["uid"] for row in some] for some in rows.values())
    embed_missing(services, entities=entities, relations=relations, report=embedded)


def rows_of(corpus: str, kind: Kind, extractions: Mapping[str, Extraction]) -> list[Row]:
    """Return the rows of entities or relations that the chunks contribute to, sorted by uid."""
    found: dict[Any, list[str]] = {}
    for chunk, extraction in extractions.items():
        for key in kind.extracted(extraction):
            found.setdefault(key, []).append(chunk)
    return in_order(kind.row(corpus, key, chunks) for key, chunks in found.items())


def until_found(
    services: Services, name: str, work: Callable[..., list[Any]], *, items: Sequence[Any], kind: Kind, **more: Any
) -> None:
    """Run `work` on entities or relations in a transaction, and again on those that it returns as not found.

    Beside many other writers, Neo4j 2026.09 was seen to leave out rows of a statement. Those that were really deleted
    are not found in any attempt, which does no harm.
    """
    for _ in range(_ATTEMPTS):
        if items:
            items = services.database.write_as(name, work, services, items, kind=kind, **more)


def _aggregate(transaction: Transaction, services: Services, rows: Sequence[Row], *, kind: Kind) -> list[Row]:
    """Write rows and rebuild what they touch. Returns those that were not found: an end of a relation is gone."""
    stored = transaction.run(kind.touch, corpus=services.corpus, rows=rows)
    rebuild(transaction, services, stored, kind=kind)
    found = {row["uid"] for row in stored}
    return [row for row in rows if row["uid"] not in found]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributions:
    """All contributions to an entity or a relation, as `stored` says.

    `chunks` are those that still exist; `given` are the pre-built contributions that still count.
    """

    uid: str
    key: Any
    stored: Row
    chunks: tuple[str, ...]
    given: list[Any]
    contributions: list[Any]


def read_contributions(database: Runner, services: Services, uids: Sequence[Any], *, kind: Kind) -> list[Contributions]:
    """Return the stored contributions to each of the entities or relations, in aggregation order."""
    return list(_combined(database, services, kind, database.run(kind.read, corpus=services.corpus, uids=list(uids))))


def _combined(
    database: Runner,
    services: Services,
    kind: Kind,
    rows: Sequence[Row],
    *,
    prebuilt: Mapping[Any, Sequence[Contribution]] = NOTHING,
) -> Iterator[Contributions]:
    """Yield the contributions to each, with `prebuilt` ones (by uid) that are not stored yet.

    Chunks of pre-built graphs have no extraction.
    """
    uids = sorted({chunk for row in rows for chunk in row["extracted"]})
    stored = by_uid(database, "chunk_extractions", corpus=services.corpus, uids=uids) if uids else {}
    parsed = {
        chunk: kind.extracted(Extraction.model_validate_json(text)) if (text := row["extraction"]) else {}
        for chunk, row in stored.items()
    }
    for row in rows:
        uid, key = row["uid"], kind.key(row)
        gone = set(row["extracted"]) - parsed.keys()  # deleted since the chunks were listed
        existing = tuple(chunk for chunk in kind.chunks(row) if chunk not in gone)
        given = kind.load(row["given"])
        if new := prebuilt.get(uid):
            given = list(dict.fromkeys((*given, *new)))
        kept = rules.still_supported(given, existing=set(existing))
        found = [contribution for chunk in existing if chunk in parsed for contribution in parsed[chunk].get(key, [])]
        yield Contributions(uid=uid, key=key, stored=row, chunks=existing, given=kept, contributions=kept + found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Additions:
    """What is not stored yet, by uid.

    - `given`: pre-built contributions.
    - `vectors`: each with the text that it embeds.
    - `condensed`: model-written summaries (JSON), used only while the descriptions are unchanged.
    """

    given: Mapping[Any, Sequence[Contribution]] = field(default_factory=dict)
    vectors: Mapping[Any, tuple[str, Any]] = field(default_factory=dict)
    condensed: Mapping[str, str] = field(default_factory=dict)


NOTHING_NEW = Additions()


def rebuild(
    transaction: Transaction,
    services: Services,
    stored: Sequence[Row],
    *,
    kind: Kind,
    new: Additions = NOTHING_NEW,
) -> list[Any]:
    """Write the fields of locked entities, or of relations between such, and delete those without contributions.

    Returns the uids of those that still need a vector.
    """
    rows, gone, vectors = [], [], {}
    for entry in _combined(transaction, services, kind, stored, prebuilt=new.given):
        uid, key = entry.uid, entry.key
        if not entry.contributions:
            gone.append(uid)
            continue
        limit = services.settings.description_characters
        fields = kind.fields(
            entry.contributions, limit=limit, condensed=new.condensed.get(uid, entry.stored["condensed"])
        )
        given = rules.dump(entry.given) if entry.given else None
        stored_fields = to_store(fields, condense=services.settings.condense)
        rows.append(kind.row(services.corpus, key, entry.chunks, given=given, fields=stored_fields))
        text, vector = new.vectors.get(uid, ("", None))
        if text == kind.text(key, fields):
            vectors[uid] = vector
    if gone:
        rows += kind.remove(transaction, corpus=services.corpus, uids=gone)
    transaction.run(kind.write, corpus=services.corpus, rows=in_order(with_some_vectors(rows, vectors)))
    if changed := [*gone, *(row["uid"] for row in stored if row.get("new"))]:
        kind.settle(transaction, corpus=services.corpus, uids=changed)
    return [row["uid"] for row in rows if row["uid"] not in vectors]


def to_store(fields: Any, *, condense: bool) -> Any:
    """Return the fields, marked as truncated only if summarizing is enabled."""
    wanted = fields.description.cut and condense
    return replace(fields, description=replace(fields.description, cut=wanted))


def refresh(services: Services, entities: Iterable[EntityUid], relations: Iterable[RelationUid]) -> None:
    """Recompute relations (uids), then entities, then embed both.

    Relations come first, because an entity stays while a relation joins it.
    """
    entities, relations = sorted(set(entities)), sorted(set(relations))
    for kind, uids in ((RELATION, relations), (ENTITY, entities)):
        for batch in batches(uids):
            until_found(services, f"refresh_{kind.name}", recompute, items=batch, kind=kind)
    embed_missing(services, entities=entities, relations=relations)


def recompute(
    transaction: Transaction,
    services: Services,
    uids: Sequence[Any],
    *,
    kind: Kind,
    new: Additions = NOTHING_NEW,
) -> list[Any]:
    """Lock and rebuild entities or relations (uids). Returns those that were not found."""
    check_embedder(transaction, services)  # an entity that becomes provisional keeps its vector
    kind.lock(transaction, corpus=services.corpus, uids=uids)
    stored = transaction.run(kind.read, corpus=services.corpus, uids=list(uids))
    rebuild(transaction, services, stored, kind=kind, new=new)
    found = {row["uid"] for row in stored}
    return [uid for uid in uids if uid not in found]


def finish_interrupted(services: Services) -> None:
    """Recompute and embed whatever an interrupted run left unfinished."""
    refresh(services, *uids_by_kind(services.database, "stale", corpus=services.corpus))
    embed_unembedded(services)


def embed_unembedded(services: Services) -> None:
    """Embed every entity and relation without a vector, such as after a killed run."""
    entities, relations = uids_by_kind(services.database, "unembedded", corpus=services.corpus)
    embed_missing(services, entities=entities, relations=relations)


def embed_missing(
    services: Services,
    *,
    entities: Sequence[EntityUid],
    relations: Sequence[RelationUid],
    report: CountReport = lambda _, __: None,
) -> None:
    """Embed those of the entities and relations (uids) that lack a vector."""
    done, total = 0, len(entities) + len(relations)
    for kind, uids in ((ENTITY, entities), (RELATION, relations)):
        for batch in batches(uids):
            kind.filling.fill(services, embedding(services), batch)
            report(done := done + len(batch), total)

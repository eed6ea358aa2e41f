"""The stages after the replies: vectors, contributions in buckets, and a bucket folded into entities and relations.

The rules are those of ordinary indexing. A bucket holds what belongs to some of the keys, by their hash, a relation by
the key of its source. Each is folded by itself, from the contributions of all parts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from hgmem.corpus.aggregation import ENTITY, RELATION, Kind, to_store
from hgmem.corpus.paging import batches
from hgmem.corpus.parallel_calls import Calls, Ended
from hgmem.corpus.summarization import subject_of, summary
from hgmem.errors import AccessError, BudgetError, ModelError
from hgmem.extraction.contributions import EntityContribution, RelationContribution, condensed_from, described
from hgmem.extraction.replies import Extraction
from hgmem.graph.database import Row
from hgmem.graph.values import NOTHING, in_order
from hgmem.services import Services
from hgmem.stages.files import Folder, Part
from hgmem.stages.replies import REPLIES
from hgmem.text.identity import text_hash

CHUNKS_IN_BUCKET = 2_048
MOST_BUCKETS = 4_096
KINDS = (ENTITY, RELATION)
GRAPH_STAGES = ("graph/entities", "graph/relations", "vectors")
SUMMARY = ["uid", "condensed"]


def graph_stage(kind: Kind) -> str:
    """Return the stage of a kind: `graph/entities` or `graph/relations`."""
    return f"graph/{kind.name}"


def buckets_for(chunks: int) -> int:
    """Return into how many buckets the contributions of so many chunks go: a power of two, which seldom changes."""
    wanted = 1
    while wanted < MOST_BUCKETS and wanted * CHUNKS_IN_BUCKET < chunks:
        wanted *= 2
    return wanted


def embed_part(folder: Folder, services: Services, part: str) -> None:
    """Write the vectors of a part's chunks, unless they are there."""
    if folder.part("vectors", part):
        return
    rows = folder.rows("chunks", part, ["uid", "text"])
    folder.put("vectors", part, [list(embedded(services, "chunks", {row["uid"]: row["text"] for row in rows}))])


def embedded(
    services: Services, kind: str, texts: Mapping[str, str], *, known: Mapping[tuple[str, str], Any] = NOTHING
) -> Iterator[Row]:
    """Yield the vectors of texts by uid. Those that are `known`, by uid and the text's hash, are not made again."""
    hashes = {uid: text_hash(text) for uid, text in texts.items()}
    for some in batches(texts):
        missing = [uid for uid in some if (uid, hashes[uid]) not in known]
        made = services.embed([texts[uid] for uid in missing], kind="document") if missing else ()
        fresh = dict(zip(missing, made, strict=True))
        for uid in some:
            vector = fresh[uid] if uid in fresh else known[uid, hashes[uid]]
            yield {"uid": uid, "kind": kind, "vector": vector, "text_sha256": hashes[uid]}


def contribute_part(folder: Folder, part: str, *, buckets: int) -> None:
    """Write what the replies of a part contribute, a row group for each bucket that has any."""
    replies = folder.part(REPLIES, part)
    listed = folder.part("contributions", part)
    made = {"replies": replies.file if replies else "", "buckets": buckets}
    if listed and {name: listed.noted.get(name) for name in made} == made:
        return
    found: dict[int, list[Row]] = {}
    for row in sorted(folder.rows(REPLIES, replies or part), key=lambda each: each["chunk"]):
        if row["reply"] is not None:
            for each in _contributions(row["chunk"], Extraction.model_validate_json(row["reply"])):
                found.setdefault(bucket_of(each["key"], buckets), []).append(each)
    groups = sorted(found.items())
    folder.put("contributions", part, [rows for _, rows in groups], held=[number for number, _ in groups], **made)


def bucket_of(key: str, buckets: int) -> int:
    """Return the bucket of a key. That of half as many buckets is the remainder of it."""
    return int(text_hash(key)[:8], 16) % buckets


def _contributions(chunk: str, extraction: Extraction) -> Iterator[Row]:
    for key, entities in ENTITY.extracted(extraction).items():
        for each in entities:
            named = {"name": each.name, "type": each.type, "description": each.description}
            yield {"kind": ENTITY.name, "key": key, "chunk": chunk, **named}
    for (source, target), relations in RELATION.extracted(extraction).items():
        for each in relations:
            said = {"description": each.description, "keywords": list(each.keywords), "weight": each.weight}
            yield {"kind": RELATION.name, "key": source, "other": target, "chunk": chunk, **said}


@dataclass(slots=True, kw_only=True)
class _Entry:
    """What is folded into one entity or relation."""

    kind: Kind
    key: Any
    chunks: list[str]
    contributions: list[Any]


def fold_bucket(
    folder: Folder, services: Services, parts: Iterable[str | Part], *, bucket: int, buckets: int
) -> tuple[str, list[str]]:
    """Write the entities and relations of a bucket with their vectors, from the contributions of these parts.

    Parts of contributions that were listed once for all buckets need not be looked up again. Returns the name of its
    parts, and the errors of summaries that failed, which the next run asks for again.
    """
    found = [each if isinstance(each, Part) else folder.part("contributions", each) for each in parts]
    sources = sorted((each for each in found if each and bucket in each.noted["held"]), key=attrgetter("name"))
    digest = text_hash("\n".join(each.file for each in sources))
    name = f"{bucket:04}-{buckets}-{digest[:16]}"
    listed = [folder.part(stage, name) for stage in GRAPH_STAGES]
    if all(listed) and not any(each.noted.get("cut") for each in listed if each):
        return name, []
    entries = _entries(folder, services.corpus, sources, bucket)
    before = _earlier(folder, name, bucket=bucket, buckets=buckets)
    condensed, errors = _condensed(folder, services, entries, (before, _summaries(bucket, buckets)))
    vectors: list[Row] = []
    known = {key: each for one in before for key, each in folder.vectors(one).items()}
    for kind in KINDS:
        folded = [_folded(services, each, condensed.get(uid)) for uid, each in entries.items() if each.kind is kind]
        texts = {row["uid"]: text for row, text in folded}
        cut = sum(bool(row["cut"]) for row, _ in folded)
        folder.put(graph_stage(kind), name, [in_order(row for row, _ in folded)], cut=cut)
        vectors += embedded(services, kind.name, texts, known=known)
    folder.put("vectors", name, [in_order(vectors)])
    folder.close_journal(_summaries(bucket, buckets))
    return name, errors


def _earlier(folder: Folder, name: str, *, bucket: int, buckets: int) -> list[str]:
    """Return the names of listed parts that may hold vectors and summaries of a bucket's entities and relations."""
    names = {name, *(folder.current() or {}).get("graph", ())}
    numbers = {each: [int(part) for part in each.split("-")[:2]] for each in names}
    there = [each for each, (held, of) in numbers.items() if (held - bucket) % min(of, buckets) == 0]
    return [each for each in sorted(there) if all(folder.part(stage, each) for stage in GRAPH_STAGES)]


def _summaries(bucket: int, buckets: int) -> str:
    return f"summaries/journal/{bucket:04}-{buckets}"


def _entries(folder: Folder, corpus: str, sources: Sequence[Part], bucket: int) -> dict[str, _Entry]:
    """Return the contributions of a bucket by uid, of each in the order of ordinary indexing: by chunk."""
    rows = [row for part in sources for row in folder.group("contributions", part, part.noted["held"].index(bucket))]
    found: dict[tuple[str, Any], _Entry] = {}
    for row in sorted(rows, key=lambda each: each["chunk"]):  # stable: within a chunk as it was extracted
        kind = ENTITY if row["kind"] == ENTITY.name else RELATION
        key = row["key"] if kind is ENTITY else (row["key"], row["other"])
        entry = found.setdefault((kind.name, key), _Entry(kind=kind, key=key, chunks=[], contributions=[]))
        if row["chunk"] not in entry.chunks[-1:]:
            entry.chunks.append(row["chunk"])
        entry.contributions.append(_contribution(kind, row))
    return {entry.kind.row(corpus, entry.key, ())["uid"]: entry for entry in found.values()}


def _contribution(kind: Kind, row: Row) -> EntityContribution | RelationContribution:
    if kind is ENTITY:
        return EntityContribution(name=row["name"], type=row["type"], description=row["description"])
    return RelationContribution(description=row["description"], keywords=tuple(row["keywords"]), weight=row["weight"])


def _folded(services: Services, entry: _Entry, condensed: str | None) -> tuple[Row, str]:
    """Return the row of an entity or relation, and the text that its vector embeds."""
    kind, fields = entry.kind, _fields(services, entry, condensed)
    stored = to_store(fields, condense=services.settings.condense)
    row = kind.row(services.corpus, entry.key, entry.chunks, fields=stored)
    keys = {} if kind is ENTITY else dict(zip(("source_key", "target_key"), entry.key, strict=True))
    return {**row, **keys}, kind.text(entry.key, fields)


def _fields(services: Services, entry: _Entry, condensed: str | None) -> Any:
    limit = services.settings.description_characters
    return entry.kind.fields(entry.contributions, limit=limit, condensed=condensed)


def _condensed(
    folder: Folder, services: Services, entries: Mapping[str, _Entry], kept: tuple[Sequence[str], str]
) -> tuple[dict[str, str], list[str]]:
    """Return summaries (JSON) by uid, asking for those that are missing, and the errors of those that failed.

    `kept` are the graph's parts and the journal that may have some.
    """
    before, journal = kept
    if not services.settings.condense:
        return {}, []
    rows = [row for one in before for kind in KINDS for row in folder.rows(graph_stage(kind), one, SUMMARY)]
    condensed = {row["uid"]: row["condensed"] for row in rows if row["condensed"]}
    condensed |= {uid: row["condensed"] for uid, row in folder.noted(journal).items()}
    errors: list[str] = []

    def ask(uid: str) -> str:
        entry = entries[uid]
        lines = described(entry.contributions)
        found = condensed_from(lines, summary(services, _subject(entry), lines))
        folder.note(journal, uid, {"condensed": found})
        return found

    def keep(ended: Sequence[Ended[str, str]]) -> None:
        condensed.update({call.item: call.result for call in ended if call.result})
        subjects = {call.item: _subject(entries[call.item]) for call in ended if call.error}
        errors.extend(
            f"the description of {subjects[call.item]!r} was truncated instead of summarized: {call.error}"
            for call in ended
            if call.error
        )

    long = [uid for uid, each in entries.items() if _fields(services, each, condensed.get(uid)).description.cut]
    with Calls(ask, workers=services.settings.workers) as calls:
        calls.run(iter(long), keep)
    if calls.stop and (isinstance(calls.stop, AccessError | BudgetError) or not isinstance(calls.stop, ModelError)):
        raise calls.stop
    return condensed, errors


def _subject(entry: _Entry) -> str:
    return subject_of(entry.kind, entry.key, entry.contributions)

"""The record types: what hgmem stores, field by field. All that handles a record follows from its description.

There is one for each label and relationship type of ours, and one for all relationships of systems' own types. From it
follow properties (`values.py`), archives (`hgmem/corpus/archive/`), what an import restores (`restoring.py`), tables of
`docs/reference/graph.md`, and attributes of values that callers see (`hgmem/values/records.py`).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

# What a value must be. `hgmem/corpus/archive/field_types.py` checks it.
_Plain: TypeAlias = Literal["text", "texts", "integer", "number", "boolean", "time", "counts"]
_Uid: TypeAlias = Literal["uid", "own", "memory", "memory or none"]  # own: begins with the uid of the record's memory
_Vector: TypeAlias = Literal["vector", "vector of any length"]  # the first one has the corpus's dimensions
_Systems: TypeAlias = Literal["label or type of at most 40 letters", "properties", "properties without lists"]
_JsonOfCorpus: TypeAlias = Literal["JSON", "object", "extraction", "condensed", "given entities", "given relations"]
_JsonOfMemory: TypeAlias = Literal["operations", "planned", "retrieved built rows", "usage", "filters"]
FieldType: TypeAlias = _Plain | _Uid | _Vector | _Systems | _JsonOfCorpus | _JsonOfMemory
JSON = frozenset((*get_args(_JsonOfCorpus), *get_args(_JsonOfMemory)))
VECTORS = frozenset(get_args(_Vector))
# kept: a property, and in archives. archive: only there, as the graph has a relationship instead or it follows from
# properties. derived: only a property, which follows from the rest. never: only a property, of a run.
Rule: TypeAlias = Literal["kept", "archive", "derived", "never"]

# The type of what a record refers to, and the fields that give its identity; one of several is enough.
Reference: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]

EVERYWHERE = "corpus"  # a property of every node and every RELATES


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of a record. An optional one is absent, never null."""

    name: str
    type: FieldType
    meaning: str
    optional: bool = False
    rule: Rule = "kept"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A relationship that the record of a node stands for. It leads from the node (`outgoing`) or to it."""

    type: str
    to: Reference
    outgoing: bool = False


@dataclass(frozen=True, kw_only=True)
class RecordType:
    """A label, or a relationship type with its `source` and `target`.

    `identity` are the fields that tell one record from another of its type, `also_known_by` others by which records
    refer to it. `link` is the relationship that a node's record stands for, `refers` what else it names.
    """

    name: str
    about: str
    fields: tuple[Field, ...]
    identity: tuple[str, ...] = ()
    also_known_by: tuple[tuple[str, ...], ...] = ()
    link: Link | None = None
    source: Reference = ()
    target: Reference = ()
    refers: tuple[Reference, ...] = ()

    @cached_property
    def archived(self) -> tuple[Field, ...]:
        """The fields of a line in an archive, in its order."""
        return tuple(field for field in self.fields if field.rule in ("kept", "archive"))

    @cached_property
    def kept(self) -> tuple[Field, ...]:
        """The fields that are properties and are kept in archives."""
        return tuple(field for field in self.fields if field.rule == "kept")

    @cached_property
    def names(self) -> frozenset[str]:
        """The names that a stored row, or a record, may have."""
        return frozenset((EVERYWHERE, *(field.name for field in self.fields)))

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """What comes before the record, if the record names it."""
        found = (self.source, self.target, self.link.to if self.link else (), *self.refers)
        return tuple(reference for reference in found if reference)


def _has(name: str, type_: FieldType, meaning: str, rule: Rule = "kept") -> Field:
    return Field(name=name, type=type_, meaning=meaning, rule=rule)


def _may_have(name: str, type_: FieldType, meaning: str, rule: Rule = "kept") -> Field:
    return Field(name=name, type=type_, meaning=meaning, rule=rule, optional=True)


def _ends(source: FieldType, of_source: str, target: FieldType, of_target: str) -> tuple[Field, Field]:
    """Return the fields for the ends of a relationship: types and meanings."""
    return _has("source", source, of_source, "archive"), _has("target", target, of_target, "archive")


def _record(name: str, about: str, *fields: Field, **more: Any) -> RecordType:
    return RecordType(name=name, about=about, fields=fields, **more)


def _to(name: str, *fields: str) -> Reference:
    return ((name, fields),)


def _to_entity(field: str) -> Reference:
    """Return a reference to an entity of the corpus, or to one of the record's own memory."""
    return (*_to("Entity", field), *_to("Provisional", "memory", field))


_UID = _has("uid", "uid", "hash of corpus, type and identity")
_OWN_UID = _has("uid", "own", "begins with the uid of the memory")
_MEMORY = _has("memory", "memory", "uid of the memory")
_OF_MEMORY = _has("memory", "memory", "uid of the memory", "archive")
_SYSTEM = _has("system", "text", "name of the system, such as `hgmem`")
_OF_SYSTEM = _has("system", "text", "name of the system", "archive")
_EMBEDDING = _may_have("embedding", "vector", "vector of the text or description")
_STEMS = _has("stems", "text", "stems of its words for full-text search, each between two blanks")
_LAYER_KEY = _has("layer_key", "text", "hash of corpus, system and kind, for full-text search", "derived")
_DOCUMENT = "uid of the document; empty where it rests on several"
_OWN = "further properties, of the system's own"
_LEASE = (
    _may_have("run", "text", "the run that holds the lease", "never"),
    _may_have("heartbeat", "time", "when that run renewed the lease", "never"),
)
_SUMMARY = (
    _may_have("condensed", "condensed", "summarized description, with what it was made from"),
    _may_have("cut", "boolean", "true if the description was truncated"),
    _may_have("stale", "boolean", "true if the description or vector needs recomputing"),
)

_OF_CORPUS = (
    _record(
        "Document",
        "A document.",
        _UID,
        _has("id", "text", "the caller's id, or the path of the file"),
        _has("title", "text", "title"),
        _has("stems", "text", "stems of the title for full-text search"),
        _has("date", "text", "YYYY-MM-DD or YYYY-MM, as metadata, title or first lines have it; or empty"),
        _has("type", "text", "what the metadata call it, such as `letter`; or empty"),
        _has("source", "text", "path or id"),
        _has("sha256", "text", "hash of the text"),
        _has("metadata", "object", "the caller's metadata, for filters"),
        _has("status", "text", "`done` or `embedded` (indexed without a graph), or how far indexing has come"),
        _may_have("chunking", "text", "identifies the chunking settings"),
        _may_have("message_number", "integer", "number of a conversation's latest message"),
        _may_have("indexed_at", "time", "when indexing finished"),
        identity=("uid",),
    ),
    _record(
        "Chunk",
        "A chunk of a document.",
        _UID,
        _has("document", "uid", "uid of the document"),
        _has("position", "integer", "position in the document"),
        _has("text", "text", "the text"),
        _STEMS,
        _has("tokens", "integer", "length in tokens"),
        _may_have("start", "integer", "offset in the document, inclusive"),
        _may_have("end", "integer", "offset in the document, exclusive"),
        _has("status", "text", "state, such as `done`, `embedded` (indexed without a graph) or `failed`"),
        _may_have("error", "text", "why extraction failed"),
        _has("attempts", "integer", "how often extraction was tried"),
        _may_have("extraction", "extraction", "entities and relations extracted from the chunk"),
        _may_have("source_id", "text", "id in the source that was imported"),
        _may_have("messages", "text", "id, speaker, time and place of each message in the chunk, a list in JSON"),
        _EMBEDDING,
        _LAYER_KEY,
        identity=("uid",),
        link=Link(type="FROM_DOCUMENT", to=_to("Document", "document"), outgoing=True),
    ),
    _record(
        "NEXT_CHUNK",
        "From a chunk to the next one of its document.",
        *_ends("uid", "uid of the chunk", "uid", "uid of the next one"),
        source=_to("Chunk", "source"),
        target=_to("Chunk", "target"),
    ),
    _record(
        "Entity",
        "An entity of the corpus.",
        _UID,
        _has("key", "text", "normalized name that identifies the entity"),
        _has("name", "text", "name as it is displayed"),
        _has("type", "text", "type"),
        _has("description", "text", "description"),
        _may_have("given", "given entities", "contributions of a pre-built graph"),
        *_SUMMARY,
        _EMBEDDING,
        _has("memory", "text", "empty", "derived"),
        identity=("uid",),
    ),
    _record(
        "FROM_CHUNK",
        "From an entity to a chunk that mentions it.",
        *_ends("uid", "uid of the entity", "uid", "uid of the chunk"),
        source=_to("Entity", "source"),
        target=_to("Chunk", "target"),
    ),
    _record(
        "RELATES",
        "A relation between two entities, of the corpus or of a memory.",
        _UID,
        _has("memory", "memory or none", "uid of the memory; empty for a relation of the corpus"),
        *_ends("text", "uid of an entity", "text", "uid of the other one"),
        _has("description", "text", "description"),
        _has("keywords", "texts", "keywords"),
        _has("weight", "number", "weight"),
        _has("chunks", "texts", "uids of the chunks that support the relation"),
        _may_have("given", "given relations", "contributions of a pre-built graph"),
        *_SUMMARY,
        _EMBEDDING,
        identity=("uid",),
        source=_to_entity("source"),
        target=_to_entity("target"),
    ),
)

_OF_BUILDS = (
    _record(
        "Build",
        "A system's build of the corpus.",
        _UID,
        _SYSTEM,
        _has("status", "text", "state, such as `ready`, `unfinished` or `stale`"),
        _has("settings", "object", "recipe options"),
        _has("model", "text", "language model that was used"),
        _may_have("change", "text", "what changed in the corpus since the build was made"),
        _has("created_at", "time", "creation time"),
        _may_have("finished_at", "time", "when a run last went through all stages"),
        _may_have("changed_at", "time", "time of that change"),
        *_LEASE,
        identity=("system",),
    ),
    _record(
        "Unit",
        "A unit of a build.",
        _UID,
        _SYSTEM,
        _has("stage", "text", "stage of the build"),
        _has("key", "text", "what identifies the unit in its stage"),
        _may_have("digest", "text", "hash of its inputs; absent where a deletion emptied it"),
        _has("status", "text", "state, such as `done`, `stale` or `failed`"),
        _has("attempts", "integer", "how often it was tried"),
        _may_have("error", "text", "why it failed"),
        _may_have("output", "JSON", "what it left for later units"),
        _may_have("document", "text", _DOCUMENT),
        _may_have("inputs", "integer", "how many chunks, rows and outputs it was made from"),
        _may_have("calls", "integer", "model calls that it took"),
        _may_have("tokens", "integer", "tokens of these calls"),
        identity=("uid",),
        also_known_by=(("system", "uid"),),
        link=Link(type="HAS_UNIT", to=_to("Build", "system")),
    ),
    _record(
        "Built",
        "A row of a build. It has a second label, of its system.",
        _UID,
        _SYSTEM,
        _has("label", "label or type of at most 40 letters", "its second label", "archive"),
        _has("kind", "text", "its second label", "derived"),
        _has("key", "text", "what identifies the row in its kind"),
        _may_have("unit", "uid", "uid of the unit that made the row", "archive"),
        _may_have("learnt", "boolean", "true if questions wrote the row, and no unit"),
        _has("document", "text", _DOCUMENT),
        _has("text", "text", "the text"),
        _has("own_properties", "properties", _OWN, "archive"),
        _may_have("replaced_vectors", "boolean", "whether the row has an `own_embedding`", "archive"),
        _may_have("embedding", "vector", "vector that is searched"),
        _may_have("own_embedding", "vector", "vector of the text, where a later unit gives another `embedding`"),
        _may_have("vector", "vector of any length", "vector that no index holds, such as a sum"),
        _may_have("stems", "text", "stems of the text for full-text search"),
        _LAYER_KEY,
        identity=("uid",),
        also_known_by=(("system", "uid"),),
        link=Link(type="MADE", to=_to("Unit", "system", "unit")),
    ),
    _record(
        "RESTS_ON",
        "From a row or a unit to a chunk, row or unit that it was made from.",
        *_ends("uid", "uid of the row or unit", "uid", "uid of what it was made from"),
        _may_have("build", "uid", "uid of the build for whose duration it is inherited", "never"),
        source=(*_to("Built", "source"), *_to("Unit", "source")),
        target=(*_to("Chunk", "target"), *_to("Built", "target"), *_to("Unit", "target")),
    ),
    _record(
        "EXTENDS",
        "From a unit to a row of another unit to which it gives relationships or a vector.",
        _OF_SYSTEM,
        *_ends("uid", "uid of the unit", "uid", "uid of the row"),
        _has("vector", "boolean", "whether the unit gives the row the vector that is searched"),
        source=_to("Unit", "system", "source"),
        target=_to("Built", "system", "target"),
    ),
    _record(
        "RELATIONSHIP",
        "A relationship of a system's own type, from one of its rows.",
        _OF_SYSTEM,
        _has("type", "label or type of at most 40 letters", "its type", "archive"),
        *_ends("uid", "uid of the row", "uid", "uid of a row, chunk or entity"),
        _may_have("unit", "uid", "uid of the unit that wrote it; absent if questions did"),
        _has("own_properties", "properties without lists", _OWN, "archive"),
        source=_to("Built", "system", "source"),
        target=(*_to("Built", "target"), *_to("Chunk", "target"), *_to("Entity", "target")),
        refers=(_to("Unit", "system", "unit"),),
    ),
)

_OF_MEMORIES = (
    _record(
        "Memory",
        "A memory.",
        _has("uid", "memory", "`m` and a random number"),
        _may_have("owner", "text", "who sees the memory; empty or absent for everybody"),
        _SYSTEM,
        _has("model", "text", "language model that was used"),
        _has("question", "text", "the question"),
        _may_have("latest", "text", "the latest question, if the memory was continued"),
        _has("settings", "object", "recipe options"),
        _may_have("filters", "filters", "document filters of the question"),
        _has("status", "text", "[state](../concepts.md)"),
        _has("created_at", "time", "creation time"),
        _has("memory", "text", "its uid", "derived"),
        *_LEASE,
        identity=("uid",),
    ),
    _record(
        "Provisional",
        "An entity that a model named and the corpus lacks: its labels are `Entity` and `Provisional`.",
        _OWN_UID,
        _MEMORY,
        _has("name", "text", "name as it is displayed"),
        _has("type", "text", "type"),
        _has("description", "text", "description"),
        _EMBEDDING,
        identity=("memory", "uid"),
        refers=(_to("Memory", "memory"),),
    ),
    _record(
        "Step",
        "A step.",
        _MEMORY,
        _has("number", "integer", "position in the memory, from 1"),
        _has("question", "text", "the question"),
        _has("strategy", "text", "how it searched: `global`, `local`, or a few words of another system's"),
        _may_have("judgement", "text", "verdict of the plan: `sufficient`, `local` or `global`"),
        _has("operations", "operations", "what the step did to memory: inserts, revisions, merges, retirements, drops"),
        _may_have("planned", "planned", "sub-queries planned for the next step"),
        _may_have("filters", "filters", "document filters of the step"),
        _has("notes", "texts", "what was dropped or repaired, in words"),
        _has("seconds", "number", "duration"),
        _has("usage", "usage", "model and database calls, tokens and seconds"),
        _may_have("created_at", "time", "creation time"),
        identity=("memory", "number"),
        link=Link(type="HAS_STEP", to=_to("Memory", "memory")),
    ),
    _record(
        "NEXT_STEP",
        "From a step to the next one.",
        _OF_MEMORY,
        *_ends("integer", "number of the step", "integer", "number of the next one"),
        source=_to("Step", "memory", "source"),
        target=_to("Step", "memory", "target"),
    ),
    _record(
        "MemoryPoint",
        "A memory point. A superseded one has the label `DeadPoint` too.",
        _OWN_UID,
        _MEMORY,
        _has("description", "text", "statement"),
        _has("born", "integer", "number of the step that created the point"),
        _may_have("died", "integer", "number of the step that superseded the point; absent while it is active"),
        _may_have("deleted_chunks", "texts", "uids of supporting chunks that were deleted"),
        _EMBEDDING,
        identity=("memory", "uid"),
        link=Link(type="HAS_POINT", to=_to("Memory", "memory")),
    ),
    _record(
        "INVOLVES",
        "From a memory point to an entity that it involves.",
        _OF_MEMORY,
        *_ends("own", "uid of the point", "text", "uid of the entity"),
        source=_to("MemoryPoint", "memory", "source"),
        target=_to_entity("target"),
    ),
    _record(
        "SUPPORTED_BY",
        "From a memory point to a chunk that supports it.",
        _OF_MEMORY,
        *_ends("own", "uid of the point", "uid", "uid of the chunk"),
        source=_to("MemoryPoint", "memory", "source"),
        target=_to("Chunk", "target"),
    ),
    *(
        _record(
            name,
            f"From a memory point to the one that it was {how}.",
            _OF_MEMORY,
            *_ends("own", "uid of the point", "own", "uid of the new one"),
            source=_to("MemoryPoint", "memory", "source"),
            target=_to("MemoryPoint", "memory", "target"),
        )
        for name, how in (("REVISED_AS", "revised as"), ("MERGED_INTO", "merged into"))
    ),
    _record(
        "SubQuery",
        "A sub-query of a step.",
        _MEMORY,
        _has("step", "integer", "number of the step", "archive"),
        _has("number", "integer", "position in the step, from 1"),
        _has("text", "text", "the text"),
        _may_have("concern", "text", "gap in memory that it addresses"),
        _has("strategy", "text", "how it searched"),
        _has("relations", "texts", "uids of the relations found, nearest first"),
        _may_have("built", "retrieved built rows", "what it found of a build, with the texts of that time"),
        identity=("memory", "step", "number"),
        link=Link(type="ASKED", to=_to("Step", "memory", "step")),
    ),
    _record(
        "RETRIEVED",
        "From a sub-query to an entity or a chunk that it retrieved.",
        _OF_MEMORY,
        _has("step", "integer", "number of the step", "archive"),
        _has("number", "integer", "number of the sub-query", "archive"),
        _has("target", "text", "uid of the entity or chunk", "archive"),
        _has("rank", "integer", "rank among the results"),
        _may_have("score", "number", "similarity, or what a reranker gave"),
        source=_to("SubQuery", "memory", "step", "number"),
        target=(*_to_entity("target"), *_to("Chunk", "target")),
    ),
    _record(
        "TARGETS",
        "From a sub-query to a memory point that it digs into.",
        _OF_MEMORY,
        _has("step", "integer", "number of the step", "archive"),
        _has("number", "integer", "number of the sub-query", "archive"),
        _has("target", "own", "uid of the point", "archive"),
        source=_to("SubQuery", "memory", "step", "number"),
        target=_to("MemoryPoint", "memory", "target"),
    ),
    _record(
        "Answer",
        "An answer.",
        _OWN_UID,
        _MEMORY,
        _has("question", "text", "the question"),
        _has("text", "text", "the text"),
        _has("status", "text", "`answered`, or why it has no text"),
        _has("step", "integer", "number of the latest step"),
        _has("model", "text", "language model that was used"),
        _has("notes", "texts", "what was dropped or repaired, in words"),
        _has("seconds", "number", "duration"),
        _has("usage", "usage", "model and database calls, tokens and seconds"),
        _has("created_at", "time", "creation time"),
        identity=("memory", "uid"),
        link=Link(type="HAS_ANSWER", to=_to("Memory", "memory")),
    ),
    _record(
        "Citation",
        "A citation of an answer.",
        _OWN_UID,
        _MEMORY,
        _has("answer", "own", "uid of the answer", "archive"),
        _has("marker", "integer", "number of the citation in the answer, as in `[1]`"),
        _has("chunk", "text", "uid of the chunk; empty for a row of a build"),
        _has("document", "text", "uid of the document; empty for a row that rests on several"),
        _has("title", "text", "title of the document or row"),
        _has("quote", "text", "quoted text, verbatim"),
        _may_have("start", "integer", "offset in the document, inclusive"),
        _may_have("end", "integer", "offset in the document, exclusive"),
        _has("source_id", "text", "id in the source that was imported"),
        _may_have("built", "text", "uid of the row of a build that it quotes"),
        _may_have("behind", "texts", "uids of the chunks behind that row, the nearest first"),
        _may_have("message", "text", "id of the message that is quoted"),
        _may_have("speaker", "text", "who said it"),
        _may_have("time", "text", "when it was said, in ISO 8601"),
        _has("withdrawn", "boolean", "true if what is cited was deleted or changed"),
        identity=("memory", "uid"),
        link=Link(type="HAS_CITATION", to=_to("Answer", "memory", "answer")),
    ),
    _record(
        "CITES",
        "From a citation to the chunk, or to the row of a build, that it quotes.",
        _OF_MEMORY,
        *_ends("own", "uid of the citation", "uid", "uid of the chunk or row"),
        source=_to("Citation", "memory", "source"),
        target=(*_to("Chunk", "target"), *_to("Built", "target")),
    ),
)

RECORD_TYPES = {each.name: each for each in (*_OF_CORPUS, *_OF_BUILDS, *_OF_MEMORIES)}
OF_MEMORIES = frozenset(each.name for each in _OF_MEMORIES)

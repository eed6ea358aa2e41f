"""Settings, recipes and the properties of the graph as Markdown tables, read off the code that defines them."""

from collections.abc import Iterator
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from hgmem.corpus.archive.fields import type_name
from hgmem.corpus.archive.kinds import KINDS
from hgmem.corpus.archive.schema import ArchiveRecord
from hgmem.settings import Settings
from hgmem.systems.hgmem.recipes import RECIPES, HGMemConfig

# What an archive's types are called for people.
_CALLED = {"texts": "list of texts", "vector": "vector (float32)", "own": "uid", "memory": "uid of its memory"}

OPTIONS = {
    "steps": "maximum new steps per question",
    "concerns": "maximum concerns, and so sub-queries, per plan",
    "calls": "model calls per step: `separate` (evolve, merge, plan, sub-queries), `compact` (two), `single` (one)",
    "strategies": "`adaptive`, or only `local` or only `global` (the paper's ablations)",
    "judging": "`concern`: each concern of a plan is local or global; `step`: the plan as a whole is (official code)",
    "update": "what an update does to a point's entities: `unite` adds, `keep` leaves, `replace` replaces; "
    "`off` disables updates",
    "merge": "`replace`: a merged point supersedes its parts; `add`: it stands beside them; `off` disables",
    "describe": "describe names and pairs that the corpus lacks with extra model calls",
    "retrieval.entities": "entities found per sub-query (the paper's n_v)",
    "retrieval.relations": "relations found per sub-query (n_e)",
    "retrieval.chunks": "source chunks of the entities found, per sub-query (n_d)",
    "retrieval.searched_chunks": "chunks found by searching all chunks, per sub-query",
    "retrieval.line_chunks": "the chunks behind each entity and relation found, at most three, are found too",
    "retrieval.chunk_search": "how chunks are searched: `hybrid` is vector and full-text search",
    "retrieval.hops": "hops around target points in local investigation, 1 or 2",
    "retrieval.shared": "local scope includes entities that share a point with a target entity",
    "retrieval.pooled": "all sub-queries of a step share one local scope (official code)",
    "retrieval.exclude": "global exploration excludes entities of memory",
    "select_entities": "add up to 5 of the 20 nearest entities per sub-query, chosen by a model call for each",
    "only_new": "a step's prompt omits what memory already holds, and shows chunks not shown before first",
    "evidence_tokens": "maximum tokens of chunks in a step's prompt",
    "memory_tokens": "maximum tokens of points in a prompt: targets first, then the newest",
    "hints": "entities next to memory that a plan's prompt lists",
    "describe_hints": "hints with descriptions, the same in each round; else names and types, each named once",
    "titles": "titles of unread documents that a plan's prompt lists, besides those read; 0 lists none",
    "answer_from": "chunks for the answer: those that active points rest on and others `read`, all of `memory`, or "
    "those `around` each point",
    "answer_chunks": "maximum chunks for the answer",
    "answer_tokens": "maximum tokens of the answer's chunks",
    "read_tokens": "up to so many tokens, chunks that no point rests on join an answer from `read` ones; with 0, none",
    "unread_tokens": "maximum tokens of chunks that were found but shown in no step, added to an answer from `read`",
    "answer_each_step": "write an answer after every step",
    "form": "requested form of the answer, such as `one paragraph`",
}
"""What each recipe option means."""

MEANINGS = {
    "answer": "uid of the answer",
    "attempts": "how often extraction, or the making of a unit, was tried",
    "behind": "uids of the chunks behind a quote from a row of a build, the nearest first",
    "built": "of a sub-query: what it retrieved of a system's build, with the texts of that time, a list in JSON; of a "
    "citation: uid of the row that it quotes",
    "born": "number of the step that created the point",
    "calls": "model calls that the unit took",
    "change": "what changed in the corpus since the build was made",
    "changed_at": "time of that change",
    "chunk": "uid of the chunk",
    "chunking": "identifies the chunking settings of the document",
    "chunks": "uids of the chunks that support the relation",
    "citation": "uid of the citation",
    "concern": "gap in memory that the sub-query addresses",
    "condensed": "summarized description, with what it was made from",
    "created_at": "creation time",
    "cut": "true if the description was truncated",
    "description": "description of an entity or relation; statement of a point",
    "died": "number of the step that superseded the point; absent while it is active",
    "deleted_chunks": "uids of supporting chunks that were deleted",
    "digest": "hash of the unit's inputs; absent where a deletion emptied it",
    "document": "uid of the document; empty where a built row or unit rests on several",
    "embedding": "vector of the node or relation",
    "end": "offset in the document or chunk, exclusive",
    "entity": "uid of the entity",
    "error": "why extraction, or the making of a unit, failed",
    "extraction": "entities and relations extracted from the chunk",
    "finished_at": "when a run of the build last went through all stages",
    "filters": "document filters of the question or step",
    "given": "contributions of a pre-built graph",
    "gives_vector": "`vector` of EXTENDS: whether the unit gives the row the vector that is searched",
    "indexed_at": "time when indexing finished",
    "inputs": "how many chunks, rows and outputs the unit was made from",
    "judgement": "verdict of the plan: `sufficient`, `local` or `global`",
    "key": "normalized name that identifies the entity; what identifies a unit in its stage, a built row in its kind",
    "keywords": "keywords of the relation",
    "label": "label of a built row beside `Built`, also its property `kind`",
    "learnt": "true if questions wrote the row, and no unit",
    "latest": "the latest question, if the memory was continued",
    "marker": "number of the citation in the answer, as in `[1]`",
    "memory": "uid of the memory; none for entities and relations of the corpus",
    "message": "id of the message that is quoted",
    "message_number": "number of a conversation's latest message",
    "messages": "id, speaker, time and place of each message in the chunk, a list in JSON",
    "metadata": "caller's metadata, for filters",
    "model": "language model that was used",
    "name": "name as it is displayed",
    "notes": "what was dropped or repaired, in words",
    "number": "position, from 1, of a step; of a sub-query in its step",
    "operations": "what the step did to memory: inserts, revisions, merges, drops",
    "owner": "who sees the memory; empty or absent for everybody",
    "output": "what the unit left for later units: JSON as text",
    "own_embedding": "vector of the row's text, where a later unit gives it another `embedding`",
    "own_properties": "further properties, of the system's own",
    "planned": "sub-queries planned for the next step",
    "point": "uid of the memory point",
    "position": "position of the chunk in its document",
    "question": "the question",
    "quote": "quoted text, verbatim from the chunk",
    "rank": "rank among the results of the sub-query",
    "relations": "uids of the relations found",
    "replaced_vectors": "whether the row has an `own_embedding`",
    "row": "uid of the built row",
    "score": "similarity score",
    "seconds": "duration",
    "settings": "recipe options of the memory or build",
    "sha256": "hash of the document's text",
    "source": "path or id of a document; start of a relationship",
    "source_id": "id in the source that was imported",
    "speaker": "who said the message that is quoted",
    "stale": "true if the description or vector needs recomputing",
    "stage": "stage of the build",
    "start": "offset in the document or chunk, inclusive",
    "status": "state of the node, such as `done`, `embedded` (indexed without a graph) or `failed` "
    "([of memories](../concepts.md))",
    "step": "number of the step",
    "strategy": "how it searched: `global`, `local`, or a few words of another system's",
    "system": "name of the system, such as `hgmem`",
    "target": "end of a relationship",
    "text": "text of a chunk, sub-query, answer or built row",
    "time": "when the message that is quoted was said, in ISO 8601",
    "title": "title of the document",
    "tokens": "length in tokens; those that the unit's model calls took",
    "type": "type of the entity or relationship",
    "uid": "hash of corpus, kind and identity",
    "unit": "uid of the unit that made the row or relationship",
    "usage": "model and database calls, tokens and seconds",
    "vector": "vector of any length that no index holds, such as a sum",
    "weight": "weight of the relation",
    "withdrawn": "true if the cited chunk was deleted",
}
"""What each graph property means."""


def settings() -> str:
    """Return a row for every field of `Settings`: environment variable, default, meaning."""
    head = "| variable | default | meaning |\n|---|---|---|\n"
    return head + "\n".join(_setting(name, info) for name, info in Settings.model_fields.items())


def recipes() -> str:
    """Return a row for every setting of a recipe, with its value in each of the named ones."""
    names = ("default", "paper", "code", "compact", "single")
    columns = [dict(_leaves(RECIPES[name])) for name in names]
    head = f"| option | {' | '.join(f'`{name}`' for name in names)} | meaning |\n|---|{'---|' * len(names)}---|\n"
    rows = (
        f"| `{name}` | {' | '.join(_value(column[name]) for column in columns)} | {OPTIONS[name]} |"
        for name, _ in _leaves(HGMemConfig())
    )
    return head + "\n".join(rows)


def properties() -> str:
    """Return a row for every label and relationship type with its properties; `?` marks those that may be absent."""
    rows = (f"| `{name}` | {_properties(kind)} |" for name, kind in KINDS.items())
    names = sorted({name for kind in KINDS.values() for name in kind.properties})
    meanings = (f"| `{name}` | {MEANINGS[name]} |" for name in names)
    return "\n".join(
        ["| label or type | properties |", "|---|---|", *rows, "", "| property | meaning |", "|---|---|", *meanings]
    )


def _setting(name: str, info: FieldInfo) -> str:
    alias = info.validation_alias
    choices = [str(each) for each in alias.choices if str(each).isupper()] if isinstance(alias, AliasChoices) else []
    variables = " ".join(f"`{each}`" for each in choices or [f"HGMEM_{name.upper()}"])
    said = (info.description or "").replace("|", "\\|")
    return f"| {variables} | {_default(info)} | {said} |"


def _default(info: FieldInfo) -> str:
    made = info.get_default(call_default_factory=True)
    if isinstance(made, Path):
        return "the user's own folder"
    if made is None or isinstance(made, SecretStr):
        return ""
    if isinstance(made, tuple | frozenset):
        return ", ".join(f"`{each}`" for each in (sorted(made) if isinstance(made, frozenset) else made))
    return f"`{made:,}`".replace(",", "_") if isinstance(made, int) and not isinstance(made, bool) else _value(made)


def _leaves(config: Any, prefix: str = "") -> Iterator[tuple[str, object]]:
    for each in fields_of(config):
        value = getattr(config, each.name)
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{each.name}.")
        else:
            yield f"{prefix}{each.name}", value


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`" if value not in ("", {}) else ""


def _properties(kind: type[ArchiveRecord]) -> str:
    return ", ".join(_property(name, kind.model_fields[name]) for name in kind.properties)


def _property(name: str, field: FieldInfo) -> str:
    called = type_name(field)
    return f"`{name}{'' if field.is_required() else '?'}` {_CALLED.get(called, called)}"

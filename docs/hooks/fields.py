"""Settings, recipes and the properties of the graph as Markdown tables, read off the code that defines them."""

from collections.abc import Iterator
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, SecretStr
from pydantic.fields import FieldInfo

from hgmem.graph.record_fields import Field, RecordType, Reference
from hgmem.graph.record_types import RECORD_TYPES
from hgmem.settings import Settings
from hgmem.systems.hgmem.recipes import RECIPES, HGMemConfig

# What types of fields are called for people.
_CALLED = {
    "texts": "list of texts",
    "own": "uid",
    "memory": "uid",
    "memory or none": "uid or empty",
    "vector": "vector (float32)",
    "vector of any length": "vector (float32)",
}
# What becomes of a property in an archive, where it is not kept there.
_RULES = {"kept": "", "archive": "only there", "derived": "follows from the rest", "never": "left out"}

OPTIONS = {
    "clues": "what a first look at the corpus writes to search by in the first step, beside the question: `spans`, "
    "`queries`, `key_points`, `draft`; none: no first look (the paper)",
    "most_clues": "maximum clues of a kind",
    "overview_tokens": "maximum tokens of gists, titles and entities that the first look sees",
    "steps": "maximum new steps per question",
    "concerns": "maximum concerns, and so sub-queries, per plan",
    "calls": "model calls per step: `separate` for evolve, merge, plan and sub-queries (the paper), or one for the "
    "`whole` step",
    "strategies": "`adaptive`, or only `local` or only `global` (the paper's ablations)",
    "judging": "`concern`: each concern of a plan is local or global; `step`: the plan as a whole is (the paper)",
    "update": "what an update does to a point's entities: `unite` adds, `keep` leaves, `replace` replaces; "
    "`off` disables updates",
    "merge": "`replace`: a merged point supersedes its parts; `add`: it stands beside them; `off` disables",
    "additions": "rules beside the paper's: `rounds` (a plan is told which round it is), `numbers` (of chunks, which "
    "points name), `premises` (of the question are tested), `brief` (short statements), `statements` (an update adds "
    "to a point, a merge keeps its parts' statements), `one_merge` (of a point in a reply), `single` (points with one "
    "entity)",
    "describe": "describe names and pairs that the corpus lacks with extra model calls",
    "retrieval.entities": "entities found per sub-query (the paper's n_v)",
    "retrieval.relations": "relations found per sub-query (n_e)",
    "retrieval.chunks": "source chunks of the entities found, per sub-query (n_d)",
    "retrieval.searched_chunks": "chunks found by searching all chunks, per sub-query",
    "retrieval.chunk_search": "how chunks are searched: `hybrid` is vector and full-text search",
    "retrieval.titles": "whether words of a document's title count in each of its chunks in full-text search",
    "retrieval.hops": "hops around target points in local investigation, 1 or 2",
    "retrieval.shared": "local scope includes entities that share a point with a target entity",
    "retrieval.pooled": "all sub-queries of a step share one local scope (official code)",
    "retrieval.exclude": "global exploration excludes entities of memory",
    "retrieval.beside": "chunks next to those that the points of a local sub-query rest on, per sub-query",
    "later_chunks": "chunks found by searching all chunks after the first step, per sub-query; 0: as in the first",
    "bearing": "leave out chunks that are found after the first step and bear on none of its sub-queries",
    "rerank": "chunks of each sub-query that a [reranker](models.md#rerankers) reads, and chunks of the answer that no "
    "finding brings, by the question; 0: none",
    "only_new": "a step's prompt omits what memory already holds, and what an earlier prompt showed",
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
    "answer_each_step": "write an answer after every step",
    "form": "requested form of the answer, such as `one paragraph`",
}
"""What each recipe option means."""


def settings() -> str:
    """Return a row for every field of `Settings`: environment variable, default, meaning."""
    head = "| variable | default | meaning |\n|---|---|---|\n"
    return head + "\n".join(_setting(name, info) for name, info in Settings.model_fields.items())


def recipes() -> str:
    """Return a row for every setting of a recipe, with its value in each of the named ones."""
    names = ("default", "paper", "code")
    columns = [dict(_leaves(RECIPES[name])) for name in names]
    head = f"| option | {' | '.join(f'`{name}`' for name in names)} | meaning |\n|---|{'---|' * len(names)}---|\n"
    rows = (
        f"| `{name}` | {' | '.join(_value(column[name]) for column in columns)} | {OPTIONS[name]} |"
        for name, _ in _leaves(HGMemConfig())
    )
    return head + "\n".join(rows)


def properties() -> str:
    """Return a table for every label and relationship type with its fields; `?` marks those that may be absent."""
    return "\n\n".join(map(_record_type, RECORD_TYPES.values()))


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
    if isinstance(value, tuple):
        return ", ".join(f"`{one}`" for one in value)
    return f"`{value}`" if value not in ("", {}) else ""


def _record_type(of_type: RecordType) -> str:
    rows = map(_field, of_type.fields)
    about = f"{of_type.about}{_link(of_type)}"
    table = ["| field | type | meaning | in archives |", "|---|---|---|---|", *rows]
    return "\n".join([f"### `{of_type.name}`", "", about, "", *table])


def _link(of_type: RecordType) -> str:
    """Return what a record of an archive stands for beside the node itself, or between what a relationship stands."""
    if of_type.source:
        return f" `{_names(of_type.source)}` → `{_names(of_type.target)}`."
    if of_type.link is None:
        return ""
    arrow = "to" if of_type.link.outgoing else "from"
    return f" Its record in an archive stands for its `{of_type.link.type}` {arrow} `{_names(of_type.link.to)}` too."


def _names(reference: Reference) -> str:
    return "|".join(dict.fromkeys("Entity" if name == "Provisional" else name for name, _ in reference))


def _field(field: Field) -> str:
    mark = "?" if field.optional else ""
    return f"| `{field.name}{mark}` | {_CALLED.get(field.type, field.type)} | {field.meaning} | {_RULES[field.rule]} |"

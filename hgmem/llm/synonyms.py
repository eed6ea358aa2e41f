"""What models call the fields and the choices that they were asked for."""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "chunks": ("sources", "evidence", "chunk", "chunk_ids", "evidence_chunks", "citations"),
    "concerns": ("concern", "gaps", "open_questions"),
    "description": ("statement", "text", "content", "summary", "desc", "relationship", "relation", "predicate"),
    "entities": ("objects", "entity_names", "names", "vertices", "nodes", "entity"),
    "insert": ("inserted", "inserts", "insertion", "insertions", "new", "new_points", "add", "added"),
    "judgement": ("judgment", "decision", "verdict"),
    "keywords": ("keyword", "key_words", "keyphrases", "tags"),
    "merge": ("merges", "merged", "merging"),
    "name": ("entity", "entity_name", "title"),
    "point": ("index", "id", "point_index", "point_id", "number"),
    "points": ("indices", "indexes", "ids", "targets", "point", "index", "id", "point_ids", "point_indices"),
    "relations": ("relationships", "relation", "relationship", "edges", "triples"),
    "source": ("src", "from", "subject", "head", "source_entity"),
    "subqueries": ("sub_queries", "queries", "questions", "subquery", "sub_query", "query"),
    "subquery": ("sub_query", "query", "question"),
    "target": ("tgt", "to", "object", "tail", "target_entity"),
    "text": ("concern", "statement", "description", "content", "desc"),
    "type": ("entity_type", "category", "label", "kind"),
    "update": ("updates", "updated", "revise", "revised", "revision", "revisions", "modified", "modify"),
    "weight": ("strength", "score", "importance"),
}
"""By the field's own name, best first. A synonym counts where the field itself is absent, and for one field."""

CHOICES: dict[str, tuple[str, ...]] = {
    "global": ("2.2", "global exploration", "global investigation", "explore"),
    "local": ("2.1", "local investigation", "local exploration", "investigate"),
    "sufficient": ("1", "enough", "yes", "true", "complete", "sufficient information"),
}
"""What stands for a choice. The numbers are those of the paper's prompt for the plan."""

SENTENCES = frozenset({"concerns", "subqueries"})
"""Lists whose items are sentences: a text is split at line ends alone, where a list of names is split at commas."""

ALIGNED = frozenset({"subqueries"})
"""Lists whose items answer to something by their position: what can't be read leaves an empty text."""

NAMING = ("subquery", "name", "text", "keyword", "description")
"""Which field of an object says it, where a text is wanted."""

NUMBERING = ("index", "id", "point", "chunk", "number")
"""Which field of an object says it, where a number is wanted."""


def plain(name: str) -> str:
    """Return a name as names are compared: `Sub-Queries` and `sub_queries` are one."""
    return name.casefold().translate(_IGNORED)


_IGNORED = {ord(character): None for character in "_- "}

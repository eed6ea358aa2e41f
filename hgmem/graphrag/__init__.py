"""A graph as Neo4j's GraphRAG package stores it, turned into one that is brought ready-made.

What the package writes is in its `LexicalGraphBuilder`, `LLMEntityRelationExtractor` and `Neo4jWriter`
(https://github.com/neo4j/neo4j-graphrag-python, read in versions 1.0, 1.3 and 1.22). What does not fit is left out and
counted: a graph of theirs may have been edited since.
"""

from collections import Counter

from hgmem.graphrag.entities import entities_of, relations_of
from hgmem.graphrag.lexical import lexical
from hgmem.graphrag.shape import Found, Notes, Shape
from hgmem.inputs import Given


def assembled(found: Found, shape: Shape) -> tuple[Given, tuple[str, ...]]:
    """Return their graph as one that is brought, and what was left out or put otherwise, a line each."""
    notes: Notes = Counter()
    documents, chunks = lexical(found, notes)
    entities = entities_of(found.entities, {theirs: chunk.id for theirs, chunk in chunks.items()}, shape, notes=notes)
    relations = relations_of(found.relations, entities, notes=notes)
    given = Given(
        documents=documents, chunks=tuple(chunks.values()), entities=tuple(entities.values()), relations=relations
    )
    return given, tuple(f"{number:,} {one if number == 1 else many}" for (one, many), number in notes.items() if number)

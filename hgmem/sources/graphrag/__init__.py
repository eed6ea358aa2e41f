"""Convert a graph of the neo4j-graphrag package into a pre-built graph.

The package's `LexicalGraphBuilder`, `LLMEntityRelationExtractor` and `Neo4jWriter` define the format
(https://github.com/neo4j/neo4j-graphrag-python, checked against versions 1.0, 1.3 and 1.22). Invalid data is skipped
and counted, because the graph may have been edited since.
"""

from collections import Counter

from hgmem.sources.graphrag.entities import entities_of, relations_of
from hgmem.sources.graphrag.lexical import lexical
from hgmem.text.plurals import counted
from hgmem.values.foreign_graph import Found, Notes, Shape
from hgmem.values.inputs import Given


def assembled(found: Found, shape: Shape) -> tuple[Given, tuple[str, ...]]:
    """Return the graph as a pre-built one, and a note for each thing that was left out or changed."""
    notes: Notes = Counter()
    documents, chunks = lexical(found, notes)
    entities = entities_of(
        found.entities, {element_id: chunk.id for element_id, chunk in chunks.items()}, shape, notes=notes
    )
    relations = relations_of(found.relations, entities, notes=notes)
    given = Given(
        documents=documents, chunks=tuple(chunks.values()), entities=tuple(entities.values()), relations=relations
    )
    return given, tuple(counted(number, one, many) for (one, many), number in notes.items() if number)

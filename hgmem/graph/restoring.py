"""Typed wrappers for `cypher/restoring.cypher`.

Rows are records of an archive, with vectors in the driver's type.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hgmem.graph.database import Row, leased
from hgmem.graph.values import Runner, vector
from hgmem.text.identity import build_uid, corpus_key, layer_key


def restore_documents(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write documents."""
    database.run("restore_documents", corpus=corpus, rows=list(rows))


def restore_chunks(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write chunks, each with its FROM_DOCUMENT."""
    database.run("restore_chunks", corpus=corpus, rows=_keyed(rows, corpus))


def restore_order(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write NEXT_CHUNK."""
    database.run("restore_order", corpus=corpus, rows=list(rows))


def restore_entities(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write entities of the corpus."""
    database.run("restore_entities", corpus=corpus, rows=_keyed(rows, corpus))


def restore_mentions(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write FROM_CHUNK."""
    database.run("restore_mentions", corpus=corpus, rows=list(rows))


def restore_provisionals(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write provisional entities."""
    database.run("restore_provisionals", corpus=corpus, rows=list(rows))


def restore_relations(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write RELATES."""
    database.run("restore_relations", corpus=corpus, rows=list(rows))


def restore_memories(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write memories."""
    database.run("restore_memories", corpus=corpus, rows=list(rows))


def restore_steps(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write steps, each with its HAS_STEP."""
    database.run("restore_steps", corpus=corpus, rows=list(rows))


def restore_step_order(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write NEXT_STEP."""
    database.run("restore_step_order", corpus=corpus, rows=list(rows))


def restore_points(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write memory points, each with its HAS_POINT."""
    database.run("restore_points", corpus=corpus, rows=list(rows))


def restore_involved(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write INVOLVES."""
    database.run("restore_involved", corpus=corpus, rows=list(rows))


def restore_supported(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write SUPPORTED_BY."""
    database.run("restore_supported", corpus=corpus, rows=list(rows))


def restore_revised(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write REVISED_AS."""
    database.run("restore_revised", corpus=corpus, rows=list(rows))


def restore_merged(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write MERGED_INTO."""
    database.run("restore_merged", corpus=corpus, rows=list(rows))


def restore_subqueries(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write sub-queries, each with its ASKED."""
    database.run("restore_subqueries", corpus=corpus, rows=list(rows))


def restore_retrieved(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write RETRIEVED."""
    database.run("restore_retrieved", corpus=corpus, rows=list(rows))


def restore_targets(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write TARGETS."""
    database.run("restore_targets", corpus=corpus, rows=list(rows))


def restore_answers(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write answers, each with its HAS_ANSWER."""
    database.run("restore_answers", corpus=corpus, rows=list(rows))


def restore_citations(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write citations, each with its HAS_CITATION."""
    database.run("restore_citations", corpus=corpus, rows=list(rows))


def restore_cited(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write CITES."""
    database.run("restore_cited", corpus=corpus, rows=list(rows))


def restore_builds(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write builds."""
    database.run("restore_builds", corpus=corpus, rows=list(rows))


def restore_units(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write units of builds, each with its HAS_UNIT."""
    named = [{**row, "build": build_uid(corpus, row["system"])} for row in rows]
    database.run("restore_units", corpus=corpus, rows=named)


def restore_built(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write built rows, each with its MADE and its vectors: `vector`, `own_vector` and `plain_vector`."""
    keyed = [{**row, "layer_key": layer_key(corpus, row["system"], row["label"])} for row in rows]
    database.run("restore_built", corpus=corpus, rows=keyed)


def restore_support(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write RESTS_ON."""
    database.run("restore_support", corpus=corpus, rows=list(rows))


def restore_extensions(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write EXTENDS."""
    database.run("restore_extensions", corpus=corpus, rows=list(rows))


def restore_own_relationships(database: Runner, *, corpus: str, rows: Sequence[Row]) -> None:
    """Write relationships of systems' own types."""
    database.run("restore_own_relationships", corpus=corpus, rows=list(rows))


def unmake_given_vectors(database: Runner, *, corpus: str) -> None:
    """Let the next build make the units anew that give rows their vectors."""
    database.run("unmake_given_vectors", corpus=corpus)


def finish_restoring(database: Runner, *, corpus: str, run: str, properties: Row, archive: str) -> None:
    """Release the lease on a completely restored corpus, and set its original properties."""
    rows = database.run("finish_restoring", corpus=corpus, run=run, properties=properties, archive=archive)
    leased(rows, what=f"corpus {corpus!r}")


def with_vectors(row: Row, vectors: Mapping[str, Any]) -> Row:
    """Return the row with these vectors in the driver's type, by their names in statements."""
    return {**row, **{name: vector(values) for name, values in vectors.items()}}


def _keyed(rows: Sequence[Row], corpus: str) -> list[Row]:
    return [{**row, "corpus_key": corpus_key(corpus)} for row in rows]

"""Chunks, entities and relations: what contributions give, made again and compared, and what the indexes find.

Each index is asked for exactly the things that are named to it, page by page: it looks at every one of them, so what
it does not return it does not hold. Nothing is sampled.
"""

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from hgmem.checking.tally import Tally
from hgmem.contributions import (
    EntityContribution,
    RelationContribution,
    entities_of,
    entity_fields,
    load_entities,
    load_relations,
    relation_fields,
    relations_of,
)
from hgmem.corpus.fold import batches
from hgmem.corpus.said import Said, said_of_entities, said_of_relations
from hgmem.extract import Extraction
from hgmem.graph.corpus import CorpusRow
from hgmem.graph.database import Row
from hgmem.graph.entities import EntityInputs, RelationInputs, joined_entities
from hgmem.graph.invariants import (
    chunk_page,
    entity_page,
    indexed_chunks,
    indexed_entities,
    indexed_relations,
    relation_page,
    stored_chunks,
    stored_entities,
    stored_relations,
    unfolded_chunks,
)
from hgmem.graph.values import Runner
from hgmem.identity import uid
from hgmem.services import Services

T = TypeVar("T")


def check_chunks(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally chunks whose contributions are not in the graph, or that are not in the index."""
    for uids in _batches(services, chunk_page):
        corpus = services.corpus
        stored = stored_chunks(services.database, corpus=corpus, uids=uids, dimensions=row.dimensions)
        extracted = [one for one in uids if one in stored and stored[one]["status"] in ("done", "extracted")]
        found = indexed_chunks(services.database, corpus=corpus, uids=extracted, query=first_axis(row))
        tally.add("chunk-not-in-index", [one for one in extracted if stored[one]["embedded"] and one not in found])
        done = [one for one in extracted if stored[one]["status"] == "done" and stored[one]["extraction"]]
        named = {one: names for one in done if (names := _names(corpus, stored[one]["extraction"]))}
        tally.add("contributions-unreadable", [one for one in done if one not in named])
        tally.add("chunk-not-folded", unfolded_chunks(services.database, corpus=corpus, named=named))


def check_entities(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally entities that are not what their contributions give, or that are not in the index."""
    limits = _limits(services, row)
    for uids in _batches(services, entity_page):
        database, corpus = services.database, services.corpus
        stored = stored_entities(database, corpus=corpus, uids=uids, dimensions=row.dimensions)
        found = indexed_entities(database, corpus=corpus, uids=uids, query=first_axis(row))
        tally.add("entity-not-in-index", [one for one in uids if _embedded(stored, one) and one not in found])
        said = _readable(said_of_entities, services, _own(stored), tally=tally)
        joined = _joined(services, [one.inputs.uid for one in said if not one.contributions])
        same = {one.inputs.uid for one in said if _is_entity(one, stored[one.inputs.uid], limits, joined)}
        own = {one.inputs.uid for one in said if one.inputs.uid == uid(corpus, "entity", one.inputs.key or "")}
        tally.add("entity-differs", [one.inputs.uid for one in said if one.inputs.uid not in same & own])


def check_relations(services: Services, row: CorpusRow, tally: Tally) -> None:
    """Tally relations that are not what their contributions give, or that are not in the index."""
    limits = _limits(services, row)
    for uids in _batches(services, relation_page):
        database, corpus = services.database, services.corpus
        stored = stored_relations(database, corpus=corpus, uids=uids, dimensions=row.dimensions)
        found = indexed_relations(database, corpus=corpus, uids=uids, query=first_axis(row))
        tally.add("relation-not-in-index", [one for one in uids if _embedded(stored, one) and one not in found])
        said = _readable(said_of_relations, services, _own(stored), tally=tally)
        odd = [one.inputs.uid for one in said if not _is_relation(one, stored[one.inputs.uid], limits)]
        tally.add("relation-differs", odd)


def first_axis(row: CorpusRow) -> list[float]:
    """Return a unit vector of the corpus's dimensions: which one does not matter where all is asked for."""
    return [1.0] + [0.0] * (row.dimensions - 1)


def _batches(services: Services, page: Callable[..., list[str]]) -> Iterator[list[str]]:
    after = ""
    while uids := page(services.database, corpus=services.corpus, after=after):
        yield from batches(uids)
        after = uids[-1]


def _limits(services: Services, row: CorpusRow) -> set[int]:
    """Return the limits of a description that may have been in force: the corpus's first one, and that of now."""
    first = json.loads(row.settings or "{}").get("description_characters")
    now = services.settings.description_characters
    return {now, first or now}


def _embedded(stored: Mapping[str, Row], one: str) -> bool:
    return one in stored and bool(stored[one]["embedded"])


def _own(stored: Mapping[str, Row]) -> list[str]:
    """Return those that are the corpus's: what a memory has of its own rests on no contributions."""
    return [one for one, row in stored.items() if not row["memory"]]


def _readable(
    say: Callable[[Runner, Services, Sequence[str]], list[T]], services: Services, uids: Sequence[str], *, tally: Tally
) -> list[T]:
    """Return what is said of the things; those of which it can't be read are tallied and left out."""
    try:
        return say(services.database, services, uids)
    except (ValueError, TypeError, KeyError):
        if len(uids) == 1:
            tally.add("contributions-unreadable", uids)
            return []
        return [said for one in uids for said in _readable(say, services, [one], tally=tally)]


def _joined(services: Services, uids: Sequence[str]) -> set[str]:
    """Return those of the entities that nothing describes, but that a relation joins."""
    rows = joined_entities(services.database, corpus=services.corpus, uids=uids) if uids else []
    return {row.uid for row in rows}


def _is_entity(
    said: Said[EntityInputs, EntityContribution], row: Row, limits: Iterable[int], joined: Container[str]
) -> bool:
    inputs = said.inputs
    if load_entities(inputs.given) != said.given:
        return False
    if not said.contributions:  # where no relation joins it and no chunk names it, that breaks another promise
        return not said.chunks and not (inputs.uid in joined and (row["description"] or inputs.condensed))
    wanted = (row["name"], row["type"], row["description"], inputs.condensed)
    found = (entity_fields(said.contributions, limit=limit, condensed=inputs.condensed) for limit in limits)
    return any((one.name, one.type, one.description.text, one.description.condensed) == wanted for one in found)


def _is_relation(said: Said[RelationInputs, RelationContribution], row: Row, limits: Iterable[int]) -> bool:
    inputs = said.inputs
    living = [chunk for chunk in inputs.chunks if chunk in said.chunks]  # those that are gone break another promise
    if load_relations(inputs.given) != said.given or living != list(said.chunks) or not said.contributions:
        return False
    wanted = (tuple(row["keywords"] or ()), row["weight"], row["description"], inputs.condensed)
    found = (relation_fields(said.contributions, limit=limit, condensed=inputs.condensed) for limit in limits)
    return any((one.keywords, one.weight, one.description.text, one.description.condensed) == wanted for one in found)


def _names(corpus: str, text: str) -> tuple[list[str], list[str]] | None:
    """Return the uids of the entities and relations that an extraction names; None where it can't be read."""
    try:
        extraction = Extraction.model_validate_json(text)
    except ValueError:
        return None
    entities = [uid(corpus, "entity", name) for name in entities_of(extraction)]
    return entities, [uid(corpus, "relation", *ends) for ends in relations_of(extraction)]

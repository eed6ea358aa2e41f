"""What is said of entities and relations: what was given ready-made, then what the extractions of chunks contribute."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from hgmem.contributions import (
    EntityContribution,
    RelationContribution,
    counting,
    entities_of,
    load_entities,
    load_relations,
    relations_of,
)
from hgmem.extract import Extraction
from hgmem.graph.entities import (
    EntityInputs,
    RelationInputs,
    chunk_extractions,
    entity_contributions,
    relation_contributions,
)
from hgmem.graph.values import NOTHING, Runner
from hgmem.services import Services

C = TypeVar("C", EntityContribution, RelationContribution)
I = TypeVar("I", EntityInputs, RelationInputs)  # noqa: E741
K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said(Generic[I, C]):
    """Everything that is said of an entity or a relation: `chunks` are the living ones, `given` what still counts."""

    inputs: I
    chunks: tuple[str, ...]
    given: list[C]
    contributions: list[C]


def said_of_entities(
    database: Runner, services: Services, uids: Sequence[str]
) -> list[Said[EntityInputs, EntityContribution]]:
    """Return what is said of each of the entities, in the order that counts."""
    return entities_said(database, services, entity_contributions(database, corpus=services.corpus, uids=uids))


def said_of_relations(
    database: Runner, services: Services, uids: Sequence[str]
) -> list[Said[RelationInputs, RelationContribution]]:
    """Return what is said of each of the relations, in the order that counts."""
    return relations_said(database, services, relation_contributions(database, corpus=services.corpus, uids=uids))


def entities_said(
    database: Runner,
    services: Services,
    inputs: Sequence[EntityInputs],
    *,
    brought: Mapping[str, Sequence[EntityContribution]] = NOTHING,
) -> list[Said[EntityInputs, EntityContribution]]:
    """Return what is said of entities, `brought` (by uid) given beside what was given before, each once."""
    parsed = _parsed(database, services, inputs, entities_of)
    return [
        _said(one, one.chunks, _united(load_entities(one.given), brought.get(one.uid, ())), (one.key, parsed))
        for one in inputs
    ]


def relations_said(
    database: Runner,
    services: Services,
    inputs: Sequence[RelationInputs],
    *,
    brought: Mapping[str, Sequence[RelationContribution]] = NOTHING,
) -> list[Said[RelationInputs, RelationContribution]]:
    """Return what is said of relations; `brought` as in `entities_said`."""
    parsed = _parsed(database, services, inputs, relations_of)
    return [
        _said(
            one,
            one.living,
            _united(load_relations(one.given), brought.get(one.uid, ())),
            ((one.source, one.target), parsed),
        )
        for one in inputs
    ]


def _said(
    inputs: I, chunks: Iterable[str], given: Sequence[C], extracted: tuple[K, Mapping[str, Mapping[K, list[C]]]]
) -> Said[I, C]:
    key, parsed = extracted
    gone = set(inputs.extracted) - parsed.keys()  # since the chunks were listed
    living = tuple(chunk for chunk in chunks if chunk not in gone)
    kept = counting(given, living=set(living))
    found = [said for chunk in living if chunk in parsed for said in parsed[chunk].get(key, [])]
    return Said(inputs=inputs, chunks=living, given=kept, contributions=kept + found)


def _united(stored: list[C], brought: Sequence[C]) -> list[C]:
    return list(dict.fromkeys(chain(stored, brought))) if brought else stored


def _parsed(
    database: Runner,
    services: Services,
    inputs: Iterable[EntityInputs | RelationInputs],
    read: Callable[[Extraction], dict[K, list[C]]],
) -> dict[str, dict[K, list[C]]]:
    """Return, by chunk, what those that have an extraction contribute; chunks of ready-made graphs have none."""
    uids = sorted({chunk for one in inputs for chunk in one.extracted})
    stored = chunk_extractions(database, corpus=services.corpus, uids=uids) if uids else {}
    return {chunk: read(Extraction.model_validate_json(text)) if text else {} for chunk, text in stored.items()}

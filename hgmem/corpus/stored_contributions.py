"""Read the contributions to entities and relations: pre-built ones first, then extractions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from hgmem.extraction.contributions import (
    EntityContribution,
    RelationContribution,
    entities_of,
    load_entities,
    load_relations,
    relations_of,
    still_supported,
)
from hgmem.extraction.replies import Extraction
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
class Contributions(Generic[I, C]):
    """All contributions to an entity or a relation.

    `chunks` are those that still exist; `given` are the pre-built contributions that still count.
    """

    inputs: I
    chunks: tuple[str, ...]
    given: list[C]
    contributions: list[C]


def read_entity_contributions(
    database: Runner, services: Services, uids: Sequence[str]
) -> list[Contributions[EntityInputs, EntityContribution]]:
    """Read the contributions to each of the entities, in aggregation order."""
    return combine_entity_contributions(
        database, services, entity_contributions(database, corpus=services.corpus, uids=uids)
    )


def read_relation_contributions(
    database: Runner, services: Services, uids: Sequence[str]
) -> list[Contributions[RelationInputs, RelationContribution]]:
    """Read the contributions to each of the relations, in aggregation order."""
    return combine_relation_contributions(
        database, services, relation_contributions(database, corpus=services.corpus, uids=uids)
    )


def combine_entity_contributions(
    database: Runner,
    services: Services,
    inputs: Sequence[EntityInputs],
    *,
    prebuilt: Mapping[str, Sequence[EntityContribution]] = NOTHING,
) -> list[Contributions[EntityInputs, EntityContribution]]:
    """Return the contributions to entities, adding pre-built ones (by uid) without duplicates."""
    parsed = _parsed(database, services, inputs, entities_of)
    return [
        _combined(one, one.chunks, _united(load_entities(one.given), prebuilt.get(one.uid, ())), (one.key, parsed))
        for one in inputs
    ]


def combine_relation_contributions(
    database: Runner,
    services: Services,
    inputs: Sequence[RelationInputs],
    *,
    prebuilt: Mapping[str, Sequence[RelationContribution]] = NOTHING,
) -> list[Contributions[RelationInputs, RelationContribution]]:
    """Return the contributions to relations, adding pre-built ones (by uid) without duplicates."""
    parsed = _parsed(database, services, inputs, relations_of)
    return [
        _combined(
            one,
            one.living,
            _united(load_relations(one.given), prebuilt.get(one.uid, ())),
            ((one.source, one.target), parsed),
        )
        for one in inputs
    ]


def _combined(
    inputs: I, chunks: Iterable[str], given: Sequence[C], extracted: tuple[K, Mapping[str, Mapping[K, list[C]]]]
) -> Contributions[I, C]:
    key, parsed = extracted
    gone = set(inputs.extracted) - parsed.keys()  # deleted since the chunks were listed
    existing = tuple(chunk for chunk in chunks if chunk not in gone)
    kept = still_supported(given, existing=set(existing))
    found = [one for chunk in existing if chunk in parsed for one in parsed[chunk].get(key, [])]
    return Contributions(inputs=inputs, chunks=existing, given=kept, contributions=kept + found)


def _united(stored: list[C], prebuilt: Sequence[C]) -> list[C]:
    return list(dict.fromkeys(chain(stored, prebuilt))) if prebuilt else stored


def _parsed(
    database: Runner,
    services: Services,
    inputs: Iterable[EntityInputs | RelationInputs],
    read: Callable[[Extraction], dict[K, list[C]]],
) -> dict[str, dict[K, list[C]]]:
    """Return the contributions of each chunk's extraction, by chunk.

    Chunks of pre-built graphs have no extraction.
    """
    uids = sorted({chunk for one in inputs for chunk in one.extracted})
    stored = chunk_extractions(database, corpus=services.corpus, uids=uids) if uids else {}
    return {chunk: read(Extraction.model_validate_json(text)) if text else {} for chunk, text in stored.items()}

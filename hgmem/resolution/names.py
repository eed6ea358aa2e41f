"""Names of entities: all of a corpus, and those near a name that is unknown."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from rapidfuzz import fuzz, process

from hgmem.services import Services
from hgmem.text.identity import key

PAGE = 20_000  # names read at once
COMPARED = 100_000  # names that an unknown one is compared with
SIMILAR = 3  # of them that an error names
LEAST = 70  # similarity of a near name, of 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """An entity of the corpus with the number of chunks that mention it, and whether hgmem extracted it from one."""

    uid: str
    name: str
    type: str
    chunks: int
    extracted: bool = True


def every_name(services: Services) -> Iterator[Named]:
    """Yield all entities of the corpus by uid."""
    after = ""
    while page := services.database.run("entity_names", corpus=services.corpus, after=after, most=PAGE):
        yield from (Named(**row) for row in page)
        after = page[-1]["uid"]


def most_mentioned(entities: Iterable[Named], *, most: int) -> list[Named]:
    """Return the entities that most chunks mention, the first by uid last among equals."""
    return nlargest(most, entities, key=lambda one: (one.chunks, one.uid))


def near_names(services: Services, names: Sequence[str]) -> dict[str, list[str]]:
    """Return by name those of entities that it may stand for: the most mentioned with it inside, else similar ones."""
    entities = list(islice(every_name(services), COMPARED))
    return {name: _near(name, entities) for name in names}


def _near(name: str, entities: Sequence[Named]) -> list[str]:
    wanted = key(name)
    holding = sorted((one for one in entities if wanted and wanted in key(one.name)), key=lambda one: -one.chunks)
    if holding:
        return [one.name for one in holding[:SIMILAR]]
    known = [one.name for one in entities]
    found = process.extract(name, known, scorer=fuzz.WRatio, limit=SIMILAR, score_cutoff=LEAST)
    return [one[0] for one in found]

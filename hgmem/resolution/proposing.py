"""Lists of entities from which the model proposes candidates: two names of one thing often share no word, no chunk."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations

from hgmem.corpus.paging import batches
from hgmem.resolution.names import Named, most_mentioned
from hgmem.resolution.tasks import Proposed, ProposeSame
from hgmem.text.segmentation import collapse
from hgmem.values.decisions import Seen

LISTED = 1_500  # most mentioned entities, each two of which are in one list
HALF = 215  # entities of half a list

Entities = tuple[Named, ...]


def lists_of(entities: Iterable[Named]) -> list[Entities]:
    """Return lists of the most mentioned entities. Each two of these are together in one."""
    listed = sorted(most_mentioned(entities, most=LISTED), key=lambda one: one.uid)
    halves = list(batches(listed, size=HALF))
    if len(halves) < 2:
        return [tuple(listed)] if len(listed) > 1 else []
    return [(*one, *other) for one, other in combinations(halves, 2)]


def listing(entities: Entities, descriptions: Mapping[str, str]) -> ProposeSame:
    """Return the task of a list, with descriptions by uid."""
    shown = (
        Seen(uid=one.uid, name=one.name, type=one.type, description=collapse(descriptions.get(one.uid, "")))
        for one in entities
    )
    return ProposeSame(entries=tuple(shown))


def groups_of(entities: Entities, reply: Proposed) -> Iterator[list[Named]]:
    """Yield the groups of entities that a reply proposes, without numbers that the list lacks."""
    for group in reply.same:
        yield [entities[at] for at in dict.fromkeys(group) if 0 <= at < len(entities)]

"""What can be asked of the pyramid: its levels."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hgmem.graph.retrieval import Scope
from hgmem.services import Services
from hgmem.systems.gists.reading import GistPlace, gist_places, whole_text
from hgmem.systems.verbs import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A level of the pyramid: its gists, their tokens, and how many tokens of text each of these stands for."""

    level: int
    gists: int
    tokens: int
    ratio: float


def levels(services: Services, arguments: object) -> Sequence[Level]:
    """Return the levels of the pyramid, the lowest first."""
    scope = Scope(corpus=services.corpus)
    found: dict[int, list[GistPlace]] = defaultdict(list)
    for place in gist_places(services.database, scope=scope):
        found[place.level].append(place)
    _, text = whole_text(services.database, scope=scope, budget=0)
    tokens = {level: sum(place.tokens for place in places) for level, places in sorted(found.items())}
    return [
        Level(level=level, gists=len(found[level]), tokens=own, ratio=round(text / max(own, 1), 1))
        for level, own in tokens.items()
    ]


VERBS = (Verb(name="levels", summary="List the levels of the pyramid.", run=levels, built=True, reads=True),)

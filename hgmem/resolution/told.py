"""Candidates that descriptions tell: "Dejah Thoris is the Princess of Helium", "a title held by John Carter"."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from hgmem.resolution.candidates import Candidates
from hgmem.resolution.forms import plain
from hgmem.resolution.names import Named

LONGEST = 8  # words of a name with its article
TOLD = 0.7
# Words between an entity and another name of it, which begins after them.
_CUE = re.compile(
    r"\b(?:is|are|was|were|as|being|becomes?|became|called|named|alias|means|refers to|name (?:of|for)|"
    r"(?:title|role|position|rank|office)(?: \w+)? (?:by|of))\s+",
    re.IGNORECASE,
)
_END = re.compile(r"[,;:()\n\"”“»]")


def add_told(found: Candidates, entities: Sequence[Named], descriptions: Mapping[str, str]) -> None:
    """Add pairs of which the description (by uid) of one says that it is the other."""
    named: dict[str, list[Named]] = defaultdict(list)
    for one in entities:
        named[plain(one.name)].append(one)
    for one in entities:
        for name in _told(descriptions.get(one.uid, "")):
            for other in named.get(name, ()):
                found.add(one, other, score=TOLD, why="a description")


def _told(description: str) -> Iterator[str]:
    """Yield, in plain form, the runs of words that begin after a cue, up to a comma."""
    for cue in _CUE.finditer(description):
        words = _END.split(description[cue.end() :].lstrip('"“„«'), maxsplit=1)[0].split()[:LONGEST]
        yield from (plain(" ".join(words[:end])) for end in range(1, len(words) + 1))

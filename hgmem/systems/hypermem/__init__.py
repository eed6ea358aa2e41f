"""HyperMem: conversations as topics over episodes over facts, searched from the top down (ACL 2026)."""

from dataclasses import replace
from pathlib import Path

from hgmem.memory.browser.favourites import Favourite
from hgmem.systems.hypermem.answer import SYSTEM
from hgmem.systems.hypermem.verbs import VERBS

_FAVOURITES = sorted(Path(__file__).parent.glob("favourites/*.cypher"))

SPEC = replace(SYSTEM, verbs=VERBS, favourites=[Favourite.read(path) for path in _FAVOURITES])

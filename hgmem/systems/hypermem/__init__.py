"""HyperMem: conversations as topics over episodes over facts, searched from the top down (ACL 2026)."""

from dataclasses import replace
from pathlib import Path

from hgmem.memory.browser.favourites import favourites_in
from hgmem.systems.hypermem.answer import SYSTEM
from hgmem.systems.hypermem.verbs import VERBS

SPEC = replace(SYSTEM, verbs=VERBS, favourites=favourites_in(Path(__file__).parent / "favourites"))

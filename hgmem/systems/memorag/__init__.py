"""MemoRAG: a memory of the whole corpus writes clues, which search the text (Qian et al., WWW 2025)."""

from dataclasses import replace
from pathlib import Path

from hgmem.memory.browser.favourites import Favourite
from hgmem.systems.memorag.answer import SYSTEM
from hgmem.systems.memorag.tasks import WriteClues, WriteGist
from hgmem.systems.memorag.verbs import VERBS

_FAVOURITES = sorted(Path(__file__).parent.glob("favourites/*.cypher"))

SPEC = replace(
    SYSTEM,
    verbs=VERBS,
    favourites=[Favourite.read(path) for path in _FAVOURITES],
    memory_tasks=(WriteGist.name, WriteClues.name),
)

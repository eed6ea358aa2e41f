"""MemoRAG: a memory of the whole corpus writes clues, which search the text (Qian et al., WWW 2025)."""

from dataclasses import replace
from pathlib import Path

from hgmem.memory.browser.favourites import favourites_in
from hgmem.retrieval.clues import WriteClues
from hgmem.systems.memorag.answer import SYSTEM
from hgmem.systems.memorag.verbs import VERBS

SPEC = replace(
    SYSTEM,
    verbs=VERBS,
    favourites=favourites_in(Path(__file__).parent / "favourites"),
    memory_tasks=(WriteClues.name,),
)

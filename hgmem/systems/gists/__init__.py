"""A pyramid of gists: the texts of a corpus condensed level by level, which systems read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hgmem.memory.browser.favourites import favourites_in
from hgmem.systems.gists.build import BUILD, NAME
from hgmem.systems.gists.recipes import RECIPES, GistsConfig
from hgmem.systems.gists.tasks import WriteGist
from hgmem.systems.gists.verbs import VERBS
from hgmem.systems.spec import BuildSpec


def sampling(config: GistsConfig) -> Mapping[str, Mapping[str, Any]]:
    """Return the sampling parameters of gists that a recipe gives."""
    return {} if config.temperature is None else {WriteGist.name: {"temperature": config.temperature}}


SPEC = BuildSpec(
    name=NAME,
    summary="Condenses the corpus into gists, level above level, which systems read.",
    config=GistsConfig,
    recipes=RECIPES,
    build=BUILD,
    memory_tasks=(WriteGist.name,),
    sampling=sampling,
    verbs=VERBS,
    favourites=favourites_in(Path(__file__).parent / "favourites"),
)

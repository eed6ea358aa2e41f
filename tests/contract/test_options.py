"""Tests of the systems' options: each differs in some recipe, or has a reason to be there."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest

from hgmem.systems.registry import installed
from hgmem.systems.spec import AnyBuild

# Options that have one value in all recipes, each with the reason why callers may set it.
ASKED = "says what is asked, not how it is answered"
PAPERS = "a size that the paper gives"
TITLES = {"titles": "measured with it and without (benchmarks/FINDINGS.md)"}
RERANKER = {"rerank": "off, for a caller has to name a reranker"}
REASONS: Mapping[str, Mapping[str, str]] = {
    "naive": RERANKER,
    "bm25": {**RERANKER, **TITLES},
    "hybrid": {**RERANKER, **TITLES},
    "hgmem": {
        **RERANKER,
        "retrieval.titles": TITLES["titles"],
        "form": ASKED,
        "concerns": "how many sub-queries of a plan a caller pays for",
        "most_clues": "how much a caller's model writes",
        "overview_tokens": "how much a caller's model reads",
        "answer_each_step": "a figure of the paper: the answer at every step (docs/recipes.md)",
        "retrieval.chunks": "the paper's n_d, which it leaves open",
    },
    "hypermem": {
        "span": "topics of several conversations are asked for by name (docs/systems/hypermem.md)",
        **RERANKER,
        **TITLES,
        **dict.fromkeys(("form", "as_of", "speaker"), ASKED),
    },
    "memorag": {
        **RERANKER,
        **TITLES,
        "form": ASKED,
        "hits": "measured with the question alone (docs/systems/memorag.md)",
    },
    "remindrag": {**RERANKER, **TITLES, "form": ASKED, **dict.fromkeys(("passage_tokens", "seeds", "alpha"), PAPERS)},
}


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield the options of a config by their names, such as `retrieval.hops`."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def constant_options(spec: AnyBuild) -> list[str]:
    """Return the options that have the same value in every recipe, and that no argument of a caller sets."""
    configs = [dict(flat(asdict(config))) for config in (spec.default, *spec.recipes.values())]
    by_argument = {getattr(spec, f"{one}_option", "") for one in ("passage", "steps", "learn")}
    return [name for name in configs[0].keys() - by_argument if all(one[name] == configs[0][name] for one in configs)]


SPECS = {spec.name: spec for spec in installed()}


@pytest.mark.parametrize("name", SPECS)
def test_every_option_differs_in_some_recipe_or_has_a_reason(name: str) -> None:
    assert sorted(set(constant_options(SPECS[name])) - REASONS.get(name, {}).keys()) == []


@pytest.mark.parametrize("name", SPECS)
def test_every_reason_is_still_needed(name: str) -> None:
    assert sorted(REASONS.get(name, {}).keys() - set(constant_options(SPECS[name]))) == []

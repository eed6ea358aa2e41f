"""Reports of runs as Markdown."""

from typing import Any

import pytest

from hgmem.evaluation.presentation import report
from hgmem.evaluation.recall import FIGURES
from hgmem.evaluation.report import scores


def row(question: str, *, unplaced: int, seed: int = 1) -> dict[str, Any]:
    figure = {"share": 0.0, "all": False, "characters": 10, "found": [False]}
    return {
        "key": f"{question}{seed}",
        "data": "tiny",
        "question": question,
        "kind": "single",
        "label": "naive",
        "seed": seed,
        "evidence": ["Bo."],
        "figures": dict.fromkeys(FIGURES, figure),
        "curves": None,
        "unplaced": unplaced,
        "error": None,
    }


@pytest.mark.parametrize(
    ("unplaced", "told"), [((1, 2), "3 pieces of evidence: not in the corpus"), ((0, 0), "")], ids=["some", "none"]
)
def test_a_report_tells_of_evidence_that_the_corpus_does_not_hold(unplaced: tuple[int, int], told: str) -> None:
    rows = [row(f"q{at}", unplaced=number, seed=seed) for at, number in enumerate(unplaced) for seed in (1, 2)]
    text = report(scores(rows))
    assert told in text
    assert ("not in the corpus" in text) == bool(told)

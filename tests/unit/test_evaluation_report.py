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
        "asked": "Who has the old mill?",
        "reference": "Bo Marsh has the mill.",
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


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        ("Bo Marsh owns the mill [12].", 1.0),
        ("It is Bo's.", 0.5),
        ("The old mill has an owner.", 0.0),
        ("", 0.0),
    ],
)
def test_a_report_has_a_rough_figure_without_a_judge(answer: str, share: float) -> None:
    found = scores([{**row("q1", unplaced=0), "evidence": [], "answer": answer}])

    assert found[0].key_words is not None
    assert found[0].key_words.mean == share
    text = report(found)
    assert "### Key words of the reference in the answer (rough)" in text
    assert "this does not tell whether an answer is right" in text
    assert f"| naive | {share:.2f} [" in text


def test_a_reference_that_only_repeats_the_question_has_no_key_words() -> None:
    assert scores([{**row("q1", unplaced=0), "reference": "The old mill.", "answer": "No."}])[0].key_words is None


def test_all_words_of_a_reference_count_where_none_is_a_key_word() -> None:
    (found,) = scores([{**row("q1", unplaced=0), "reference": "At six.", "answer": "He comes at six."}])
    assert found.key_words is not None
    assert found.key_words.mean == 1

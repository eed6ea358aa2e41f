"""Tests of systems that consist of one step."""

from dataclasses import replace

import pytest

from hgmem import UsageError
from hgmem.settings import load
from hgmem.systems.single_step import ChunksConfig, SingleStep
from hgmem.values.evidence import Evidence


def found(services, question, *, scope, config):
    return Evidence()


def other(services, question, *, scope, config):
    return Evidence(notes=("other",))


SPEC = SingleStep(name="plain", summary="Plain.", config=ChunksConfig, retrieve=found, passage_option="chunks")


def test_a_copy_with_another_function_uses_that_one_for_all_that_it_makes() -> None:
    copied = replace(SPEC, retrieve=other)
    assert [made.__self__ is copied for made in (copied.answer, copied.passages, copied.cost)] == [True] * 3


def test_functions_of_its_own_are_kept() -> None:
    def cost(config, *, settings):
        return 3, 7

    spec = replace(SPEC, cost=cost)
    assert replace(spec, retrieve=other).cost(ChunksConfig(), settings=load()) == (3, 7)


@pytest.mark.parametrize("claim", [{"continues": True}, {"steps_option": "chunks"}, {"learn_option": "chunks"}])
def test_what_one_step_cannot_do_is_refused(claim: dict[str, object]) -> None:
    with pytest.raises(
        UsageError, match="system 'plain' has one step: it cannot continue memories, take steps or learn"
    ):
        replace(SPEC, **claim)

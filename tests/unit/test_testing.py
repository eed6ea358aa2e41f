import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hgmem.errors import ModelError
from hgmem.models.embedding import CheckedEmbedder
from hgmem.retrieval.rendering import PromptMemory
from hgmem.systems.hgmem.replies import MergeReply, PlanReply
from hgmem.systems.hgmem.tasks import Merge, Plan
from hgmem.testing import DeterministicEmbedder, ScriptedModel

MERGE = Merge(question="q", memory=PromptMemory())
PLAN = Plan(question="q", memory=PromptMemory())


@given(st.lists(st.text(), max_size=5), st.integers(1, 80))
def test_every_text_has_a_unit_vector_of_float32(texts, dimensions):
    vectors = CheckedEmbedder(DeterministicEmbedder(dimensions)).embed(texts, kind="query")

    assert vectors.shape == (len(texts), dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_the_same_text_has_the_same_vector_for_ever():
    vector = DeterministicEmbedder(8).embed(["Anna sold the mill"], kind="document")[0]

    assert vector.tolist() == pytest.approx([0.5**0.5, 0, 0, 0, 0, -(0.5**0.5), 0, 0])
    assert (vector == DeterministicEmbedder(8).embed(["x", "anna SOLD the mill"], kind="query")[1]).all()


def test_texts_that_share_words_are_nearer_than_those_that_share_none():
    anna, sold, other = DeterministicEmbedder().embed(
        ["Anna sold the mill", "the mill was sold", "a boat"], kind="query"
    )

    assert anna @ sold > anna @ other


def test_a_script_gives_its_replies_in_order_by_the_name_of_the_task():
    plans = [PlanReply(judgement="global"), PlanReply(judgement="sufficient")]
    model = ScriptedModel({"plan": plans, "merge": [MergeReply()]})

    assert [model.reply(PLAN), model.reply(MERGE), model.reply(PLAN)] == [plans[0], MergeReply(), plans[1]]
    assert model.tasks == [PLAN, MERGE, PLAN]


def test_a_function_answers_every_task_of_its_name():
    model = ScriptedModel({"merge": lambda task: MergeReply() if task is MERGE else None})

    assert [model.reply(MERGE), model.reply(MERGE)] == [MergeReply(), MergeReply()]


def test_an_exception_in_a_script_is_raised():
    model = ScriptedModel({"merge": [TimeoutError("slow"), MergeReply()]})

    with pytest.raises(TimeoutError, match="slow"):
        model.reply(MERGE)
    assert model.reply(MERGE) == MergeReply()


@pytest.mark.parametrize(
    "replies", [{}, {"merge": []}, {"merge": [PlanReply(judgement="open")]}, {"merge": lambda _: None}]
)
def test_a_script_without_a_fitting_reply_says_which_task_it_lacks(replies):
    with pytest.raises(ModelError, match="no MergeReply for task 'merge'"):
        ScriptedModel(replies).reply(MERGE)


def test_each_reply_is_given_once_however_many_threads_ask():
    replies = [PlanReply(judgement="global") for _ in range(200)]
    model = ScriptedModel({"plan": replies})
    barrier = threading.Barrier(8)

    def ask(_):
        barrier.wait()
        return [model.reply(PLAN) for _ in range(25)]

    with ThreadPoolExecutor(8) as pool:
        given_out = [id(reply) for replies_of in pool.map(ask, range(8)) for reply in replies_of]

    assert sorted(given_out) == sorted(map(id, replies))
    assert len(model.tasks) == 200

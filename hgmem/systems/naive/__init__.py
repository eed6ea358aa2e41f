"""Naive retrieval: the chunks nearest to the question, one answer. The first baseline."""

from hgmem.systems.naive.answer import NaiveConfig, retrieve
from hgmem.systems.single_step import SingleStep

SPEC = SingleStep(
    name="naive",
    summary="Answers from the chunks most similar to the question, and creates no points.",
    config=NaiveConfig,
    retrieve=retrieve,
    passage_option="chunks",
).spec

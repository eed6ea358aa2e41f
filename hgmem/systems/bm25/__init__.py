"""BM25: the chunks whose words fit the question best, one answer. The lexical baseline."""

from hgmem.systems.bm25.answer import Bm25Config, retrieve
from hgmem.systems.single_step import SingleStep

SPEC = SingleStep(
    name="bm25",
    summary="Answers from the chunks whose words fit the question best (BM25), and creates no points.",
    config=Bm25Config,
    retrieve=retrieve,
    passage_option="chunks",
).spec

"""The first look at a corpus: what a question's first step searches for beside the question itself.

The paper searches for the question alone (section 3.2). Why this looks first: docs/decisions/0033.
"""

from hgmem.retrieval.clues import LABELS, WriteClues, cleaned
from hgmem.retrieval.overview import overview
from hgmem.systems.gists.reading import nearest_gists
from hgmem.systems.hgmem.investigation import Investigation, replied
from hgmem.systems.hgmem.step import NextStep
from hgmem.text.tokens import count
from hgmem.values.evidence import Subquery

_OF_GISTS = 0.6  # of the overview's tokens at most, so that titles and entities have room too
_SHORTEST = 2  # words of a clue: a single one finds what is common


def first_look(work: Investigation) -> NextStep:
    """Return what to ask first: the question, and clues from an overview of the corpus.

    It calls the model once, but not where there is nothing to see.
    """
    config, database, scope = work.config, work.services.database, work.record.scope
    query, question = work.retrieved.query, work.record.question
    gists = nearest_gists(database, scope, query, tokens=round(_OF_GISTS * config.overview_tokens))
    left = config.overview_tokens - sum(count(gist.text) for gist in gists)
    seen = overview(database, scope=scope, query=query, tokens=left)
    if not gists and not seen:
        return NextStep(subqueries=(Subquery(text=question),))
    task = WriteClues(
        question=question,
        memory=tuple(gists),
        overview=seen,
        kinds=config.clues,
        most=config.most_clues,
    )
    reply, notes = replied(work.services, task)
    clues, dropped = cleaned(reply, task, most=config.most_clues, shortest=_SHORTEST) if reply else ([], [])
    found = (Subquery(text=clue.text, concern=LABELS[clue.kind]) for clue in clues)
    return NextStep(subqueries=(Subquery(text=question), *found), notes=(*notes, *dropped))


def is_clue(subquery: Subquery) -> bool:
    """Whether a sub-query is a clue of a first look, and not what a plan asked for."""
    return subquery.concern in LABELS.values()

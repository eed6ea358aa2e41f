"""Rows of a system's build as passages that an answer may cite."""

from collections.abc import Mapping, Sequence
from typing import Any

from hgmem.graph.built import nearest_beneath
from hgmem.models.embedding import Vectors
from hgmem.services import Services
from hgmem.values.evidence import BuiltPassage

BEHIND = 3  # chunks that stand behind a cited row


def built_passages(
    services: Services, rows: Sequence[Mapping[str, Any]], *, query: Vectors, titled: str = ""
) -> tuple[BuiltPassage, ...]:
    """Return rows, as searches return them, as passages with the chunks behind them that are nearest to a unit vector.

    `titled` names the property that is their title. Without it, a passage is shown with its kind.
    """
    uids = [row["uid"] for row in rows]
    behind = nearest_beneath(services.database, corpus=services.corpus, uids=uids, query=query, k=BEHIND)
    return tuple(
        BuiltPassage(
            uid=row["uid"],
            kind=row["kind"],
            text=row["text"],
            title=str(row.get(titled, "")) if titled else "",
            document=row["document"],
            chunks=tuple(behind.get(row["uid"], ())),
        )
        for row in rows
    )

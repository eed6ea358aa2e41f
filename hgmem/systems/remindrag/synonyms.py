"""Synonyms: ties between entities of like names, by the vectors of their names alone. Nothing is merged."""

from collections.abc import Iterator, Sequence

import numpy as np

from hgmem.builds.reading import Reading
from hgmem.builds.units import Made, Output, Row, StoredRow, Tie, Unit
from hgmem.services import Services
from hgmem.systems.remindrag.anchors import NAME
from hgmem.systems.remindrag.recipes import ReMindRAGConfig

SYNONYM = "Synonym"
_AT_ONCE = 1_000  # names compared with all others in one multiplication


def alike(reading: Reading, config: ReMindRAGConfig) -> Iterator[Unit]:
    """List each anchor whose names have like ones: pairs of at least this cosine (paper, section 3.1: 0.7)."""
    rows = [row for row in reading.rows(NAME, vectors=True) if row.embedding is not None]
    pairs: dict[str, list[tuple[int, int, float]]] = {}
    for one, other, cosine in _near(rows, least=config.synonym):
        pairs.setdefault(str(rows[one].properties["anchor"]), []).append((one, other, cosine))
    for anchor, found in pairs.items():
        places = {at: place for place, at in enumerate(sorted({at for one, other, _ in found for at in (one, other)}))}
        yield Unit(
            key=anchor,
            rows=[rows[at] for at in places],
            values={"pairs": [[places[one], places[other], cosine] for one, other, cosine in found]},
        )


def tie_synonyms(services: Services, config: ReMindRAGConfig, unit: Unit, *, before: Sequence[Output]) -> Made:
    """Make a row for each pair of names, tied to both entities."""
    made, ties = [], []
    for one, other, cosine in unit.values["pairs"]:
        ends = unit.rows[one], unit.rows[other]
        row = Row(
            kind=SYNONYM,
            key="-".join(end.key for end in ends),
            properties={"similarity": cosine},
            rests_on=[end.uid for end in ends],
        )
        made.append(row)
        ties += [Tie(source=row, type="SYNONYM_OF", target=end.key) for end in ends]
    return Made(rows=made, ties=ties)


def _near(rows: Sequence[StoredRow], *, least: float) -> Iterator[tuple[int, int, float]]:
    """Yield the pairs of rows (indices, the first less) that are near enough, with their cosines."""
    every = np.asarray([row.embedding for row in rows], dtype=np.float32)
    for start in range(0, len(rows), _AT_ONCE):
        for at, cosines in enumerate(every[start : start + _AT_ONCE] @ every.T, start=start):
            for other in np.flatnonzero(cosines >= least):
                if other > at:
                    yield at, int(other), round(float(cosines[other]), 4)

"""Which part of a step's evidence its prompt shows."""

from collections.abc import Collection, Sequence

from hgmem.retrieval.context_packing import trimmed, unknown, unsaid
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.values.evidence import Evidence
from hgmem.values.records import MemoryPoint


def on_show(
    evidence: Evidence, points: Sequence[MemoryPoint], *, config: HGMemConfig, read: Collection[str]
) -> Evidence:
    """Return the part that a prompt shows beside these points, where chunks `read` (uids) were shown before."""
    if config.only_new:
        return unsaid(trimmed(unknown(evidence, points), tokens=config.evidence_tokens, read=read))
    return trimmed(evidence, tokens=config.evidence_tokens)

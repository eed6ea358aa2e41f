"""Compare hgmem with the fastest peer on Neo4j, case by case: what both find, and what the peer does not do.

Every peer here limits its search to its corpus, or compares every vector of it; none filters afterwards. A peer that
finds one item less than hgmem, of all items of a case's sub-queries, counts as equally good.
"""

from collections.abc import Mapping
from typing import Any

from nearest import MOST
from workloads import IN_NEO4J, LACKING, LEFT_TO_THE_CALLER, RETRIEVALS

MISSES = 1.5  # fewer items, of all items of a case's sub-queries
RECALLS = ("recall_of_entities", "recall_of_chunks")


def against_peers(cases: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the median and recall of hgmem, of the fastest peer and of the fastest equally good peer, for each case.

    A peer is None if none can run the case.
    """
    return [_against(name, case) for name, case in cases.items() if "product" in case["times"]]


def _against(name: str, case: Mapping[str, Any]) -> dict[str, Any]:
    own = case["found"]["product"]
    peers = sorted((case["times"][peer]["median_ms"], peer) for peer in IN_NEO4J if peer in case["times"])
    same = MISSES / (MOST * case["sub-queries"])
    whole = [(ms, peer) for ms, peer in peers if _as_much(case["found"][peer], own, same)]
    return {
        "case": name,
        "product_ms": case["times"]["product"]["median_ms"],
        "product_found": own,
        "fastest": _peer(peers, name, case),
        "fastest_as_good": _peer(whole, name, case),
    }


def _peer(peers: list[tuple[float, str]], name: str, case: Mapping[str, Any]) -> dict[str, Any] | None:
    if not peers:
        return None
    ms, peer = peers[0]
    ratio = round(ms / case["times"]["product"]["median_ms"], 3)
    return {"name": peer, "ms": ms, "ratio": ratio, "found": case["found"][peer], "lacks": _lacks(name, peer)}


def _as_much(found: Mapping[str, float], own: Mapping[str, float], same: float) -> bool:
    return all(found.get(kind, 0.0) >= own[kind] - same for kind in RECALLS if kind in own)


def _lacks(name: str, peer: str) -> str:
    beside = any(case.points for case in RETRIEVALS if case.name == name)
    parts = [LACKING.get(peer, ""), LEFT_TO_THE_CALLER.get(peer, "") if beside else ""]
    return "; ".join(part for part in parts if part)

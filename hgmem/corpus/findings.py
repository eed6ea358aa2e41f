"""The invariants of a corpus by name, each with its meaning and a remedy for violations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.database import Row
from hgmem.values.reports import Checkup, Finding

MOST = 10  # uids listed per violated invariant
AGAIN = "delete the documents that support it and index them again"
ALONE = "delete the memory with `hgmem memory delete`; no other memory depends on it"
MADE_AGAIN = "delete the build with `hgmem delete --system` and make it again with `hgmem build`"
SEEN = "report a bug: hgmem should never write this"
UNFINISHED = "unfinished-document"
GO_ON = "resume the indexing or deletion that is unfinished; where this is found still, "
# The meanings of all invariants by name, by the remedy for their violations.
MEANINGS: Mapping[str, Mapping[str, str]] = {
    "any command that opens the corpus creates what is missing; DROP first what differs": {
        "schema": (
            "an index or constraint is missing, differs from its declaration, or not online; nothing else was checked"
        ),
    },
    "delete the corpus and index it again": {
        "chunk-without-document": "a chunk has no document, or not the one that it names",
    },
    AGAIN: {
        "chunk-order": "NEXT_CHUNK does not lead from each chunk of a document to the next",
        "stems": "a chunk's stems or layer, by which full-text search finds it, are not those of its text and corpus",
        "message-place": "the messages of a conversation's chunk do not stand in its text, one after the other",
        "entity-without-support": "an entity is supported by no chunk, no pre-built graph and no relation",
        "entity-differs": "an entity differs from what its contributions give",
        "relation-differs": "a relation differs from what its contributions give",
        "relation-unknown-chunk": "a relation names a chunk that does not exist",
        "relation-order": "the endpoints of a relation are not in the order of their keys",
        "chunk-not-folded": "a chunk is done, but an entity or a relation that it names does not list it",
        "contributions-unreadable": "an extraction or pre-built contribution is not JSON that hgmem wrote",
        "entity-vector": "an entity has no vector of unit length and of the corpus's dimensions",
        "relation-vector": "a relation has no vector of unit length and of the corpus's dimensions",
        "chunk-vector": "an extracted chunk has no vector of unit length and of the corpus's dimensions",
    },
    "run `hgmem resolve --rules-only`, which writes all classes anew": {
        "entity-class": "the class of an entity is not that of the decisions that stand",
    },
    "index the document again: finished chunks are not repeated": {
        "document-status": "a document is done though a chunk is not, or not done though all of them are",
    },
    ALONE: {
        "point-vector": "a point has no vector of unit length and of the corpus's dimensions",
        "point-without-entities": "a point involves no entity",
        "point-died-before-born": "a point was superseded before it was created",
        "point-without-step": "a point was created or superseded in a step that its memory does not have",
        "point-died-alone": "a point is gone but was neither revised, nor merged into another one, nor retired",
        "merge-parts": (
            "a part of a merged point was not superseded in the step that created the merged point, or was although "
            "the memory's recipe keeps merged parts"
        ),
        "revised-version": "a revised point was not superseded in the step that created its new version",
        "merge-entities": "a merged point does not involve exactly the entities of its parts",
        "merge-chunks": "a merged point is not supported by exactly the chunks of its parts",
        "step-numbers": "a memory's steps are not numbered 1, 2, … without gaps",
        "step-order": "NEXT_STEP does not lead from each step of a memory to the next",
        "unused-provisional": "no point and no relation of its memory uses a provisional entity",
        "citation-source": (
            "a citation is marked withdrawn although its chunk or built row exists, or is not marked although it is "
            "gone"
        ),
        "citation-quote": "a quote is not in the chunk or built row that it cites",
    },
    MADE_AGAIN: {
        "built-vector": "a built row with a text has no vector of unit length and of the corpus's dimensions",
        "unit-without-build": "a unit does not belong to the build of its system",
        "built-without-unit": "a built row was not learnt, and not made by exactly one unit of its system",
        "built-without-support": (
            "a built row or output rests on nothing although its unit has inputs, so a deletion would miss it"
        ),
        "built-document": "a built row names one document, but rests on texts of others",
        "built-identity": (
            "the uid, layer or label of a built row, unit or build does not follow from its corpus, system and key"
        ),
        "built-relationship": (
            "a relationship of a system does not begin at a built row, or at none of the unit that wrote it"
        ),
    },
    SEEN: {
        "relationship-across-corpora": "a relationship leads to another corpus",
        "relationship-across-memories": "a relationship leads to another memory",
        "provisional-shared": "a provisional entity is visible outside its own memory",
        "provisional-label": "an entity has the label Provisional but no memory, or a memory but not the label",
        "orphan-step": "a step cannot be reached from its memory",
        "orphan-subquery": "a sub-query cannot be reached from its memory",
        "orphan-point": "a point cannot be reached from its memory",
        "orphan-answer": "an answer cannot be reached from its memory",
        "orphan-citation": "a citation cannot be reached from its memory",
        "orphan-provisional": "a provisional entity belongs to a memory that does not exist",
        "orphan-relation": "a relation belongs to a memory that does not exist",
    },
    **{
        f"DROP INDEX {thing}_embedding: the next command that opens the corpus recreates it": {
            f"{thing}-not-in-index": (
                f"the vector index '{thing}_embedding' does not return the nodes that it should contain"
            )
        }
        for thing in ("entity", "relation", "chunk", "point", "built")
    },
    "continue it with `hgmem ask --continue`, or delete it with `hgmem memory delete`": {
        "stale-claim": "a run ended without releasing its memory: the memory is interrupted",
    },
    "index or delete it again to resume": {
        UNFINISHED: "the indexing or deletion of a document is unfinished",
    },
    "run `hgmem build` again to resume": {
        "unfinished-build": "the making of a build was interrupted",
    },
    "run `hgmem memory prune` again to resume": {
        "unfinished-prune": "a memory is being pruned, or its pruning was interrupted",
    },
}
# Worth knowing, but no violations.
NOTES = frozenset(("stale-claim", UNFINISHED, "unfinished-build", "unfinished-prune"))
# These also occur while a document is being written or deleted, or after that was interrupted.
PASSING = frozenset(
    ("entity-differs", "relation-differs", "relation-unknown-chunk", "entity-vector", "relation-vector")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """The meaning of a violation, its remedy, and whether it is one of `NOTES` or `PASSING`."""

    meaning: str
    remedy: str
    note: bool = False
    passing: bool = False


INVARIANTS: Mapping[str, Invariant] = {
    name: Invariant(meaning=meaning, remedy=remedy, note=name in NOTES, passing=name in PASSING)
    for remedy, meanings in MEANINGS.items()
    for name, meaning in meanings.items()
}


class Tally:
    """The violations found so far, by invariant."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self._uids: dict[str, list[str]] = {}
        self._invariants = dict(INVARIANTS)

    def take(self, violations: Iterable[Row]) -> None:
        """Add what a statement returned: the invariants that are violated, how often, and the first uids of each."""
        for row in violations:
            self.add(row["invariant"], row["uids"], found=row["found"])

    def add(self, invariant: str, uids: Sequence[str], *, found: int | None = None) -> None:
        """Add a violation for these uids, of `found` in total."""
        if not uids:
            return
        self._found[invariant] = self._found.get(invariant, 0) + (len(uids) if found is None else found)
        named = self._uids.setdefault(invariant, [])
        named += uids[: MOST - len(named)]

    def add_own(self, name: str, uids: Sequence[str], *, meaning: str, remedy: str, failed: bool = False) -> None:
        """Add a violation of a system's own invariant, or that it could not be checked (`failed`)."""
        self._invariants[name] = Invariant(meaning=meaning, remedy=remedy, note=failed)
        if failed:
            self._found[name], self._uids[name] = 1, []
        self.add(name, uids)

    def checkup(self, corpus: str) -> Checkup:
        """Return all findings, in the order in which invariants are declared, those of systems last."""
        found: dict[bool, list[Finding]] = {False: [], True: []}
        for name, invariant in self._invariants.items():
            if name in self._found:
                found[invariant.note].append(self._finding(name, invariant))
        return Checkup(corpus=corpus, findings=tuple(found[False]), notes=tuple(found[True]))

    def _finding(self, name: str, invariant: Invariant) -> Finding:
        first = GO_ON if invariant.passing and UNFINISHED in self._found else ""
        return Finding(
            name=name,
            count=self._found[name],
            uids=tuple(self._uids[name]),
            meaning=invariant.meaning,
            remedy=f"{first}{invariant.remedy}",
        )

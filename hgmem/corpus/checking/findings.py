"""The invariants of a corpus by name, each with its meaning and a remedy for violations."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hgmem.graph.invariants import MOST, Violation
from hgmem.values.reports import Checkup, Finding

AGAIN = "delete the documents that support it and index them again"
ALONE = "delete the memory with `hgmem memory delete`; no other memory depends on it"
MADE_AGAIN = "delete the build with `hgmem delete --system` and make it again with `hgmem build`"
SEEN = "report a bug: hgmem should never write this"
UNFINISHED = "unfinished-document"
GO_ON = "resume the indexing or deletion that is unfinished; where this is found still, "


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """The meaning of a violation, and its remedy.

    A `note` is worth knowing but not a violation. A `passing` one also occurs while a document is being written or
    deleted, or after that was interrupted.
    """

    meaning: str
    remedy: str
    note: bool = False
    passing: bool = False


INVARIANTS: Mapping[str, Invariant] = {
    "schema": Invariant(
        meaning=(
            "an index or constraint is missing, differs from its declaration, or not online; nothing else was checked"
        ),
        remedy="any command that opens the corpus creates what is missing; DROP first what differs",
    ),
    "chunk-without-document": Invariant(
        meaning="a chunk has no document, or not the one that it names", remedy="delete the corpus and index it again"
    ),
    "chunk-order": Invariant(
        meaning="NEXT_CHUNK does not lead from each chunk of a document to the next", remedy=AGAIN
    ),
    "message-place": Invariant(
        meaning="the messages of a conversation's chunk do not stand in its text, one after the other", remedy=AGAIN
    ),
    "document-status": Invariant(
        meaning="a document is done though a chunk is not, or not done though all of them are",
        remedy="index the document again: finished chunks are not repeated",
    ),
    "entity-without-support": Invariant(
        meaning="an entity is supported by no chunk, no pre-built graph and no relation", remedy=AGAIN
    ),
    "entity-differs": Invariant(
        meaning="an entity differs from what its contributions give", remedy=AGAIN, passing=True
    ),
    "relation-differs": Invariant(
        meaning="a relation differs from what its contributions give", remedy=AGAIN, passing=True
    ),
    "relation-unknown-chunk": Invariant(
        meaning="a relation names a chunk that does not exist", remedy=AGAIN, passing=True
    ),
    "relation-order": Invariant(meaning="the endpoints of a relation are not in the order of their keys", remedy=AGAIN),
    "chunk-not-folded": Invariant(
        meaning="a chunk is done, but an entity or a relation that it names does not list it", remedy=AGAIN
    ),
    "contributions-unreadable": Invariant(
        meaning="an extraction or pre-built contribution is not JSON that hgmem wrote", remedy=AGAIN
    ),
    "entity-vector": Invariant(
        meaning="an entity has no vector of unit length and of the corpus's dimensions", remedy=AGAIN, passing=True
    ),
    "relation-vector": Invariant(
        meaning="a relation has no vector of unit length and of the corpus's dimensions", remedy=AGAIN, passing=True
    ),
    "chunk-vector": Invariant(
        meaning="an extracted chunk has no vector of unit length and of the corpus's dimensions", remedy=AGAIN
    ),
    "point-vector": Invariant(
        meaning="a point has no vector of unit length and of the corpus's dimensions", remedy=ALONE
    ),
    "built-vector": Invariant(
        meaning="a built row with a text has no vector of unit length and of the corpus's dimensions", remedy=MADE_AGAIN
    ),
    **{
        f"{thing}-not-in-index": Invariant(
            meaning=f"the vector index {index!r} does not return the nodes that it should contain",
            remedy=f"DROP INDEX {index}: the next command that opens the corpus recreates it",
        )
        for thing, index in (
            ("entity", "entity_embedding"),
            ("relation", "relation_embedding"),
            ("chunk", "chunk_embedding"),
            ("point", "point_embedding"),
            ("built", "built_embedding"),
        )
    },
    "relationship-across-corpora": Invariant(meaning="a relationship leads to another corpus", remedy=SEEN),
    "relationship-across-memories": Invariant(meaning="a relationship leads to another memory", remedy=SEEN),
    "provisional-shared": Invariant(meaning="a provisional entity is visible outside its own memory", remedy=SEEN),
    "provisional-label": Invariant(
        meaning="an entity has the label Provisional but no memory, or a memory but not the label", remedy=SEEN
    ),
    "point-without-entities": Invariant(meaning="a point involves no entity", remedy=ALONE),
    "point-died-before-born": Invariant(meaning="a point was superseded before it was created", remedy=ALONE),
    "point-without-step": Invariant(
        meaning="a point was created or superseded in a step that its memory does not have", remedy=ALONE
    ),
    "point-died-alone": Invariant(
        meaning="a point was superseded but neither revised nor merged into another one", remedy=ALONE
    ),
    "merge-parts": Invariant(
        meaning=(
            "a part of a merged point was not superseded in the step that created the merged point, or was "
            "although the memory's recipe keeps merged parts"
        ),
        remedy=ALONE,
    ),
    "revised-version": Invariant(
        meaning="a revised point was not superseded in the step that created its new version", remedy=ALONE
    ),
    "merge-entities": Invariant(
        meaning="a merged point does not involve exactly the entities of its parts", remedy=ALONE
    ),
    "merge-chunks": Invariant(
        meaning="a merged point is not supported by exactly the chunks of its parts", remedy=ALONE
    ),
    "step-numbers": Invariant(meaning="a memory's steps are not numbered 1, 2, … without gaps", remedy=ALONE),
    "step-order": Invariant(meaning="NEXT_STEP does not lead from each step of a memory to the next", remedy=ALONE),
    **{
        f"orphan-{thing}": Invariant(meaning=f"{what} cannot be reached from its memory", remedy=SEEN)
        for thing, what in (
            ("step", "a step"),
            ("subquery", "a sub-query"),
            ("point", "a point"),
            ("answer", "an answer"),
            ("citation", "a citation"),
        )
    },
    "orphan-provisional": Invariant(
        meaning="a provisional entity belongs to a memory that does not exist", remedy=SEEN
    ),
    "orphan-relation": Invariant(meaning="a relation belongs to a memory that does not exist", remedy=SEEN),
    "unused-provisional": Invariant(
        meaning="no point and no relation of its memory uses a provisional entity", remedy=ALONE
    ),
    "citation-source": Invariant(
        meaning=(
            "a citation is marked withdrawn although its chunk or built row exists, or is not marked although it is "
            "gone"
        ),
        remedy=ALONE,
    ),
    "citation-quote": Invariant(meaning="a quote is not in the chunk or built row that it cites", remedy=ALONE),
    "unit-without-build": Invariant(meaning="a unit does not belong to the build of its system", remedy=MADE_AGAIN),
    "built-without-unit": Invariant(
        meaning="a built row was not learnt, and not made by exactly one unit of its system", remedy=MADE_AGAIN
    ),
    "built-without-support": Invariant(
        meaning="a built row or output rests on nothing although its unit has inputs, so a deletion would miss it",
        remedy=MADE_AGAIN,
    ),
    "built-document": Invariant(
        meaning="a built row names one document, but rests on texts of others", remedy=MADE_AGAIN
    ),
    "built-identity": Invariant(
        meaning="the uid, layer or label of a built row, unit or build does not follow from its corpus, system and key",
        remedy=MADE_AGAIN,
    ),
    "built-relationship": Invariant(
        meaning="a relationship of a system does not begin at a built row, or at none of the unit that wrote it",
        remedy=MADE_AGAIN,
    ),
    "stale-claim": Invariant(
        meaning="a run ended without releasing its memory: the memory is interrupted",
        remedy="continue it with `hgmem ask --continue`, or delete it with `hgmem memory delete`",
        note=True,
    ),
    UNFINISHED: Invariant(
        meaning="the indexing or deletion of a document is unfinished",
        remedy="index or delete it again to resume",
        note=True,
    ),
    "unfinished-build": Invariant(
        meaning="the making of a build was interrupted",
        remedy="run `hgmem build` again to resume",
        note=True,
    ),
    "unfinished-prune": Invariant(
        meaning="a memory is being pruned, or its pruning was interrupted",
        remedy="run `hgmem memory prune` again to resume",
        note=True,
    ),
}


class Tally:
    """The violations found so far, by invariant."""

    def __init__(self) -> None:
        self._found: dict[str, int] = {}
        self._uids: dict[str, list[str]] = {}
        self._invariants = dict(INVARIANTS)

    def take(self, violations: Iterable[Violation]) -> None:
        """Add the violations that a statement returned."""
        for one in violations:
            self.add(one.invariant, one.uids, found=one.found)

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
        found = [self._finding(name) for name in self._invariants if name in self._found]
        return Checkup(
            corpus=corpus,
            findings=tuple(one for one in found if not self._invariants[one.name].note),
            notes=tuple(one for one in found if self._invariants[one.name].note),
        )

    def _finding(self, name: str) -> Finding:
        invariant = self._invariants[name]
        first = GO_ON if invariant.passing and UNFINISHED in self._found else ""
        return Finding(
            name=name,
            count=self._found[name],
            uids=tuple(self._uids[name]),
            meaning=invariant.meaning,
            remedy=f"{first}{invariant.remedy}",
        )

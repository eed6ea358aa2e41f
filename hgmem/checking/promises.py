"""What a corpus promises, by name: what it means where a promise is broken, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass

AGAIN = "delete the documents that it rests on and index them again"
ALONE = "`hgmem memory delete` takes the memory away; no other one relies on it"
SEEN = "tell the authors of hgmem: nothing of it should write this"
UNFINISHED = "unfinished-document"
GO_ON = "go on with the indexing or the deletion that is unfinished; where this is found still, "


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What is wrong where the promise is broken, and the remedy; a note is no break, but worth knowing.

    What is `passing` is so too while a document is written or deleted, and for as long as that was cut short.
    """

    meaning: str
    remedy: str
    note: bool = False
    passing: bool = False


PROMISES: Mapping[str, Promise] = {
    "schema": Promise(
        meaning="an index or a constraint is missing, not as declared, or not online; nothing else was checked",
        remedy="any command that opens the corpus creates what is missing; DROP what differs first",
    ),
    "chunk-without-document": Promise(
        meaning="a chunk has no document, or another than it names", remedy="delete the corpus and index it again"
    ),
    "chunk-order": Promise(meaning="NEXT_CHUNK does not lead from each chunk of a document to the next", remedy=AGAIN),
    "document-status": Promise(
        meaning="a document is done though a chunk is not, or not done though all of them are",
        remedy="index the document again: what is done is not done twice",
    ),
    "entity-without-support": Promise(
        meaning="neither a chunk, nor what was given, nor a relation supports an entity", remedy=AGAIN
    ),
    "entity-differs": Promise(meaning="an entity is not what its contributions give", remedy=AGAIN, passing=True),
    "relation-differs": Promise(meaning="a relation is not what its contributions give", remedy=AGAIN, passing=True),
    "relation-unknown-chunk": Promise(
        meaning="a relation names a chunk that does not exist", remedy=AGAIN, passing=True
    ),
    "relation-order": Promise(meaning="the ends of a relation are not in order of their keys", remedy=AGAIN),
    "chunk-not-folded": Promise(
        meaning="a chunk is done, but an entity or a relation that it names does not know it", remedy=AGAIN
    ),
    "contributions-unreadable": Promise(
        meaning="an extraction, or what was given, is no JSON that hgmem wrote", remedy=AGAIN
    ),
    "entity-vector": Promise(
        meaning="an entity has no vector of unit length and of the corpus's dimensions", remedy=AGAIN, passing=True
    ),
    "relation-vector": Promise(
        meaning="a relation has no vector of unit length and of the corpus's dimensions", remedy=AGAIN, passing=True
    ),
    "chunk-vector": Promise(
        meaning="an extracted chunk has no vector of unit length and of the corpus's dimensions", remedy=AGAIN
    ),
    "point-vector": Promise(
        meaning="a point has no vector of unit length and of the corpus's dimensions", remedy=ALONE
    ),
    **{
        f"{thing}-not-in-index": Promise(
            meaning=f"the vector index {index!r} does not find what it should hold",
            remedy=f"DROP INDEX {index}: the next command that opens the corpus builds it anew",
        )
        for thing, index in (
            ("entity", "entity_embedding"),
            ("relation", "relation_embedding"),
            ("chunk", "chunk_embedding"),
            ("point", "point_embedding"),
        )
    },
    "relationship-across-corpora": Promise(meaning="a relationship leads to another corpus", remedy=SEEN),
    "relationship-across-memories": Promise(meaning="a relationship leads to another memory", remedy=SEEN),
    "provisional-shared": Promise(meaning="a provisional entity can be seen from outside its own memory", remedy=SEEN),
    "provisional-label": Promise(
        meaning="an entity is labelled Provisional and of no memory, or of a memory and not labelled", remedy=SEEN
    ),
    "point-without-entities": Promise(meaning="a point ties no entity", remedy=ALONE),
    "point-died-before-born": Promise(meaning="a point died before it was born", remedy=ALONE),
    "point-without-step": Promise(meaning="a point was born, or died, in a step that its memory lacks", remedy=ALONE),
    "point-died-alone": Promise(
        meaning="a point died and was neither revised nor merged into another one", remedy=ALONE
    ),
    "merge-parts": Promise(
        meaning="a part of a merged point did not die in the step in which the whole was born, or did, though the "
        "memory's settings say that merging adds",
        remedy=ALONE,
    ),
    "revised-version": Promise(
        meaning="a revised point did not die in the step in which its new version was born", remedy=ALONE
    ),
    "merge-entities": Promise(meaning="a merged point does not tie exactly the entities of its parts", remedy=ALONE),
    "merge-chunks": Promise(meaning="a merged point is not supported by exactly the chunks of its parts", remedy=ALONE),
    "step-numbers": Promise(meaning="a memory's steps are not numbered 1, 2, … without a gap", remedy=ALONE),
    "step-order": Promise(meaning="NEXT_STEP does not lead from each step of a memory to the next", remedy=ALONE),
    **{
        f"orphan-{thing}": Promise(meaning=f"{what} is not reached from its memory", remedy=SEEN)
        for thing, what in (
            ("step", "a step"),
            ("subquery", "a sub-query"),
            ("point", "a point"),
            ("answer", "an answer"),
            ("citation", "a citation"),
        )
    },
    "orphan-provisional": Promise(meaning="a provisional entity is of a memory that does not exist", remedy=SEEN),
    "orphan-relation": Promise(meaning="a relation is of a memory that does not exist", remedy=SEEN),
    "unused-provisional": Promise(
        meaning="no point and no relation of its memory uses a provisional entity", remedy=ALONE
    ),
    "citation-source": Promise(
        meaning="a citation is withdrawn though its chunk is there, or not though it is gone", remedy=ALONE
    ),
    "citation-quote": Promise(meaning="a quote is not in the chunk that it cites", remedy=ALONE),
    "stale-claim": Promise(
        meaning="a run that held a memory is gone: the memory is interrupted",
        remedy="`hgmem ask --continue` goes on with it, `hgmem memory delete` takes it away",
        note=True,
    ),
    UNFINISHED: Promise(
        meaning="a document is not indexed, or not deleted, to its end",
        remedy="index or delete it again: that goes on from there",
        note=True,
    ),
    "unfinished-prune": Promise(
        meaning="a memory is being pruned, or was until that was cut short",
        remedy="the next `hgmem memory prune` goes on with it",
        note=True,
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A promise that is broken `count` times: what that means, the remedy, and the uids of some."""

    name: str
    count: int
    uids: tuple[str, ...]
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkup:
    """What looking through a corpus found: broken promises, and notes on what is merely unfinished."""

    corpus: str
    findings: tuple[Finding, ...] = ()
    notes: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every promise is kept."""
        return not self.findings

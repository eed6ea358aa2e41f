"""Integrity check: no findings if only hgmem wrote, and exactly one named finding for each violation.

A test makes and checks a violation in one transaction and rolls it back, so each starts with the same corpus.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from letters import LETTERS, QUESTION, wanting
from toying import installed, learn

from hgmem import Checkup, Document, HGMem, Settings, UsageError
from hgmem.corpus.checking import check
from hgmem.corpus.findings import INVARIANTS
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.graph.database import Transaction
from hgmem.models.extractive import ExtractiveModel
from hgmem.systems.hgmem.replies import EvolveReply, Insertion, Revision

TOM = Insertion(entities=("Bo", "Cleo", "Old Tom"), description="Bo trades with Old Tom.")
DESCRIBED = Extraction(
    entities=(ExtractedEntity(name="Old Tom", type="person", description="A trader."),),
    relations=(ExtractedRelation(source="Bo", target="Old Tom", description="They trade."),),
)
LOG = "Captain Rhee commands the ferry Aurora of the Nordhavn Line. The Aurora sails to Kelpie Island. " * 12
GONE = "Josse Arkwell left the Brass Key with Dace."


class RolledBackError(Exception):
    """Rolls a transaction back."""


def fill(client: HGMem) -> None:
    """Fill a corpus: every kind of memory, a deleted document, a document of several chunks."""
    client.add_graph(LETTERS)
    client.model = ExtractiveModel(client.embedder)
    client.add(
        [
            Document(id="log", text=LOG),
            Document(id="gone", title="gone", text="Josse Arkwell left the Brass Key with Dace."),
        ]
    )
    passing = client.ask("Where did Josse Arkwell leave the Brass Key?")
    client.delete(document=next(str(row["uid"]) for row in client.documents() if row["title"] == "gone"))
    assert client.memory(passing.memory).answers[0].citations
    for how in ({"recipe": "default"}, {"recipe": "paper"}, {"settings": {"update": "keep", "merge": "off"}}):
        client.model = wanting()
        client.ask(QUESTION, steps=3, **how)
    client.model = wanting()
    first = client.ask(QUESTION, steps=2)
    client.ask("And what did Cleo leave?", memory=first.memory, steps=2)
    client.ask("Who is Eve?", system="naive")
    revise = [EvolveReply(insert=(TOM,)), EvolveReply(update=(Revision(point=0, description="They trade in May."),))]
    client.model = wanting(evolve=lambda _: revise.pop(0), describe=lambda _: DESCRIBED)
    client.ask(QUESTION, recipe="code", steps=2)
    client.model = ExtractiveModel(client.embedder)
    with installed():
        client.build("toy")
        learn(client)


@pytest.fixture(scope="module")
def client(settings: Settings, module_corpus: str) -> Iterator[HGMem]:
    """A client of a corpus with a long history, beside another corpus."""
    given = {**settings.model_dump(exclude_none=True), "model": wanting()}
    name = module_corpus
    with HGMem.open(name, **given) as client:
        fill(client)
        client.add_graph(LETTERS, corpus=f"{name}b")
        yield client
        client.delete()
        client.delete(corpus=f"{name}b")


def names(found: Checkup) -> dict[str, int]:
    return {one.name: one.count for one in found.findings}


@pytest.fixture
def broken(client: HGMem) -> Callable[[str], Checkup]:
    """Damages a corpus with a statement, checks it, and rolls the statement back."""

    def breaking(text: str) -> Checkup:
        seen: list[Checkup] = []

        def work(transaction: Transaction) -> None:
            services = client._services(None)
            run = transaction._transaction.run(text, corpus=client.corpus, other=f"{client.corpus}b")
            assert run.consume().counters.contains_updates, "the statement broke nothing"
            seen.append(check(replace(services, database=transaction)))  # type: ignore[arg-type]
            raise RolledBackError

        with pytest.raises(RolledBackError):
            client._database.write(work)
        return seen[0]

    return breaking


def test_a_corpus_that_hgmem_alone_wrote_keeps_every_promise(client: HGMem) -> None:
    found = client.check()

    assert (names(found), found.notes, found.ok) == ({}, (), True)
    assert {one.system for one in client.memories()} == {"hgmem", "naive"}
    assert len(client.memories()) == 7


POINT = "MATCH (p:MemoryPoint {corpus: $corpus}) WHERE NOT (p)-[:MERGED_INTO|REVISED_AS]-() AND NOT (p)<-[:TARGETS]-()"
RELATION = "MATCH (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus, memory: ''}]->(:Entity) WITH r LIMIT 1"
MEMORY = "MATCH (m:Memory {corpus: $corpus}) WITH m LIMIT 1"
BREAKS = {
    "chunk-without-document": """MATCH (c:Chunk {corpus: $corpus})<-[n:NEXT_CHUNK]-() WHERE NOT (c)-[:NEXT_CHUNK]->()
        MATCH (c)-[r:FROM_DOCUMENT]->() DELETE n, r""",
    "chunk-order": "MATCH (:Chunk {corpus: $corpus})-[r:NEXT_CHUNK]->() WITH r LIMIT 1 DELETE r",
    "stems": "MATCH (c:Chunk {corpus: $corpus}) WITH c LIMIT 1 SET c.stems = ' other '",
    "message-place": """MATCH (c:Chunk {corpus: $corpus}) WITH c LIMIT 1
        SET c.messages = '[{"id":"1","speaker":"Ann","time":"","start":0,"end":99999}]'""",
    "document-status": "MATCH (d:Document {corpus: $corpus}) WITH d LIMIT 1 SET d.status = 'pending'",
    "entity-without-support": """MATCH (e:Entity {corpus: $corpus, key: 'pier'}) REMOVE e.given SET e.description = ''
        WITH e MATCH (e)-[r:FROM_CHUNK]->() DELETE r""",
    "entity-differs": "MATCH (e:Entity {corpus: $corpus, key: 'anna'}) SET e.description = 'Somebody else.'",
    "entity-class": "MATCH (e:Entity {corpus: $corpus, key: 'anna'}) SET e.canonical_uid = e.uid",
    "relation-differs": f"{RELATION} SET r.weight = r.weight + 1",
    "relation-unknown-chunk": f"{RELATION} SET r.chunks = r.chunks + ['nowhere']",
    "chunk-not-folded": """MATCH (e:Entity {corpus: $corpus})-[r:FROM_CHUNK]->(c) WHERE c.extraction IS NOT NULL
        WITH e, collect(r) AS links ORDER BY size(links) DESC LIMIT 1 WITH links[0] AS link DELETE link""",
    "contributions-unreadable": """MATCH (e:Entity {corpus: $corpus, key: 'eve'}) SET e.given = '[{'""",
    "entity-vector": "MATCH (e:Entity {corpus: $corpus, key: 'anna'}) REMOVE e.embedding",
    "relation-vector": f"{RELATION} SET r.embedding = r.embedding[..5]",
    "chunk-vector": """MATCH (c:Chunk {corpus: $corpus}) WITH c LIMIT 1 REMOVE c.embedding""",
    "built-vector": "MATCH (n:ToyTopic {corpus: $corpus}) WHERE n.text <> '' WITH n LIMIT 1 REMOVE n.embedding",
    "unit-without-build": "MATCH (:Build {corpus: $corpus})-[r:HAS_UNIT]->() WITH r LIMIT 1 DELETE r",
    "built-without-unit": "MATCH (:Unit {corpus: $corpus})-[r:MADE]->(:ToyTopic) WITH r LIMIT 1 DELETE r",
    "built-without-support": """MATCH (n:ToyTopic {corpus: $corpus}) WHERE n.text <> '' WITH n LIMIT 1
        MATCH (n)-[r:RESTS_ON]->() DELETE r""",
    "built-document": "MATCH (n:ToyGist {corpus: $corpus}) WITH n LIMIT 1 SET n.document = 'another'",
    "built-identity": "MATCH (n:ToyGist {corpus: $corpus}) WITH n LIMIT 1 SET n.layer_key = 'another'",
    "built-relationship": """MATCH (n:ToyGist {corpus: $corpus})-[:RESTS_ON]->(c:Chunk) WITH n, c LIMIT 1
        CREATE (c)-[:TOY_IN]->(n)""",
    "point-vector": f"{POINT} WITH p LIMIT 1 REMOVE p.embedding",
    "relationship-across-corpora": """MATCH (a:Entity {corpus: $corpus, key: 'anna'}), (b:Chunk {corpus: $other})
        WITH a, b LIMIT 1 CREATE (b)-[:MENTIONS]->(a)""",
    "relationship-across-memories": """MATCH (q:SubQuery {corpus: $corpus}), (p:MemoryPoint {corpus: $corpus})
        WHERE q.memory <> p.memory WITH q, p LIMIT 1 CREATE (q)-[:TARGETS]->(p)""",
    "provisional-shared": """MATCH (e:Provisional {corpus: $corpus}), (q:SubQuery {corpus: $corpus})
        WHERE q.memory <> e.memory WITH q, e LIMIT 1 CREATE (q)-[:RETRIEVED {rank: 99, score: 0.5}]->(e)""",
    "provisional-label": "MATCH (e:Provisional {corpus: $corpus}) WITH e LIMIT 1 REMOVE e:Provisional",
    "point-without-entities": f"{POINT} WITH p LIMIT 1 MATCH (p)-[r:INVOLVES]->() DELETE r",
    "point-died-before-born": """MATCH (p:MemoryPoint {corpus: $corpus})
        WITH p ORDER BY p.born DESC LIMIT 1 SET p.died = 1""",
    "point-without-step": f"{POINT} WITH p LIMIT 1 SET p.born = 9",
    "point-died-alone": f"{POINT} WITH p LIMIT 1 SET p.died = p.born",
    "merge-parts": """MATCH (p:MemoryPoint {corpus: $corpus})-[:MERGED_INTO]->() WHERE p.died IS NOT NULL
        WITH p LIMIT 1 REMOVE p.died""",
    "revised-version": """MATCH (p:MemoryPoint {corpus: $corpus})-[:REVISED_AS]->() WITH p LIMIT 1 REMOVE p.died""",
    "merge-entities": """MATCH ()-[:MERGED_INTO]->(p:MemoryPoint {corpus: $corpus})-[r:INVOLVES]->()
        WHERE NOT (p)-[:MERGED_INTO]->() WITH r LIMIT 1 DELETE r""",
    "merge-chunks": """MATCH ()-[:MERGED_INTO]->(p:MemoryPoint {corpus: $corpus})-[r:SUPPORTED_BY]->()
        WHERE NOT (p)-[:MERGED_INTO]->() WITH r LIMIT 1 DELETE r""",
    "step-numbers": "MATCH (m:Memory {corpus: $corpus, system: 'naive'})-[:HAS_STEP]->(s) SET s.number = 2",
    "step-order": "MATCH (:Step {corpus: $corpus})-[r:NEXT_STEP]->() WITH r LIMIT 1 DELETE r",
    "orphan-step": "MATCH (m:Memory {corpus: $corpus, system: 'naive'})-[r:HAS_STEP]->() DELETE r",
    "orphan-subquery": "MATCH (:Step {corpus: $corpus})-[r:ASKED]->() WITH r LIMIT 1 DELETE r",
    "orphan-point": f"{POINT} WITH p LIMIT 1 MATCH (p)<-[r:HAS_POINT]-() DELETE r",
    "orphan-answer": "MATCH (:Memory {corpus: $corpus})-[r:HAS_ANSWER]->() WITH r LIMIT 1 DELETE r",
    "orphan-citation": "MATCH (:Answer {corpus: $corpus})-[r:HAS_CITATION]->() WITH r LIMIT 1 DELETE r",
    "unused-provisional": """MATCH (e:Provisional {corpus: $corpus, name: 'Old Tom'})-[r:INVOLVES|RELATES]-()
        DELETE r""",
    "citation-source": "MATCH (q:Citation {corpus: $corpus})-[:CITES]->() WITH q LIMIT 1 SET q.withdrawn = true",
    "citation-quote": "MATCH (q:Citation {corpus: $corpus})-[:CITES]->() WITH q LIMIT 1 SET q.quote = 'Never said.'",
}


# These create vectors, which indexes contain only after a commit: they are committed and then repaired.
# Reverses a pre-built relation: the contributions of an extracted one also name its ends in order.
TURNED = """MATCH (a:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus, memory: ''}]->(b:Entity)
    WHERE r.given IS NOT NULL AND %s WITH a, b, r, properties(r) AS held ORDER BY r.uid LIMIT 1
    DELETE r CREATE (b)-[new:RELATES]->(a) SET new = held"""
COMMITTED = {
    "relation-order": (TURNED % "a.key < b.key", TURNED % "a.key > b.key"),
    "orphan-relation": (
        """MATCH (a:Entity {corpus: $corpus, key: 'anna'}), (b:Entity {corpus: $corpus, key: 'dag'})
        CREATE (a)-[r:RELATES {uid: 'stray', corpus: $corpus, memory: 'gone', chunks: []}]->(b)
        SET r.embedding = a.embedding""",
        "MATCH ()-[r:RELATES {uid: 'stray', corpus: $corpus}]->() DELETE r",
    ),
    "orphan-provisional": (
        """MATCH (a:Entity {corpus: $corpus, key: 'anna'})
        CREATE (:Entity:Provisional {uid: 'stray', corpus: $corpus, memory: 'gone', embedding: a.embedding})""",
        "MATCH (e:Entity {uid: 'stray', corpus: $corpus}) DELETE e",
    ),
}


@pytest.mark.parametrize("promise", COMMITTED)
def test_a_promise_that_is_broken_for_good_is_found_until_it_is_mended(promise: str, client: HGMem) -> None:
    breaking, mending = COMMITTED[promise]
    driver = client._database._driver
    driver.execute_query(breaking, corpus=client.corpus)
    try:
        assert set(names(client.check())) == {promise}
    finally:
        driver.execute_query(mending, corpus=client.corpus)
    assert client.check().ok


# Vector indexes do not contain a transaction's own writes; otherwise each of these is valid.
UNINDEXED = {
    "entity": f"""{POINT} WITH p LIMIT 1 MATCH (p)-[:INVOLVES]->(held) WITH p, held LIMIT 1
        CREATE (p)-[:INVOLVES]->(new:Entity:Provisional) SET new += {{uid: 'stray', corpus: $corpus, memory: p.memory}}
        SET new.embedding = held.embedding""",
    "relation": """MATCH (e:Provisional {corpus: $corpus, name: 'Old Tom'}), (a:Entity {corpus: $corpus, key: 'anna'})
        CREATE (e)-[new:RELATES]->(a) SET new += {uid: 'stray', corpus: $corpus, memory: e.memory, chunks: []}
        SET new.embedding = a.embedding""",
    "chunk": """MATCH (c:Chunk {corpus: $corpus})-[:FROM_DOCUMENT]->(d)
        WHERE (c)<-[:NEXT_CHUNK]-() AND NOT (c)-[:NEXT_CHUNK]->()
        WITH c, d LIMIT 1 CREATE (c)-[:NEXT_CHUNK]->(new:Chunk)-[:FROM_DOCUMENT]->(d)
        SET new = c {.*, uid: 'stray', extraction: NULL, position: c.position + 1}""",
    "point": f"""{POINT} WITH p LIMIT 1 MATCH (m)-[:HAS_POINT]->(p)-[:INVOLVES]->(e) WITH m, p, e LIMIT 1
        CREATE (m)-[:HAS_POINT]->(new:MemoryPoint)-[:INVOLVES]->(e) SET new = p {{.*, uid: 'stray'}}""",
    "built": """MATCH (n:ToyTopic {corpus: $corpus, learnt: true}), (m:ToyTopic {corpus: $corpus}) WHERE m.text <> ''
        WITH n, m LIMIT 1 SET n.text = m.text, n.embedding = m.embedding""",
}


@pytest.mark.parametrize("thing", UNINDEXED)
def test_what_its_index_does_not_find_is_named(thing: str, broken: Any) -> None:
    found = broken(UNINDEXED[thing])

    (one,) = found.findings
    assert (one.name, one.count) == (f"{thing}-not-in-index", 1)
    assert one.uids == ("stray",) or thing == "built"


def test_every_promise_is_broken_by_a_test() -> None:
    breaks = {name for name, promise in INVARIANTS.items() if not promise.note and not name.endswith("-not-in-index")}

    assert breaks - {"schema"} == BREAKS.keys() | COMMITTED.keys()


@pytest.mark.parametrize(
    ("note", "text"),
    [
        (
            "stale-claim",
            "MATCH (m:Memory {corpus: $corpus}) WITH m LIMIT 1 SET m.run = 'x', m.heartbeat = datetime('2020')",
        ),
        ("unfinished-document", "MATCH (d:Document {corpus: $corpus, title: 'Letters'}) SET d.sha256 = '' "),
        ("unfinished-build", "MATCH (b:Build {corpus: $corpus}) SET b.status = 'unfinished'"),
        ("unfinished-prune", f"{MEMORY} SET m.status = 'pruning'"),
    ],
)
def test_what_is_unfinished_is_a_note_and_no_break(note: str, text: str, broken: Any) -> None:
    found = broken(text)

    assert (found.ok, [one.name for one in found.notes]) == (True, [note])


def test_a_live_claim_is_not_worth_a_note(broken: Any) -> None:
    found = broken(f"{MEMORY} SET m.run = 'x', m.heartbeat = datetime()")

    assert (found.ok, found.notes) == (True, ())


def test_a_corpus_that_is_not_whole_is_not_looked_through(broken: Any) -> None:
    with pytest.raises(UsageError, match=r"is not ready \(status importing\): wait"):
        broken("MATCH (k:Corpus {name: $corpus}) SET k.status = 'importing'")


@pytest.mark.parametrize("promise", BREAKS)
def test_a_promise_that_is_broken_is_found_by_its_name_and_no_other(promise: str, broken: Any) -> None:
    found = broken(BREAKS[promise])

    assert list(names(found)) == [promise]
    (finding,) = found.findings
    assert 1 <= len(finding.uids) <= finding.count
    assert (finding.meaning, finding.remedy) == (INVARIANTS[promise].meaning, INVARIANTS[promise].remedy)

"""A corpus with every kind of data, and its data as values that stay the same when it is moved."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from dumping import Dump, driver
from letters import LETTERS, QUESTION, wanting
from toying import installed, learn

from hgmem import Conversation, Document, HGMem, Message
from hgmem.errors import ModelError
from hgmem.extraction.replies import ExtractedEntity, ExtractedRelation, Extraction
from hgmem.settings import Settings
from hgmem.systems.hgmem.replies import EvolveReply, Insertion, Retirement, Revision
from hgmem.testing import ScriptedModel

IDENTITY = """
coalesce(n.uid, CASE WHEN n:Corpus THEN 'corpus' WHEN n:Step THEN n.memory + '/' + n.number
                     ELSE n.memory + '/' + COLLECT { MATCH (s:Step)-[:ASKED]->(n) RETURN s.number }[0]
                          + '/' + n.number END)
"""
NODES = f"""
MATCH (n) WHERE n.corpus = $corpus OR (n:Corpus AND n.name = $corpus)
RETURN {IDENTITY} AS uid, labels(n) AS labels, properties(n) AS properties
"""
RELATIONSHIPS = f"""
MATCH (a)-[r]->(b) WHERE a.corpus = $corpus OR b.corpus = $corpus
RETURN type(r) AS type, COLLECT {{ WITH a AS n RETURN {IDENTITY} }}[0] AS source,
       COLLECT {{ WITH b AS n RETURN {IDENTITY} }}[0] AS target, properties(r) AS properties
"""
HERE = frozenset({"archive"})  # properties that record a corpus's origin


def moved(settings: Settings, corpus: str, *, without: frozenset[str] = HERE) -> Dump:
    """Return all data of the corpus, including times and vectors."""
    with driver(settings) as opened, opened.session() as session:
        nodes = session.run(NODES, corpus=corpus).data()
        relationships = session.run(RELATIONSHIPS, corpus=corpus).data()

    def kept(properties: dict[str, Any]) -> dict[str, Any]:
        return {name: str(value) for name, value in sorted(properties.items()) if name not in without}

    found = {row["uid"]: (sorted(row["labels"]), kept(row["properties"])) for row in nodes}
    assert len(found) == len(nodes)
    joined = Counter(str([row["type"], row["source"], row["target"], kept(row["properties"])]) for row in relationships)
    return Dump(nodes=found, relationships=joined)


def kinds(found: Dump) -> set[str]:
    """Return the existing labels and relationship types."""
    types = {joined.split("'")[1] for joined in found.relationships}
    return types | {label for labels, _ in found.nodes.values() for label in labels}


def rich(open_client: Callable[..., HGMem], settings: Settings, *, builds: bool = True) -> HGMem:
    """Return a client of a corpus with every label, relationship type and property, without `builds` but for theirs."""
    usual = open_client()
    usual.add([Document(id=name, title=name, text=text, metadata={"page": 1}) for name, text in TEXTS.items()])
    usual.add_graph(LETTERS)
    usual.append(Conversation(id="chat", title="chat"), Message("Ann", "The buoy of Kelpie Island is green.", SAID))
    failing = ScriptedModel({"extract": lambda _: ModelError("no reply")})
    open_client(model=failing).add(Document(id="failing", text="Nobody \0 can read this, 'quoted' and \u2028 split."))
    usual.ask("Who commands the ferry Aurora?", filters={"page": 1})
    told = usual.ask("What colour has the buoy of Kelpie Island?", system="naive", filters={"title": "chat"})
    assert told.citations[0].message
    open_client(model=wanting()).ask(QUESTION, steps=3)
    open_client(model=retiring()).ask(QUESTION, steps=2)
    answer = open_client(model=telling()).ask(QUESTION, recipe="code", steps=2)
    open_client(model=telling()).ask("And who else?", memory=answer.memory, steps=1)
    usual.fork(answer.memory, step=2)
    usual.same("Anna", "Bo", reason="a letter says so")
    if builds:
        with installed():
            usual.build("toy")
        learn(usual)
    usual.delete(document=next(str(row["uid"]) for row in usual.documents() if row["title"] == "crew"))
    if builds:
        with installed():
            cited = usual.ask(QUESTION, system="toy", settings={"cite_topics": True})
        assert cited.citations[0].built
    with driver(settings) as opened:
        opened.execute_query(SETTLED, corpus=usual.corpus)
        opened.execute_query(BUILT, corpus=usual.corpus)
        opened.execute_query(FAILED, corpus=usual.corpus)
    return usual


SAID = "2023-02-04T19:12"
TEXTS = {
    "crew": "Captain Rhee commands the ferry Aurora of the Nordhavn Line.",
    "owners": "The Nordhavn Line belongs to Marian Dace. Captain Rhee is her cousin.",
}
# Data that interrupted summaries and deletes leave.
SETTLED = """
MATCH (e:Entity {corpus: $corpus, name: 'Anna'}), (:Entity {corpus: $corpus})-[r:RELATES {corpus: $corpus}]->()
WITH e, r ORDER BY r.uid LIMIT 1
SET e.condensed = '{"text": "short", "of": "hash"}', e.cut = true, e.stale = true,
    r.condensed = e.condensed, r.cut = true, r.stale = true
"""
# What a sub-query of a system that builds has found in its build.
BUILT = """
MATCH (q:SubQuery {corpus: $corpus}) WITH q ORDER BY q.memory, q.number LIMIT 1
SET q.built = '[{"uid":"t1","kind":"topic","rank":1,"text":"Ferries","score":0.5}]'
"""
# A unit of a build that failed.
FAILED = """
MATCH (u:Unit {corpus: $corpus, status: 'stale'}) WITH u ORDER BY u.uid LIMIT 1
SET u.status = 'failed', u.error = 'no reply'
"""


def telling() -> ScriptedModel:
    """Return a model that names and relates an entity that is missing from the corpus, and revises its point."""
    described = Extraction(
        entities=(ExtractedEntity(name="Old Tom", type="person", description="A trader."),),
        relations=(ExtractedRelation(source="Bo", target="Old Tom", description="They trade.", keywords=("trade",)),),
    )

    def evolve(task: Any) -> EvolveReply:
        if not task.memory.points:
            return EvolveReply(
                insert=(
                    Insertion(entities=("Bo", "Old Tom"), description="Bo trades with Old Tom.", chunks=(0,)),
                    Insertion(entities=("Captain Rhee", "Anna"), description="They know each other.", chunks=(0,)),
                )
            )
        return EvolveReply(
            update=(Revision(point=0, entities=("Bo", "Old Tom"), description="Bo traded with Old Tom."),)
        )

    return wanting(evolve=evolve, describe=lambda _: described)


def retiring() -> ScriptedModel:
    """Return a model that contradicts the question, misses something, and retires a point."""

    def evolve(task: Any) -> EvolveReply:
        point = Insertion(entities=("Anna", "Mill"), description="Nobody sold it.", kind="inference")
        retired = (Retirement(point=0, reason="It says nothing."),) if task.merging else ()
        return EvolveReply(insert=(point,), retire=retired, premise="Nobody sold the mill.", open=("who burned it",))

    return wanting(evolve=evolve)


def hold(settings: Settings, memory: str, ago: str) -> None:
    """Lease the memory to a run whose last heartbeat is this old (an ISO duration)."""
    with driver(settings) as opened:
        opened.execute_query(HELD, uid=memory, ago=ago)


HELD = """
MATCH (m:Memory {uid: $uid})
SET m.run = 'r', m.status = 'running', m.heartbeat = datetime() - duration($ago)
"""

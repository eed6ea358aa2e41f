"""Results of retrieval, compared with brute force over all data of the server."""

import random
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations, product
from typing import Any

import neo4j
import numpy as np
import pytest

from hgmem import HGMem, Settings
from hgmem.graph.full_text import Ranking, Texts, searched_words, worded_chunks
from hgmem.graph.memory import Lease, create_memory, release_memory, write_step
from hgmem.graph.retrieval import Query, Scope, neighbours, retrieve
from hgmem.models.metering import measuring
from hgmem.retrieval import step_evidence
from hgmem.retrieval.step_evidence import SMALL, RetrievalConfig, Scene, _limits, fuse, gather, with_mentions
from hgmem.systems.hgmem.recipes import HGMemConfig
from hgmem.systems.hgmem.replies import EvolveReply, Insertion
from hgmem.systems.hgmem.step import StepDraft
from hgmem.text.identity import provisional_uid, uid
from hgmem.values.evidence import Evidence, Retrieved, Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation
from hgmem.values.records import MemoryPoint, Step

Raw = Callable[..., list[dict[str, Any]]]

WORDS = [f"{a}{b}{c}" for a, b, c in product("bdklmnrst", "aeiou", ("lf", "nd", "rk", "sh"))]
TWINS = [" ".join(order) for order in permutations(("Orrin", "Vale", "Tessaly"))]  # one bag of words: equal vectors
HUB = "Hub Harbour"


@dataclass(frozen=True, kw_only=True)
class World:
    """A corpus, and all of its data on the server."""

    client: HGMem
    corpus: str
    entities: Mapping[str, np.ndarray]
    names: Mapping[str, str]
    relations: Mapping[str, tuple[str, str, float, np.ndarray]]
    chunks: Mapping[str, np.ndarray]
    mentions: Mapping[str, frozenset[str]]

    def uid(self, name: str) -> str:
        return uid(self.corpus, "entity", name.casefold())

    def vector(self, text: str) -> np.ndarray:
        return self.client.embedder.embed([text], kind="query")[0].astype(float)

    def look(self, text: str, *, memory: str = "", config: RetrievalConfig, **asked: Any) -> tuple[Retrieved, Evidence]:
        evidence, _ = self.gather([Subquery(text=text, **asked)], memory=memory, config=config)
        return evidence.retrieved[0], evidence

    def gather(
        self,
        subqueries: Sequence[Subquery],
        *,
        memory: str = "",
        config: RetrievalConfig,
        covered: int = 0,
        entities: int = 0,
    ) -> tuple[Evidence, tuple[str, ...]]:
        vectors = self.client.embedder.embed([one.text for one in subqueries], kind="query")
        scene = Scene(
            scope=Scope(corpus=self.corpus, memory=memory),
            covered=covered,
            entities=entities or min(len(self.entities), SMALL),
        )
        return gather(self.client._database, subqueries, vectors, scene=scene, config=config)

    def neighbours(self, entity: str, *, hub: int) -> list[str]:
        found = [
            (-weight, target if source == entity else source)
            for source, target, weight, _ in self.relations.values()
            if entity in (source, target)
        ]
        return [uid for _, uid in sorted(found)[:hub]]


@pytest.fixture(scope="module")
def raw(settings: Settings) -> Iterator[Raw]:
    """Runs any Cypher, to read the server's data."""
    password = settings.neo4j_password.get_secret_value() if settings.neo4j_password else ""
    with neo4j.GraphDatabase.driver(settings.neo4j_uri or "", auth=(settings.neo4j_username, password)) as driver:

        def run(query: str, **parameters: Any) -> list[dict[str, Any]]:
            return [record.data() for record in driver.execute_query(query, parameters).records]

        yield run


@pytest.fixture(scope="module")
def build(settings: Settings, raw: Raw, module_corpus: str) -> Iterator[Callable[..., World]]:
    """Creates corpora from pre-built graphs and deletes them at the end."""
    clients: list[HGMem] = []

    def made(graph: Given) -> World:
        client = HGMem.open(f"{module_corpus}-{len(clients)}", **settings.model_dump(exclude_none=True))
        clients.append(client)
        client.add_graph(graph)
        return world(client, raw)

    yield made
    for client in clients:
        client.delete()
        client.close()


def world(client: HGMem, raw: Raw) -> World:
    corpus = client.corpus
    entities = raw(
        "MATCH (e:Entity {corpus: $c, memory: ''}) RETURN e.uid AS uid, e.name AS name, e.embedding AS v", c=corpus
    )
    relations = raw(
        "MATCH (a)-[r:RELATES {corpus: $c, memory: ''}]->(b) "
        "RETURN r.uid AS uid, a.uid AS a, b.uid AS b, r.weight AS weight, r.embedding AS v",
        c=corpus,
    )
    chunks = raw("MATCH (c:Chunk {corpus: $c}) RETURN c.uid AS uid, c.embedding AS v", c=corpus)
    mentions = raw(
        "MATCH (e:Entity {corpus: $c})-[:FROM_CHUNK]->(k) RETURN e.uid AS uid, collect(k.uid) AS chunks", c=corpus
    )
    return World(
        client=client,
        corpus=corpus,
        entities={row["uid"]: np.array(row["v"]) for row in entities},
        names={row["uid"]: row["name"] for row in entities},
        relations={row["uid"]: (row["a"], row["b"], row["weight"], np.array(row["v"])) for row in relations},
        chunks={row["uid"]: np.array(row["v"]) for row in chunks},
        mentions={row["uid"]: frozenset(row["chunks"]) for row in mentions},
    )


def graph(seed: int, *, entities: int, extra: str = "") -> Given:
    """Return a random graph: names and texts of few words, a hub, groups of equal vectors."""
    chance = random.Random(seed)
    names = [HUB, *TWINS, *(f"{' '.join(chance.sample(WORDS, 2)).title()} {at}" for at in range(entities))]
    chunks = tuple(
        GivenChunk(id=f"c{at}", document="d", text=f"{' '.join(chance.choices(WORDS, k=25))} {extra}".strip() + ".")
        for at in range(entities // 2)
    )
    twins = "A twin of letters."
    pairs = {tuple(sorted(chance.sample(names, 2))) for _ in range(entities)}
    pairs |= {tuple(sorted((HUB, name))) for name in names[7 : 7 + entities * 2 // 3]}
    return Given(
        documents=(Document(text="", id="d", title="The tale"),),
        chunks=chunks,
        entities=tuple(
            GivenEntity(
                name=name,
                type="person",
                description=twins if name in TWINS else f"{' '.join(chance.choices(WORDS, k=6))} {extra}".strip(),
                chunks=tuple(chunk.id for chunk in chance.sample(chunks, chance.randint(0, 6))),
            )
            for name in names
        ),
        relations=tuple(
            GivenRelation(
                source=source,
                target=target,
                description=" ".join(chance.choices(WORDS, k=5)),
                weight=float(chance.randint(1, 4)),  # many equal scores
                chunks=tuple(chunk.id for chunk in chance.sample(chunks, 1)),
            )
            for source, target in sorted(pairs)
        ),
    )


@pytest.fixture(scope="module")
def tale(build: Callable[..., World]) -> World:
    """A corpus of 367 entities with vectors."""
    return build(graph(1, entities=360))


def questions(seed: int, count: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=4)) for _ in range(count)]


def remember(found: World, *groups: Sequence[str], stranger: str = "") -> tuple[str, tuple[MemoryPoint, ...]]:
    """Write a memory whose points involve these groups of entities (uids); return it and its points."""
    lease = Lease(corpus=found.corpus, memory=f"m{secrets.token_hex(8)}", run="run")
    properties = {"system": "test", "model": "none", "question": "?", "settings": "{}"}
    create_memory(found.client._database, lease=lease, properties=properties)
    draft = StepDraft(memory=lease.memory, number=1, before=(), config=HGMemConfig())
    entities = {one: Entity(uid=one, name=one) for group in groups for one in group}
    inserts = [Insertion(entities=tuple(group), description=f"Point {at}.") for at, group in enumerate(groups)]
    if stranger:
        own = provisional_uid(lease.memory, found.uid(stranger))
        entities[stranger.casefold()] = Entity(uid=own, name=stranger, provisional=True)
        inserts.append(Insertion(entities=(stranger,), description=stranger))
    draft.evolve(EvolveReply(insert=tuple(inserts)), known=(), chunks=(), entities=entities)
    uids = [*(birth.point.uid for birth in draft.changes().births), *draft.provisionals]
    vectors = found.client.embedder.embed([stranger or "a point"] * len(uids), kind="document")
    step = Step(number=1, question="?", strategy="global")
    write_step(
        found.client._database,
        lease=lease,
        step=step,
        changes=draft.changes(),
        vectors=dict(zip(uids, vectors, strict=True)),
    )
    release_memory(found.client._database, lease=lease, status="answered")
    return lease.memory, draft.points


def nearest(vectors: Mapping[str, np.ndarray], query: np.ndarray) -> list[tuple[str, float]]:
    """Return all candidates by cosine, best first, equal ones by uid."""
    scores = {
        one: float(vector @ query / np.linalg.norm(vector) / np.linalg.norm(query)) for one, vector in vectors.items()
    }
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))


def assert_best(hits: Sequence[Any], among: Mapping[str, np.ndarray], query: np.ndarray, most: int) -> None:
    """Check that the hits are the best `most` of `among`, in order; rounding differences count as equal."""
    best = nearest(among, query)
    scores = dict(best)
    assert {hit.uid for hit in hits} <= among.keys()
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert [hit.score for hit in hits] == pytest.approx([score for _, score in best[:most]], abs=1e-5)
    assert [hit.score for hit in hits] == pytest.approx([scores[hit.uid] for hit in hits], abs=1e-5)
    assert [hit.uid for hit in hits] == [hit.uid for hit in sorted(hits, key=lambda hit: (-hit.score, hit.uid))]


VECTOR = RetrievalConfig(chunk_search="vector")

# Global exploration -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("covered", [0, 4, 40, 91, 92, 350, 367])
def test_exploring_finds_the_nearest_of_what_memory_does_not_hold_and_nothing_else(tale: World, covered: int) -> None:
    texts = questions(covered, 6)
    # The nearest to the first question are in memory, so the search must go beyond them.
    held = [one for one, _ in nearest(tale.entities, tale.vector(texts[0]))][:covered]
    memory, _ = remember(tale, *(held[at : at + 50] for at in range(0, covered, 50)))
    free = {one: vector for one, vector in tale.entities.items() if one not in held}

    with measuring() as meter:
        evidence, notes = tale.gather(
            [Subquery(text=text) for text in texts], memory=memory, config=VECTOR, covered=covered
        )

    for text, retrieved in zip(texts, evidence.retrieved, strict=True):
        assert_best(retrieved.entities, free, tale.vector(text), 5)
    assert meter.usage().calls["neo4j"] == {"retrieve": 1}
    assert notes == ()


def test_equal_scores_are_ordered_by_uid(tale: World) -> None:
    found, _ = tale.look("twin of letters Orrin Vale Tessaly a", config=VECTOR)

    assert [hit.uid for hit in found.entities] == sorted(map(tale.uid, TWINS))[:5]


@pytest.mark.parametrize(("covered", "beyond"), [(130, 5), (367, 20)])
def test_a_memory_that_holds_all_the_nearest_is_reached_past_by_a_second_search(
    tale: World, monkeypatch: pytest.MonkeyPatch, covered: int, beyond: int
) -> None:
    monkeypatch.setattr("hgmem.retrieval.step_evidence.BEYOND", beyond)
    monkeypatch.setattr(
        "hgmem.retrieval.step_evidence.PROPOSED_NEAREST", 100
    )  # farther ones are equally far: any of them is valid
    text = questions(covered, 1)[0]
    held = [one for one, _ in nearest(tale.entities, tale.vector(text))][:covered]
    memory, _ = remember(tale, *(held[at : at + 50] for at in range(0, covered, 50)))
    free = {one: vector for one, vector in tale.entities.items() if one not in held}

    with measuring() as meter:
        evidence, _ = tale.gather([Subquery(text=text)], memory=memory, config=VECTOR, covered=covered, entities=SMALL)

    assert_best(evidence.retrieved[0].entities, free, tale.vector(text), 5)
    assert meter.usage().calls["neo4j"] == {"retrieve": 2}


@pytest.mark.parametrize("entities", [367, SMALL], ids=["then exactly", "then wider"])
def test_where_the_index_falls_short_it_is_asked_once_more(
    tale: World, monkeypatch: pytest.MonkeyPatch, entities: int
) -> None:
    monkeypatch.setattr("hgmem.retrieval.step_evidence.PROPOSED_NEAREST", 100)
    text = questions(99, 1)[0]
    held = [one for one, _ in nearest(tale.entities, tale.vector(text))][:130]
    memory, _ = remember(tale, held)
    free = {one: vector for one, vector in tale.entities.items() if one not in held}

    with measuring() as meter:
        evidence, _ = tale.gather(
            [Subquery(text="mill"), Subquery(text=text)], memory=memory, config=VECTOR, covered=0, entities=entities
        )

    assert meter.usage().calls["neo4j"]["retrieve"] == 2
    assert_best(evidence.retrieved[1].entities, free, tale.vector(text), 5)
    assert len(evidence.retrieved[0].entities) == 5
    assert [one.subquery.text for one in evidence.retrieved] == ["mill", text]


def test_a_second_search_finds_what_one_would_have_found(tale: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both see all entities, the first in the index and the second exactly: fewer hits of an index are approximate."""
    text = questions(99, 1)[0]
    held = [one for one, _ in nearest(tale.entities, tale.vector(text))][:130]
    memory, _ = remember(tale, held)

    def gathered(*, seen: int) -> Evidence:
        monkeypatch.setattr("hgmem.retrieval.step_evidence.PROPOSED_NEAREST", seen)
        asked = [Subquery(text="mill"), Subquery(text=text)]
        return tale.gather(asked, memory=memory, config=RetrievalConfig(), covered=0)[0]

    once = gathered(seen=5_000)
    with measuring() as meter:
        twice = gathered(seen=100)

    assert meter.usage().calls["neo4j"]["retrieve"] == 2
    assert twice == once


def test_memory_is_looked_at_too_where_exclusion_is_off(tale: World) -> None:
    text = questions(7, 1)[0]
    memory, _ = remember(tale, [one for one, _ in nearest(tale.entities, tale.vector(text))][:30])
    found, _ = tale.look(text, memory=memory, config=replace(VECTOR, exclude=False))

    assert_best(found.entities, tale.entities, tale.vector(text), 5)


def test_only_living_points_keep_their_entities_from_being_found(tale: World, raw: Raw) -> None:
    text = questions(8, 1)[0]
    memory, points = remember(tale, [one for one, _ in nearest(tale.entities, tale.vector(text))][:3])
    raw("MATCH (p:MemoryPoint {uid: $uid}) SET p.died = 1", uid=points[0].uid)
    found, _ = tale.look(text, memory=memory, config=VECTOR)

    assert_best(found.entities, tale.entities, tale.vector(text), 5)


def test_the_memory_of_another_question_keeps_nothing_from_being_found(tale: World) -> None:
    text = questions(9, 1)[0]
    remember(tale, [one for one, _ in nearest(tale.entities, tale.vector(text))][:3])
    memory, _ = remember(tale, [tale.uid(HUB)])
    found, _ = tale.look(text, memory=memory, config=VECTOR)
    free = {one: vector for one, vector in tale.entities.items() if one != tale.uid(HUB)}

    assert_best(found.entities, free, tale.vector(text), 5)


# Local investigation ------------------------------------------------------------------------------------------


def scope_of(
    found: World, held: set[str], points: Sequence[MemoryPoint], config: RetrievalConfig, *, hub: int
) -> dict[str, np.ndarray]:
    """Compute the paper's scope by hand: target points ∪ N_M ∪ N_G."""
    first = {near for one in held for near in found.neighbours(one, hub=hub)}
    scope = held | first
    if config.hops == 2:
        scope |= {near for one in first for near in found.neighbours(one, hub=hub)}
    if config.shared:
        tied = [{entity.uid for entity in point.entities} for point in points]
        scope |= {one for group in tied if group & held for one in group}
    return {one: found.entities[one] for one in scope}


@pytest.mark.parametrize(("hops", "hub", "shared"), list(product((1, 2), (200, 3), (True, False))))
def test_a_local_sub_query_looks_around_its_points_and_nowhere_else(
    tale: World, monkeypatch: pytest.MonkeyPatch, hops: int, hub: int, shared: bool
) -> None:
    config = replace(VECTOR, hops=hops, shared=shared)
    monkeypatch.setattr(step_evidence, "HUB", hub)
    some = sorted(tale.entities)
    groups = ([tale.uid(HUB), some[3]], [some[5], some[9]], [some[9], some[200]], [some[3], some[300]], [some[350]])
    memory, points = remember(tale, *groups)
    text = f"{questions(11, 1)[0]} harbour"
    targets = [(points[0],), (points[1],), (points[1], points[4])]
    asked = [Subquery(text=text, strategy="local", targets=tuple(point.uid for point in each)) for each in targets]
    found_by = []
    for exact in (10_000, 0, 12):  # candidates scanned, from the index, and of both
        monkeypatch.setattr(step_evidence, "EXACT", exact)
        found_by.append(tale.gather(asked, memory=memory, config=config, covered=8))
    (scanned, notes), (indexed, _), (mixed, _) = found_by

    for each, *retrieved in zip(targets, scanned.retrieved, indexed.retrieved, mixed.retrieved, strict=True):
        held = {entity.uid for point in each for entity in point.entities}
        for found in retrieved:
            assert_best(found.entities, scope_of(tale, held, points, config, hub=hub), tale.vector(text), 5)
            assert found.subquery.strategy == "local"
    assert scanned == indexed == mixed
    assert notes == ()


def test_a_hub_gives_its_heaviest_neighbours_ties_by_uid(tale: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_evidence, "HUB", 4)
    hub = tale.uid(HUB)
    memory, points = remember(tale, [hub])
    config = replace(VECTOR, shared=False, entities=50)
    found, _ = tale.look("x", memory=memory, config=config, strategy="local", targets=(points[0].uid,))

    assert len(tale.neighbours(hub, hub=1000)) > 200
    assert {hit.uid for hit in found.entities} == {hub, *tale.neighbours(hub, hub=4)}


def test_a_hub_gives_neighbours_of_the_chosen_documents_though_others_are_heavier(
    build: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_evidence, "HUB", 2)
    documents = {"log": ("Hub", "Quay", "Reef"), "other": ("Hub", "Mast", "Sail", "Keel")}
    chunks = {f"{name}-{at}": (name, at) for name, told in documents.items() for at in told}
    found = build(
        Given(
            documents=tuple(Document(text="", id=name, title=name) for name in documents),
            chunks=tuple(GivenChunk(id=uid, document=name, text=f"{at} Hub") for uid, (name, at) in chunks.items()),
            entities=tuple(
                GivenEntity(name=name, chunks=tuple(uid for uid, (_, at) in chunks.items() if at == name))
                for name in ("Hub", "Quay", "Reef", "Mast", "Sail", "Keel")
            ),
            relations=tuple(
                GivenRelation(source="Hub", target=at, description=at, weight=1 if name == "log" else 9, chunks=(uid,))
                for uid, (name, at) in chunks.items()
                if at != "Hub"
            ),
        )
    )
    memory, [point] = remember(found, [found.uid("Hub")])
    [log] = [row["uid"] for row in found.client.documents() if row["title"] == "log"]
    scope = Scope(corpus=found.corpus, memory=memory, documents=(log,))
    asked = Subquery(text="Hub", strategy="local", targets=(point.uid,))
    evidence, _ = gather(
        found.client._database,
        [asked],
        found.client.embedder.embed(["Hub"], kind="query"),
        scene=Scene(scope=scope, covered=1, entities=6),
        config=replace(VECTOR, shared=False),
    )
    assert {entity.name for entity in evidence.entities} == {"Hub", "Quay", "Reef"}
    beside = neighbours(
        found.client._database, scope=scope, uids=[found.uid("Hub")], query=found.vector("Hub"), limits=(9, 2)
    )
    assert {entity.name for entity in beside} == {"Quay", "Reef"}


def test_local_and_global_sub_queries_of_one_step_take_two_round_trips_and_one_for_the_language(tale: World) -> None:
    memory, points = remember(tale, sorted(tale.entities)[:3])
    asked = [
        Subquery(text="balf", strategy="local", targets=(points[0].uid,)),
        Subquery(text="balf"),
        Subquery(text="rond bash", strategy="local", targets=(points[0].uid,)),
    ]
    with measuring() as meter:
        evidence, _ = tale.gather(asked, memory=memory, config=RetrievalConfig(entities=400), covered=3)

    assert meter.usage().calls["neo4j"] == {"scopes": 1, "corpus_language": 1, "retrieve": 1}
    held = {entity.uid for entity in points[0].entities}
    assert held <= {hit.uid for hit in evidence.retrieved[0].entities}
    assert not held & {hit.uid for hit in evidence.retrieved[1].entities}
    assert len(evidence.retrieved[1].entities) == 367 - 3


def test_an_empty_scope_is_asked_globally_and_noted_in_a_second_round_trip(build: Callable[..., World]) -> None:
    lonely = build(Given(entities=tuple(GivenEntity(name=name) for name in ("Anna", "Bo", "Cleo"))))
    memory, _ = remember(lonely, [lonely.uid("Anna")])
    asked = [Subquery(text="Anna Bo", strategy="local", targets=("a point that is gone",))]
    with measuring() as meter:
        evidence, notes = lonely.gather(asked, memory=memory, config=replace(VECTOR, shared=False))

    assert meter.usage().calls["neo4j"] == {"scopes": 1, "retrieve": 2}
    assert notes == ("sub-query 1: nothing around its points, so it was asked globally",)
    assert [hit.name for hit in evidence.retrieved[0].entities] == ["Bo", "Cleo"]
    assert evidence.retrieved[0].subquery.strategy == "global"
    assert evidence.retrieved[0].subquery.targets == ()


# Relations and chunks -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("exact", [10_000, 0], ids=["scanned", "indexed"])
def test_relations_and_source_chunks_are_the_nearest_of_those_at_the_entities_found(
    tale: World, monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    monkeypatch.setattr(step_evidence, "EXACT", exact)
    config = replace(VECTOR, chunk_search="off")
    for text in [*questions(21, 5), "Hub Harbour"]:
        found, evidence = tale.look(text, config=config)
        kept = {hit.uid for hit in found.entities}
        incident = {one: row[3] for one, row in tale.relations.items() if kept & {row[0], row[1]}}
        sources = {one: tale.chunks[one] for entity in kept for one in tale.mentions.get(entity, ())}

        assert_best(found.relations, incident, tale.vector(text), 5)
        assert_best(found.chunks, sources, tale.vector(text), 5)
        assert {one.uid for one in evidence.relations} == {hit.uid for hit in found.relations}
        assert all({one.source, one.target} & kept for one in evidence.relations)


def test_a_relation_says_between_whom_it_is_and_a_chunk_whom_it_mentions(tale: World) -> None:
    _, evidence = tale.look(questions(22, 1)[0], config=VECTOR)

    assert evidence.relations
    for relation in evidence.relations:
        ends = tale.relations[relation.uid]
        assert (relation.source, relation.target, relation.weight) == ends[:3]
        assert (relation.source_name, relation.target_name) == (tale.names[ends[0]], tale.names[ends[1]])
    assert not any(chunk.entities for chunk in evidence.chunks)
    for chunk in with_mentions(tale.client._database, evidence, corpus=tale.corpus).chunks:
        mentioned = [one for one, chunks in tale.mentions.items() if chunk.uid in chunks]
        assert [entity.uid for entity in chunk.entities] == sorted(mentioned)
        assert chunk.title == "The tale"
        assert chunk.source_id.startswith("c")
    assert list(evidence.chunks) == sorted(evidence.chunks, key=lambda chunk: chunk.position)


def searched(found: World, text: str) -> Any:
    database, scene = found.client._database, Scene(scope=Scope(corpus=found.corpus), covered=0, entities=367)
    ranking = Ranking(k=20, over=200, scored=100)
    words = searched_words(database, scope=scene.scope, layers=[Texts(texts={0: text})], ranking=ranking)
    query = Query(number=0, vector=found.vector(text), search="index")
    limits = _limits(scene, RetrievalConfig())
    return retrieve(database, scope=scene.scope, queries=[query], words=words, limits=limits).found[0]


def test_plain_search_by_vector_adds_the_nearest_chunks_of_all(tale: World) -> None:
    for text in questions(23, 4):
        query = tale.vector(text)
        own, _ = tale.look(text, config=replace(VECTOR, chunk_search="off"))
        both, _ = tale.look(text, config=VECTOR)
        near = [one for one, _ in searched(tale, text).near.items()]

        assert [score for _, score in searched(tale, text).near.items()] == pytest.approx(
            [score for _, score in nearest(tale.chunks, query)[:20]], abs=1e-5
        )
        assert {hit.uid for hit in both.chunks} == {hit.uid for hit in own.chunks} | set(near[:5])
        assert [hit.uid for hit in both.chunks] == [
            one for one in fuse([[hit.uid for hit in own.chunks], near]) if one in {hit.uid for hit in both.chunks}
        ]


def test_hybrid_search_fuses_the_ranks_by_vector_and_by_words(tale: World) -> None:
    for text in questions(24, 4):
        lists = searched(tale, text)
        weight = {
            one: sum(
                1 / (60 + 1 + list(ranking).index(one)) for ranking in (lists.near, lists.matching) if one in ranking
            )
            for one in {*lists.near, *lists.matching}
        }
        best = sorted(weight, key=lambda one: (-weight[one], one))[:5]
        found, _ = tale.look(text, config=RetrievalConfig())

        assert len(lists.matching) == 20
        assert {hit.uid for hit in found.chunks} == {*lists.chunks, *best}
        scores = dict(nearest(tale.chunks, tale.vector(text)))
        assert all(hit.score == pytest.approx(scores[hit.uid], abs=1e-5) for hit in found.chunks)


def test_words_of_a_title_count_among_chunks_with_the_same_words(build: Callable[..., World], raw: Raw) -> None:
    titles = {"a": "Vestry minutes", "b": "Harbour ledger", "c": "", "d": "Vestry and harbour"}
    found = build(
        Given(
            documents=tuple(Document(text="", id=uid, title=title) for uid, title in titles.items()),
            chunks=tuple(GivenChunk(id=uid, document=uid, text=f"A clock, {uid}.") for uid in titles),
        )
    )

    texts = {
        row["uid"]: row["text"]
        for row in raw("MATCH (c:Chunk {corpus: $c}) RETURN c.uid AS uid, c.text AS text", c=found.corpus)
    }
    assert texts[searched(found, "clock harbour ledger").matching[0]] == "A clock, b."
    assert texts[searched(found, "clock vestry minutes").matching[0]] == "A clock, a."
    assert len(searched(found, "clock").matching) == 4


def test_words_of_a_title_count_far_down_the_list_of_the_index(build: Callable[..., World]) -> None:
    told = {f"d{at}": ("", f"A clock, {at}.") for at in range(100)}  # the index ranks short texts first
    told["last"] = ("Harbour ledger", "A clock" + ", and more of it" * 40)
    found = build(
        Given(
            documents=tuple(Document(text="", id=uid, title=title) for uid, (title, _) in told.items()),
            chunks=tuple(GivenChunk(id=uid, document=uid, text=text) for uid, (_, text) in told.items()),
        )
    )
    hits, _ = found.look("clock harbour ledger", config=RetrievalConfig(searched_chunks=20))

    assert len(searched(found, "clock").matching) == 20
    assert "last" in {hit.source_id for hit in hits.chunks}
    assert searched(found, "clock harbour ledger").matching[0] in {
        hit.uid for hit in hits.chunks if hit.source_id == "last"
    }


@pytest.mark.parametrize(("document", "ranked"), [("log", False), ("other", True)], ids=["of most", "of another"])
def test_a_title_lifts_no_chunk_of_the_document_that_most_of_those_proposed_are_of(
    build: Callable[..., World], raw: Raw, document: str, ranked: bool
) -> None:
    chunks = [*(("log", f"A clock, {at}.") for at in range(40)), (document, "A clock" + " clockwork" * 9)]
    found = build(
        Given(
            documents=tuple(Document(text="", id=uid, title="Harbour") for uid in ("log", "other")),
            chunks=tuple(GivenChunk(id=f"c{at}", document=uid, text=text) for at, (uid, text) in enumerate(chunks)),
        )
    )
    (row,) = raw("MATCH (c:Chunk {corpus: $c, source_id: 'c40'}) RETURN c.uid AS uid", c=found.corpus)
    matching = searched(found, "clock harbour work").matching

    assert len(matching) == 20
    assert (row["uid"] in matching) == ranked


def test_chunks_that_lack_their_vector_take_no_place_among_those_with_the_words(
    build: Callable[..., World], raw: Raw
) -> None:
    texts = [f"quay {'quay ' * 5 if at < 19 else 'bolf rork '}{at}" for at in range(38)]  # the first rank first
    chunks = tuple(GivenChunk(id=f"c{at}", document="d", text=text) for at, text in enumerate(texts))
    found = build(Given(documents=(Document(text="", id="d"),), chunks=chunks))
    raw(
        "MATCH (c:Chunk {corpus: $c}) WHERE c.position < 19 REMOVE c.embedding SET c.status = 'pending'", c=found.corpus
    )
    said = raw("MATCH (c:Chunk {corpus: $c}) WHERE c.position >= 19 RETURN c.uid AS uid", c=found.corpus)

    assert set(searched(found, "quay").matching) == {row["uid"] for row in said}


def test_a_chunk_that_lacks_its_vector_does_not_hide_that_the_index_was_not_asked_for_all(
    build: Callable[..., World], raw: Raw
) -> None:
    texts = [*(f"quay {at}" for at in range(20)), *(f"rork {at}" for at in range(80))]
    chunks = tuple(GivenChunk(id=f"c{at}", document="d", text=text) for at, text in enumerate(texts))
    found = build(Given(documents=(Document(text="", id="d"),), chunks=chunks))
    raw("MATCH (c:Chunk {corpus: $c, source_id: 'c3'}) REMOVE c.embedding SET c.status = 'pending'", c=found.corpus)

    def best(over: int) -> float:
        ranking = Ranking(k=5, over=over, titles=False)
        scope = Scope(corpus=found.corpus)
        return worded_chunks(found.client._database, scope=scope, text="quay", ranking=ranking)[0][1]

    assert best(21) > 10 * best(20) > 0  # the first is counted in all chunks, the second in those that hold the word


def test_a_rare_word_is_found_by_hybrid_search_where_vectors_miss_it(build: Callable[..., World]) -> None:
    given = graph(5, entities=120)
    long = " ".join(random.Random(5).choices(WORDS, k=120)) + " Quillhaven."
    given = replace(given, chunks=(*given.chunks, GivenChunk(id="rare", document="d", text=long)))
    small = build(given)
    text = "Where is Quillhaven?"
    hybrid, _ = small.look(text, config=RetrievalConfig())
    dense, _ = small.look(text, config=VECTOR)

    assert "rare" in {hit.source_id for hit in hybrid.chunks}
    assert "rare" not in {hit.source_id for hit in dense.chunks}


@pytest.mark.parametrize(
    "text",
    [
        '+-&&||!(){}[]^"~*?:\\/',
        "layer_key:x OR text:*",
        "AND",
        "\0",
        "'; MATCH (n) DETACH DELETE n //",
        "谁卖掉了磨坊？",
    ],
)
def test_a_text_full_of_syntax_is_looked_for_like_any_other(tale: World, text: str) -> None:
    found, _ = tale.look(text, config=RetrievalConfig())

    assert len(found.entities) == 5
    assert found.chunks


def test_a_chunk_that_is_still_without_its_vector_is_not_found(build: Callable[..., World], raw: Raw) -> None:
    texts = ("Anna sold the mill.", "The mill burned.")
    made = build(
        Given(
            documents=(Document(text="", id="d"),),
            chunks=tuple(GivenChunk(id=text, document="d", text=text) for text in texts),
        )
    )
    raw("MATCH (c:Chunk {corpus: $c, source_id: $id}) REMOVE c.embedding", c=made.corpus, id=texts[0])
    found, _ = made.look("Who sold the mill?", config=RetrievalConfig())

    assert [hit.source_id for hit in found.chunks] == [texts[1]]


def test_an_unknown_corpus_and_an_unknown_memory_give_nothing_and_no_error(tale: World) -> None:
    foreign = replace(tale, corpus="nobody")
    asked = [Subquery(text="balf"), Subquery(text="balf", strategy="local", targets=("none",))]
    evidence, _ = foreign.gather(asked, memory="none", config=RetrievalConfig())

    assert (evidence.entities, evidence.relations, evidence.chunks) == ((), (), ())


# Scopes -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", ["index", "exact", "scope"])
def test_a_provisional_entity_is_seen_by_its_own_memory_alone(build: Callable[..., World], search: str) -> None:
    made = build(
        Given(
            entities=tuple(GivenEntity(name=name) for name in ("Anna", "Bo", "Cleo", "Dag")),
            relations=(GivenRelation(source="Anna", target="Bo", description="Kin."),),
        )
    )
    own, points = remember(made, [made.uid("Anna")], stranger="Zebulon Quay")
    other, others = remember(made, [made.uid("Anna")])
    config = replace(VECTOR, exclude=search == "exact", entities=10)

    def names(memory: str, targets: tuple[MemoryPoint, ...]) -> set[str]:
        strategy = {"strategy": "local", "targets": tuple(one.uid for one in targets)} if search == "scope" else {}
        asked = [Subquery(text="Zebulon Quay", **strategy)]
        evidence, _ = made.gather(asked, memory=memory, config=config, covered=4, entities=5)
        return {hit.name for hit in evidence.retrieved[0].entities}

    assert "Zebulon Quay" not in names(other, others)
    if search != "exact":  # there it is in V_M, which is excluded
        assert "Zebulon Quay" in names(own, points)
    assert "Zebulon Quay" not in names("", ())


def test_a_provisional_neighbour_of_another_memory_is_never_walked_to(build: Callable[..., World], raw: Raw) -> None:
    made = build(Given(entities=(GivenEntity(name="Anna"), GivenEntity(name="Bo"))))
    own, points = remember(made, [made.uid("Anna")], stranger="Zebulon Quay")
    other, others = remember(made, [made.uid("Anna")])
    raw(
        "MATCH (a:Entity {uid: $a}), (b:Entity {uid: $b}) "
        "CREATE (a)-[r:RELATES {uid: $m + '-r', corpus: $c, memory: $m, "
        "description: 'Kin.', keywords: [], weight: 9.0, chunks: [], embedding: a.embedding}]->(b)",
        a=made.uid("Anna"),
        b=provisional_uid(own, made.uid("Zebulon Quay")),
        c=made.corpus,
        m=own,
    )
    config = replace(VECTOR, shared=False)
    seen, mine = made.look("Anna", memory=own, config=config, strategy="local", targets=(points[0].uid,))
    unseen, theirs = made.look("Anna", memory=other, config=config, strategy="local", targets=(others[0].uid,))

    assert {hit.name for hit in seen.entities} == {"Anna", "Zebulon Quay"}
    assert [one.description for one in mine.relations] == ["Kin."]
    assert [hit.name for hit in unseen.entities] == ["Anna"]  # nothing else around its point
    assert theirs.relations == ()


def test_a_crowd_of_near_copies_hides_nothing_and_shows_nothing_of_itself(build: Callable[..., World]) -> None:
    given = graph(3, entities=100)
    alone = build(given)
    texts = questions(31, 20)
    before = [searched(alone, text) for text in texts]
    for copy in range(9):
        build(graph(3, entities=100, extra=WORDS[copy] if copy % 2 else ""))
    config = RetrievalConfig(entities=20, relations=20, chunks=20)
    evidence, _ = alone.gather([Subquery(text=text) for text in texts], config=config)

    ours = {*alone.entities, *alone.relations, *alone.chunks}
    found = right = 0
    for text, retrieved, once in zip(texts, evidence.retrieved, before, strict=True):
        hits = {hit.uid for hit in (*retrieved.entities, *retrieved.relations, *retrieved.chunks)}
        assert hits <= ours
        floor = nearest(alone.entities, alone.vector(text))[19][1] - 1e-6
        right += sum(hit.score >= floor for hit in retrieved.entities)
        found += 20
        now = searched(alone, text)
        assert len(now.matching) == len(once.matching)
        assert set(now.matching) <= alone.chunks.keys()
        assert len(now.near) == 20
    assert right / found >= 0.99
    assert {one.uid for one in evidence.chunks} <= alone.chunks.keys()
    told = with_mentions(alone.client._database, evidence, corpus=alone.corpus).chunks
    assert {entity.uid for chunk in told for entity in chunk.entities} <= alone.entities.keys()


def test_words_of_one_chunk_are_found_beside_a_crowd_that_says_them_often(build: Callable[..., World]) -> None:
    text = "The heron clock stopped at the ferry."
    one = Given(documents=(Document(text="", id="d"),), chunks=(GivenChunk(id="c", document="d", text=text),))
    crowd = replace(
        one, chunks=tuple(GivenChunk(id=str(at), document="d", text=f"Heron clock {at}.") for at in range(150))
    )
    mine = build(one)
    build(crowd)

    assert len(searched(mine, "heron clock").matching) == 1
    assert len(searched(mine, "heron clock").near) == 1


def test_evidence_holds_each_thing_once_however_many_sub_queries_find_it(tale: World) -> None:
    evidence, _ = tale.gather([Subquery(text="balf rond"), Subquery(text="rond balf")], config=RetrievalConfig())

    for things in (evidence.entities, evidence.relations, evidence.chunks):
        uids = [one.uid for one in things]
        assert len(set(uids)) == len(uids)
    assert evidence.retrieved[0].entities == evidence.retrieved[1].entities

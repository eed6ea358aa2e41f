"""What retrieval and prompts make of several names of one thing: a class is one entity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pytest
from dumping import driver
from test_retrieval import VECTOR, World, remember, world
from walking import Guide, walked_town

from hgmem import HGMem, Settings
from hgmem.graph.memory import memory_points
from hgmem.graph.retrieval import Scope, chunks_of_entities, classes_of_chunks, mentioned_entities, neighbours, scopes
from hgmem.models.metering import measuring
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.step_evidence import SMALL
from hgmem.systems.gists.first_look import overview
from hgmem.systems.hgmem.loop import _resolved
from hgmem.testing import ScriptedModel
from hgmem.text.identity import uid
from hgmem.values.evidence import Subquery
from hgmem.values.graph_elements import Entity
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

CAPTAIN, SURNAME, INITIAL = "Captain Ivar Brandt", "Brandt", "I. Brandt"
NAMES = (CAPTAIN, SURNAME, INITIAL)
SENTENCES = (
    "Captain Ivar Brandt commands the Kestrel.",
    "Brandt quarrels with Greta Holm.",
    "I. Brandt signs for oil at the Lamp Office.",
    "Nils Aske sweeps the Pier.",
    "Captain Ivar Brandt sleeps.",
)
OTHERS = ("Kestrel", "Greta Holm", "Lamp Office", "Nils Aske", "Pier")
PAIRS = ((CAPTAIN, "Kestrel"), (SURNAME, "Greta Holm"), (INITIAL, "Lamp Office"), ("Nils Aske", "Pier"))
SHIPS = Given(
    documents=tuple(Document(id=f"d{at}", title=f"Paper {at}", text="") for at in range(len(SENTENCES))),
    chunks=tuple(GivenChunk(id=f"c{at}", document=f"d{at}", text=text) for at, text in enumerate(SENTENCES)),
    entities=(
        GivenEntity(name=CAPTAIN, type="person", description="Master of the ship.", chunks=("c0", "c4")),
        GivenEntity(name=SURNAME, type="person", description="He quarrels.", chunks=("c1",)),
        GivenEntity(name=INITIAL, type="person", description="A signature.", chunks=("c2",)),
        *(
            GivenEntity(
                name=name,
                type="other",
                description=f"{name} of the harbour.",
                chunks=tuple(f"c{at}" for at, text in enumerate(SENTENCES) if name in text),
            )
            for name in OTHERS
        ),
    ),
    relations=tuple(
        GivenRelation(source=one, target=other, description=f"{one} and {other}.", chunks=(f"c{at}",))
        for at, (one, other) in enumerate(PAIRS)
    ),
)
EVERY = replace(VECTOR, entities=20, relations=20, chunks=20, chunk_search="off")


@dataclass(frozen=True, kw_only=True)
class Ships:
    """The world, and what reads and writes it."""

    world: World
    run: Callable[..., list[dict[str, Any]]]
    chunks: Sequence[str]

    def uids(self, *names: str) -> list[str]:
        return [self.world.uid(name) for name in names]

    def scope(self, memory: str = "") -> Scope:
        return Scope(corpus=self.world.corpus, memory=memory)

    def memory(self, *groups: Sequence[str]) -> tuple[str, list[str]]:
        memory, points = remember(self.world, *(self.uids(*names) for names in groups))
        return memory, [point.uid for point in points]

    def found(self, text: str, **asked: Any) -> list[str]:
        retrieved, _ = self.world.look(text, config=asked.pop("config", EVERY), **asked)
        return sorted(hit.name for hit in retrieved.entities)

    def sentences(self, uids: Sequence[str]) -> set[int]:
        return {self.chunks.index(one) for one in uids}


@pytest.fixture
def ships(client: HGMem, settings: Settings) -> Any:
    """The papers of a harbour, in which one man has three names."""
    client.add_graph(SHIPS)
    client.same(CAPTAIN, SURNAME)
    client.same(SURNAME, INITIAL)
    with driver(settings) as opened:

        def run(query: str, **parameters: Any) -> list[dict[str, Any]]:
            return [record.data() for record in opened.execute_query(query, parameters).records]

        stored = run("MATCH (c:Chunk {corpus: $corpus}) RETURN c.uid AS uid, c.text AS text", corpus=client.corpus)
        of = {row["text"]: row["uid"] for row in stored}
        yield Ships(world=world(client, run), run=run, chunks=[of[text] for text in SENTENCES])


def test_of_a_class_the_nearest_alone_is_found_with_chunks_and_relations_of_all(ships: Ships) -> None:
    retrieved, evidence = ships.world.look("I. Brandt: A signature.", config=replace(EVERY, entities=1))

    assert [hit.name for hit in retrieved.entities] == [INITIAL]
    assert ships.sentences([hit.uid for hit in retrieved.chunks]) == {0, 1, 2, 4}
    assert {one.target_name for one in evidence.relations} | {one.source_name for one in evidence.relations} == {
        *NAMES,
        "Kestrel",
        "Greta Holm",
        "Lamp Office",
    }
    assert [entity.names for entity in evidence.entities] == [(CAPTAIN, INITIAL, SURNAME)]  # by chunks, then by length
    assert evidence.nearest[ships.world.uid(INITIAL)]
    assert ships.found("Brandt") == sorted([SURNAME, *OTHERS])


def test_chunks_of_many_members_are_found_by_the_index_too(ships: Ships, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hgmem.retrieval.step_evidence.EXACT", 0)
    retrieved, evidence = ships.world.look("I. Brandt: A signature.", config=replace(EVERY, entities=1))

    assert ships.sentences([hit.uid for hit in retrieved.chunks]) == {0, 1, 2, 4}
    assert evidence.nearest[ships.world.uid(INITIAL)]


def test_what_memory_has_under_another_name_is_not_found_again(ships: Ships) -> None:
    memory, _ = ships.memory([SURNAME])

    assert ships.found("Captain Ivar Brandt: Master of the ship.", memory=memory) == sorted(OTHERS)


def test_the_index_is_asked_for_more_where_it_proposes_one_class(
    client: HGMem, settings: Settings, monkeypatch: Any
) -> None:
    monkeypatch.setattr("hgmem.retrieval.step_evidence.PROPOSED_NEAREST", 20)
    names = [f"Lantern {at}" for at in range(30)]
    entities = tuple(GivenEntity(name=name, type="thing", description="A lantern.") for name in names)
    others = tuple(GivenEntity(name=name, type="thing", description="Far away.") for name in OTHERS)
    client.add_graph(Given(entities=(*entities, *others)))
    with driver(settings) as opened:
        uids = [uid(client.corpus, "entity", name.casefold()) for name in names]
        query = "MATCH (e:Entity) WHERE e.uid IN $uids SET e.canonical_uid = $uids[0] RETURN count(e) AS count"
        assert opened.execute_query(query, uids=sorted(uids)).records[0]["count"] == len(names)
        lanterns = world(client, lambda text, **more: [one.data() for one in opened.execute_query(text, more).records])

    config = replace(VECTOR, entities=4, chunk_search="off")
    with measuring() as meter:
        evidence, _ = lanterns.gather([Subquery(text="A lantern.")], config=config, entities=SMALL)

    found = [hit.name for hit in evidence.retrieved[0].entities]
    assert len(found) == 4
    assert sum(name in names for name in found) == 1
    assert meter.usage().calls["neo4j"] == {"retrieve": 2}


def test_of_a_class_only_what_the_chosen_documents_mention_is_found(ships: Ships) -> None:
    titles = ships.run(
        "MATCH (d:Document {corpus: $corpus}) WHERE d.title IN ['Paper 1', 'Paper 3'] RETURN d.uid AS uid",
        corpus=ships.world.corpus,
    )
    scope = replace(ships.scope(), documents=tuple(row["uid"] for row in titles))
    found = chunks_of_entities(
        ships.world.client._database,
        scope=scope,
        uids=ships.uids(CAPTAIN),
        query=ships.world.vector("Brandt"),
        k=9,
    )

    assert ships.sentences([chunk.uid for chunk in found]) == {1}


def test_a_local_scope_reaches_over_the_class_and_over_those_of_its_neighbours(ships: Ships) -> None:
    ships.world.client.same("Greta Holm", "Nils Aske")
    memory, points = ships.memory([SURNAME], ["Pier", INITIAL])
    limits = {"hops": 1, "shared": True, "hub": 200}

    def scope(**more: Any) -> set[str]:
        found = scopes(
            ships.world.client._database,
            scope=ships.scope(memory),
            targets={0: points[:1]},
            limits={**limits, **more},
        )
        return {ships.world.names[one] for one in found[0]}

    assert scope(shared=False) == {*NAMES, "Kestrel", "Greta Holm", "Lamp Office", "Nils Aske"}
    assert scope() == scope(shared=False) | {"Pier"}  # of a point that has the man under another name
    assert scope(shared=False, hops=2) == scope()
    first = scope(shared=False, hub=1) & {"Kestrel", "Greta Holm", "Lamp Office"}
    assert len(first) == 1  # of the whole class, not of each name

    local = {"strategy": "local", "targets": tuple(points[:1]), "memory": memory}
    assert len({*ships.found("Brandt", **local)} & {*NAMES}) == 1


def test_neighbours_are_those_of_the_class_and_each_class_is_one(ships: Ships) -> None:
    ships.world.client.same("Greta Holm", "Lamp Office")
    found = neighbours(
        ships.world.client._database,
        scope=ships.scope(),
        uids=ships.uids(SURNAME),
        query=ships.world.vector("Greta Holm: Greta Holm of the harbour."),
        limits=(9, 20),
    )

    assert {entity.name: set(entity.names) for entity in found} == {
        "Greta Holm": {"Greta Holm", "Lamp Office"},
        "Kestrel": set(),
    }


def test_chunks_of_an_entity_are_those_of_its_class(ships: Ships) -> None:
    found = chunks_of_entities(
        ships.world.client._database,
        scope=ships.scope(),
        uids=ships.uids(SURNAME),
        query=ships.world.vector("Brandt"),
        k=9,
    )
    assert ships.sentences([chunk.uid for chunk in found]) == {0, 1, 2, 4}


def test_chunks_around_a_point_are_those_of_the_class_and_of_its_neighbours(ships: Ships) -> None:
    ships.world.client.same("Greta Holm", "Pier")
    memory, points = ships.memory([SURNAME])
    around = {"corpus": ships.world.corpus, "memory": memory, "points": points, "k": 9}
    rows = ships.world.client._database.run("chunks_around_points", **around, read=list(ships.chunks))

    assert ships.sentences([row["chunk"] for row in rows]) == {0, 1, 2, 3, 4}


def test_what_a_chunk_mentions_is_of_its_class(ships: Ships) -> None:
    database, corpus = ships.world.client._database, ships.world.corpus
    found = mentioned_entities(database, corpus=corpus, uids=[ships.chunks[1]])[ships.chunks[1]]

    greta = ships.world.uid("Greta Holm")
    assert {entity.name: entity.thing for entity in found} == {SURNAME: min(ships.uids(*NAMES)), "Greta Holm": greta}
    assert [set(names) for names in classes_of_chunks(database, corpus=corpus, uids=ships.chunks)] == [{*NAMES}]
    assert classes_of_chunks(database, corpus=corpus, uids=[ships.chunks[3]]) == []


def test_a_name_of_a_known_class_is_the_entity_known_and_a_stored_one_has_its_class(ships: Ships) -> None:
    database, corpus = ships.world.client._database, ships.world.corpus
    stored = _resolved(database, [INITIAL, "Nobody"], corpus=corpus, memory="m", known=())
    assert stored["i. brandt"].thing == min(ships.uids(*NAMES))
    assert stored["nobody"].provisional

    with measuring() as meter:
        known = _resolved(database, [SURNAME, CAPTAIN], corpus=corpus, memory="m", known=[stored["i. brandt"]])
    assert known["brandt"] == known["captain ivar brandt"] == stored["i. brandt"]
    assert not meter.usage().calls.get("neo4j")


def test_a_point_involves_one_of_a_class(ships: Ships) -> None:
    memory, _ = ships.memory([SURNAME, "Pier", INITIAL])

    def involved() -> list[str]:
        stored = memory_points(ships.world.client._database, corpus=ships.world.corpus, memory=memory, owner=None)
        return [entity.name for one in stored for entity in one.point.entities]

    assert involved() == [SURNAME, "Pier"]
    ships.world.client.undo(SURNAME, INITIAL)
    assert involved() == [SURNAME, INITIAL, "Pier"]


def test_an_overview_has_one_line_a_class(ships: Ships) -> None:
    told = overview(ships.world.client._database, scope=ships.scope(), query=ships.world.vector("Brandt"), tokens=999)

    assert f"- {CAPTAIN} (also: {INITIAL}, {SURNAME}) (person): He quarrels." in told
    assert sum("Brandt" in line for line in told.splitlines()) == 1


def test_nothing_of_another_corpus_or_memory_is_of_a_class(ships: Ships, open_client: Any) -> None:
    stranger = open_client(corpus=f"{ships.world.corpus}b")
    stranger.add_graph(Given(entities=(GivenEntity(name="Spy", type="person", description="A spy."),)))
    memory, _ = ships.memory(["Pier"])
    own = Entity(uid=f"{memory}-own", name="Ghost", provisional=True)
    assert ships.run(
        "MATCH (e:Entity {corpus: $other}) SET e.canonical_uid = $class "
        "CREATE (:Entity {uid: $uid, corpus: $corpus, memory: $memory, name: 'Ghost', canonical_uid: $class}) "
        "RETURN count(e) AS count",
        other=stranger.corpus,
        corpus=ships.world.corpus,
        memory=memory,
        uid=own.uid,
        **{"class": min(ships.uids(*NAMES))},
    ) == [{"count": 1}]
    _, evidence = ships.world.look("I. Brandt: A signature.", config=EVERY)

    assert [set(entity.names) for entity in evidence.entities if entity.names] == [{*NAMES}]
    _, points = other = ships.memory([SURNAME])
    found = scopes(
        ships.world.client._database,
        scope=ships.scope(other[0]),
        targets={0: points},
        limits={"hops": 1, "shared": False, "hub": 200},
    )
    assert {*found[0]} <= ships.world.names.keys()


def test_prompts_say_who_is_who(ships: Ships, open_client: Any) -> None:
    asked: dict[str, Any] = {}

    def answer(task: Any) -> AnswerReply:
        asked["answer"] = task.fields()
        return AnswerReply(text="Nobody knows.")

    client = open_client(model=ScriptedModel({"answer": answer}))
    client.ask("Where does Captain Ivar Brandt sleep?", system="naive")

    assert f"- One and the same: {CAPTAIN} = {INITIAL}" in asked["answer"]["memory"].splitlines()


@pytest.mark.parametrize("system", ["naive", "bm25", "hgmem"])
def test_an_answer_without_a_language_model_quotes_first_what_is_said_under_another_name(
    client: HGMem, system: str
) -> None:
    sayings = {
        "Captain Ivar Brandt commands the Kestrel.": (CAPTAIN, "Kestrel"),
        "Captain Ivar Brandt signed the list at the Lamp Office.": (CAPTAIN, "Lamp Office"),
        "The Old Heron sleeps in the loft above the chandlery.": ("Old Heron", "loft"),
        "Nils Aske sleeps on the pier when it is warm.": ("Nils Aske", "pier"),
    }
    named = {name: tuple(text for text, names in sayings.items() if name in names) for name in chain(*sayings.values())}
    client.add_graph(
        Given(
            documents=tuple(Document(id=text, text=text) for text in sayings),
            chunks=tuple(GivenChunk(id=text, document=text, text=text) for text in sayings),
            entities=tuple(
                GivenEntity(name=name, type="other", description=name, chunks=chunks) for name, chunks in named.items()
            ),
        )
    )

    def said() -> str:
        return client.ask("Where does Captain Ivar Brandt sleep?", system=system).text

    assert not said().startswith("The Old Heron")
    client.same(CAPTAIN, "Old Heron")
    assert said().startswith("The Old Heron sleeps in the loft")


def test_a_walk_takes_a_class_for_one_place_and_learns_it(open_client: Callable[..., HGMem]) -> None:
    question, way = "Which key did Anna give away last?", {"quotes": 0, "fill": False, "look_tokens": 0}
    client = walked_town(open_client, Guide("Anna gave the key number 2").model())
    client.same("Anna", "Doris")
    both = {uid(client.corpus, "entity", name) for name in ("anna", "doris")}
    query = client.embedder.embed([question], kind="query")[0].tolist()
    near = {"corpus": client.corpus, "documents": None, "vector": query}
    rule = {"strong": {}, "ties": ["RELATES", "MENTIONS", "SYNONYM_OF"], "most": 30}
    where = {"corpus": client.corpus, "documents": None, "uids": [min(both)]}
    rows = client._database.run("ways", **where, wanted=query, read=None, rule=rule)

    assert {row["text"] for row in rows if row["tie"] == "RELATES"} == {"Bruno", "Felix", "Clara", "Emil"}
    anchors = [row["uid"] for row in rows if row["kind"] == "Anchor"]
    assert len(anchors) == len({*anchors})
    seeds = client._database.run("seeds", **near, k=99, over=150)
    assert [{*row["names"]} for row in seeds if row["uid"] in both] == [{"Anna", "Doris"}]

    first = client.ask(question, system="remindrag", settings=way, learn=True)
    came = [hit for step in first.steps for one in step.retrieved for hit in one.built]
    assert {hit.uid for hit in came} & both == {min(both)}
    assert {hit.text for hit in came if hit.uid in both} == {"Doris"}  # as many chunks, and longer
    assert any("Doris (also: Anna)" in seen.text for task in moves(client) for seen in (*task.fresh, *task.known))

    client.model.tasks.clear()  # type: ignore[attr-defined]
    second = client.ask(question, system="remindrag", settings=way)
    assert [step.strategy for step in second.steps] == ["replay"]
    assert moves(client) == []  # the answer was enough at once
    assert client.check().findings == ()


def test_a_relation_between_other_members_is_a_way_to_learn(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client)
    client.same("Anna", "Doris")
    ends = [uid(client.corpus, "entity", name) for name in ("anna", "clara")]  # it is Doris to whom Clara gave keys
    rows = [{"uid": "t", "ends": ends}]
    [row] = client._database.run("trails_to_touch", corpus=client.corpus, owner="", rows=rows)

    assert row["tie"] == "RELATES"


def moves(client: HGMem) -> list[Any]:
    return [task for task in client.model.tasks if task.name == "move"]  # type: ignore[attr-defined]

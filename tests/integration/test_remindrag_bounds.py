"""What a walk and its learning must not do: cross a filter, learn half, learn what is gone, or fail on odd options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dumping import driver
from walking import Guide, edges, nodes, walked_town

from hgmem import DocumentError, HGMem, ModelError, UsageError
from hgmem.graph.values import vector
from hgmem.systems.remindrag.tasks import MoveReply, UsefulReply
from hgmem.systems.remindrag.walk_record import recorded_walk
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity, GivenRelation

KEY = "Anna gave the key number 2"
QUESTION = "Which key did Anna give away last?"
WAY = {"quotes": 0, "fill": False, "starts": 0, "look_tokens": 0}


def secrets(*, related: bool) -> Given:
    """Return three documents: what ties Anna to Bruno, and with `related` how, is said in the secret one alone."""
    said = {"A": "Anna bribed Bruno with a boat.", "B": "Anna keeps bees.", "C": "Bruno keeps goats."}
    documents = [Document(id=at, title="secret" if at == "A" else f"open {at}", text=text) for at, text in said.items()]
    return Given(
        documents=tuple(documents),
        chunks=tuple(GivenChunk(id=f"{at}0", document=at, text=text) for at, text in said.items()),
        entities=(
            GivenEntity(name="Anna", type="person", description="Anna", chunks=("A0", "B0")),
            GivenEntity(name="Bruno", type="person", description="Bruno", chunks=("A0", "C0")),
        ),
        relations=(GivenRelation(source="Anna", target="Bruno", description="Anna bribed Bruno.", chunks=("A0",)),)
        if related
        else (),
    )


@pytest.fixture
def told(open_client: Callable[..., HGMem]) -> Callable[..., tuple[HGMem, Any]]:
    """Returns a client on the secrets whose model goes to Bruno."""

    def opened(*, related: bool = True, **more: Any) -> tuple[HGMem, Any]:
        model = Guide("Bruno keeps goats").model(**more)
        client = open_client(model=model)
        client.add_graph(secrets(related=related))
        client.build("remindrag")
        return client, model

    return opened


def test_a_filter_hides_what_other_documents_say_of_a_relation(told: Callable[..., tuple[HGMem, Any]]) -> None:
    client, model = told()
    settings = {"seeds": 1, "trails": False, "look_tokens": 0}
    client.ask("Anna. Anna", system="remindrag", settings=settings)
    assert any("bribed" in way.sentence for task in model.tasks if task.name == "move" for way in task.options)
    model.tasks.clear()
    answer = client.ask("Anna. Anna", system="remindrag", settings=settings, filters={"title": "open *"})
    assert not any("bribed" in way.sentence for task in model.tasks if task.name == "move" for way in task.options)
    assert not any("bribed" in str(task) for task in model.tasks)
    hidden = {row["uid"] for row in nodes(client, "Chunk") if "bribed" in row["text"]}
    assert not hidden & {hit.uid for step in answer.steps for one in step.retrieved for hit in one.chunks}


def test_a_replay_crosses_no_document_that_a_filter_leaves_out(told: Callable[..., tuple[HGMem, Any]]) -> None:
    way = iter(["secret", "Bruno"] + ["Bruno"] * 20)

    def through(task: Any) -> MoveReply:
        wanted = next(way)
        ties = [(one.node.text.partition(":")[0], one.tie) for one in task.options]
        if (wanted, "MENTIONS") in ties:
            return MoveReply(next=ties.index((wanted, "MENTIONS")), why="the name")
        return MoveReply(enough=True, found="goats")

    client, _ = told(related=False, move=through, useful=lambda task: UsefulReply(useful=tuple(range(9))))
    settings = {**WAY, "seeds": 1, "judge": "model"}
    first = client.ask("Anna. Anna", system="remindrag", settings=settings)
    assert "Bruno" in [target for _, target in edges(first)]
    client.remindrag.learn(memory=first.memory)
    again = client.ask("Anna. Anna", system="remindrag", settings=settings)
    assert again.steps[0].strategy == "replay"
    filtered = client.ask("Anna. Anna", system="remindrag", settings=settings, filters={"title": "open *"})
    assert "Bruno" not in [target for _, target in edges(filtered) if filtered.steps[0].strategy == "replay"]


def test_a_walk_begins_in_the_chosen_documents_however_many_others_are_nearer(
    open_client: Callable[..., HGMem],
) -> None:
    said = {"open": "Bruno keeps goats.", **{f"secret {at}": f"Anna {at} bribed Anna." for at in range(160)}}
    client = open_client(model=Guide("goats").model())
    client.add_graph(
        Given(
            documents=tuple(Document(id=name, title=name, text=text) for name, text in said.items()),
            chunks=tuple(GivenChunk(id=f"{name}0", document=name, text=text) for name, text in said.items()),
            entities=tuple(
                GivenEntity(name="Bruno" if name == "open" else f"Anna {name}", chunks=(f"{name}0",)) for name in said
            ),
        )
    )
    client.build("remindrag")
    answer = client.ask("Anna bribed Anna.", system="remindrag", settings=WAY, filters={"title": "open"})
    assert {hit.text for hit in answer.steps[0].retrieved[0].built} == {"Bruno", "open: Bruno keeps goats."}


def test_a_question_begins_where_the_nearest_one_within_the_filter_began(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    services = client._services(None)
    anchors = {row["title"]: row for row in nodes(client, "Anchor")}
    documents = {row["title"]: row["uid"] for row in client.documents()}
    found = {
        name: next(row["uid"] for row in anchors.values() if row["document"] == documents[f"Ledger of {name}"])
        for name in ("Anna", "Bruno")
    }
    asked = {f"{QUESTION} Tell me, please.": found["Anna"], QUESTION: found["Bruno"]}
    for number, (question, start) in enumerate(asked.items(), start=1):
        learning = {
            "uid": f"{client.corpus}{number}",
            "key": str(number),
            "question": question,
            "owner": "",
            "memory": "",
            "penalty": "forget",
            "starts": [start],
            "number": number,
            "vector": vector(client.embedder.embed([question], kind="query")[0]),
        }
        parts: Any = {"layer_key": "0", "learning": learning, "touches": []}
        services.database.run("put_learning", corpus=client.corpus, **parts)
    for name in ("Anna", "Bruno"):
        rows = services.database.run(
            "starts",
            corpus=client.corpus,
            documents=[documents[f"Ledger of {name}"]],
            owners=[""],
            vector=vector(client.embedder.embed([QUESTION], kind="query")[0]),
            k=1,
            least=0.0,
            most=10,
        )
        assert [row["uid"] for row in rows] == [found[name]]


@pytest.mark.parametrize("odd", [{"alpha": 1}, {"alpha": 0}, {"strong": 1}, {"strong": 0, "alpha": 1}])
def test_any_weight_and_limit_of_trails_answers(open_client: Callable[..., HGMem], odd: dict[str, Any]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag").memory)
    assert client.ask(QUESTION, system="remindrag", settings=odd).status == "answered"


@pytest.mark.parametrize("most", [1, 2, 3, 5])
def test_as_many_ways_are_offered_as_there_may_be(open_client: Callable[..., HGMem], most: int) -> None:
    guide = Guide("nothing")
    client = walked_town(open_client, guide.model())
    client.ask("Which key?", system="remindrag", settings={"ways": most, "trails": False, "seeds": 3, "look_tokens": 0})
    assert max(guide.offered) == most


def test_steps_limit_the_jumps_and_change_nothing_where_there_is_one_step(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide("nothing").model())
    answer = client.ask(QUESTION, system="remindrag", steps=2, settings=WAY)
    assert "it had made 2 jumps (max_jumps)" in answer.notes[0]
    assert client.ask(QUESTION, system="naive", steps=2).status == "answered"


def test_an_answer_is_kept_where_its_learning_fails(open_client: Callable[..., HGMem]) -> None:
    down = [True]

    def useful(task: Any) -> UsefulReply:
        if down:
            raise ModelError("the server is down")
        return UsefulReply(useful=task.cited)

    client = walked_town(open_client, Guide(KEY).model(useful=useful))
    answer = client.ask(QUESTION, system="remindrag", learn=True, settings={**WAY, "judge": "model"})
    assert answer.status == "answered"
    assert answer.notes[-1].startswith("not learnt: the server is down")
    assert nodes(client, "Learning") == []
    down.clear()
    assert client.remindrag.learn(memory=answer.memory)


def test_a_tie_that_is_gone_is_not_learnt(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model(useful=lambda task: UsefulReply(useful=tuple(range(9)))))
    answer = client.ask(QUESTION, system="remindrag", settings={**WAY, "judge": "model"})
    client.build("remindrag", settings={"passage_tokens": 256})
    client.remindrag.learn(memory=answer.memory)
    chained = {tuple(sorted(pair)) for pair in pairs(client, "NEXT_ANCHOR")}
    learnt = [tuple(row["key"].split("/")[:2]) for row in nodes(client, "Trail") if row["tie"] == "NEXT_ANCHOR"]
    assert set(learnt) <= chained
    assert not [row for row in nodes(client, "Trail") if row["tie"] == "SYNONYM_OF"]


def pairs(client: HGMem, kind: str) -> list[tuple[str, str]]:
    """Return the ends (uids) of relationships of a type."""

    query = f"MATCH (a {{corpus: $corpus}})-[:{kind}]->(b) RETURN a.uid AS a, b.uid AS b"
    with driver(client.settings) as opened:
        return [(row["a"], row["b"]) for row in opened.execute_query(query, corpus=client.corpus).records]


def test_an_archive_without_memories_has_no_question_that_was_learnt(
    open_client: Callable[..., HGMem], tmp_path: Path
) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", owner="ann", settings=WAY).memory)
    for memories in (True, False):
        client.export(tmp_path / f"{memories}.jsonl.gz", memories=memories)
    client.delete()
    for memories, number in ((True, 1), (False, 0)):
        copy = open_client()
        copy.import_archive(tmp_path / f"{memories}.jsonl.gz")
        assert len(nodes(copy, "Learning")) == number
        assert bool(nodes(copy, "Trail")) == bool(nodes(copy, "TrailScope")) == bool(number)
        assert copy.check().findings == ()
        copy.delete()


def test_odd_arguments_are_refused_in_one_line(open_client: Callable[..., HGMem], tmp_path: Path) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    (tmp_path / "deep.json").write_text("[" * 200_000, encoding="utf-8")
    (tmp_path / "long.txt").write_text("x" * 9_000, encoding="utf-8")
    for name, said in (("deep.json", "JSON nested too deeply"), ("long.txt", "has 9,000 characters, more than 8,000")):
        with pytest.raises((UsageError, DocumentError), match=said):
            client.remindrag.learn(questions=str(tmp_path / name))
    with pytest.raises(UsageError, match="limit"):
        client.remindrag.trails(limit=10**20)


def test_an_owner_takes_back_the_owners_own_alone(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    for owner in ("", "ann", "bob"):
        asked = client.ask(QUESTION, system="remindrag", owner=owner or None, settings={**WAY, "trails": False})
        client.remindrag.learn(memory=asked.memory)
    client.owner = "ann"
    assert [one.owner for one in client.remindrag.learnings()] == ["", "ann"]
    assert client.remindrag.unlearn(everything=True).learnings == 1
    with pytest.raises(UsageError, match=r"nothing was learnt.* by ann"):
        client.remindrag.unlearn(question=QUESTION)
    client.owner = None
    assert client.remindrag.unlearn(everything=True).learnings == 2
    assert nodes(client, "Trail") == []


def test_what_was_read_at_a_replayed_place_is_recorded_with_it(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide(KEY).model())
    client.remindrag.learn(memory=client.ask(QUESTION, system="remindrag", settings=WAY).memory)
    answer = client.ask(QUESTION, system="remindrag", settings={"fill": False, "look_tokens": 0})
    walk = recorded_walk(answer.steps)
    assert walk is not None
    replayed = [place for place in walk.places if place.replayed]
    assert replayed
    assert [place.text for place in replayed if place.passage and not place.chunks] == []
    assert any(place.chunks for place in replayed)

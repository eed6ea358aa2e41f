"""What a corpus holds, read part by part: by the client, and over HTTP within what a key may see."""

from collections.abc import Callable
from contextlib import ExitStack

import pytest
from dumping import dump
from letters import LETTERS, QUESTION, SENTENCES
from serving import serving
from walking import Guide, nodes, walked_town

from hgmem import HGMem
from hgmem.client.serving import ServiceStore
from hgmem.errors import NotFoundError, UsageError


def test_things_are_listed_by_mentions_found_by_any_name_and_shown_whole(client: HGMem) -> None:
    client.add_graph(LETTERS)
    client.same("Dag", "Eve")
    every = client.things(limit=100)
    assert [one.chunks for one in every] == sorted((one.chunks for one in every), reverse=True)
    assert len(every) == 8  # nine names, of which two name one thing
    assert client.things(skip=3, limit=2) == every[3:5]
    (found,) = client.things("EVE")
    assert set(found.names) == {"Dag", "Eve"}
    shown = client.thing(found.uid)
    assert {one.name for one in shown.entities} == {"Dag", "Eve"}
    assert {one.text for one in shown.passages} == {SENTENCES[3], SENTENCES[4]}
    assert {(tie.name, tie.description) for tie in shown.ties} >= {("Mill", "Dag and Mill.")}
    with pytest.raises(NotFoundError, match="entity 'none' not found"):
        client.thing("none")


def test_of_a_class_the_chunks_of_all_members_count_once_and_the_most_mentioned_one_is_shown(client: HGMem) -> None:
    client.add_graph(LETTERS)
    client.same("Anna", "Bo")  # both in the first sentence, Bo in the second too
    client.same("Dag", "Eve")  # in one each
    for words, name, chunks in (("anna", "Bo", 2), ("bo", "Bo", 2), ("dag", "Dag", 2)):
        found = next(one for one in client.things(words) if name in one.names)
        assert (len(found.names), found.chunks) == (2, chunks)
        assert (found.name, found.description) == (found.names[0], f"{found.names[0]} of the letters.")
    assert client.things("anna")[0].names == ("Bo", "Anna")


def test_a_text_is_read_from_shortly_before_a_chunk_on(client: HGMem) -> None:
    client.add_graph(LETTERS)
    chunks = client.chunks()
    assert [one.text for one in client.text("letters")] == list(SENTENCES)
    assert [one.text for one in client.text("letters", skip=1, limit=2)] == list(SENTENCES[1:3])
    assert [one.text for one in client.text("letters", chunk=chunks[4].uid)] == list(SENTENCES[2:])
    with pytest.raises(NotFoundError, match="is not in document 'letters': it was deleted, or its text changed"):
        client.text("letters", chunk="none")


def test_a_build_is_read_from_its_top_down_to_the_chunks(client: HGMem) -> None:
    client.add_graph(LETTERS)
    client.build("gists")
    top = client.built("gists")
    assert {row.kind for row in top} == {"Gist"}
    assert [row.uid for row in client.built("gists", kind="Gist")] == [row.uid for row in top]
    beneath = client.built_parts(top[0].uid)
    assert len(beneath) == top[0].parts > 0
    assert {(row.kind, row.parts) for row in beneath} == {("Chunk", 0)}
    assert {row.text for row in beneath} <= set(SENTENCES)


def test_the_top_of_a_build_is_the_same_whatever_was_learnt(open_client: Callable[..., HGMem]) -> None:
    client = walked_town(open_client, Guide("key number 2 to Clara").model())
    top = client.built("remindrag")
    client.remindrag.learn(memory=client.ask("Who gave Clara key number 2?", system="remindrag", owner="anna").memory)
    held = dump(client.settings, client.corpus).joined("RESTS_ON")
    assert {row["uid"] for row in nodes(client, "Trail")} & {above for above, _, _ in held}
    assert client.built("remindrag") == top


def test_what_is_not_there_is_one_line(client: HGMem) -> None:
    client.add_graph(LETTERS)
    client.build("remindrag")
    client.verbs("remindrag", note=str).learn(memory=client.ask(QUESTION, system="remindrag").memory)
    with pytest.raises(NotFoundError, match="system 'none' not found: `hgmem systems` lists them"):
        client.built("none")
    assert client.built("gists") == []
    for row in ("none", client.verbs("remindrag").learnings()[0].learning):
        with pytest.raises(NotFoundError, match=f"row '{row}' not found: list the rows of the builds"):
            client.built_parts(row)
    top = client.built("remindrag")[0]
    assert client.built_parts(top.uid, skip=top.parts) == []
    for listed in (
        lambda: client.things(skip=-1),
        lambda: client.text("letters", skip=-1),
        lambda: client.built("remindrag", skip=-1),
        lambda: client.built_parts(top.uid, skip=-1),
    ):
        with pytest.raises(UsageError, match=r"^skip=-1 must be an integer of at least 0$"):
            listed()


def test_a_scene_without_texts_names_the_documents_of_its_chunks(client: HGMem) -> None:
    client.add_graph(LETTERS)
    answer = client.ask(QUESTION, steps=1)
    scene = client.scene(answer.memory)
    document = client.documents()[0]["uid"]
    assert {tuple(chunk) for chunk in scene["chunks"].values()} == {("title", "document")}
    assert {chunk["document"] for chunk in scene["chunks"].values()} == {document}
    assert [one["document"] for one in scene["answers"][0]["citations"]] == [document] * len(answer.citations)


def test_over_http_a_key_reads_its_corpora_and_its_own_alone(client: HGMem) -> None:
    client.add_graph(LETTERS)
    client.build("gists")
    client.build("remindrag")
    store = ServiceStore(client)
    scopes = {"anna": ["read", "ask"], "ben": ["read", "ask"], "admin": ["admin"]}
    keys = {who: store.make_key(who, corpora=[client.corpus], scopes=may) for who, may in scopes.items()}
    memory = client.ask(QUESTION, system="remindrag", owner="anna").memory
    nobodys = client.ask(QUESTION, system="remindrag").memory
    for one in (memory, nobodys):
        client.verbs("remindrag", note=lambda _: None).learn(memory=one, corpus=client.corpus)
    with serving(client) as service, ExitStack() as opened:
        anna, ben, admin = (opened.enter_context(service.http(keys[who][0])) for who in scopes)
        place = f"/corpora/{client.corpus}"
        pages = [anna.get(f"{place}/entities", params={"limit": 4, "after": after}).json() for after in (0, 4, 8)]
        assert [len(one["items"]) for one in pages] == [4, 4, 1]
        assert [one["next"] for one in pages] == ["4", "8", None]
        assert anna.get(f"{place}/verbs/gists/levels").json()["value"][0]["level"] == 1
        assert {one["name"] for one in anna.get("/systems").json()["items"]} >= {"hgmem", "gists"}
        learnt = f"{place}/verbs/remindrag/learnings"
        seen = [[row["memory"] for row in one.get(learnt).json()["value"]] for one in (anna, ben, admin)]
        assert seen == [[memory], [], [nobodys, memory]]
        assert ben.get(f"{place}/verbs/remindrag/trails").json()["value"]  # everybody's are no memories
        rows = ben.get(f"{place}/built/remindrag", params={"limit": 500}).json()["items"]
        assert rows
        assert not {one["kind"] for one in rows} & {"Learning", "Trail", "TrailScope"}
        refused = {
            f"{place}/verbs/hypermem/forget": 404,  # it deletes
            f"{place}/verbs/memorag/summarise": 404,  # it calls a model
            f"{place}/verbs/none/none": 404,
            f"{place}/verbs/gists/levels?deep=1": 400,
            "/corpora/none/entities": 403,
            f"{place}/built/none": 404,
            f"{place}/parts/none": 404,
            f"/memories/{memory}/scene": 404,
        }
        assert {path: ben.get(path).status_code for path in refused} == refused
        assert anna.get(f"/memories/{memory}/scene").status_code == 200
    for _, key in keys.values():
        store.revoke_key(key.uid)

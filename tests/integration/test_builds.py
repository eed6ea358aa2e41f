"""Builds: made once, made anew where something changed, deleted with their texts. The system is that of tests/toy/."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from dumping import driver, dump

from hgmem import HGMem, UsageError
from hgmem.errors import ConflictError
from hgmem.testing import DeterministicEmbedder
from hgmem.values.inputs import Document, Given, GivenChunk, GivenEntity

pytestmark = pytest.mark.usefixtures("toy")

WORDS = ("anchor", "barrel", "candle", "dagger", "engine", "fiddle", "garnet", "hammer", "insect", "jacket")

HELD = "MATCH (b:Build {corpus: $corpus}) SET b.run = 'another', b.status = 'building', b.heartbeat = datetime()"


class Renamed(DeterministicEmbedder):
    """Another embedder, by its name."""

    name = "renamed"


def document(number: int, *, text: str = "") -> Document:
    """Return a document with a word of its own, `only7` for the seventh."""
    said = text or f"The {WORDS[number % 10]} of house {number} is called only{number}. It was seen near the pier."
    return Document(id=f"d{number}", title=f"House {number}", text=said)


def built(client: HGMem) -> object:
    """Return all data of the corpus that tells a build from another."""
    held = dump(client.settings, client.corpus)
    for _, properties in held.nodes.values():
        for name in ("finished_at", "changed_at", "change", "run", "calls", "tokens"):
            properties.pop(name, None)
    return held


def texts(client: HGMem) -> str:
    """Return every property of every node that a build has, as one text."""
    held = dump(client.settings, client.corpus, times=True)
    found = [node for label in ("Built", "Unit", "Build") for node in held.of(label).values()]
    return json.dumps(found, default=str) + json.dumps([*held.relationships])


def test_a_build_is_made_once_asked_and_shown(client: HGMem) -> None:
    client.add([document(number) for number in range(7)])
    with pytest.raises(UsageError, match=r"has no build 'toy': make it with `hgmem build toy --corpus"):
        client.ask("Who is only3?", system="toy")
    plan = client.plan_build("toy")
    assert [(stage.stage, stage.units, stage.listed) for stage in plan.stages] == [
        ("gists", 7, True),
        ("chain", 7, False),
        ("topics", 7, False),
        ("blends", 7, False),
    ]
    done = client.build("toy")
    assert (done.failed, done.waiting, done.dropped, done.deleted, done.unchanged) == (0, 0, 0, 0, 0)
    (state,) = client.status().builds
    assert (state.status, state.rows["ToyGist"], state.units) == ("ready", 7, {"done": done.made})
    before = dump(client.settings, client.corpus, times=True)

    again = client.build("toy")
    assert (again.made, again.unchanged) == (0, done.made)
    after = dump(client.settings, client.corpus, times=True)
    changed = [uid for uid, node in after.nodes.items() if node != before.nodes[uid]]
    assert [after.nodes[uid][0] for uid in changed] == [["Build"]]  # the lease
    assert client.plan_build("toy").units == 0

    answer = client.ask("Who is only3?", system="toy")
    (retrieved,) = answer.steps[0].retrieved
    assert {hit.kind for hit in retrieved.built} == {"ToyTopic", "ToyGist"}
    assert "only3" in answer.text
    assert answer.notes == ()


def test_what_changes_is_made_anew_and_nothing_else(client: HGMem) -> None:
    client.add([document(number) for number in range(12)])
    made = client.build("toy").made
    client.add(document(5, text="The fiddle of house 5 is called another5."))
    done = client.build("toy")
    assert 0 < done.made < made  # the fold behind the document as well: its outputs hold words of it
    gists = [
        unit
        for unit in dump(client.settings, client.corpus, times=True).of("Unit").values()
        if unit["stage"] == "gists"
    ]
    assert sorted(unit["attempts"] for unit in gists) == [1] * 11 + [2]
    assert "another5" in texts(client)
    assert "only5" not in texts(client)


@pytest.mark.parametrize("gone", [0, 7, 19])
def test_a_deleted_document_leaves_no_word_in_a_build(client: HGMem, gone: int) -> None:
    client.add([document(number) for number in range(20)])
    client.build("toy")
    assert f"only{gone}" in texts(client)
    client.delete(document=f"d{gone}")
    assert f"only{gone}" not in texts(client)
    (state,) = client.status().builds
    assert (state.status, state.change) == ("stale", "texts were deleted")
    note = f"the build 'toy' is stale (texts were deleted): `hgmem build toy --corpus {client.corpus}`"
    assert client.ask("Who is only3?", system="toy").notes[0].startswith(note)
    client.build("toy")
    assert client.status().builds[0].status == "ready"
    again = built(client)
    client.delete(system="toy")
    assert client.status().builds == ()
    client.build("toy")
    assert built(client) == again


def test_a_build_says_what_has_changed_since(client: HGMem) -> None:
    client.add([document(1), document(2)], graph=False)
    client.build("toy")
    client.add([document(1), document(2)], graph=False)  # nothing new
    assert _state(client) == ("ready", "")
    client.add(document(3), graph=False)
    assert _state(client) == ("stale", "documents were added")
    client.build("toy")
    client.add(Document(id="d3", title="Another", text=document(3).text), graph=False)
    assert _state(client) == ("stale", "documents were changed")
    client.build("toy")
    client.add(document(2, text="The barrel of house 2 was sold."), graph=False)
    assert _state(client) == ("stale", "documents were changed")
    client.build("toy")
    client.add([document(1)])
    assert _state(client) == ("stale", "entities were extracted")
    client.build("toy")
    client.add([document(4)])
    assert _state(client) == ("stale", "documents were added")


def test_a_pre_built_graph_makes_a_build_stale(client: HGMem) -> None:
    client.add(document(1))
    client.build("toy")
    given = Given(documents=(document(2),), chunks=(GivenChunk(id="c", document="d2", text=document(2).text),))
    client.add_graph(given)
    assert _state(client) == ("stale", "documents were added")
    client.build("toy")
    client.add_graph(given)  # nothing new
    assert _state(client) == ("ready", "")
    client.add_graph(replace(given, entities=(GivenEntity(name="Ship", chunks=("c",)),)))
    assert _state(client) == ("stale", "entities were added")


def _state(client: HGMem) -> tuple[str, str]:
    (state,) = client.status().builds
    return state.status, state.change


def test_a_build_with_other_options_is_made_anew_with_them_from_then_on(client: HGMem) -> None:
    client.add([document(number) for number in range(3)])
    client.build("toy")
    assert client.build("toy", recipe="short").made > 0
    assert client.build("toy").made == 0
    assert client.status().builds[0].settings["words"] == 6
    assert client.build("toy", settings={"words": 4}).made > 0


def _notes_on_build(client: HGMem, **options: object) -> list[str]:
    """Return an answer's notes on the build: whether its few rows are about the question depends on their ranks."""
    return [note for note in client.ask("Who is only1?", system="toy", **options).notes if "build" in note]


def test_a_question_with_another_option_of_the_build_says_so(client: HGMem) -> None:
    client.add([document(number) for number in range(3)])
    client.build("toy", settings={"words": 4})
    for same in ({}, {"words": "4", "best": 1}):
        assert _notes_on_build(client, settings=same) == []
    assert _notes_on_build(client, recipe="short") == []
    client.add(document(9))
    stale, other = _notes_on_build(client, settings={"words": 5})
    assert "is stale" in stale
    assert other == (
        "words=5 is read when building, and the build has words=4: "
        f"`hgmem build toy --corpus {client.corpus} --set words=5` makes it anew"
    )
    assert client.status().builds[0].settings["words"] == 4


def test_builds_are_refused_where_none_can_be_made(client: HGMem, open_client: Callable[..., HGMem]) -> None:
    with pytest.raises(UsageError, match="not found"):
        client.build("toy")
    client.add(document(1))
    with pytest.raises(UsageError, match="system 'naive' has no build"):
        client.build("naive")
    with pytest.raises(
        UsageError,
        match="'other': choose one of bm25, gists, hgmem, hybrid, hypermem, memorag, naive, remindrag, toy",
    ):
        client.build("other")
    with pytest.raises(UsageError, match="unknown recipe 'other'"):
        client.build("toy", recipe="other")
    with pytest.raises(UsageError, match="unknown recipe option 'other'"):
        client.build("toy", settings={"other": 1})
    with pytest.raises(UsageError, match="has no build 'toy'"):
        client.delete(system="toy")


def test_vectors_of_a_build_are_made_again_by_another_embedder(
    client: HGMem, open_client: Callable[..., HGMem]
) -> None:
    client.add([document(number) for number in range(6)])
    client.build("toy")
    other = Renamed(dimensions=32)
    client.reembed(other)
    (gist, *_) = [
        node for node in dump(client.settings, client.corpus).of("Built").values() if node["kind"] == "ToyGist"
    ]
    assert (len(gist["embedding"]), len(gist["own_embedding"]), gist["embedding"]) == (32, 32, gist["own_embedding"])
    assert gist["vector"] == [gist["length"], 1.0]  # no embedding, and made again by the system's own function
    changed = open_client(embedder=other)
    assert changed.status().builds[0].change == "the corpus has another embedder"
    assert changed.build("toy").made == 12  # the gists of the rule-based model, and the blended vectors
    assert changed.status().builds[0].status == "ready"
    again = built(changed)
    changed.delete(system="toy")
    changed.build("toy")
    assert built(changed) == again


def test_a_corpus_is_not_re_embedded_while_a_build_is_made(client: HGMem) -> None:
    client.add(document(1))
    client.build("toy")
    with driver(client.settings) as opened:
        opened.execute_query(HELD, corpus=client.corpus)
    with pytest.raises(ConflictError, match=r"the build 'toy' in corpus .* is being made: wait"):
        client.reembed(Renamed(dimensions=32))
    with pytest.raises(ConflictError, match="is being made by another process: wait until it ends; if it crashed"):
        client.build("toy")
    with pytest.raises(ConflictError, match="is being made by another process"):
        client.delete(system="toy")


def test_an_answer_may_cite_built_rows_until_they_change_or_go(client: HGMem) -> None:
    client.add([document(number) for number in range(6)])
    client.build("toy")
    asked = client.ask("Who is only3?", system="toy", settings={"cite_topics": True})
    assert asked.citations
    topics = {hit.uid: hit.text for hit in asked.steps[0].retrieved[0].built if hit.kind == "ToyTopic"}
    for citation in asked.citations:
        assert citation.chunk == ""
        assert citation.title == "ToyTopic"
        assert citation.quote in topics[citation.built]
        assert citation.behind
    (stored,) = client.memory(asked.memory).answers
    assert stored.citations == asked.citations
    assert not any(citation.withdrawn for citation in stored.citations)

    client.build("toy", settings={"words": 5})  # gists and topics become shorter
    (stored,) = client.memory(asked.memory).answers
    assert all(citation.withdrawn and citation.quote_status is None for citation in stored.citations)
    assert [citation.quote for citation in stored.citations] == [citation.quote for citation in asked.citations]

    again = client.ask("Who is only3?", system="toy", settings={"cite_topics": True})
    client.delete(system="toy")
    (stored,) = client.memory(again.memory).answers
    assert all(citation.withdrawn for citation in stored.citations)


def test_a_row_that_comes_back_equal_gets_again_what_other_units_gave_it(client: HGMem) -> None:
    client.add([document(number) for number in range(6)])
    client.build("toy")
    before = built(client)
    client.delete(document="d2")
    client.add(document(2))
    client.build("toy")
    assert built(client) == before


def test_ties_and_given_vectors_go_with_the_text_of_any_input(client: HGMem) -> None:
    client.add([document(number) for number in range(9)])
    client.build("toy")
    rows = dump(client.settings, client.corpus)
    topics = {source: target for source, target, _ in rows.joined("TOY_IN")}
    together = next(uid for uid in topics.values() if list(topics.values()).count(uid) > 1)
    first, *others = sorted(source for source, target in topics.items() if target == together)
    client.delete(document=rows.of("Built")[first]["document"])
    left = dump(client.settings, client.corpus).of("Built")
    assert together not in left
    assert all(left[uid]["embedding"] == left[uid]["own_embedding"] for uid in others)


def test_an_answer_from_a_build_that_is_not_whole_says_so(client: HGMem) -> None:
    client.add([document(number) for number in range(3)])
    client.build("toy")
    with driver(client.settings) as opened:
        opened.execute_query("MATCH (b:Build {corpus: $corpus}) SET b.status = 'unfinished'", corpus=client.corpus)
    (note,) = client.ask("Who is only1?", system="toy").notes
    assert note.startswith("the build 'toy' is not whole (status unfinished): `hgmem build toy")

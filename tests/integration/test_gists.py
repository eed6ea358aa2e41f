"""The pyramid of gists on a real Neo4j: what is built, what a change makes anew, and the gists near a question."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from dumping import dump
from test_builds import Renamed, built

from hgmem import HGMem, UsageError
from hgmem.client.inspection import _drawing
from hgmem.errors import ModelError
from hgmem.graph.retrieval import Scope
from hgmem.models.reply import TextReply
from hgmem.retrieval.answer import AnswerReply
from hgmem.retrieval.clues import CluesReply
from hgmem.services import Services
from hgmem.systems.gists.reading import gist_places, nearest_gists, whole_text
from hgmem.systems.registry import _loaders
from hgmem.systems.single_step import ChunksConfig, SingleStep, evidence_of
from hgmem.testing import ScriptedModel
from hgmem.values.evidence import BuiltHit, Evidence
from hgmem.values.inputs import Document

SMALL = {"passage_tokens": 128, "ratio": 4, "memory_tokens": 100}
THINGS = ("anchor", "barrel", "candle", "dagger", "engine", "fiddle", "garnet", "hammer", "insect", "jacket")


def paragraphs(name: str, number: int) -> list[str]:
    rng = random.Random(name)
    return [
        f"In {name} the {rng.choice(THINGS)} number {at} was sold to a {rng.choice(THINGS)} maker for {at + 2} pounds. "
        f"The {rng.choice(THINGS)} of paragraph {at} stood by the {rng.choice(THINGS)} until winter came to {name}."
        for at in range(number)
    ]


def document(name: str, texts: list[str]) -> Document:
    return Document(id=name, title=f"Ledger of {name}", text="\n\n".join(texts), metadata={"kind": name})


def opened(open_client: Callable[..., HGMem], **options: Any) -> HGMem:
    return open_client(chunk_tokens=40, chunk_overlap=8, chunk_restart=60, **options)


@pytest.fixture
def pyramid(open_client: Callable[..., HGMem]) -> HGMem:
    """A client on two long documents and three short ones, with a pyramid of more than two levels."""
    client = opened(open_client)
    client.add([document(name, paragraphs(name, 30)) for name in ("Arbor", "Briar")], graph=False)
    client.add([document(name, [f"In {name} a bell was sold."]) for name in ("Clay", "Dell", "Edge")], graph=False)
    client.build("gists", settings=SMALL)
    return client


def gists(client: HGMem) -> dict[str, dict[str, Any]]:
    held = dump(client.settings, client.corpus)
    return {str(node["uid"]): node for node in held.of("Gist").values()}


def units(client: HGMem) -> list[dict[str, Any]]:
    return [*dump(client.settings, client.corpus, times=True).of("Unit").values()]


def test_gists_stand_above_each_other_until_they_fit(pyramid: HGMem) -> None:
    levels = pyramid.gists.levels()
    assert len(levels) > 2
    assert levels[-1].tokens <= 100 or levels[-1].gists == 1
    assert all(one.tokens > 100 for one in levels[:-1])
    assert [one.gists for one in levels] == sorted((one.gists for one in levels), reverse=True)
    found = gists(pyramid)
    assert sum(one.gists for one in levels) == len(found)
    together = [one for one in found.values() if one["level"] == 1 and not one["document"]]
    assert [one["title"] for one in together] == ["Ledger of Clay; Ledger of Dell; Ledger of Edge"]
    text = " ".join(chunk.text for chunk in pyramid.chunks()).replace("\n", " ")
    assert all(sentence in text for one in found.values() for sentence in one["text"].split("\n"))
    assert pyramid.build("gists").made == 0
    assert pyramid.check().findings == ()


def test_every_chunk_has_one_gist_and_every_gist_below_the_top_one_above(pyramid: HGMem) -> None:
    found, held = gists(pyramid), dump(pyramid.settings, pyramid.corpus)
    rests: dict[str, list[str]] = {}
    above: dict[str, list[str]] = {}
    for gist, text, _ in held.joined("RESTS_ON"):
        if found.get(gist, {}).get("level") == 1:
            rests.setdefault(text, []).append(gist)
    for gist, below, _ in held.joined("CONDENSES"):
        above.setdefault(below, []).append(gist)
    assert {uid: len(of) for uid, of in rests.items()} == {chunk.uid: 1 for chunk in pyramid.chunks()}
    top = max(one["level"] for one in found.values())
    assert {uid: len(above.get(uid, [])) for uid, one in found.items() if one["level"] < top} == {
        uid: 1 for uid, one in found.items() if one["level"] < top
    }


@pytest.mark.parametrize("change", ["changed", "inserted", "removed"])
def test_a_paragraph_makes_anew_its_gist_and_those_above_it(pyramid: HGMem, change: str) -> None:
    texts = paragraphs("Arbor", 30)
    if change == "changed":
        texts[14] = "A whale was seen at the pier of Arbor on that day, and nobody spoke of it again for years."
    elif change == "inserted":
        texts.insert(14, "A whale was seen at the pier of Arbor on that day, and nobody spoke of it again for years.")
    else:
        del texts[14]
    lowest = pyramid.gists.levels()[0].gists
    pyramid.add(document("Arbor", texts), graph=False)
    done = pyramid.build("gists")
    assert 1 <= done.made <= 4 * len(pyramid.gists.levels())
    assert done.made < lowest
    again = built(pyramid)
    pyramid.delete(system="gists")
    pyramid.build("gists", settings=SMALL)
    assert built(pyramid) == again


@pytest.mark.parametrize("ruled", [True, False], ids=["rule-based", "language model"])
def test_another_embedder_makes_anew_only_gists_that_vectors_chose(
    open_client: Callable[..., HGMem], ruled: bool
) -> None:
    model = {} if ruled else {"model": scripted()}
    client = opened(open_client, **model)
    client.add([document("Arbor", paragraphs("Arbor", 20))], graph=False)
    client.build("gists", settings=SMALL)
    client.reembed(Renamed(dimensions=32))
    changed = opened(open_client, embedder=Renamed(dimensions=32), **model)
    done = changed.build("gists")
    assert (done.made > 0, done.unchanged > 0) == (ruled, not ruled)
    anew = built(changed)
    changed.delete(system="gists")
    changed.build("gists", settings=SMALL)
    assert built(changed) == anew


def scripted(**replies: Any) -> ScriptedModel:
    given = {
        "gist": lambda task: TextReply(text=f"A gist of {len(task.texts)} parts, of {task.texts[0][0]}."),
        "clues": lambda task: CluesReply(draft="A secret draft.", spans=("The anchor stood by the engine.",)),
        "answer": lambda task: AnswerReply(text="It stood there [1]."),
    }
    return ScriptedModel({**given, **replies})


def test_a_gist_that_fails_for_good_costs_its_unit_alone(open_client: Callable[..., HGMem]) -> None:
    def failing(task: Any) -> TextReply:
        if "paragraph 7 " in task.texts[0][1]:
            raise ModelError("the server said no")
        return TextReply(text="A gist.")

    client = opened(open_client, model=scripted(gist=failing))
    client.add([document("Arbor", paragraphs("Arbor", 30))], graph=False)
    done = client.build("gists", settings=SMALL)
    assert (done.failed, done.made > 3) == (1, True)
    notes = client.ask("Where?", system="memorag").notes
    assert any("is not whole (status incomplete)" in note for note in notes)
    assert client.build("gists").failed == 1
    client.model = scripted(gist=lambda _: TextReply(text="A gist."))
    assert client.build("gists", retry_failed=True).failed == 0
    assert client.status().builds[0].status == "ready"


def test_estimates_are_upper_bounds(open_client: Callable[..., HGMem]) -> None:
    model = scripted(gist=lambda task: TextReply(text="Bells rang in the town. " * (task.tokens // 6)))
    client = opened(open_client, model=model)
    client.add([document(name, paragraphs(name, 40)) for name in ("Arbor", "Briar")], graph=False)
    plan = client.plan_build("gists", settings=SMALL)
    client.build("gists", settings=SMALL)
    assert 0 < len(model.tasks) <= sum(stage.calls for stage in plan.stages)


def near(client: HGMem, text: str, *, tokens: int, documents: Sequence[str] | None = None) -> list[Any]:
    services = client._services(None)
    scope = Scope(corpus=client.corpus, documents=None if documents is None else tuple(documents))
    vector = services.embed([text], kind="query")[0]
    return nearest_gists(services.database, scope, vector, tokens=tokens)


def test_gists_near_a_question_are_the_nearest_that_fit_in_the_order_of_the_text(pyramid: HGMem) -> None:
    held, services = gists(pyramid), pyramid._services(None)
    places = [one.uid for one in gist_places(services.database, scope=Scope(corpus=pyramid.corpus)) if one.level == 1]
    question = "Which barrel maker of Briar bought an anchor?"
    total = sum(held[uid]["tokens"] for uid in places)
    for tokens in (60, 200, 500, total - 1):
        found = [one.uid for one in near(pyramid, question, tokens=tokens)]
        assert 0 < sum(held[uid]["tokens"] for uid in found) <= tokens
        tops = [uid for uid in found if uid not in places]
        assert found == [*tops, *(uid for uid in places if uid in found)]
        assert not tops or {held[uid]["level"] for uid in tops} == {max(row["level"] for row in held.values())}
    assert tops  # there is room for one, but not for every gist of a document
    everything = near(pyramid, question, tokens=100_000)
    assert [one.uid for one in everything] == places
    for one in everything:
        [nearest] = near(pyramid, one.text, tokens=held[one.uid]["tokens"])[:1]
        assert (nearest.text, nearest.title) == (one.text, held[one.uid]["title"])


def test_gists_near_a_question_rest_on_chosen_documents_alone(pyramid: HGMem) -> None:
    uids = {row["title"]: row["uid"] for row in pyramid.documents()}
    arbor = near(pyramid, "What was sold in Briar?", tokens=5_000, documents=[uids["Ledger of Arbor"]])
    assert {one.document for one in arbor} == {uids["Ledger of Arbor"]}
    assert not any("Briar" in one.text for one in arbor)
    assert near(pyramid, "What was sold?", tokens=5_000, documents=[uids["Ledger of Clay"]]) == []  # shares its gist
    pyramid.delete(system="gists")
    assert near(pyramid, "What was sold?", tokens=5_000) == []


def looking(services: Services, question: str, *, scope: Scope, config: ChunksConfig) -> Evidence:
    """Answer from the gists near the question, and the chunk that leads the first document."""
    vector = services.embed([question], kind="query")[0]
    hits = nearest_gists(services.database, scope, vector, tokens=100)
    rows = [BuiltHit(uid=one.uid, kind=one.kind, rank=at, text=one.text) for at, one in enumerate(hits, start=1)]
    chunks = whole_text(services.database, scope=scope, budget=100_000)[0][:1]
    return evidence_of(question, [(chunk, 1.0) for chunk in chunks], built=rows)


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> str:
    """A system that reads gists where they are built."""
    spec = SingleStep(
        name="looking", summary="Looks.", config=ChunksConfig, retrieve=looking, uses=lambda _: ("gists",)
    )
    loaders = {**_loaders(), "looking": lambda: spec}
    monkeypatch.setattr("hgmem.systems.registry._loaders", lambda: loaders)
    return "looking"


def test_a_system_reads_gists_where_they_are_built_and_says_that_they_are_stale(
    open_client: Callable[..., HGMem], reader: str
) -> None:
    client = opened(open_client)
    client.add(document("Arbor", paragraphs("Arbor", 12)), graph=False)
    before = client.ask("What was sold?", system=reader)
    assert (before.notes, before.steps[0].retrieved[0].built) == ((), ())
    client.build("gists", settings=SMALL)
    answer = client.ask("What was sold?", system=reader)
    assert answer.notes == ()
    assert {hit.kind for hit in answer.steps[0].retrieved[0].built} == {"Gist"}
    client.add(document("Briar", paragraphs("Briar", 3)), graph=False)
    [note] = client.ask("What was sold?", system=reader).notes
    assert note.startswith("the build 'gists' is stale (documents were added): `hgmem build gists --corpus ")
    assert client.system(reader).builds == ("gists",)


def test_gists_are_a_build_that_answers_nothing(pyramid: HGMem) -> None:
    assert "gists" not in {one.name for one in pyramid.systems()}
    assert (pyramid.system("gists").answers, pyramid.system("memorag").builds) == (False, ("gists",))
    with pytest.raises(UsageError, match="'gists' is a build and answers nothing: choose one of the systems"):
        pyramid.ask("What was sold?", system="gists")
    [state] = pyramid.builds()
    assert (state.system, state.settings) == ("gists", {**SMALL, "temperature": None})
    pyramid.ask("What was sold?", system="memorag")
    offered = [one.path.name for one in _drawing("memorag", built={"gists"}).favourites]
    assert offered == ["gists-1-pyramid.cypher", "gists-2-gist-to-text.cypher", "memorag-clues-of-a-question.cypher"]


def test_an_archive_keeps_gists_and_a_second_build_makes_nothing(pyramid: HGMem, tmp_path: Path) -> None:
    before = gists(pyramid)
    pyramid.export(tmp_path / "mine.jsonl.gz")
    pyramid.delete()
    pyramid.import_archive(tmp_path / "mine.jsonl.gz")
    assert gists(pyramid) == before
    assert pyramid.check().findings == ()
    assert pyramid.build("gists").made == 0

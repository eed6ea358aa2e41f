"""MemoRAG on a real Neo4j: the pyramid of gists, what a change makes anew, and answers from what clues find."""

import random
from collections.abc import Callable
from typing import Any

import pytest
from dumping import dump
from test_builds import Renamed, built

from hgmem import HGMem, UsageError
from hgmem.errors import ModelError
from hgmem.models.reply import TextReply
from hgmem.retrieval.answer import AnswerReply
from hgmem.systems.memorag.tasks import CluesReply
from hgmem.testing import ScriptedModel
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
    client.build("memorag", settings=SMALL)
    return client


def gists(client: HGMem) -> dict[str, dict[str, Any]]:
    held = dump(client.settings, client.corpus)
    return {str(node["uid"]): node for node in held.of("Gist").values()}


def units(client: HGMem) -> list[dict[str, Any]]:
    return [*dump(client.settings, client.corpus, times=True).of("Unit").values()]


def test_gists_stand_above_each_other_until_they_fit(pyramid: HGMem) -> None:
    levels = pyramid.memorag.levels()
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
    assert pyramid.build("memorag").made == 0
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
    lowest = pyramid.memorag.levels()[0].gists
    pyramid.add(document("Arbor", texts), graph=False)
    done = pyramid.build("memorag")
    assert 1 <= done.made <= 4 * len(pyramid.memorag.levels())
    assert done.made < lowest
    again = built(pyramid)
    pyramid.delete(system="memorag")
    pyramid.build("memorag", settings=SMALL)
    assert built(pyramid) == again


@pytest.mark.parametrize("ruled", [True, False], ids=["rule-based", "language model"])
def test_another_embedder_makes_anew_only_gists_that_vectors_chose(
    open_client: Callable[..., HGMem], ruled: bool
) -> None:
    model = {} if ruled else {"model": scripted()}
    client = opened(open_client, **model)
    client.add([document("Arbor", paragraphs("Arbor", 20))], graph=False)
    client.build("memorag", settings=SMALL)
    client.reembed(Renamed(dimensions=32))
    changed = opened(open_client, embedder=Renamed(dimensions=32), **model)
    done = changed.build("memorag")
    assert (done.made > 0, done.unchanged > 0) == (ruled, not ruled)
    anew = built(changed)
    changed.delete(system="memorag")
    changed.build("memorag", settings=SMALL)
    assert built(changed) == anew


def test_a_deleted_document_leaves_no_gist_of_it(pyramid: HGMem) -> None:
    pyramid.delete(document="Briar")
    assert not any("Briar" in one["text"] or "Briar" in one["title"] for one in gists(pyramid).values())
    note = pyramid.ask("What was sold?", system="memorag", settings={"memory_tokens": 100}).notes[0]
    assert "stale (texts were deleted)" in note
    pyramid.build("memorag")
    assert all(unit["status"] == "done" for unit in units(pyramid))
    assert pyramid.check().findings == ()


def test_asking_searches_by_every_clue_and_keeps_what_it_read(pyramid: HGMem) -> None:
    answer = pyramid.ask("Where did the anchor of Arbor stand?", system="memorag")
    (step,) = answer.steps
    assert step.strategy == "clues"
    asked = [(one.subquery.concern, one.subquery.text) for one in step.retrieved]
    assert asked[0] == ("question", "Where did the anchor of Arbor stand?")
    assert {concern for concern, _ in asked} >= {"question", "text span", "surrogate query"}
    assert all(1 <= len(one.chunks) <= 3 for one in step.retrieved[1:])
    assert len(step.retrieved[0].chunks) > 3  # the question's next ones fill the budget
    assert {hit.kind for hit in step.retrieved[0].built} == {"Gist"}
    stored = pyramid.memory(answer.memory)
    assert stored.steps[0].retrieved == step.retrieved
    assert "Arbor" in answer.text
    assert answer.citations


def scripted(**replies: Any) -> ScriptedModel:
    given = {
        "gist": lambda task: TextReply(text=f"A gist of {len(task.texts)} parts, of {task.texts[0][0]}."),
        "clues": lambda task: CluesReply(draft="A secret draft.", spans=("The anchor stood by the engine.",)),
        "answer": lambda task: AnswerReply(text="It stood there [1]."),
    }
    return ScriptedModel({**given, **replies})


def test_the_answer_sees_passages_in_order_and_no_clue(open_client: Callable[..., HGMem]) -> None:
    client = opened(open_client, model=scripted())
    client.add([document("Arbor", paragraphs("Arbor", 12))], graph=False)
    client.build("memorag", settings=SMALL)
    client.ask("Where did the anchor stand?", system="memorag", settings={"memory_tokens": 5_000})
    *_, clues, task = client.model.tasks
    assert (clues.name, task.name) == ("clues", "answer")
    prompt = str(task.fields())
    assert "secret draft" not in prompt
    assert "A gist of" not in prompt
    places = [(chunk.document, chunk.position) for chunk in task.passages]
    assert places == sorted(places)
    assert len(places) == len(set(places)) > 3


@pytest.mark.parametrize("kinds", ["spans,queries", '["spans", "queries"]'])
def test_kinds_can_be_typed_and_a_memory_without_clues_is_noted(pyramid: HGMem, kinds: str) -> None:
    asked = {"kinds": kinds}
    step = pyramid.ask("Where did the anchor of Arbor stand?", system="memorag", settings=asked).steps[0]
    assert {one.subquery.concern for one in step.retrieved} == {"question", "text span", "surrogate query"}
    assert step.notes == ()
    step = pyramid.ask("Where did the anchor stand?", system="memorag", recipe="draft-only").steps[0]
    assert step.notes == ("memory wrote no clue: the question alone searched",)
    with pytest.raises(UsageError, match="invalid recipe option 'kinds"):
        pyramid.ask("Where?", system="memorag", settings={"kinds": "nonsense"})


def test_without_filling_the_union_is_all(pyramid: HGMem) -> None:
    options = {"fill": False, "evidence_tokens": 100_000}
    step = pyramid.ask("Where did the anchor of Arbor stand?", system="memorag", settings=options).steps[0]
    assert [len(one.chunks) for one in step.retrieved] == [3] * len(step.retrieved)


def test_chunks_beyond_the_budget_are_left_out_and_noted(pyramid: HGMem) -> None:
    step = pyramid.ask("What was sold?", system="memorag", settings={"evidence_tokens": 90}).steps[0]
    assert any("did not fit into 90 tokens" in note for note in step.notes)


def test_a_gist_that_is_named_is_looked_into_and_twice_at_most(open_client: Callable[..., HGMem]) -> None:
    def clues(task: Any) -> CluesReply:
        shown = [*task.memory, *task.parts]
        return CluesReply(spans=(f"Anchor {len(shown)} by the engine.",), look=(len(shown) - 1, 99))

    client = opened(open_client, model=scripted(clues=clues, gist=lambda task: TextReply(text="Bells rang. " * 12)))
    client.add([document("Arbor", paragraphs("Arbor", 60))], graph=False)
    client.build("memorag", settings=SMALL)
    top = client.memorag.levels()[-1]
    assert top.level >= 3
    small = {"memory_tokens": top.tokens + 130}
    answer = client.ask("Where?", system="memorag", settings=small)
    tasks = [task for task in client.model.tasks if task.name == "clues"]
    assert [task.look for task in tasks] == [True, True, False]
    assert [len(task.memory) for task in tasks] == [top.gists] * 3
    sizes = [len(task.parts) for task in tasks]
    assert sizes[0] == 0 < sizes[1] < sizes[2]
    read = answer.steps[0].retrieved[0].built
    assert len(read) == top.gists + sizes[2]
    assert len([one for one in answer.steps[0].retrieved if one.subquery.concern == "text span"]) == 3
    client.ask("Where?", system="memorag", settings={**small, "descents": 0})
    assert len([task for task in client.model.tasks if task.name == "clues"]) == 4


def test_the_papers_recipe_asks_for_each_kind_by_itself(open_client: Callable[..., HGMem]) -> None:
    client = opened(open_client, model=scripted())
    client.add([document("Arbor", paragraphs("Arbor", 5))], graph=False)
    client.build("memorag", recipe="paper")
    client.ask("Where?", system="memorag", recipe="paper")
    assert [task.kinds for task in client.model.tasks if task.name == "clues"] == [("spans",), ("queries",)]


def test_the_whole_text_is_a_memory_without_a_build(client: HGMem) -> None:
    client.add([document("Arbor", paragraphs("Arbor", 5))], graph=False)
    with pytest.raises(UsageError, match="has no build of system 'memorag'"):
        client.ask("Where did the anchor stand?", system="memorag")
    for recipe in ("full", "no-memory", "question-only"):
        assert client.ask("Where did the anchor of Arbor stand?", system="memorag", recipe=recipe).citations
    with pytest.raises(UsageError, match=r"the text has \d+ tokens, more than memory_tokens=20: raise it"):
        client.ask("Where?", system="memorag", recipe="full", settings={"memory_tokens": 20})


def test_chosen_documents_are_remembered_by_their_own_gists_and_chunks(pyramid: HGMem) -> None:
    answer = pyramid.ask("What was sold?", system="memorag", filters={"kind": ["Clay", "Arbor"]})
    texts = " ".join(hit.text for hit in answer.steps[0].retrieved[0].built)
    assert "Arbor" in texts
    assert not any(name in texts for name in ("Briar", "Clay", "Dell"))  # Clay shares its gist with Dell
    found = {hit.uid for one in answer.steps[0].retrieved for hit in one.chunks}
    titles = {chunk.title for chunk in pyramid.chunks() if chunk.uid in found}
    assert titles == {"Ledger of Arbor", "Ledger of Clay"}
    assert any(
        "Clay" in one.subquery.text for one in answer.steps[0].retrieved[1:]
    )  # its chunk was shown instead of a gist


def test_a_gist_that_fails_for_good_costs_its_unit_alone(open_client: Callable[..., HGMem]) -> None:
    def failing(task: Any) -> TextReply:
        if "paragraph 7 " in task.texts[0][1]:
            raise ModelError("the server said no")
        return TextReply(text="A gist.")

    client = opened(open_client, model=scripted(gist=failing))
    client.add([document("Arbor", paragraphs("Arbor", 30))], graph=False)
    done = client.build("memorag", settings=SMALL)
    assert (done.failed, done.made > 3) == (1, True)
    notes = client.ask("Where?", system="memorag").notes
    assert any("is not whole (status incomplete)" in note for note in notes)
    assert client.build("memorag").failed == 1
    client.model = scripted(gist=lambda _: TextReply(text="A gist."))
    assert client.build("memorag", retry_failed=True).failed == 0
    assert client.status().builds[0].status == "ready"


@pytest.mark.parametrize(
    ("texts", "question"),
    [
        (["One sentence stands here alone."], "What stands here?"),
        (["大桥在一八七四年断了。没有人说话。他们都害怕水。" * 12], "他们害怕什么？"),
        (["انكسر الجسر في عام ١٨٧٤. لم يتكلم أحد. كلهم يخافون من الماء. " * 12], "من ماذا يخافون؟"),
        ([f"Entry {at}: house {at} paid {at} pounds." for at in range(300)], "Which house paid 77 pounds?"),
    ],
)
def test_any_corpus_has_a_memory(open_client: Callable[..., HGMem], texts: list[str], question: str) -> None:
    client = opened(open_client)
    client.add([Document(id=f"d{at}", title=f"T{at}", text=text) for at, text in enumerate(texts)], graph=False)
    done = client.build("memorag", settings=SMALL)
    assert (done.failed, done.made > 0) == (0, True)
    assert done.made <= max(1, len(texts) // 4) + 20
    assert client.ask(question, system="memorag").citations


def test_summaries_have_key_points_and_citations(pyramid: HGMem) -> None:
    summary = pyramid.memorag.summarise(theme="the sale of anchors", where=["kind=Arbor", "kind=Briar"], key_points=9)
    assert summary.text
    assert summary.citations[0].quote
    assert f"[{summary.citations[0].marker}]" in summary.text
    memory = pyramid.memory(summary.memory)
    concerns = [one.subquery.concern for one in memory.steps[0].retrieved]
    assert concerns[0] == "question"
    assert set(concerns[1:]) == {"key point"}
    assert len(concerns) <= 10
    assert memory.steps[0].filters == {"kind": ("Arbor", "Briar")}
    with pytest.raises(UsageError, match=r"theme= has 8,001 characters, more than the limit of 8000: shorten it"):
        pyramid.memorag.summarise(theme="x" * 8_001)
    with pytest.raises(UsageError, match="key_points"):
        pyramid.memorag.summarise(key_points=0)
    with pytest.raises(UsageError, match=r"invalid --where 'Arbor' \(where=\): use KEY=VALUE"):
        pyramid.memorag.summarise(where=["Arbor"])


def summarised(client: HGMem, **given: Any) -> tuple[list[Any], Any]:
    """Return the tasks for clues and that for the answer of a summary."""
    client.model.tasks.clear()
    client.memorag.summarise(**given)
    *clues, answer = client.model.tasks
    return clues, answer


def test_a_summary_reads_all_of_memory_by_the_recipe_of_the_build(open_client: Callable[..., HGMem]) -> None:
    gist = "A bell of the harbour was sold."
    model = scripted(
        gist=lambda task: TextReply(text=" ".join([gist] * 3)),
        clues=lambda task: CluesReply(key_points=tuple(f"The bell {at} was sold." for at in range(9))),
    )
    client = opened(open_client, model=model)
    client.add([document(name, paragraphs(name, 30)) for name in ("Arbor", "Briar", "Cedar")], graph=False)
    client.build("memorag", recipe="paper", settings={**SMALL, "memory_tokens": 5_000})
    clues, answer = summarised(client)
    assert [(task.kinds, task.limit, task.theme) for task in clues] == [(("key_points",), 512, False)]
    assert len(clues[0].memory) == client.memorag.levels()[0].gists
    assert "language of the passages" in answer.language
    assert len(summarised(client, theme="bells")[0][0].memory) == len(clues[0].memory)
    for name in ("Arbor", "Cedar"):
        parts = summarised(client, where=[f"kind={name}"])[0]
        assert {one.title for part in parts for one in part.memory} == {f"Ledger of {name}"}


def test_a_summary_of_documents_that_share_gists_reads_their_chunks_in_parts(open_client: Callable[..., HGMem]) -> None:
    client = opened(open_client, model=scripted(clues=lambda task: CluesReply(key_points=("The bell was sold.",))))
    names = [f"{word}{number}" for word in ("Clay", "Dell") for number in range(12)]
    client.add(
        [Document(id=name, title=name, text=f"In {name} a bell was sold to nobody.") for name in names], graph=False
    )
    client.build("memorag", settings=SMALL)
    parts = summarised(client, where=["title=Clay*"], key_points=6)[0]
    assert all(sum(one.tokens for one in part.memory) <= 100 for part in parts)
    assert {part.most for part in parts} == {-(-6 // len(parts))}
    assert len(parts) > 1
    shown = [one.title for part in parts for one in part.memory]
    assert shown == sorted(name for name in names if name.startswith("Clay"))


def test_a_summary_without_a_theme_searches_by_key_points_alone(pyramid: HGMem) -> None:
    for theme, first in (("", "key point"), ("the sale of anchors", "question")):
        summary = pyramid.memorag.summarise(theme=theme)
        concerns = [one.subquery.concern for one in pyramid.memory(summary.memory).steps[0].retrieved]
        assert concerns[0] == first
        assert set(concerns[1:]) == {"key point"}
        assert summary.citations


def test_a_summary_of_the_whole_text_reads_it_in_parts(open_client: Callable[..., HGMem]) -> None:
    client = opened(open_client, model=scripted())
    client.add([document("Arbor", paragraphs("Arbor", 30))], graph=False)
    client.build("memorag", recipe="full", settings={"memory_tokens": 400, "passage_tokens": 128})
    parts = summarised(client)[0]
    assert [one.uid for part in parts for one in part.memory] == [chunk.uid for chunk in client.chunks()]
    assert all(sum(one.tokens for one in part.memory) <= 400 for part in parts)


def test_estimates_are_upper_bounds(open_client: Callable[..., HGMem]) -> None:
    model = scripted(gist=lambda task: TextReply(text="Bells rang in the town. " * (task.tokens // 6)))
    client = opened(open_client, model=model)
    client.add([document(name, paragraphs(name, 40)) for name in ("Arbor", "Briar")], graph=False)
    plan = client.plan_build("memorag", settings=SMALL)
    client.build("memorag", settings=SMALL)
    assert 0 < len(model.tasks) <= sum(stage.calls for stage in plan.stages)

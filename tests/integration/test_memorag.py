"""MemoRAG on a real Neo4j: answers and summaries from what clues of the gists find."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from dumping import dump
from test_gists import SMALL, document, gists, opened, paragraphs, pyramid, scripted, units

from hgmem import HGMem, UsageError
from hgmem.models.reply import TextReply
from hgmem.retrieval.clues import CluesReply
from hgmem.systems.memorag.recipes import FULL, RECIPES
from hgmem.values.inputs import Document

__all__ = ["pyramid"]


def test_a_deleted_document_leaves_no_gist_of_it(pyramid: HGMem) -> None:
    pyramid.delete(document="Briar")
    assert not any("Briar" in one["text"] or "Briar" in one["title"] for one in gists(pyramid).values())
    note = pyramid.ask("What was sold?", system="memorag", settings={"memory_tokens": 100}).notes[0]
    assert "stale (texts were deleted)" in note
    pyramid.build("gists")
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


def test_the_answer_sees_passages_in_order_and_no_clue(open_client: Callable[..., HGMem]) -> None:
    client = opened(open_client, model=scripted())
    client.add([document("Arbor", paragraphs("Arbor", 12))], graph=False)
    client.build("gists", settings=SMALL)
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
    client.build("gists", settings=SMALL)
    top = client.gists.levels()[-1]
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
    client.build("gists", recipe="paper")
    client.ask("Where?", system="memorag", recipe="paper")
    assert [task.kinds for task in client.model.tasks if task.name == "clues"] == [("spans",), ("queries",)]


def test_the_whole_text_is_a_memory_without_a_build(client: HGMem) -> None:
    client.add([document("Arbor", paragraphs("Arbor", 5))], graph=False)
    with pytest.raises(
        UsageError, match=rf"has no build 'gists': make it with `hgmem build gists --corpus {client.corpus}`"
    ):
        client.ask("Where did the anchor stand?", system="memorag")
    with pytest.raises(UsageError, match=r"--set passage_tokens=2048 --set ratio=4 --set temperature=0`$"):
        client.ask("Where did the anchor stand?", system="memorag", recipe="paper")
    with pytest.raises(
        UsageError, match=r"'memorag' makes no build of its own with these options: make what it reads with `"
    ):
        client.build("memorag")
    with pytest.raises(UsageError, match="system 'memorag' has no build to make: ask it after `hgmem index`"):
        client.plan_build("memorag", recipe="full")
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
    done = client.build("gists", settings=SMALL)
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


def settings_of(client: HGMem, memory: str) -> dict[str, Any]:
    """Return the options with which a memory (uid) was written."""
    rows = dump(client.settings, client.corpus).of("Memory").values()
    (settings,) = [json.loads(str(row["settings"])) for row in rows if row["uid"] == memory]
    return dict(settings)


def summarised(client: HGMem, **given: Any) -> tuple[list[Any], Any]:
    """Return the tasks for clues and that for the answer of a summary."""
    client.model.tasks.clear()
    client.memorag.summarise(**given)
    *clues, answer = client.model.tasks
    return clues, answer


def test_a_summary_reads_all_gists_as_the_recipe_says(open_client: Callable[..., HGMem]) -> None:
    gist = "A bell of the harbour was sold."
    model = scripted(
        gist=lambda task: TextReply(text=" ".join([gist] * 3)),
        clues=lambda task: CluesReply(key_points=tuple(f"The bell {at} was sold." for at in range(9))),
    )
    client = opened(open_client, model=model)
    client.add([document(name, paragraphs(name, 30)) for name in ("Arbor", "Briar", "Cedar")], graph=False)
    client.build("gists", recipe="paper", settings={**SMALL, "memory_tokens": 5_000})
    (clue,) = summarised(client)[0]
    assert (clue.kinds, clue.limit) == (("key_points",), 0)
    clues, answer = summarised(client, recipe="paper")
    assert [(task.kinds, task.limit, task.theme) for task in clues] == [(("key_points",), 512, False)]
    assert len(clue.memory) == len(clues[0].memory)
    assert len(clues[0].memory) == client.gists.levels()[0].gists
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
    client.build("gists", settings=SMALL)
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


def test_a_summary_without_theme_and_model_has_eight_sentences_in_the_order_of_the_text(pyramid: HGMem) -> None:
    summary = pyramid.memorag.summarise()
    assert len(summary.citations) == 8
    assert len({quote.quote for quote in summary.citations}) == 8
    read = {one.uid: place for place, one in enumerate(pyramid.chunks())}
    places = [read[quote.chunk] for quote in summary.citations]
    assert places == sorted(places)
    assert pyramid.memorag.summarise(theme="the sale of anchors").text != summary.text


def test_a_summary_takes_the_options_that_the_gists_have(open_client: Callable[..., HGMem]) -> None:
    client = opened(open_client, model=scripted())
    client.add([document(name, paragraphs(name, 30)) for name in ("Arbor", "Briar")], graph=False)
    client.build("gists", recipe="paper", settings={**SMALL, "memory_tokens": 5_000})
    summary = client.memorag.summarise()
    assert not any("is read when building" in note for note in summary.notes)
    settings = {**SMALL, "memory_tokens": 5_000, "temperature": 0, "hits": RECIPES["default"].hits}
    assert settings_of(client, summary.memory).items() >= settings.items()


def test_a_summary_of_the_whole_text_reads_it_in_parts(
    open_client: Callable[..., HGMem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RECIPES, "full", replace(FULL, memory_tokens=400))
    client = opened(open_client, model=scripted())
    client.add([document("Arbor", paragraphs("Arbor", 30))], graph=False)
    parts = summarised(client, recipe="full")[0]
    assert [one.uid for part in parts for one in part.memory] == [chunk.uid for chunk in client.chunks()]
    assert all(sum(one.tokens for one in part.memory) <= 400 for part in parts)
